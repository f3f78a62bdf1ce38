"""What overlap costs in process: one pair, one pattern against 10,000, and hostile patterns.

    python -m bench.overlap

Prints figures and judges nothing. `docs/adr/0003-exact-overlap.md` quotes them.
"""

from __future__ import annotations

import random
import statistics
from time import perf_counter
from typing import TYPE_CHECKING

from queenbee.core.glob import chars, segments
from queenbee.core.glob import pattern as patterns
from queenbee.core.glob.index import GlobIndex, candidates, scan_covering, scan_meeting

if TYPE_CHECKING:
    from collections.abc import Callable

LIVE = 10_000
REPEATS = 15

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
    ("{a,b}{a,b}… and {b,c}{b,c}…", ("{a,b}", ""), ("{b,c}", "")),
    ("{?*a,*b}… and {*?c,[!a]*d}…", ("{?*a,*b}", "x"), ("{*?c,[!a]*d}", "y")),
    ("{a,b,…i}… and {*,?}…", ("{a,b,c,d,e,f,g,h,i}", ""), ("{*,?}", "")),
]


def figures() -> list[tuple[str, str]]:
    """Returns what was measured, as names and values with units."""
    return [*_pairs(), *_many(), *_hostile()]


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


def _pairs() -> list[tuple[str, str]]:
    known = [_median_s(200, patterns.overlap, *pair) for pair in PAIRS]
    forgetting = _median_s(200, _forget)
    new = [_median_s(50, _first_overlap, *pair) - forgetting for pair in PAIRS]
    path = _median_s(200, patterns.matches, "src/**/*.py", "src/auth/login.py")
    return [
        ("overlap, one pair, median of pairs", _us(statistics.median(known))),
        ("overlap, one pair, slowest of pairs", _us(max(known))),
        ("overlap, both patterns never seen, median of pairs", _us(statistics.median(new))),
        ("overlap, both patterns never seen, slowest of pairs", _us(max(new))),
        ("matches, one pattern and one path", _us(path)),
    ]


def _many() -> list[tuple[str, str]]:
    held = live_patterns()
    index = _built(held)
    rows = [(f"index of {LIVE:,}, built", _ms(_median_s(3, _built, held)))]
    for name, pattern in QUESTIONS:
        hits = len(index.meeting(pattern))
        cost = _median_s(REPEATS, index.meeting, pattern)
        rows.append((f"index of {LIVE:,}, {name} ({hits:,} hits)", _ms(cost)))
    for name, pattern in QUESTIONS:
        cost = _median_s(REPEATS, index.overlapping, pattern)
        rows.append((f"index of {LIVE:,}, {name}, with common paths", _ms(cost)))
    cost = _median_s(REPEATS, index.covering, PATH)
    rows.append((f"index of {LIVE:,}, what covers one path", _ms(cost)))
    for name, pattern in QUESTIONS:
        left = len(candidates(pattern, held))
        cost = _median_s(REPEATS, candidates, pattern, held)
        rows.append((f"sieve of {LIVE:,} texts, {name} ({left:,} left)", _ms(cost)))
    for name, pattern in QUESTIONS:
        cost = _median_s(3, scan_meeting, pattern, held)
        rows.append((f"scan of {LIVE:,} texts, {name}", _ms(cost)))
    cost = _median_s(REPEATS, scan_covering, PATH, held)
    return [*rows, (f"scan of {LIVE:,} texts, what covers one path", _ms(cost))]


def _hostile() -> list[tuple[str, str]]:
    return [
        (
            f"1,024 characters each, never seen: {name}",
            _ms(_median_s(5, _first_overlap, _full(*one), _full(*other))),
        )
        for name, one, other in HOSTILE
    ]


def _built(held: list[tuple[str, str]]) -> GlobIndex:
    index = GlobIndex()
    for key, pattern in held:
        index.add(key, pattern)
    return index


def _first_overlap(one: str, other: str) -> None:
    _forget()
    patterns.overlap(one, other)


def _full(unit: str, end: str) -> str:
    return unit * ((patterns.MAX_CHARS - len(end)) // len(unit)) + end


def _forget() -> None:
    for memo in (patterns._exact, patterns._segments, segments._common, chars._common):
        memo.clear()


def _median_s(repeats: int, work: Callable[..., object], *arguments: object) -> float:
    spans = []
    for _ in range(repeats):
        start = perf_counter()
        work(*arguments)
        spans.append(perf_counter() - start)
    return statistics.median(spans)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


if __name__ == "__main__":
    for name, value in figures():
        print(f"{name:80} {value:>12}")
