"""What the tests of files that somebody made to do harm have in common: bounds for the tool, damage, and bad names."""
import os
import resource
import subprocess
import unicodedata

import recording_writer as w
from conftest import SANITIZE, TIMEOUT, TOOL

MEMORY = 1 << 30
SECONDS = 10 if not SANITIZE else 100
# Damaged files for each test that draws them.
ROUNDS = int(os.environ.get("HOSTILE_ROUNDS") or 150)

NAMES = ["\x1b[2J\x1b]0;title\a", "\x9b31m", "a\nb\rc\td", "\u202e\u2066abc", "\u200b\u2028", "\x7f\b\b\b", "%s%n%99999d",
         b"\xff\xfe\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\0b", "\U000e0041", "\ue000", "", "'\"`$(id)<b>&amp;",
         "x" * 65535, "<" * 3000, ", std::allocator<" * 3000, "operator" * 500]


def limit():
    if not SANITIZE: # the sanitizers map terabytes
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def harmless(output):
    """UTF-8 in which nothing moves the cursor, reorders, or is not seen."""
    for character in set(output.decode()) - {"\n"}:
        category = unicodedata.category(character)
        assert category not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"), f"U+{ord(character):04X} ({category})"


def ask(gmt, *command, **options):
    """Runs the tool within the limits: its status is 0, or 2 with one line. Returns what it wrote."""
    done = subprocess.run([str(TOOL), *map(str, command)], env=gmt.environment(traced=False, **options),
                          capture_output=True, preexec_fn=limit, timeout=TIMEOUT, check=False)
    complaint = done.stderr.decode()
    assert done.returncode in (0, 2), (command, done.returncode, complaint[-3000:])
    if done.returncode == 2:
        assert complaint.startswith("gpumemtrace: ") and complaint.count("\n") == 1 and len(complaint) < 1000, complaint
    harmless(done.stdout)
    harmless(done.stderr)
    return done.stdout.decode(), complaint


def saved(gmt, recording, **header):
    gmt.count += 1
    return recording.write(gmt.folder / f"hostile{gmt.count}.gmt", **header)


def changed_at_random(choose, whole):
    """A recording of which some bytes are others, and in which a stretch may come again."""
    data = bytearray(whole)
    for _ in range(choose.choice((1, 1, 2, 5, 40))):
        at = choose.randrange(w.HEADER_BYTES if choose.random() < 0.9 else 0, len(data))
        data[at] = choose.choice((0, 1, 127, 128, 255, data[at] ^ 1 << choose.randrange(8)))
    if choose.random() < 0.2:
        start = choose.randrange(w.HEADER_BYTES, len(data))
        data[start:start] = data[start:start + choose.randrange(200)] * choose.randrange(1, 5)
    return bytes(data)


def changed_json(choose, whole):
    words = [b"-", b"null", b"[", b"{", b"\\", b'"', b"1e9", b"true", b",", b"\xff", b"9223372036854775807"]
    data = bytearray(whole)
    for _ in range(choose.choice((1, 2, 10))):
        at = choose.randrange(len(data))
        data[at:at + choose.randrange(3)] = choose.choice(words)
    return bytes(data)


BIG = [1 << 12, (1 << 20) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


class Disturbed(w.Recording):
    """Records of the right form, of which some say something else, come twice, or are missing."""

    def __init__(self, choose):
        super().__init__()
        self.choose = choose
        self.rate = choose.choice((0.002, 0.01, 0.05))

    def disturbed(self, field):
        if isinstance(field, bytes) or self.choose.random() >= self.rate:
            return field
        return self.choose.choice((0, 1, field + 1, field * 2, self.choose.randrange(8), self.choose.choice(BIG)))

    def put(self, tag, *fields):
        how_often = self.choose.choice((0, 2)) if tag >= w.STATE and self.choose.random() < self.rate else 1
        # The number of a state's values is what it has.
        kept = (0, 1) if tag == w.STATE else (0,) if tag in (w.STRING, w.PROCESS, w.STACK) else ()
        for _ in range(how_often):
            super().put(tag, *(field if place in kept else self.disturbed(field) for place, field in enumerate(fields)))

    def key(self, value, space=w.ADDRESS):
        return super().key(self.disturbed(value), space)


def damaged(choose, number):
    """The number-th of a row of damaged recordings: cut, with other bytes, or saying something else."""
    make = choose.choice((w.example, w.checkpointed))
    if number % 2:
        return make(Disturbed(choose)).file()
    whole = make().file()
    return changed_at_random(choose, whole) if number % 4 else whole[:choose.randrange(len(whole))]


def named(name):
    """A recording in which everything that has a name has this one."""
    made = w.Recording()
    path = b"/" + (name if isinstance(name, bytes) else name.encode())[:65000]
    made.process(name, name, "3", name)
    made.note(name)
    frames = made.native(made.module(path, build_id=b"\1\2"), 16), made.python(name, path, 3)
    site = made.site(made.stack(*frames), name)
    made.alloc(site, 4096, 1 << 20)
    made.alloc(made.site(None, name, w.TORCH), 8192, 1 << 10, space=w.FRAMEWORK)
    made.event(w.PHASE_BEGIN, made.string(name), 1)
    made.event(w.OOM, site, 1 << 40, 2, 0, 1 << 30)
    return made
