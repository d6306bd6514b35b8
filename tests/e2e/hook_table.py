"""Reads what src/hooks says of itself, for the tests that hold it to the outside: the table of hooked symbols and the
prototypes that the hooks are defined with."""
import re
from collections import namedtuple

from conftest import ROOT

HOOKS = ROOT / "src" / "hooks"
Symbol = namedtuple("Symbol", "name bare since stream library family")
OTHERS = ["InitializeInjectionNvtx2"]  # exported for who looks for it by that name, in nobody's place
Prototype = namedtuple("Prototype", "name runtime parameters")  # parameters: [(type, name)]


def symbols():
    text = (HOOKS / "symbols.h").read_text().replace("\\\n", " ")
    rows = re.findall(r'\sX\((\w+),\s*"([\w:]+)",\s*(\d+),\s*(\w+),\s*(\w+),\s*(\w+)\)', text)
    return [Symbol(name, bare, int(since), *rest) for name, bare, since, *rest in rows]


def version():
    return int(re.search(r"SYMBOLS_CUDA_VERSION (\d+)", (HOOKS / "symbols.h").read_text())[1])


def split_parameters(text):
    """[(type, name)] of a C parameter list without function pointers. Spelling is normalised."""
    found = []
    for part in text.split(","):
        words = re.findall(r"\w+|\*", part)
        if words in ([], ["void"]):
            continue
        name = words.pop() if len(words) > 1 and words[-1] != "*" else ""
        found.append((" ".join(words).replace(" *", "*").replace("* *", "**"), name))
    return found


def prototypes():
    found = []
    for path in sorted(HOOKS.glob("*.c")):
        for runtime, name, parameters in re.findall(r"^(RUNTIME_)?HOOK\((\w+),\s*\(([^)]*)\)\)", path.read_text(), re.M):
            found.append(Prototype(name, bool(runtime), split_parameters(parameters)))
    return found


def coverage_table():
    """Markdown for the README: what is hooked of each family, and since which CUDA version it can be met."""
    families = {}
    for symbol in symbols():
        if symbol.library in ("DRIVER", "RUNTIME"):
            apis = families.setdefault(symbol.family, {"DRIVER": {}, "RUNTIME": {}})
            variants = apis[symbol.library].setdefault(symbol.bare, [])
            if symbol.name != symbol.bare:
                variants.append(symbol.name[len(symbol.bare):] if symbol.name.startswith(symbol.bare) else symbol.name)
    lines = ["| family | driver | runtime | since |", "|---|---|---|---|"]
    for family, apis in families.items():
        cells = [", ".join(name + "".join(f" {variant}" for variant in variants) for name, variants in apis[library].items())
                 for library in ("DRIVER", "RUNTIME")]
        since = min(symbol.since for symbol in symbols() if symbol.family == family and symbol.library == "DRIVER")
        lines.append(f"| {family} | {cells[0]} | {cells[1]} | {since // 1000}.{since % 1000 // 10} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(coverage_table(), end="")
