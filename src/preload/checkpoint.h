/* Keeping the recording under its size: what a full one is begun anew with (trace/writer.h). */
#ifndef PRELOAD_CHECKPOINT_H
#define PRELOAD_CHECKPOINT_H

struct trace_writer;

/* A trace_put_everything of all that this process has in its books. Under the lock; takes no memory. */
void preload_checkpoint(struct trace_writer *writer, void *unused);

#endif
