/* What the user asks for by GPUMEMTRACE_* (preload/config.h): every value that is good, and what becomes of
 * one that is not: its default, and one line that names it. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/config.h"
#include "scratch.h"

static struct config config;
static bool is_secure; /* as in a program that runs with rights its user does not have */

/* In place of the C library's. */
char *secure_getenv(const char *name)
{
    return is_secure ? NULL : getenv(name);
}

static int set_up(void **state)
{
    (void)state;
    const char *folder = scratch_folder(); /* asks for TMPDIR */
    is_secure = false;
    clearenv();
    return chdir(folder);
}

static void read_with(const char *name, const char *value)
{
    setenv(name, value, 1);
    config_read(&config);
    unsetenv(name);
}

static void assert_defaults(void)
{
    char output[CONFIG_PATH_MAX];
    snprintf(output, sizeof output, "%s/gpumemtrace.%%p", scratch_folder());
    assert_false(config.disabled || config.quiet);
    assert_true(config.report_text && config.report_json);
    assert_int_equal(config.stacks, CAPTURE_MIXED);
    assert_int_equal(config.depth, 64);
    assert_int_equal(config.max_trace_bytes, 1 << 30);
    assert_string_equal(config.session, "");
    assert_string_equal(config.rank, "");
    assert_string_equal(config.output, output);
}

static void test_without_variables_the_defaults_hold(void **state)
{
    (void)state;
    memset(&config, 0xff, sizeof config);
    config_read(&config);
    assert_defaults();
    assert_string_equal(config.complaints, "");
}

static void test_a_value_that_is_not_understood_is_named_and_its_default_used(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"GPUMEMTRACE_REPORT", ""},
        {"GPUMEMTRACE_REPORT", "txt"},
        {"GPUMEMTRACE_REPORT", "text,"},
        {"GPUMEMTRACE_REPORT", "text,none"},
        {"GPUMEMTRACE_REPORT", "text json"},
        {"GPUMEMTRACE_REPORT", ",json"},
        {"GPUMEMTRACE_STACKS", ""},
        {"GPUMEMTRACE_STACKS", "Python"},
        {"GPUMEMTRACE_STACKS", "native "},
        {"GPUMEMTRACE_DEPTH", "0"},
        {"GPUMEMTRACE_DEPTH", "1025"},
        {"GPUMEMTRACE_DEPTH", "-1"},
        {"GPUMEMTRACE_DEPTH", "many"},
        {"GPUMEMTRACE_DEPTH", "18446744073709551617"},
        {"GPUMEMTRACE_MAX_TRACE", ""},
        {"GPUMEMTRACE_MAX_TRACE", "2097151"},
        {"GPUMEMTRACE_MAX_TRACE", "1.5G"},
        {"GPUMEMTRACE_MAX_TRACE", "lots"},
        {"GPUMEMTRACE_OUTPUT", ""},
        {"GPUMEMTRACE_OUTPUT", "run.%d"},
        {"GPUMEMTRACE_OUTPUT", "run.%"},
        {"GPUMEMTRACE_OUTPUT", "%%%"},
        {"GPUMEMTRACE_SESSION", "a name of more than thirty-nine characters"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char start[256];
        read_with(bad[i][0], bad[i][1]);
        assert_defaults();
        snprintf(start, sizeof start, "gpumemtrace: %s=%s is not ", bad[i][0], bad[i][1]);
        if (strncmp(config.complaints, start, strlen(start)) != 0)
            fail_msg("%s=%s: '%s'", bad[i][0], bad[i][1], config.complaints);
        assert_ptr_equal(strchr(config.complaints, '\n'), config.complaints + strlen(config.complaints) - 1);
    }
}

static void test_flags_are_off_when_empty_or_zero(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool is_on;
    } values[] = {{"", false}, {"0", false}, {"1", true}, {"yes", true}, {"00", true}};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        read_with("GPUMEMTRACE_DISABLE", values[i].value);
        assert_int_equal(config.disabled, values[i].is_on);
        assert_false(config.quiet);
        read_with("GPUMEMTRACE_QUIET", values[i].value);
        assert_int_equal(config.quiet, values[i].is_on);
        assert_false(config.disabled);
        assert_string_equal(config.complaints, "");
    }
}

static void test_reports_are_a_list_or_none(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool text, json;
    } values[] = {{"text,json", true, true}, {"json,text", true, true},  {"text", true, false},
                  {"json", false, true},     {"json,json", false, true}, {"none", false, false}};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        read_with("GPUMEMTRACE_REPORT", values[i].value);
        assert_int_equal(config.report_text, values[i].text);
        assert_int_equal(config.report_json, values[i].json);
        assert_string_equal(config.complaints, "");
    }
}

