"""What overlap costs in process: one pair, one pattern against 10,000, and hostile patterns.

    python -m bench.overlap

Prints processor times and judges nothing. `docs/adr/0003-exact-overlap.md` quotes them.
"""

from __future__ import annotations

import random
import statistics
from time import process_time
from typing import TYPE_CHECKING

from bench import results
from bench.results import Row
from queenbee.core.glob import pattern as patterns
from queenbee.core.glob import word_sets as words
from queenbee.core.glob.parse import MAX_CHARS
from queenbee.core.glob.pattern import ByFolder, scan_covering, scan_meeting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIVE = 10_000
REPEATS = 15
SPAN_S = 200e-6

PATH = "src/auth/core/login.py"

PAIRS = [
    ("src/main.go", "src/main.go"),
    ("src/main.go", "docs/a.md"),
    ("src/auth/**", "src/auth/login.py"),
    ("src/auth/**", "src/api/**"),
    ("src/**/*.py", "src/auth/**"),
    ("src/**/*.ts", "src/**/*.py"),
    ("src/*.ts", "src/a*"),
    ("src/*/a.py", "src/b/*.py"),
    ("**/*.md", "src/main.go"),
    ("**/tests/**", "**/migrations/**"),
    ("src/**/*.{ts,tsx}", "src/app/page.tsx"),
    ("*.{ts,tsx}", "*.{js,ts}"),
    ("{src/**,docs}/x", "docs/*"),
    ("v[12].py", "v[!1].py"),
    ("app/\\[id]/page.tsx", "app/**"),
    ("{a,b}{c,d}{e,f}{g,h}*", "*{x,y}{z,h}"),
]

QUESTIONS = [
    ("a literal file", PATH),
    ("a folder, dir/**", "src/auth/**"),
    ("src/**/*.py", "src/**/*.py"),
    ("src/*/api/*.{ts,tsx}", "src/*/api/*.{ts,tsx}"),
    ("**/*.md", "**/*.md"),
    ("**, which meets all", "**"),
]

HOSTILE = [
    ("*a*a… and *b*b…", ("*a", ""), ("*b", "")),
    ("*?*?… and ????…", ("*?", "c"), ("?", "d")),
    ("**/a/**/b/… and ?/?/…", ("**/a/**/b/", "x"), ("?/", "y")),
]


def figures() -> Iterator[Row]:
    """Yields what was measured."""
    yield from cheap()
    yield from _scans()
    yield from _hostile()


def cheap() -> Iterator[Row]:
    """Yields what takes a few seconds: pairs, and questions to the table by folder."""
    yield from _pairs()
    yield from _many()


def live_patterns(count: int = LIVE) -> list[tuple[str, str]]:
    """Returns so many patterns under keys, as a large repository's agents would hold them."""
    choose = random.Random(20)
    tops = ["src", "packages", "docs", "tests", "apps", "lib", "server", "tools"]
    names = ["auth", "core", "api", "web", "ui", "store", "cli", "docs", "models", "views", "jobs"]
    kinds = ["py", "ts", "tsx", "md", "json", "yaml", "css", "go", "rs", "sql"]

    def pattern(number: int) -> str:
        folder = "/".join([choose.choice(tops), *choose.choices(names, k=choose.randint(1, 3))])
        kind, name = choose.choice(kinds), choose.choice(names)
        return choose.choices(
            [
                f"{folder}/{name}_{number}.{kind}",
                f"{folder}/{name}{number}/**",
                f"{folder}/{name}{number}/*.{kind}",
                f"{folder}/{name}{number}/**/*.{kind}",
                f"{folder}/{name}{number}/*.{{{kind},{kind}x}}",
            ],
            weights=[60, 20, 10, 5, 5],
        )[0]

    return [(f"k{number}", pattern(number)) for number in range(count)]


