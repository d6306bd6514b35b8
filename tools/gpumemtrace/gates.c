/* The conditions of one command line, together; see gate.h. */
#include <unistd.h>

#include "base/output.h"
#include "command.h"
#include "gate.h"

void gates_add(struct gates *gates, const struct command *command, const char *text)
{
    char error[512];
    if (gates->count == GATES_MAX)
        usage_error(command, "more than %d conditions", GATES_MAX);
    if (gate_read(&gates->gates[gates->count], text, error, sizeof(error)) != 0)
        usage_error(command, "%s", error);
    gates->count++;
}

bool gates_take_word(struct gates *gates, const char *word)
{
    char error[512];
    if (gates->count == 0 || gates->count == GATES_MAX || access(word, F_OK) == 0 ||
        gate_read(&gates->gates[gates->count], word, error, sizeof(error)) != 0)
        return false;
    gates->count++;
    return true;
}

bool gates_need_baseline(const struct gates *gates)
{
    for (size_t i = 0; i < gates->count; i++)
        if (gates->gates[i].relative)
            return true;
    return false;
}

size_t gates_check(struct gates *gates, const struct comparison *comparison)
{
    size_t failed = 0;
    for (size_t i = 0; i < gates->count; i++) {
        gate_check(&gates->gates[i], comparison, &gates->results[i]);
        failed += gates->results[i].failed;
    }
    return failed;
}

void gates_complain(const struct gates *gates, const char *subject)
{
    struct output out;
    const char *between = "";
    output_init(&out, STDERR_FILENO);
    output_text(&out, "gpumemtrace: ");
    if (subject) {
        output_safe(&out, subject);
        output_text(&out, ": ");
    }
    for (size_t i = 0; i < gates->count; i++) {
        if (!gates->results[i].failed)
            continue;
        output_text(&out, between);
        output_safe(&out, gates->gates[i].text);
        output_text(&out, " failed: ");
        output_safe(&out, gates->results[i].why);
        between = "; ";
    }
    output_text(&out, "\n");
    output_flush(&out);
}