static void test_stacks_depth_and_limit_are_taken(void **state)
{
    (void)state;
    static const char *const modes[] = {"none", "native", "python", "mixed"};
    for (int i = 0; i < 4; i++) {
        read_with("GPUMEMTRACE_STACKS", modes[i]);
        assert_int_equal(config.stacks, i);
    }
    read_with("GPUMEMTRACE_DEPTH", "1");
    assert_int_equal(config.depth, 1);
    read_with("GPUMEMTRACE_DEPTH", "1024");
    assert_int_equal(config.depth, 1024);
    read_with("GPUMEMTRACE_MAX_TRACE", "2M");
    assert_int_equal(config.max_trace_bytes, 2 << 20);
    read_with("GPUMEMTRACE_MAX_TRACE", "4G");
    assert_int_equal(config.max_trace_bytes, (uint64_t)4 << 30);
    read_with("GPUMEMTRACE_SESSION", "exactly-thirty-nine-characters-in-here-");
    assert_string_equal(config.session, "exactly-thirty-nine-characters-in-here-");
    assert_string_equal(config.complaints, "");
}

static void test_sizes_are_numbers_with_binary_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"1073741824", 1073741824},
                {"64K", 65536},
                {"64k", 65536},
                {"512M", 536870912},
                {"1G", 1073741824},
                {"3T", UINT64_C(3298534883328)},
                {"1GiB", 1073741824},
                {"1MB", 1048576},
                {"18446744073709551615", UINT64_MAX},
                {"16777215T", UINT64_C(16777215) << 40}};
    static const char *const bad[] = {"",
                                      "K",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5G",
                                      "0x10",
                                      "1KK",
                                      "1Q",
                                      "1iB",
                                      "1GiBs",
                                      "16777216T",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "18014398509481984K"};
    uint64_t bytes;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (!config_parse_size(good[i].text, &bytes) || bytes != good[i].bytes)
            fail_msg("%s", good[i].text);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bytes = 77;
        if (config_parse_size(bad[i], &bytes))
            fail_msg("'%s'", bad[i]);
        assert_int_equal(bytes, 77);
    }
}

static void test_the_rank_comes_from_the_first_launcher_that_tells(void **state)
{
    (void)state;
    static const char *const names[] = {"PMI_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char value[8];
        snprintf(value, sizeof value, "%zu", i + 10);
        setenv(names[i], value, 1); /* each comes before those set already */
        config_read(&config);
        assert_string_equal(config.rank, value);
    }
    static const char *const none[] = {"", "-1", "x", "1a", " 1", "1234567890"};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        setenv("RANK", none[i], 1);
        config_read(&config);
        assert_string_equal(config.rank, "12");
    }
    assert_string_equal(config.complaints, ""); /* they are not ours to judge */
}

static const char *expand(const char *pattern, size_t bytes)
{
    static char stem[CONFIG_PATH_MAX];
    assert_true(bytes <= sizeof stem);
    read_with("GPUMEMTRACE_OUTPUT", pattern);
    assert_string_equal(config.complaints, "");
    memset(stem, 'x', sizeof stem);
    bool fits = config_expand(&config, "node7", "/usr/bin/python3", stem, bytes);
    for (size_t i = bytes; i < sizeof stem; i++)
        assert_int_equal(stem[i], 'x');
    return fits ? stem : NULL;
}

static void test_the_pattern_is_expanded(void **state)
{
    (void)state;
    char expected[64];
    snprintf(expected, sizeof expected, "/out/%d", (int)getpid());
    assert_string_equal(expand("/out/%p", 4096), expected);
    assert_string_equal(expand("/out/%h-%e", 4096), "/out/node7-python3");
    assert_string_equal(expand("/%e/%e", 4096), "/python3/python3");
    assert_string_equal(expand("/out/100%%", 4096), "/out/100%");
    assert_string_equal(expand("/out/%%p", 4096), "/out/%p");
    assert_string_equal(expand("/out/r%r", 4096), "/out/r0");
    setenv("RANK", "31", 1);
    assert_string_equal(expand("/out/r%r", 4096), "/out/r31");
    assert_true(config_expand(&config, "h", "bare-name", expected, sizeof expected));
}

static void test_a_stem_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    assert_string_equal(expand("/%h", 7), "/node7");
    assert_null(expand("/%h", 6));
    assert_null(expand("/%h", 1));
}

static void test_a_folder_is_no_file_name(void **state)
{
    (void)state;
    read_with("GPUMEMTRACE_OUTPUT", "/traces/");
    assert_defaults();
    assert_non_null(strstr(config.complaints, "GPUMEMTRACE_OUTPUT=/traces/"));
}

static void test_a_path_too_long_is_named_and_the_default_used(void **state)
{
    (void)state;
    static char path[CONFIG_PATH_MAX + 10];
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    read_with("GPUMEMTRACE_OUTPUT", path);
    assert_defaults();
}

static void test_a_relative_path_means_the_folder_at_the_start(void **state)
{
    (void)state;
    char stem[CONFIG_PATH_MAX], expected[CONFIG_PATH_MAX];
    read_with("GPUMEMTRACE_OUTPUT", "traces/run");
    assert_int_equal(chdir("/"), 0);
    assert_true(config_expand(&config, "", "", stem, sizeof stem));
    snprintf(expected, sizeof expected, "%s/traces/run", scratch_folder());
    assert_string_equal(stem, expected);
}

