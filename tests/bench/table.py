"""The table that `make bench` prints, and what it must show."""


class Figure:
    """The turns of one measurement. What counts is the best of them; the spread is how far the middle one is away,
    which is what a busy machine adds."""

    def __init__(self, turns, best=min):
        turns = sorted(turns, reverse=best is max)
        self.value, self.middle = turns[0], turns[len(turns) // 2]

    @classmethod
    def difference(cls, left, right):
        made = cls([0])
        made.value, made.middle = left.value - right.value, left.middle - right.middle
        return made

    def __str__(self):
        away = 0 if self.value == 0 else abs(self.middle - self.value) / abs(self.value)
        return f"{number(self.value)} ±{min(away, 9.99):.0%}"


def number(value):
    if abs(value) >= 10000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


class Table:
    FIRST, OTHER = 42, 16  # characters of a column, at least

    def __init__(self):
        self.verdicts = []
        self.widths = []

    def section(self, title, *columns):
        print(f"\n{title}")
        self.widths = [max(self.OTHER, len(column) + 2) for column in columns]
        self._line("", columns)

    def row(self, name, *cells):
        self._line(name, ["" if cell is None else cell if isinstance(cell, str) else
                          str(cell) if isinstance(cell, Figure) else number(cell) for cell in cells])

    def _line(self, name, cells):
        print(f"  {name:<{self.FIRST}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, self.widths)),
              flush=True)

    def skip(self, name, reason):
        print(f"  {name:<{self.FIRST}}skipped: {reason}", flush=True)

    def must(self, claim, value, limit, unit, at_least=False):
        """Notes one thing that must show: `value` at most, or at least, `limit`."""
        good = value >= limit if at_least else value <= limit
        self.verdicts.append((claim, number(value), f"{'>=' if at_least else '<='} {number(limit)} {unit}", good))
        print(f"  -> {claim}: {number(value)} {unit}, wanted {'>=' if at_least else '<='} {number(limit)}: "
              f"{'met' if good else 'MISSED'}", flush=True)

    def finish(self):
        """Prints the verdicts. True when all are good."""
        print("\nIt must show")
        for claim, value, limit, good in self.verdicts:
            print(f"  {claim:<76}{value:>10}{limit:>18}  {'met' if good else 'MISSED'}")
        return all(verdict[3] for verdict in self.verdicts)
