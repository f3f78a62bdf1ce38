"""`queen report`: on standard output, into a file, as JSON; of hives of every kind."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest
from acting import command
from hives import COMMAND, commit_file, snapshot, write_lines
from report_worlds import HOSTILE, Seen
from stamps import format_ms


@pytest.fixture
def busy(quick, repo, frozen):
    """A hive in which two droids have worked for an hour."""
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "Cart", "status": "open", "created_at": format_ms(frozen.now_ms)},
        {"id": "qb-2", "title": "Mail", "status": "open", "dependencies": ["qb-1"]},
    )
    for droid, words in (
        ("ui", "claim qb-1"),
        ("ui", "reserve src/** --issue qb-1"),
        ("ui", "msg send api hello --issue qb-1"),
        ("ui", "reserve release --all"),
        ("api", "reserve src/a.py"),
        ("ui", "complete qb-1 --reason done"),
        ("ui", "gate new -w shop -p phase_1"),
        ("ui", "gate add-rule -w shop -p phase_1 --test false"),
        ("ui", "gate run -w shop -p phase_1"),
    ):
        quick(*words.split(" "), as_=droid)
        frozen.advance(300)
    return repo


def test_without_a_file_the_page_goes_to_standard_output(quick, busy):
    ran = quick("report")
    assert ran.code == 0
    assert ran.out.startswith("<!doctype html>")
    seen = Seen(ran.out)
    for words in ("1 of 2", "qb-2", "src/a.py", "shop/phase_1", "failed", "hello", "api"):
        assert words in seen.text


def test_markdown_is_made_on_request_or_by_the_name_of_the_file(quick, busy):
    ran = quick("report", "--format", "md")
    assert ran.out.startswith("<!-- QueenBee report -->\n## Report: `repo`\n")
    assert "| `shop/phase_1` | `failed` |" in ran.out
    assert quick("report", "-o", "r.md").code == 0
    assert (busy / "r.md").read_text() == ran.out
    assert quick("report", "-o", "-", "--format", "md").out == ran.out


def test_a_file_is_named_with_its_size(quick, busy):
    ran = quick("report", "-o", "r.html", "--json")
    size = (busy / "r.html").stat().st_size
    assert ran.json == {"path": "r.html", "format": "html", "size_bytes": size}
    assert quick("report", "-o", "r.html").out == f"r.html: {size:,} bytes\n"


def test_another_file_is_left_alone_with_exit_status_5(quick, busy):
    ran = quick("report", "-o", "README.md", "--json")
    assert (ran.code, ran.out, ran.error["code"]) == (5, "", "conflict")
    assert (busy / "README.md").read_text() == "a repository\n"


def test_json_says_the_same_with_timestamps(quick, busy):
    said = quick("report", "--json").json
    assert said["counts"] == {
        "done": 1, "active": 0, "ready": 1, "waits": 0, "on_hold": 0, "total": 2,
    }  # fmt: skip
    assert [each["what"] for each in said["bars"]] == ["qb-1", "src/**", "src/a.py"]
    assert said["bars"][0]["begin_at"] == "2024-12-14T10:30:00.000Z"
    assert said["avoided"] == [
        {
            "at": "2024-12-14T10:50:00.000Z",
            "first": "ui",
            "then": "api",
            "witness": "src/a.py",
            "gap_s": 300.0,
        }
    ]
    assert said["checks"][0]["subject"] == "shop/phase_1"
    assert said["since_at"] is None


def test_since_leaves_out_what_happened_before(quick, busy):
    said = quick("report", "--since", "26m", "--json").json
    assert [each["what"] for each in said["bars"]] == ["qb-1", "src/a.py"]
    assert said["threads"] == []
    assert said["counts"]["total"] == 2
    assert quick("report", "--since", "soon").code == 2


def test_a_report_changes_nothing_in_the_hive(quick, busy):
    before = snapshot(busy / ".beads")
    assert quick("report", as_="ui").code == 0
    assert quick("report").code == 0
    assert snapshot(busy / ".beads") == before


def test_an_empty_hive_and_a_folder_outside_git_have_a_report(quick, repo, tmp_path):
    assert quick("report").code == 0
    plain = tmp_path / "plain"
    (plain / ".beads").mkdir(parents=True)
    ran = quick("report", "--format", "md", cwd=plain)
    assert ran.code == 0
    assert "0 of 0 issues done" in ran.out


def test_without_a_hive_there_is_no_report(quick, tmp_path):
    assert quick("report", cwd=tmp_path).code == 4


def test_worktrees_that_would_conflict_are_foreseen(hive, repo, open_beside):
    commit_file(repo, "a.txt", "one\n")
    other = open_beside("api").layout.tree
    (repo / "a.txt").write_text("two\n")
    with open(os.path.join(other, "a.txt"), "w") as file:
        file.write("three\n")
    (pair,) = command(hive, "report", "--json").json["foreseen"]
    assert pair["files"] == ["a.txt"]


def test_worktrees_that_cannot_be_compared_are_told_and_no_failure(quick, tmp_path):
    plain = tmp_path / "plain"
    (plain / ".beads").mkdir(parents=True)
    (said,) = quick("report", "--json", cwd=plain).json["left_out"]
    assert said == "Worktrees were not compared: this is not a git repository."


@pytest.mark.some(6)
@pytest.mark.parametrize("hostile", HOSTILE)
def test_whatever_others_wrote_the_report_is_made(quick, repo, hostile):
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {
            "id": "qb-1",
            "title": hostile.encode(errors="replace").decode(),
            "status": hostile[:9].encode(errors="replace").decode(),
        },
    )
    clean = hostile.encode(errors="replace").decode()
    at = {"created_at": "2024-12-14T10:00:00Z", "expires_at": "2024-12-14T11:00:00Z"}
    rows = {
        "messages": {"id": "qm-1", "from": clean, "to": clean, "subject": clean, "body": clean},
        "assignments": {"id": "qa-1", "issue_id": "qb-1", "droid": clean, "status": clean},
        "reservations": {"id": "qr-1", "pattern": clean, "droid": clean, "reason": clean}
        | {"released_by": clean},
        "verifications": {"id": "qv-1", "subject_kind": "bead", "subject_id": clean}
        | {"verdict": clean, "results": [{"name": clean, "reason": clean}]},
    }
    for kind, row in rows.items():
        write_lines(repo / ".beads" / f"queen_{kind}.jsonl", {**row, **at, "rev": 1})
    page = quick("report")
    assert page.code == 0
    assert not {"script", "img", "iframe"} & {name for name, _ in Seen(page.out).tags}
    assert quick("report", "--format", "md").code == 0
    assert quick("report", "--json").code == 0


def test_a_terminal_is_offered_a_file_instead_of_html(repo):
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "report"], cwd=repo, stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert b"queen report -o report.html" in done.stderr
