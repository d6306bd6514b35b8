/* The page's own parts, as assemble.sh made them; the assembler is told their folder. */
    .section .rodata
    .macro  part name, file
    .globl  \name, \name\()_bytes
    .type   \name, %object
\name:
    .incbin "\file"
    .size   \name, . - \name
    .set    \name\()_length, . - \name
    .p2align 2
    .type   \name\()_bytes, %object
\name\()_bytes:
    .4byte  \name\()_length
    .size   \name\()_bytes, 4
    .endm

    part    page_before_data, before-data.html
    part    page_after_data, after-data.html
    .section .note.GNU-stack, "", %progbits
