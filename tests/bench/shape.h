/* A native stack as deep, and as different from others, as a measurement wants it (shape.c). */
