/* top on a terminal: the same rows, refreshed, sorted and scrolled by keys. */
#include <locale.h>
#include <string.h>

#include <ncurses.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "command.h"
#include "top.h"

/* What is not printable never reaches the terminal. */
static void draw(int row, const struct words *words, int attributes)
{
    const char *text = words->text;
    int column = 0;
    if (row >= LINES)
        return;
    move(row, 0);
    attrset(attributes);
    while (*text && column < COLS) {
        uint32_t code;
        size_t length = utf8_next(text, &code);
        bool shown = code != UTF8_INVALID && utf8_is_printable(code);
        column += shown ? utf8_columns(code) : 1;
        if (column <= COLS)
            addnstr(shown ? text : "?", shown ? (int)length : 1);
        text += length;
    }
    attrset(A_NORMAL);
}

static void add_keys(struct words *words, const struct live *live)
{
    words_add(words, "sorted by %s; ", live_order_names[live->order]);
    for (int i = 0; i < LIVE_ORDER_COUNT; i++)
        words_add(words, "%c %s  ", live_order_keys[i], live_order_names[i]);
    words_add(words, "space stop/go  q quit");
}

static void draw_all(const struct top *top, size_t first, bool is_stopped)
{
    const struct live *live = &top->live;
    struct words words = {0};
    int row = 0;
    erase();
    words_add(&words, "gpumemtrace top: ");
    words_add(&words, "%zu process%s%s", live->process_count, live->process_count == 1 ? "" : "es",
              is_stopped ? " (stopped)" : "");
    draw(row++, &words, A_BOLD);
    words = (struct words){0};
    add_keys(&words, live);
    draw(row++, &words, A_DIM);
    words = (struct words){0};
    top_space_heading(&words);
    draw(row++, &words, A_REVERSE);
    for (size_t i = 0; i < live->space_count && row < LINES / 2; i++) {
        words = (struct words){0};
        top_space_line(&words, &live->spaces[i]);
        draw(row++, &words, A_NORMAL);
    }
    words = (struct words){0};
    top_site_heading(&words);
    draw(row++, &words, A_REVERSE);
    for (size_t i = first; i < live->site_count && row < LINES; i++) {
        words = (struct words){0};
        top_site_line(&words, &live->sites[i]);
        draw(row++, &words, live->sites[i].growth > 0 ? A_BOLD : A_NORMAL);
    }
    refresh();
}

struct screen {
    size_t first; /* site that is shown first */
    bool is_stopped, ends;
};

static void take_key(struct top *top, struct screen *screen, int key)
{
    size_t page = LINES > 8 ? (size_t)LINES / 2 : 1;
    for (int i = 0; i < LIVE_ORDER_COUNT; i++)
        if (key == live_order_keys[i])
            top->live.order = (enum live_order)i;
    screen->ends |= key == 'q';
    if (key == ' ')
        screen->is_stopped = !screen->is_stopped;
    if (key == KEY_DOWN || key == KEY_NPAGE)
        screen->first += key == KEY_DOWN ? 1 : page;
    if (key == KEY_UP || key == KEY_PPAGE) {
        size_t step = key == KEY_UP ? 1 : page;
        screen->first -= step < screen->first ? step : screen->first;
    }
    if (key == KEY_HOME)
        screen->first = 0;
    if (screen->first >= top->live.site_count)
        screen->first = top->live.site_count > 0 ? top->live.site_count - 1 : 0;
}

int top_run_screen(struct top *top)
{
    struct screen screen = {0};
    bool good = true;
    setlocale(LC_CTYPE, "");
    if (!newterm(NULL, stdout, stdin)) {
        complain("terminal", "it is of a kind that is not known here; --once or a pipe work without one");
        return STATUS_UNUSABLE;
    }
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    uint64_t looked_ns = clock_monotonic_ns();
    while (!screen.ends && good) {
        uint64_t since_ns = clock_monotonic_ns() - looked_ns;
        timeout(since_ns < top->interval_ns ? (int)((top->interval_ns - since_ns) / 1000000) : 0);
        draw_all(top, screen.first, screen.is_stopped);
        int key = getch();
        if (key != ERR) {
            take_key(top, &screen, key);
            live_sort(&top->live);
        } else {
            good = screen.is_stopped || live_look(&top->live);
            looked_ns = clock_monotonic_ns();
        }
    }
    endwin();
    if (!good)
        complain(NULL, "not enough memory");
    return good ? STATUS_GOOD : STATUS_UNUSABLE;
}
