/*
 * The comparison as a comment on a pull request. Names come from recordings: they stand in code spans, where
 * they neither format the page nor call on anybody, and cannot leave their cell of the table.
 */
#include <string.h>

#include "base/utf8.h"
#include "diff.h"
#include "diff_words.h"

/* The longest run of backticks, which a code span's own must be longer than. */
static int longest_ticks(const char *text)
{
    int longest = 0;
    for (int run = 0; *text; text++) {
        run = *text == '`' ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest;
}

static void write_ticks(struct output *out, int count)
{
    for (int i = 0; i < count; i++)
        output_text(out, "`");
}

/* A code span that may stand in a table, where even in code a bar must be escaped. */
static void write_code(struct output *out, const char *text)
{
    int ticks = longest_ticks(text) + 1;
    write_ticks(out, ticks);
    if (ticks > 1 || text[0] == 0)
        output_text(out, " ");
    while (*text) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        if (code == UTF8_INVALID || !utf8_is_printable(code))
            for (size_t i = 0; i < length; i++)
                output_format(out, "\\x%02X", (unsigned)(unsigned char)text[i]);
        else if (code == '|')
            output_text(out, "\\|");
        else
            output_bytes(out, text, length);
        text += length;
    }
    if (ticks > 1)
        output_text(out, " ");
    write_ticks(out, ticks);
}

static void write_words(struct output *out, struct words *words)
{
    output_text(out, words->text);
    words->used = 0;
    words->text[0] = 0;
}

/* A whole number of bytes, its change and its share: figures and fixed words only, so nothing to escape. */
static void write_figures(struct output *out, uint64_t before, uint64_t after)
{
    struct words words = {0};
    words_add(&words, " | ");
    words_size(&words, before);
    words_add(&words, " | ");
    words_size(&words, after);
    words_add(&words, " | ");
    diff_add_size_change(&words, before, after);
    diff_add_share_change(&words, before, after);
    words_add(&words, " |\n");
    write_words(out, &words);
}

static void write_space_row(struct output *out, const struct compared *space, const char *what,
                            uint64_t before, uint64_t after)
{
    struct words words = {0};
    output_text(out, "| ");
    if (diff_add_space(&words, space->space, space->device))
        write_words(out, &words);
    else /* by a name that is the report's own */
        write_code(out, space->space);
    output_format(out, ": %s", what);
    write_figures(out, before, after);
}

static void write_spaces(const struct comparison *comparison, struct output *out)
{
    output_text(out, "\n| memory | before | after | change |\n|---|--:|--:|--:|\n");
    for (size_t i = 0; i < comparison->space_count; i++) {
        const struct compared *space = &comparison->spaces[i];
        write_space_row(out, space, "peak", space->before.peak_bytes, space->after.peak_bytes);
        write_space_row(out, space, "still allocated at the end", space->before.live_bytes,
                        space->after.live_bytes);
    }
}

static bool has_other_bytes(const struct compared *place)
{
    return place->change != CHANGE_NONE && (place->expected.live_bytes != place->after.live_bytes ||
                                            place->expected.peak_bytes != place->after.peak_bytes);
}

static void write_place(struct output *out, const struct compared *place)
{
    static const char *const states[] = {"", "", "new: ", "gone: "};
    output_format(out, "| %s", states[place->change]);
    write_code(out, place->site->title ? place->site->title : place->site->api);
    struct words words = {0};
    words_add(&words, " | ");
    diff_add_sizes(&words, place->before.peak_bytes, place->after.peak_bytes);
    words_add(&words, " | ");
    diff_add_sizes(&words, place->before.live_bytes, place->after.live_bytes);
    words_add(&words, " | ");
    diff_add_headline(&words, place);
    words_add(&words, " |\n");
    write_words(out, &words);
}

