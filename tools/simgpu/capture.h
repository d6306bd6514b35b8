/*
 * Stream capture: a stream that captures does no work but writes it into a graph, and while one does, calls
 * that would break the order of the graph are refused, in threads and streams that its mode covers.
 */
#ifndef SIMGPU_CAPTURE_H
#define SIMGPU_CAPTURE_H

#include "stream.h"

struct graph;

struct event {
    struct handle handle;
    unsigned flags;
    bool recorded;
    uint64_t nanoseconds;    /* of its record, on CLOCK_MONOTONIC */
    struct capture *capture; /* recorded inside this one */
    struct node_list behind; /* what was last on the stream then */
    struct event *next_captured;
};

/* CUDA_SUCCESS, or the error for a call that a running capture forbids to this thread; that capture is then
 * invalid. */
CUresult capture_forbids(void);
/* The same for work given to a stream, and for waiting for one. */
CUresult capture_allows_work(struct stream *stream);
CUresult capture_forbids_wait(struct stream *stream);
CUresult capture_record(struct stream *stream, struct event *event);
/* A stream waits for an event: one of a capture draws the stream into that capture. */
CUresult capture_wait(struct stream *stream, struct event *event);
/* The stream ends: its capture, if it has one, becomes invalid. */
void capture_abandon(struct stream *stream);
/* The event ends, or is recorded outside a capture. */
void event_leave_capture(struct event *event);
void event_end(struct event *event);

/* The graph that a capturing stream writes. */
struct graph *capture_graph(const struct stream *stream);

struct stream *context_legacy_stream(struct context *context);
void stream_end(struct stream *stream);
/* A thread's own default stream must leave its capture before the thread ends. */
void stream_begins_capture(const struct stream *stream);

#endif
