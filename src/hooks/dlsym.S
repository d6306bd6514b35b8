/*
 * The exported dlsym: asks loader_answer(handle, name, return address). It answers in two registers: an
 * address, and whether that is the result or the dlsym to go on to. Going on is a jump with registers and
 * stack as the caller left them, since the real dlsym takes its caller from the return address.
 */
    .text
    .globl  dlsym
    .hidden loader_answer
    .type   dlsym, %function
    .p2align 4

#if defined(__x86_64__)

dlsym:
    .cfi_startproc
    endbr64
    movq    (%rsp), %rdx            /* the return address, third argument */
    pushq   %rdi
    .cfi_adjust_cfa_offset 8
    pushq   %rsi
    .cfi_adjust_cfa_offset 8
    subq    $8, %rsp                /* 16-byte alignment at the call */
    .cfi_adjust_cfa_offset 8
    call    loader_answer
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %rsi
    .cfi_adjust_cfa_offset -8
    popq    %rdi
    .cfi_adjust_cfa_offset -8
    testq   %rdx, %rdx
    jz      1f
    ret
1:  jmp     *%rax
    .cfi_endproc

#elif defined(__aarch64__)

dlsym:
    .cfi_startproc
    hint    #34                     /* bti c */
    stp     x29, x30, [sp, #-32]!
    .cfi_adjust_cfa_offset 32
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov     x29, sp
    stp     x0, x1, [sp, #16]
    mov     x2, x30                 /* the return address, third argument */
    bl      loader_answer
    mov     x16, x0
    mov     x17, x1
    ldp     x0, x1, [sp, #16]
    ldp     x29, x30, [sp], #32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    cbz     x17, 1f
    mov     x0, x16
    ret
1:  br      x16
    .cfi_endproc

#else
#error "no dlsym trampoline for this architecture"
#endif

    .size   dlsym, . - dlsym
    .section .note.GNU-stack, "", %progbits
