/*
 * The recording: a file named *.gmt that the traced process appends to while it runs.
 *
 * The file is a header of one page and then records, each a tag byte and fields, packed without gaps.
 * Integers are little-endian in the header and LEB128 varints in the records ("u": unsigned; "s": signed,
 * zigzag). A reader trusts the header's `committed` and looks at nothing beyond it: the writer moves it only
 * after a record is whole, so a process killed at any instruction leaves every committed record behind. Bytes
 * after `committed` are reserved space and mean nothing.
 *
 * A recording of any length stays under a size. The file has two halves of `half_bytes` each. Records fill
 * the first; when it is full, the other half is begun anew with all definitions and a checkpoint, STATE
 * records of everything that had come of the events so far, and goes on with the newest events; and so on in
 * turns. `committed` counts as if halves followed each other without end: generation g is what lies in [g *
 * half_bytes, (g + 1) * half_bytes), it is kept in the half of g's lowest bit, and its records start
 * `header_size` behind its beginning. The store that moves `committed` into a generation makes it the
 * recording. Whoever reads while the process runs must look at `begun` afterwards: from generation g + 2 on,
 * what was read of g may have been overwritten meanwhile.
 *
 * Definitions come before whatever refers to them and number themselves: the n-th string record defines
 * string n, the n-th module record module n, and so on, from 0. Names and ids are therefore only good inside
 * one file.
 *
 * Versions: a reader refuses a file whose `version` is newer than its own. Within a version, new record tags
 * may be added only from TRACE_TAG_SKIPPABLE on, where every record has its length behind the tag, so that an
 * older reader can step over it.
 */
#ifndef GPUMEMTRACE_TRACE_H
#define GPUMEMTRACE_TRACE_H

#include <stdint.h>

#define TRACE_MAGIC       "GPUMTRC" /* with its NUL: 8 bytes */
#define TRACE_VERSION     1
#define TRACE_HEADER_SIZE 4096
#define TRACE_SUFFIX      ".gmt"

/* How the process ended, as far as the recording knows. A file that still says TRACE_RUNNING belongs to a
 * process that lives (its pid and process_start_ticks match one of this host and boot) or was killed. */
enum trace_state {
    TRACE_RUNNING = 0,
    TRACE_EXITED = 1, /* the library wrote its reports and closed the recording */
};

/* The first page of the file. Everything is written before the first record, except where noted. */
struct trace_header {
    char magic[8];
    uint32_t version;
    uint32_t header_size; /* records start here */
    uint64_t committed;   /* live: offset of the first byte that is not yet a whole record; see above */
    uint32_t state;       /* at the end: enum trace_state */
    uint32_t pid, ppid;
    uint32_t reserved;
    uint64_t start_realtime_ns;   /* CLOCK_REALTIME when the recording began */
    uint64_t start_monotonic_ns;  /* CLOCK_MONOTONIC then: event times count from here */
    uint64_t process_start_ticks; /* field 22 of /proc/PID/stat; 0 when unknown */
    uint64_t end_ns;              /* at the end: time since the start */
    uint64_t dropped_events;      /* live: happened, but could not be recorded here */
    char boot_id[40];             /* /proc/sys/kernel/random/boot_id, NUL-terminated */
    char session[40];             /* names one `gpumemtrace run`; empty otherwise */
    uint64_t half_bytes;          /* 0: the file is one stretch, without generations */
    uint64_t begun;               /* live: the newest generation of which anything may have been written */
};

/*
 * Records. Tags 1 to 15 define things; 16 and above are events, listed with their fields in
 * src/ledger/event.h; tags from TRACE_TAG_SKIPPABLE are followed by u length and that many bytes.
 *
 *   STRING   u length, bytes            at most TRACE_STRING_MAX; not NUL-terminated, usually UTF-8
 *   MODULE   u path, u bias, u start, u end - start, u file size, u mtime in ns, u n, n bytes of build-id
 *   NATIVE   u module + 1 (0: none), u offset
 *   PYTHON   u function, u file, u line (0: unknown)
 *   STACK    u n, n times s (frame id - the previous frame id, the first from 0); innermost first; n is at
 *            most TRACE_FRAMES_MAX
 *   SITE     u stack + 1 (0: none), u api, u family, u space, u device + 1 (0: none; below 257)
 *   PROCESS  u n, at most TRACE_FRAMES_MAX, n string ids: exe, host, rank (empty: none), then the arguments
 *   NOTE     u string                a sentence for the report's notes; at most TRACE_NOTES_MAX of them
 *   CHECKPOINT  u time in ns         of the newest event before; stands before any event and any STATE
 *   STATE    u kind, u n, n values u part of a checkpoint, before any event; see src/ledger/state.h
 *
 * An event is its tag, s (time in ns - the previous event's), and then those of its fields that its row
 * names, in this order: SITE u, KEY: u key space, s (number - the previous key's number in that key space);
 * SIZE u, CONTEXT u, BORN u, ERROR u, FREE_BYTES u, TOTAL_BYTES u, DEVICE u, NAME u (a string), RANGE u,
 * COUNT u, DETAIL u.
 * ERROR and DEVICE are ints in 32 bits of two's complement. Each generation's first event, and its first key
 * of a key space, have 0 before them.
 */
enum trace_tag {
    TRACE_STRING = 1,
    TRACE_MODULE = 2,
    TRACE_NATIVE = 3,
    TRACE_PYTHON = 4,
    TRACE_STACK = 5,
    TRACE_SITE = 6,
    TRACE_PROCESS = 7,
    TRACE_NOTE = 8,
    TRACE_STATE = 9,
    TRACE_CHECKPOINT = 10,
    TRACE_TAG_FIRST_EVENT = 16,
    TRACE_TAG_SKIPPABLE = 128,
};

#define TRACE_STRING_MAX 65535
#define TRACE_FRAMES_MAX 4096
#define TRACE_NOTES_MAX  256
/* The largest record but for skippable ones: a string, with its tag and length. */
#define TRACE_RECORD_MAX (TRACE_STRING_MAX + 32)

#endif
