"""No text of somebody else's keeps one of the package's patterns at work: time grows with its size.

What comes with a clone, a branch or an import is matched against them, and one that goes back over
what it had read in two ways takes longer than anybody waits for a line of a hundred characters.
"""

from __future__ import annotations

import pkgutil
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import queenbee
from queenbee.agents import client_settings
from queenbee.agents.files import writable_roots
from queenbee.core.conflicts import lists, rules
from queenbee.documents.issue_lists import texts
from queenbee.documents.plans import marks, sprint_fields

AT_MOST_S = 2
"""The worst one takes a hundredth of this for texts of this size."""
MOST_CHARACTERS = 700
UNDRAWN = {"[\ud800-\udfff]", writable_roots._LEFT.pattern}
"""Texts that Hypothesis cannot draw, or seldom does."""


@contextmanager
def soon() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, AT_MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def patterns() -> list[Any]:
    found = dict[tuple[str | bytes, int], Any]()
    for module in pkgutil.walk_packages(queenbee.__path__, "queenbee."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, re.Pattern) and value.pattern not in UNDRAWN:
                key = (value.pattern, value.flags)
                found.setdefault(key, pytest.param(value, id=f"{module.name}.{name}"))
    return [*found.values()]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (client_settings._NOTHING, "{" + '"version": 1          ' * 20 + "x"),
        (client_settings._NOTHING, "{" + '"version": 1, ' * 20 + " " * 500 + "x"),
        (lists._QUOTED, b"'" + b"\\>" * 60),
        (rules._VERSION, b"1" + b".65257005623038757" * 200 + b".x1"),
        (texts._HEADING, "# a" + " " * 3000 + "\n#"),
        (texts._SECTION, "## " + "a  " * 20_000),
        (texts._REQUIREMENTS, "\n" * 3000),
        (sprint_fields._FIELD, "**" + " " * 2000),
        (sprint_fields._ROW, "|" + " " * 2000),
        (marks._STRUCK, "~~" + " " * 2000),
    ],
)
def test_is_quick_where_it_was_not(pattern: re.Pattern[Any], text: Any) -> None:
    with soon():
        matched = pattern.fullmatch(text), pattern.match(text)
    assert matched[0] is None or pattern in (texts._HEADING, texts._SECTION)


@pytest.mark.thorough
@pytest.mark.parametrize("pattern", patterns())
@settings(max_examples=40, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_takes_no_longer_for_repeated_parts(pattern: re.Pattern[Any], data: st.DataObject) -> None:
    """A part of a text that it takes comes over and over, with blanks, and then what ends it."""
    text = data.draw(st.from_regex(pattern))
    begin, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(1, 20))
    encoded = isinstance(text, bytes)
    blanks, ends = _either(encoded, "", " ", " " * 10), _either(encoded, "!", "\0", "x", "\n")
    part = text[begin : begin + size] + data.draw(st.sampled_from(blanks))
    end = data.draw(st.sampled_from(ends))
    long = (text[:begin] + part * data.draw(st.sampled_from((12, 25, 60))))[:MOST_CHARACTERS] + end
    with soon():
        pattern.fullmatch(long)
        pattern.match(long)
        pattern.search(long)


def _either(encoded: bool, *each: str) -> Sequence[Any]:
    return [one.encode() for one in each] if encoded else each
