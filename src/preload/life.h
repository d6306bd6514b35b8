/* What src/hooks/process.c tells the library about the process's life. */
#ifndef PRELOAD_LIFE_H
#define PRELOAD_LIFE_H

/* The program is about to leave without running atexit handlers: _exit(), _Exit(). */
void preload_leaving(void);

#endif
