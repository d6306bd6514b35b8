/*
 * Shorter forms of C++ and Rust functions (frames.h). What a person tells functions apart by is the path of
 * names; what stands between brackets says it again, in more words than fit a line.
 */
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "report/frames.h"

#define NESTING_MAX 64
/* Of a longer name only the beginning is looked at: a recording can give each of many frames one of 64 KiB.
 */
#define LENGTH_MAX 8192

/* Tells how a name is written out. */
struct form {
    bool tidy;            /* without what says nothing */
    bool parameters;      /* of functions */
    int template_nesting; /* arguments nested deeper become "…" */
};

static const struct form forms[] = {
    {.tidy = false, .parameters = true, .template_nesting = NESTING_MAX},
    {.tidy = true, .parameters = true, .template_nesting = NESTING_MAX},
    {.tidy = true, .parameters = false, .template_nesting = NESTING_MAX},
    {.tidy = true, .parameters = false, .template_nesting = 2},
    {.tidy = true, .parameters = false, .template_nesting = 1},
    {.tidy = true, .parameters = false, .template_nesting = 0},
};

struct writing {
    const struct form *form;
    const char *at, *end;
    char *text;
    size_t used;
    char open[NESTING_MAX]; /* '<' of templates, 'p' of Rust's paths, '(', '{', '[' */
    int count, templates;   /* open brackets; those of templates among them */
    int hidden;             /* from this one on nothing is written; 0: everything is */
    bool is_full;
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void put(struct writing *writing, const char *bytes, size_t count)
{
    writing->is_full |= !writing->hidden && writing->used + count >= SHORT_NAME_MAX;
    if (writing->hidden || writing->is_full)
        return;
    memcpy(writing->text + writing->used, bytes, count);
    writing->used += count;
}

static void copy(struct writing *writing, size_t count)
{
    put(writing, writing->at, count);
    writing->at += count;
}

/* The operator's symbols are no brackets. "operator<< <int>" has a space before those that are. */
static bool copy_operator(struct writing *writing)
{
    static const char word[] = "operator";
    const char *symbol = writing->at + strlen(word);
    if (!starts_with(writing->at, word) || (writing->used > 0 && writing->text[writing->used - 1] != ':'))
        return false;
    size_t symbols =
        starts_with(symbol, "()") || starts_with(symbol, "[]") ? 2 : strspn(symbol, "<>=!-+*/%^&|~,");
    if (symbols == 0 && *symbol != ' ')
        return false;
    copy(writing, strlen(word) + symbols);
    return true;
}

/* The closing bracket's place behind an opening one, or NULL. */
static const char *closing(const char *open, const char *end)
{
    int depth = 0;
    for (const char *at = open; at < end; at++) {
        if (*at == '<' || *at == '(')
            depth++;
        if ((*at == '>' && at[-1] != '-') || *at == ')')
            depth--;
        if (depth == 0)
            return at;
    }
    return NULL;
}

/* ", std::allocator<int>" and the like, where it is the default of what stands before. */
static bool skip_default(struct writing *writing)
{
    static const char *const defaults[] = {"allocator<", "char_traits<", "default_delete<",
                                           "less<",      "hash<",        "equal_to<"};
    const char *at = writing->at;
    if (!starts_with(at, ", std::"))
        return false;
    at += strlen(", std::");
    at += starts_with(at, "__1::") ? strlen("__1::") : 0;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        if (!starts_with(at, defaults[i]))
            continue;
        const char *end = closing(at + strlen(defaults[i]) - 1, writing->end);
        if (!end)
            return false;
        writing->at = end + 1;
        return true;
    }
    return false;
}

/* X(what stands there, what is written) */
static const struct {
    const char *from, *to;
} replacements[] = {
    {"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
    {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
    {"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >", "std::string"},
    {"std::__cxx11::", "std::"},
    {"std::__1::", "std::"},
    {"[abi:cxx11]", ""},
    {" >", ">"},
};

static bool tidy_up(struct writing *writing)
{
    if (!writing->form->tidy || (*writing->at == 's' && !starts_with(writing->at, "std::")))
        return false;
    for (size_t i = 0; i < sizeof replacements / sizeof replacements[0]; i++) {
        if (!starts_with(writing->at, replacements[i].from))
            continue;
        if (strcmp(replacements[i].from, " >") == 0) { /* the bracket itself is still to be counted */
            writing->at++;
            return true;
        }
        put(writing, replacements[i].to, strlen(replacements[i].to));
        writing->at += strlen(replacements[i].from);
        return true;
    }
    return skip_default(writing);
}

static void open_bracket(struct writing *writing)
{
    char bracket = *writing->at;
    /* "<Vec<T> as Drop>::drop" and "f::<impl Drop for T>::drop" are paths. */
    if (bracket == '<' && (writing->used == 0 || starts_with(writing->at, "<impl ")))
        bracket = 'p';
    bool empty = writing->at[1] == ')' || writing->at[1] == '>';
    copy(writing, 1);
    if (writing->count == NESTING_MAX)
        return;
    writing->open[writing->count++] = bracket;
    writing->templates += bracket == '<';
    bool hides = (bracket == '<' && writing->templates > writing->form->template_nesting) ||
                 (bracket == '(' && writing->templates == 0 && !writing->form->parameters);
    if (!hides || empty || writing->hidden)
        return;
    put(writing, "…", strlen("…"));
    writing->hidden = writing->count;
}

static bool closes(const struct writing *writing)
{
    char open = writing->count ? writing->open[writing->count - 1] : 0;
    switch (*writing->at) {
    case '>':
        return (open == '<' || open == 'p') && writing->at[-1] != '-';
    case ')':
        return open == '(';
    case '}':
        return open == '{';
    case ']':
        return open == '[';
    default:
        return false;
    }
}

static void close_bracket(struct writing *writing)
{
    if (writing->hidden == writing->count)
        writing->hidden = 0;
    writing->templates -= writing->open[--writing->count] == '<';
    copy(writing, 1);
}

static void write_form(struct writing *writing, const char *function)
{
    static const char unnamed[] = "(anonymous namespace)";
    uint32_t code;
    writing->at = function;
    writing->end = function + strnlen(function, LENGTH_MAX);
    while (writing->at < writing->end && !writing->is_full) {
        if (!strchr("os,[ <({>)}]-", *writing->at) && (unsigned char)*writing->at < 0x80) {
            copy(writing, 1); /* begins nothing that is looked for below */
            continue;
        }
        if (copy_operator(writing) || tidy_up(writing))
            continue;
        if (starts_with(writing->at, unnamed))
            copy(writing, strlen(unnamed));
        else if (strchr("<({[", *writing->at))
            open_bracket(writing);
        else if (closes(writing))
            close_bracket(writing);
        else
            copy(writing, utf8_next(writing->at, &code));
    }
    if (writing->at >= writing->end && *writing->at) {
        writing->hidden = 0;
        put(writing, "…", strlen("…"));
    }
    writing->text[writing->used] = '\0';
}

/* In so many columns, each character taken for one. */
static bool fits(const char *text, int columns)
{
    for (; *text && columns >= 0; text++)
        columns -= ((unsigned char)*text & 0xc0) != 0x80;
    return columns >= 0;
}

const char *short_name(const char *function, int columns, char text[SHORT_NAME_MAX])
{
    if (fits(function, columns))
        return function;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct writing writing = {.form = &forms[i], .text = text};
        write_form(&writing, function);
        if (!writing.is_full && fits(text, columns))
            break;
    }
    return text;
}
