/*
 * The title of a site: the one line of the reader's own code that stands for it. Mostly the innermost line of
 * their own; but a helper that everything allocates through (`def alloc(n)`) names nothing, so where at least
 * half of all sites share their innermost own lines and differ further out, the title moves out to where they
 * differ. Sites of one title share a line of code, whichever addresses of it they went through.
 */
#include <string.h>

#include "base/sort.h"
#include "report/model.h"

#define OWN_MAX 16 /* own frames looked at, per site */

/* One site's own frames, innermost first, and which of them is the title. */
struct trail {
    uint32_t site;
    uint32_t count, title;
    uint32_t frames[OWN_MAX];
};

/* What a title is taken from, best first. */
static const struct {
    enum frame_kind kind;
    enum frame_rank worst;
} choices[] = {
    {FRAME_PYTHON, RANK_OWN},     {FRAME_PYTHON, RANK_TYPED},   {FRAME_NATIVE, RANK_OWN},
    {FRAME_PYTHON, RANK_LIBRARY}, {FRAME_NATIVE, RANK_LIBRARY}, {FRAME_PYTHON, RANK_RUNTIME},
    {FRAME_NATIVE, RANK_RUNTIME},
};

static const struct named_frame *best_name(const struct report *report, uint32_t frame, enum frame_kind kind,
                                           enum frame_rank worst)
{
    if (!catalog_frame(report->input->catalog, frame))
        return NULL;
    const struct frame_names *names = &report->names[frame];
    for (uint32_t i = 0; i < names->count; i++)
        if (names->names[i].kind == kind && names->names[i].rank <= worst)
            return &names->names[i];
    return NULL;
}

/* Where nothing is the reader's own, the package that the run began in is what they use: vllm's line says
 * more than that of PyTorch which it calls. Returns a name in that package, as package_of(). */
static const char *application(const struct report *report, const struct stack *stack, size_t *length)
{
    for (uint32_t k = stack->count; k-- > 0;) {
        const struct named_frame *name = best_name(report, stack->frames[k], FRAME_PYTHON, RANK_LIBRARY);
        const char *package = name && name->file ? package_of(name->file, length) : NULL;
        if (package)
            return package;
    }
    return NULL;
}

static bool is_in_package(const struct named_frame *name, const char *package, size_t length)
{
    size_t own_length;
    const char *own = name->file ? package_of(name->file, &own_length) : NULL;
    return own && own_length == length && memcmp(own, package, length) == 0;
}

/* Adds the frames that choice number `c` takes; only those in `package`, where that is not NULL. */
static void collect(const struct report *report, const struct stack *stack, size_t c, const char *package,
                    size_t length, struct trail *trail)
{
    for (uint32_t k = 0; k < stack->count && trail->count < OWN_MAX; k++) {
        const struct named_frame *name =
            best_name(report, stack->frames[k], choices[c].kind, choices[c].worst);
        if (name && (!package || is_in_package(name, package, length)))
            trail->frames[trail->count++] = stack->frames[k];
    }
}

static void follow(const struct report *report, uint32_t site, struct trail *trail)
{
    const struct stack *stack = report->sites[site].stack;
    size_t length = 0;
    *trail = (struct trail){.site = site};
    for (size_t c = 0; stack && trail->count == 0 && c < sizeof choices / sizeof choices[0]; c++) {
        bool installed = choices[c].kind == FRAME_PYTHON && choices[c].worst == RANK_LIBRARY;
        const char *package = installed ? application(report, stack, &length) : NULL;
        collect(report, stack, c, package, length, trail);
        if (package && trail->count == 0)
            collect(report, stack, c, NULL, 0, trail);
    }
}

static int compare_at(const void *left, const void *right, const void *context)
{
    const struct trail *a = left, *b = right;
    uint32_t at = *(const uint32_t *)context;
    return (a->frames[at] > b->frames[at]) - (a->frames[at] < b->frames[at]);
}

/* How far the group's trails are equal; 0 when one of them ends there, so that moving out would not tell it
 * apart. */
static uint32_t common_length(const struct trail *group, size_t count, uint32_t from)
{
    for (uint32_t at = from;; at++) {
        for (size_t i = 0; i < count; i++) {
            if (at >= group[i].count)
                return 0;
        }
        for (size_t i = 1; i < count; i++)
            if (group[i].frames[at] != group[0].frames[at])
                return at;
    }
}

static const char *file_of(const struct report *report, uint32_t frame)
{
    return report->names[frame].count ? report->names[frame].names->file : NULL;
}

static bool is_in(const struct report *report, uint32_t frame, const char *file)
{
    const char *of_frame = file_of(report, frame);
    return of_frame && strcmp(of_frame, file) == 0;
}

/* Where each trail leaves `file`, if all do and at places that tell every one of them apart: then the whole
 * file is a helper. Titles are only set when so. */
static bool leave_file(const struct report *report, struct trail *group, size_t count, uint32_t from,
                       const char *file)
{
    static const uint32_t first = 0;
    struct trail *exits = pages_alloc(count * sizeof *exits);
    bool apart = exits != NULL && file != NULL;
    for (size_t i = 0; apart && i < count; i++) {
        uint32_t at = from;
        while (at < group[i].count && is_in(report, group[i].frames[at], file))
            at++;
        apart = at < group[i].count;
        if (apart)
            exits[i] = (struct trail){.site = (uint32_t)i, .title = at, .frames = {group[i].frames[at]}};
    }
    apart = apart && sort_items(exits, count, sizeof *exits, compare_at, &first);
    for (size_t i = 1; apart && i < count; i++)
        apart = exits[i].frames[0] != exits[i - 1].frames[0];
    for (size_t i = 0; apart && i < count; i++)
        group[exits[i].site].title = exits[i].title;
    pages_free(exits, count * sizeof *exits);
    return apart;
}

