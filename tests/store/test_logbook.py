"""Logs: what is noted is one line with its time, and a log never hinders what it is about."""

from __future__ import annotations

from pathlib import Path

from stamps import parse_ms

from queenbee.store import logbook


def test_a_note_is_one_line_that_begins_with_its_time(tmp_path: Path) -> None:
    assert logbook.note(str(tmp_path), "guard", "let pass:\n  a.py\x00\udcff")
    assert logbook.note(str(tmp_path), "guard", "again")
    first, second = (tmp_path / "guard.log").read_text().splitlines()
    stamp, _, text = first.partition(" ")
    assert parse_ms(stamp) > 0
    assert text == "let pass: a.py\x00\\udcff"
    assert second.endswith(" again")


def test_a_log_that_grew_long_is_begun_anew_and_the_old_one_kept(tmp_path: Path) -> None:
    (tmp_path / "hook.log").write_text("x" * 600_000)
    logbook.note(str(tmp_path), "hook", "fresh")
    assert (tmp_path / "hook.log").read_text().endswith(" fresh\n")
    assert (tmp_path / "hook.log").stat().st_size < 100
    assert (tmp_path / "hook.log.1").stat().st_size == 600_000


def test_an_unwritable_state_means_no_log_and_no_error(tmp_path: Path) -> None:
    assert not logbook.note(str(tmp_path / "missing"), "hook", "text")
    assert list(tmp_path.iterdir()) == []
