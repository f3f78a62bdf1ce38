"""What hostile patterns cost, and which are refused."""

from __future__ import annotations

import sys

import pytest

from queenbee.core.glob import pattern as globs
from queenbee.errors import BadPattern

pytestmark = pytest.mark.slow

MOST_CALLS = 4 * 1024 * 1024
"""Of functions, for two patterns of 1,024 characters: a second or two. To try all ways to place
the stars of one of them would take longer than the universe is old."""


def _full(unit: str, end: str = "") -> str:
    return unit * ((1024 - len(end)) // len(unit)) + end


def _each(form: str, before: str = "", after: str = "") -> str:
    """Returns as many segments as fit, each with another letter."""
    count = (1024 - len(before + after)) // (len(form) + 1)
    names = [form.replace("#", chr(0x4E00 + number)) for number in range(count)]
    return before + "/".join(names) + after


_LISTS = {
    "names": "{" + ",".join(f"f{n}" for n in range(200)) + "}",
    "ends": "{" + ",".join(f"*{n}" for n in range(200)) + "}",
    "groups": "{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}*",
}
HOSTILE = {
    **_LISTS,
    "stars": _full("*a", "c"),
    "other stars": _full("*b", "d"),
    "starred marks": _full("*?", "c"),
    "marks": _full("?", "d"),
    "classes": _full("[ab]"),
    "starred classes": ("*[ab]" * 48)[:240],
    "many classes": "*".join(f"[!{chr(97 + n % 26)}{chr(65 + n % 24)}]" for n in range(160)),
    "far classes": "*".join(f"[{chr(0x50000 + n)}-{chr(0x50100 + n * 400)}]" for n in range(150)),
    "folders": _full("a/", "y"),
    "any depth": _full("**/a/", "x"),
    "another depth": _full("**/b/", "y"),
    "starred depth": _full("**/*a*/", "x"),
    "alike names": _full("?*/", "x"),
    "alike names, any depth": "**/" + _full("?*/")[:1011] + "**",
    "names that differ": _each("*#"),
    "names that differ, any depth": _each("?*#?*", "**/", "/**"),
    "others that differ, any depth": _each("[!#]*", "**/", "/**"),
    "deep braces": "{" * 16 + "*a" * 400 + "}" * 16,
    "branches": "{" + ",".join(f"**/*{n}" for n in range(64)) + "}/*x",
    "other branches": "{" + ",".join(f"{n}/**" for n in range(64)) + "}/*y",
    "spans": "{a/**,**/b}/{c/**,**/d}/{e,f/**}/{*,**}/{x/*,y*/**}/*z",
}  # fmt: skip
OPPONENTS = ("marks", "far classes", "ends", "names that differ, any depth", "other branches")


@pytest.mark.parametrize("one", _LISTS)
@pytest.mark.parametrize("other", _LISTS)
def test_braces_may_stand_for_hundreds_of_names(one: str, other: str) -> None:
    apart = globs.overlap(_LISTS[one], _LISTS[other]) is None
    assert apart == ({one, other} == {"names", "groups"})


@pytest.mark.some(24)
@pytest.mark.parametrize("one", HOSTILE)
@pytest.mark.parametrize("other", OPPONENTS)
def test_a_hostile_pair_costs_no_more_than_the_lengths_allow(one: str, other: str) -> None:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")
        if calls > MOST_CALLS:
            sys.setprofile(None)
            raise AssertionError("it costs too much")

    sys.setprofile(count)
    try:
        globs.overlap(HOSTILE[one], HOSTILE[other])
    finally:
        sys.setprofile(None)
    assert calls


@pytest.mark.parametrize(
    "unit", ["{a/,b/}", "{a,b/c}", "{/a,/b}", "{,a/}", "{**/a/,b/}", "{{a/,b},c/}"]
)
def test_braces_that_would_spread_without_end_are_refused(unit: str) -> None:
    with pytest.raises(BadPattern, match="too many paths"):
        globs.overlap("x/" + unit * (900 // len(unit)) + "x", "*")


@pytest.mark.parametrize(
    "unit", ["{a,b}", "{*a,*b}", "{?*a,[!a]*d}", "{a,b,c,d,e,f,g,h,i}", "{*,?}"]
)
def test_braces_that_stand_for_too_many_names_are_refused(unit: str) -> None:
    with pytest.raises(BadPattern, match="too many names"):
        globs.overlap(_full(unit), "*")