/* A line that one function reaches by two of its lines is no helper. */
static bool is_called_by_several(const struct report *report, const struct trail *group, size_t count,
                                 uint32_t at)
{
    const struct named_frame *first = report->names[group[0].frames[at]].names;
    for (size_t i = 1; i < count; i++) {
        const struct named_frame *other = report->names[group[i].frames[at]].names;
        if (other->function != first->function || other->file != first->file)
            return true;
    }
    return false;
}

/* The first frame from `from` on, before `end`, in another file; `end` when there is none. */
static uint32_t leaves_file(const struct report *report, const struct trail *trail, uint32_t from,
                            uint32_t end)
{
    const char *file = file_of(report, trail->frames[from]);
    for (uint32_t at = from; file && at < end; at++)
        if (!is_in(report, trail->frames[at], file))
            return at;
    return end;
}

/* `trails` share everything before `at`. `helper` is the file of the helper they all go through, NULL at
 * first: its other functions are part of the helper even when few sites use them. The first step out takes
 * any two callers, later ones are more careful. */
static bool settle(const struct report *report, struct trail *trails, size_t count, size_t all, uint32_t at,
                   const char *helper)
{
    if (!sort_items(trails, count, sizeof *trails, compare_at, &at))
        return false;
    for (size_t from = 0, end; from < count; from = end) {
        for (end = from + 1; end < count && trails[end].frames[at] == trails[from].frames[at];)
            end++;
        size_t group = end - from;
        if (group < 2 || (group * 2 < all && !(helper && is_in(report, trails[from].frames[at], helper))))
            continue;
        uint32_t fork = common_length(trails + from, group, at + 1);
        if (fork == 0)
            continue;
        bool several = is_called_by_several(report, trails + from, group, fork);
        uint32_t outside = several ? fork : leaves_file(report, &trails[from], at, fork);
        if (helper && !several)
            continue;
        for (size_t i = from; i < end; i++)
            trails[i].title = outside;
        if (outside != fork)
            continue;
        const char *file = file_of(report, trails[from].frames[fork - 1]);
        if (!leave_file(report, trails + from, group, fork, file) &&
            !settle(report, trails + from, group, all, fork, file))
            return false;
    }
    return true;
}

static void keep_title(struct report *report, const struct trail *trail)
{
    struct report_site *site = &report->sites[trail->site];
    if (trail->count == 0)
        return;
    site->title_frame = trail->frames[trail->title];
    if (trail->title + 1 < trail->count)
        site->caller_frame = trail->frames[trail->title + 1];
    for (size_t c = 0; !site->title && c < sizeof choices / sizeof choices[0]; c++)
        site->title = best_name(report, site->title_frame, choices[c].kind, choices[c].worst);
}

static int compare_text(const char *a, const char *b)
{
    if (a == b)
        return 0;
    return !a ? -1 : !b ? 1 : strcmp(a, b);
}

/* By what makes a line of code. A title without a line stands for its frame alone. */
static int compare_titles(const void *left, const void *right, const void *context)
{
    const struct report *report = context;
    const struct report_site *one = &report->sites[*(const uint32_t *)left];
    const struct report_site *other = &report->sites[*(const uint32_t *)right];
    const struct named_frame *a = one->title, *b = other->title;
    if (!a || !b)
        return (a != NULL) - (b != NULL);
    int order = a->kind != b->kind ? (a->kind > b->kind) - (a->kind < b->kind) : a->line - b->line;
    if (order == 0 && a->line == 0)
        order = (one->title_frame > other->title_frame) - (one->title_frame < other->title_frame);
    if (order == 0)
        order = compare_text(a->file, b->file);
    return order ? order : compare_text(a->function, b->function);
}

static bool number_lines(struct report *report)
{
    size_t bytes = (report->site_count + 1) * sizeof(uint32_t);
    uint32_t *order = pages_alloc(bytes);
    if (!order)
        return false;
    for (uint32_t i = 0; i < report->site_count; i++)
        order[i] = i;
    bool sorted = sort_items(order, report->site_count, sizeof *order, compare_titles, report);
    for (size_t i = 0; sorted && i < report->site_count; i++) {
        struct report_site *site = &report->sites[order[i]];
        bool same = i > 0 && site->title && compare_titles(&order[i - 1], &order[i], report) == 0;
        site->line = same ? report->line_count - 1 : report->line_count++;
    }
    pages_free(order, bytes);
    return sorted;
}

bool report_build_titles(struct report *report)
{
    size_t bytes = (report->site_count + 1) * sizeof(struct trail), count = 0;
    struct trail *trails = pages_alloc(bytes);
    if (!trails)
        return false;
    for (uint32_t i = 0; i < report->site_count; i++) {
        follow(report, i, &trails[count]);
        count += trails[count].count > 0;
    }
    bool settled = settle(report, trails, count, count, 0, NULL);
    for (size_t i = 0; i < count; i++)
        keep_title(report, &trails[i]);
    pages_free(trails, bytes);
    return settled && number_lines(report);
}
