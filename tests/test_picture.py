"""The README's picture shows what `queen` answers today, and loads nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import picture

VARYING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b[0-9A-HJKMNP-TV-Z]{4}\b|\b\d+s ago|\b\dh(?: \d\dm)?(?= left)"
)
"""Ids, times and durations differ from run to run."""


def words_of(svg: str) -> list[str]:
    """Returns the text of the rows of a picture, without what differs from run to run."""
    return [VARYING.sub("…", text) for text in re.findall(r">([^<>]+)</text>", svg)]


@pytest.mark.slow
def test_the_picture_is_what_a_run_gives_today(tmp_path: Path) -> None:
    """If not: `make picture`."""
    drawn = picture.drawn(list(picture.played(tmp_path)))
    shown = picture.PICTURE.read_text(encoding="utf-8")
    assert words_of(shown) == words_of(drawn)


def test_the_picture_can_be_read_on_a_phone() -> None:
    rows = words_of(picture.PICTURE.read_text(encoding="utf-8"))
    assert len(rows) == 8
    assert max(map(len, rows)) <= picture.COLUMNS


def test_no_frame_of_the_picture_is_empty() -> None:
    """The first command and its answer stay; only what follows appears."""
    rows = re.findall(r"<text [^>]*>", picture.PICTURE.read_text(encoding="utf-8"))
    assert ["animation-delay" in row for row in rows] == [False, False, *[True] * 6]


def test_the_picture_loads_nothing() -> None:
    shown = picture.PICTURE.read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' ]+", shown)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in shown


def test_what_a_droid_writes_stays_text() -> None:
    assert "<b>" not in picture.drawn([("", "<b>&amp;")])
