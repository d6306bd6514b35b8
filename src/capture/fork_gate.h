/*
 * Keeps fork() and what must not be interrupted by it apart: code of ours that takes locks which are not ours
 * (the dynamic linker's, libunwind's), and which would stay locked in the child if another thread held them.
 */
#ifndef CAPTURE_FORK_GATE_H
#define CAPTURE_FORK_GATE_H

/* Around such code; nests. Neither waits for longer than a second or so: a deadlock with other locks of the
 * program, which fork handlers can also take, would be worse than what the gate is for. Who closes it passes
 * through until it is open again. */
void fork_gate_enter(void);
void fork_gate_leave(void);

void fork_gate_close(void);
void fork_gate_open(void);
/* In the child: nobody else is inside. */
void fork_gate_reset(void);

#endif
