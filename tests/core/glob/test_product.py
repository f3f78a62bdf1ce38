"""Segments by their runs and by their automata, and what hostile patterns cost."""

from __future__ import annotations

from collections import Counter

import pytest
from glob_reference import NAMES, examples, patterns, starry_patterns
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.glob import pattern as globs
from queenbee.core.glob import product as globproduct
from queenbee.core.glob import segments as globsegments
from queenbee.core.glob.segments import Segment, common_name, common_name_by_automata
from queenbee.errors import BadPattern

pytestmark = pytest.mark.slow


def _segment(text: str) -> Segment | None:
    """Returns the pattern as one segment with something to match, if it is one."""
    try:
        branches = globs.compiled(text).branches
    except BadPattern:
        return None
    runs = branches[0].runs
    if len(branches) == len(runs) == len(runs[0]) == 1 and isinstance(runs[0][0], Segment):
        return runs[0][0]
    return None


_texts = st.one_of(patterns, patterns, starry_patterns).map(lambda text: text.split("/")[-1])
segments = _texts.map(_segment).filter(lambda segment: segment is not None)


@examples(300)
@given(segments, segments)
def test_runs_and_automata_agree_on_whether_two_segments_meet(one: Segment, other: Segment) -> None:
    by_runs = common_name(one, other)
    by_automata = common_name_by_automata(one, other)
    assert (by_runs is None) == (by_automata is None)
    for name in (by_runs, by_automata):
        if name is not None:
            assert name not in ("", ".", "..")
            assert one.covers(name)
            assert other.automaton.accepts(name)


@examples(100)
@given(segments)
def test_runs_and_automata_agree_on_what_a_segment_covers(segment: Segment) -> None:
    for name in NAMES:
        assert segment.covers(name) == segment.automaton.accepts(name)


def test_alternatives_are_not_spread() -> None:
    assert _segment("a*b?[cd]").runs is not None
    assert _segment("{a,b}*").runs is None


def _full(unit: str, end: str = "") -> str:
    return unit * ((1024 - len(end)) // len(unit)) + end


_CLASSES = "".join(f"[!{chr(97 + n % 26)}{chr(65 + n % 24)}]" for n in range(200))

HOSTILE = [
    (_full("*a", "c"), _full("*b", "d")),
    (_full("*a", "c"), _full("?")),
    (_full("*?", "c"), _full("?", "d")),
    (_full("*?"), _full("[ab]")),
    (_full("**/a/", "x"), _full("a/", "y")),
    (_full("**/a/", "x"), _full("**/b/", "y")),
    (_full("**/a/**/b/", "x"), _full("?/", "y")),
    (_full("**/*a*/", "x"), _full("*b/", "x")),
    (_full("{a,b}"), _full("{b,c}")),
    (_full("{a,b}"), _full("{c,d}")),
    (_full("{*a,*b}", "x"), _full("{*c,*d}", "y")),
    (_full("{?*a,*b}", "x"), _full("{*?c,[!a]*d}", "y")),
    (_full("{a,b,c,d,e,f,g,h,i}"), _full("{*,?}")),
    (_full("{a,b}/", "x"), _full("{b,c}/", "y")),
    (_CLASSES[:1020], _full("?*")),
    ("{" * 16 + "*a" * 400 + "}" * 16, _full("*b", "d")),
    ("{" + ",".join(f"**/*{n}" for n in range(64)) + "}/*x", _full("*y/", "z")),
    (
        "{" + ",".join(f"{n}/**" for n in range(64)) + "}/*x",
        "{" + ",".join(f"**/{n}" for n in range(64)) + "}/*y",
    ),
]


@pytest.mark.parametrize(("one", "other"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_pair_costs_no_more_than_the_product_of_the_lengths(
    one: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()

    def counted(name: str, function):
        def look(*args):
            looks[name] += 1
            return function(*args)

        return look

    for module, name in [
        (globsegments, "common_char"),
        (globproduct, "common_char"),
        (globproduct, "_extended"),
        (globs, "common_name"),
    ]:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    globs.overlap(one, other)
    assert 0 < looks.total() <= 1024 * 1024
    # The sets of states are moved on once for each edge, not once for each pair of states.
    assert looks["_extended"] <= 16 * 1024


@pytest.mark.parametrize(
    "unit", ["{a/,b/}", "{a,b/c}", "{/a,/b}", "{,a/}", "{**/a/,b/}", "{{a/,b},c/}"]
)
def test_braces_that_would_spread_without_end_are_refused(unit: str) -> None:
    with pytest.raises(BadPattern, match="too many paths"):
        globs.overlap("x/" + unit * (900 // len(unit)) + "x", "*")
