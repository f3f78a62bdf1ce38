"""Where a report may be written: all of it or nothing, and over nothing but a report."""

from __future__ import annotations

import os

import pytest
from hives import snapshot
from report_worlds import report_of

from queenbee.errors import Conflict, NotFound, Unreadable
from queenbee.report import saving
from queenbee.report.as_markdown import markdown
from queenbee.report.page import page
from queenbee.report.saving import save

REPORT = page(report_of("x"))


def test_a_new_file_gets_the_report(tmp_path):
    save(str(tmp_path / "r.html"), REPORT)
    assert (tmp_path / "r.html").read_text() == REPORT


@pytest.mark.parametrize(
    "before", [REPORT, markdown(report_of("y")), ""], ids=["page", "md", "empty"]
)
def test_an_earlier_report_and_an_empty_file_are_replaced(tmp_path, before):
    path = tmp_path / "r.html"
    path.write_text(before)
    save(str(path), "new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["r.html"]


@pytest.mark.parametrize(
    "mine", [b"mine", b"<html>", b"\xff\x00" * 900, b" " * 5_000 + b"QueenBee report"]
)
def test_any_other_file_is_left_alone(tmp_path, mine):
    (tmp_path / "r.html").write_bytes(mine)
    before = snapshot(tmp_path)
    with pytest.raises(Conflict, match="not a report"):
        save(str(tmp_path / "r.html"), REPORT)
    assert snapshot(tmp_path) == before


def test_a_file_that_appears_at_the_last_moment_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    monkeypatch.setattr(saving, "_is_free", lambda *_: path.write_text("mine") and False)
    with pytest.raises(Conflict):
        save(str(path), REPORT)
    assert path.read_text() == "mine"


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(Unreadable, match="not a regular file"):
            save(str(path), REPORT)


def test_no_folder_is_made(tmp_path):
    with pytest.raises(NotFound):
        save(str(tmp_path / "gone" / "r.html"), REPORT)
    assert os.listdir(tmp_path) == []


def test_a_link_out_of_the_working_tree_is_not_followed(repo, tmp_path):
    (repo / "r.html").symlink_to(tmp_path / "outside.html")
    with pytest.raises(Unreadable, match="outside the working tree"):
        save(str(repo / "r.html"), REPORT)
    assert not (tmp_path / "outside.html").exists()


def test_half_of_a_surrogate_pair_is_written_as_an_escape(tmp_path):
    save(str(tmp_path / "r.md"), "half \ud83d")
    assert (tmp_path / "r.md").read_text() == "half \\ud83d"