def _pairs() -> Iterator[Row]:
    known = sorted((_spans_s(200, patterns.overlap, *pair) for pair in PAIRS), key=_middle_s)
    yield _us("overlap, one pair, median of pairs", known[len(known) // 2], goal=20)
    yield _us("overlap, one pair, slowest of pairs", known[-1], goal=20)
    forgetting = _middle_s(_spans_s(200, _forget))
    new = sorted(
        ([s - forgetting for s in _spans_s(50, _first_overlap, *pair)] for pair in PAIRS),
        key=_middle_s,
    )
    yield _us("overlap, both patterns never seen, median of pairs", new[len(new) // 2])
    yield _us("overlap, both patterns never seen, slowest of pairs", new[-1])
    path = _spans_s(200, patterns.matches, "src/**/*.py", "src/auth/login.py")
    yield _us("matches, one pattern and one path", path)


def _many() -> Iterator[Row]:
    held = live_patterns()
    table = ByFolder(held)
    yield _ms(f"table of {LIVE:,}, built", _spans_s(3, ByFolder, held))
    for name, pattern in QUESTIONS:
        hits = len(table.meeting(pattern))
        cost = _spans_s(3, table.meeting, pattern)
        yield _ms(f"table of {LIVE:,}, {name}", cost, note=f"{hits:,} hits")
    cost = _spans_s(REPEATS, table.covering, PATH)
    yield _ms(f"table of {LIVE:,}, what covers one path", cost, goal=1)


def _scans() -> Iterator[Row]:
    held = live_patterns()
    for name, pattern in QUESTIONS:
        cost = _spans_s(3, scan_meeting, pattern, held)
        yield _ms(f"scan of {LIVE:,} texts, {name}", cost)
    cost = _spans_s(REPEATS, scan_covering, PATH, held)
    yield _ms(f"scan of {LIVE:,} texts, what covers one path", cost)


def _hostile() -> Iterator[Row]:
    for name, one, other in HOSTILE:
        cost = _spans_s(5, _first_overlap, _full(*one), _full(*other))
        yield _ms(f"1,024 characters each, never seen: {name}", cost)
    one, other = _each("?*", "?*"), _each("[!", "]*")
    yield _ms(
        "1,024 characters each, never seen: **/?*…?*/… and **/[!…]*/…, no two names alike",
        _spans_s(3, _first_overlap, one, other),
    )


def _first_overlap(one: str, other: str) -> None:
    _forget()
    patterns.overlap(one, other)


def _full(unit: str, end: str) -> str:
    return unit * ((MAX_CHARS - len(end)) // len(unit)) + end


def _each(before: str, after: str) -> str:
    """Returns as many names as fit, each with another letter, at any depth."""
    count = (MAX_CHARS - 6) // (len(before + after) + 2)
    names = [before + chr(0x4E00 + number) + after for number in range(count)]
    return "**/" + "/".join(names) + "/**"


def _forget() -> None:
    patterns._memo.clear()
    words._names.clear()


def _spans_s(repeats: int, work: Callable[..., object], *arguments: object) -> list[float]:
    """Returns so many times that a call takes: of the processor, which others may be using too."""
    start = process_time()
    work(*arguments)
    # Asking for the time takes a microsecond, so that short calls are timed together.
    together = max(1, min(50, int(SPAN_S / max(process_time() - start, 1e-9))))
    spans = []
    for _ in range(repeats):
        start = process_time()
        for _ in range(together):
            work(*arguments)
        spans.append((process_time() - start) / together)
    return spans


def _middle_s(spans: list[float]) -> float:
    return statistics.median(spans)


def _us(name: str, spans: list[float], *, goal: float | None = None) -> Row:
    return results.of(name, [span * 1e6 for span in spans], "µs", goal=goal)


def _ms(name: str, spans: list[float], *, goal: float | None = None, note: str = "") -> Row:
    return results.of(name, [span * 1e3 for span in spans], "ms", goal=goal, note=note)


if __name__ == "__main__":
    results.main(figures)
