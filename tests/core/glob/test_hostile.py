"""What hostile patterns cost, and which are refused."""

from __future__ import annotations

from collections import Counter

import pytest

from queenbee.core.glob import pattern as globs
from queenbee.core.glob import segments as globsegments
from queenbee.errors import BadPattern

pytestmark = pytest.mark.slow


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
    (_full("{a,b}/", "x"), _full("{b,c}/", "y")),
    (_CLASSES[:1020], _full("?*")),
    ("{" * 16 + "*a" * 400 + "}" * 16, _full("*b", "d")),
    ("{" + ",".join(f"**/*{n}" for n in range(64)) + "}/*x", _full("*y/", "z")),
    (
        "{" + ",".join(f"{n}/**" for n in range(64)) + "}/*x",
        "{" + ",".join(f"**/{n}" for n in range(64)) + "}/*y",
    ),
]


LISTS = (
    "{" + ",".join(f"f{n}" for n in range(200)) + "}",
    "{" + ",".join(f"*{n}" for n in range(200)) + "}",
    "{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}*",
)


@pytest.mark.parametrize("one", LISTS)
@pytest.mark.parametrize("other", LISTS)
def test_braces_may_stand_for_hundreds_of_names(one: str, other: str) -> None:
    assert (globs.overlap(one, other) is None) == ({one, other} == {LISTS[0], LISTS[2]})


@pytest.mark.parametrize(("one", "other"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_pair_costs_no_more_than_the_lengths_allow(
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
        (globsegments, "meet"),
        (globs, "common_name"),
    ]:
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    globs.overlap(one, other)
    assert 0 < looks.total() <= 1024 * 1024


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