static void write_places(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    size_t changed = 0, listed = 0, other = 0;
    for (size_t i = 0; i < comparison->place_count; i++) {
        changed += has_other_bytes(&comparison->places[i]);
        other += comparison->places[i].change != CHANGE_NONE && !has_other_bytes(&comparison->places[i]);
    }
    if (changed > 0)
        output_format(out,
                      "\n<details%s><summary>%zu place%s changed</summary>\n\n"
                      "| place | at the peak | at the end | change |\n|---|--:|--:|--:|\n",
                      diff->failed ? " open" : "", changed, changed == 1 ? "" : "s");
    for (size_t i = 0; i < comparison->place_count; i++) {
        if (!has_other_bytes(&comparison->places[i]) || (diff->top > 0 && listed == diff->top))
            continue;
        write_place(out, &comparison->places[i]);
        listed++;
    }
    if (changed > listed)
        output_format(out, "\n… and %zu smaller changes\n", changed - listed);
    if (changed > 0)
        output_text(out, "\n</details>\n");
    if (other > 0)
        output_format(out, "\n%zu place%s differ%s only in the number of allocations.\n", other,
                      other == 1 ? "" : "s", other == 1 ? "s" : "");
}

/* No change, and bytes that totals have more or less by the length of the run. */
static void write_by_length(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    size_t listed = 0;
    if (comparison->adding_up == 0)
        return;
    output_format(out,
                  "\n<details><summary>%zu place%s add%s up by the length of the run alone</summary>\n\n"
                  "| place | at the end |\n|---|--:|\n",
                  comparison->adding_up, comparison->adding_up == 1 ? "" : "s",
                  comparison->adding_up == 1 ? "s" : "");
    for (size_t i = 0; i < comparison->place_count; i++) {
        const struct compared *place = &comparison->places[i];
        if (!comparison_adds_up(place) || (diff->top > 0 && listed == diff->top))
            continue;
        struct words words = {0};
        output_text(out, "| ");
        write_code(out, place->site->title ? place->site->title : place->site->api);
        words_add(&words, " | ");
        diff_add_sizes(&words, place->before.live_bytes, place->after.live_bytes);
        words_add(&words, " |\n");
        write_words(out, &words);
        listed++;
    }
    if (comparison->adding_up > listed)
        output_format(out, "\n… and %zu more\n", comparison->adding_up - listed);
    output_text(out, "\n</details>\n");
}

static void write_gates(const struct diff *diff, struct output *out)
{
    for (size_t i = 0; i < diff->gates.count; i++) {
        output_text(out, diff->gates.results[i].failed ? "- ❌ " : "- ✅ ");
        write_code(out, diff->gates.gates[i].text);
        output_text(out, " ");
        write_code(out, diff->gates.results[i].why);
        output_text(out, "\n");
    }
}

static void write_lengths(const struct diff *diff, struct output *out)
{
    for (size_t i = 0; i < diff->before_count; i++) {
        struct words words = {0};
        if (!diff_add_length(&words, &diff->comparison.lengths[i], diff->after_path, diff->before_paths[i]))
            continue;
        output_text(out, "\n");
        write_code(out, words.text);
        output_text(out, "\n");
    }
}

void diff_write_markdown(const struct diff *diff, struct output *out)
{
    const struct comparison *comparison = &diff->comparison;
    output_text(out, "### GPU memory: ");
    if (diff->failed > 0)
        output_format(out, "%zu of %zu conditions failed", diff->failed, diff->gates.count);
    else if (comparison->same)
        output_text(out, "no change");
    else
        output_text(out, diff->gates.count ? "within its conditions" : "changed");
    output_text(out, "\n\n");
    write_gates(diff, out);
    write_spaces(comparison, out);
    write_lengths(diff, out);
    write_places(diff, out);
    write_by_length(diff, out);
    output_text(out, "\nCompared ");
    write_code(out, diff->before_paths[0]);
    if (diff->before_count > 1)
        output_format(out, " and %zu more (their medians) ", diff->before_count - 1);
    else
        output_text(out, " ");
    output_text(out, "with ");
    write_code(out, diff->after_path);
    output_text(out, ".\n");
}
