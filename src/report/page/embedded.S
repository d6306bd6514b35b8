/* The page's own parts, as assemble.sh made them; the assembler is told their folder. */

    .section .rodata
    .macro  part name, file
    .globl  \name, \name\()_end
    .type   \name, %object
\name:
    .incbin "\file"
\name\()_end:
    .byte   0
    .size   \name, . - \name
    .endm

    part    page_before_data, before-data.html
    part    page_after_data, after-data.html
    .section .note.GNU-stack, "", %progbits