static void test_a_relative_path_in_the_root_folder_has_one_slash(void **state)
{
    (void)state;
    char stem[CONFIG_PATH_MAX];
    assert_int_equal(chdir("/"), 0);
    read_with("GPUMEMTRACE_OUTPUT", "run");
    assert_true(config_expand(&config, "", "", stem, sizeof stem));
    assert_string_equal(stem, "/run");
    read_with("GPUMEMTRACE_SUPPRESSIONS", "my.supp");
    assert_string_equal(config.suppressions, "/my.supp");
}

static void test_a_folders_own_percent_signs_are_no_pattern(void **state)
{
    (void)state;
    char stem[CONFIG_PATH_MAX], expected[CONFIG_PATH_MAX];
    assert_int_equal(mkdir("50%p", 0700), 0);
    assert_int_equal(chdir("50%p"), 0);
    read_with("GPUMEMTRACE_OUTPUT", "run");
    assert_true(config_expand(&config, "", "", stem, sizeof stem));
    snprintf(expected, sizeof expected, "%s/50%%p/run", scratch_folder());
    assert_string_equal(stem, expected);
}

static void test_a_complaint_about_everything_is_whole_lines(void **state)
{
    (void)state;
    static const char *const names[] = {"OUTPUT", "REPORT", "STACKS", "DEPTH", "MAX_TRACE", "SESSION"};
    static char value[100000];
    const char *line = config.complaints;
    memset(value, '%', sizeof value - 1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "GPUMEMTRACE_%s", names[i]);
        setenv(name, value, 1);
    }
    config_read(&config);
    assert_defaults();
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char start[64];
        snprintf(start, sizeof start, "gpumemtrace: GPUMEMTRACE_%s=%%%%%%%%", names[i]);
        assert_int_equal(strncmp(line, start, strlen(start)), 0);
        line = strchr(line, '\n');
        assert_non_null(line++);
    }
    assert_string_equal(line, "");
}

static void test_a_program_with_foreign_rights_takes_no_orders(void **state)
{
    (void)state;
    is_secure = true;
    setenv("GPUMEMTRACE_DISABLE", "1", 1);
    setenv("GPUMEMTRACE_QUIET", "1", 1);
    setenv("GPUMEMTRACE_REPORT", "none", 1);
    setenv("GPUMEMTRACE_STACKS", "none", 1);
    setenv("GPUMEMTRACE_DEPTH", "3", 1);
    setenv("GPUMEMTRACE_MAX_TRACE", "2G", 1);
    setenv("GPUMEMTRACE_OUTPUT", "/etc/passwd", 1);
    setenv("GPUMEMTRACE_SESSION", "name", 1);
    setenv("RANK", "5", 1);
    config_read(&config);
    assert_defaults();
    assert_string_equal(config.complaints, "");
}

static void test_suppressions_are_found_from_any_folder(void **state)
{
    (void)state;
    char path[CONFIG_PATH_MAX];
    snprintf(path, sizeof path, "%s/rules/my.supp", scratch_folder());
    read_with("GPUMEMTRACE_SUPPRESSIONS", "rules/my.supp");
    assert_string_equal(config.suppressions, path);
    read_with("GPUMEMTRACE_SUPPRESSIONS", "/etc/my.supp");
    assert_string_equal(config.suppressions, "/etc/my.supp");
    read_with("GPUMEMTRACE_SUPPRESSIONS", "");
    assert_string_equal(config.suppressions, "");
    assert_string_equal(config.complaints, "");
}

#define WITH_NO_VARIABLES(test) cmocka_unit_test_setup(test, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_NO_VARIABLES(test_without_variables_the_defaults_hold),
        WITH_NO_VARIABLES(test_a_value_that_is_not_understood_is_named_and_its_default_used),
        WITH_NO_VARIABLES(test_flags_are_off_when_empty_or_zero),
        WITH_NO_VARIABLES(test_reports_are_a_list_or_none),
        WITH_NO_VARIABLES(test_stacks_depth_and_limit_are_taken),
        WITH_NO_VARIABLES(test_sizes_are_numbers_with_binary_units),
        WITH_NO_VARIABLES(test_the_rank_comes_from_the_first_launcher_that_tells),
        WITH_NO_VARIABLES(test_the_pattern_is_expanded),
        WITH_NO_VARIABLES(test_a_stem_that_does_not_fit_is_refused),
        WITH_NO_VARIABLES(test_a_folder_is_no_file_name),
        WITH_NO_VARIABLES(test_a_path_too_long_is_named_and_the_default_used),
        WITH_NO_VARIABLES(test_a_relative_path_means_the_folder_at_the_start),
        WITH_NO_VARIABLES(test_a_relative_path_in_the_root_folder_has_one_slash),
        WITH_NO_VARIABLES(test_a_folders_own_percent_signs_are_no_pattern),
        WITH_NO_VARIABLES(test_suppressions_are_found_from_any_folder),
        WITH_NO_VARIABLES(test_a_complaint_about_everything_is_whole_lines),
        WITH_NO_VARIABLES(test_a_program_with_foreign_rights_takes_no_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
