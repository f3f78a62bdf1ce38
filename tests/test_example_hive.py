"""The example hive: what its README says of it is so."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from diagnoses import examine
from hives import QuickQueen, records, snapshot
from stamps import parse_ms
from ulid import ULID

from queenbee import Hive

SOURCE = Path(__file__).parents[1] / ".beads-example"
README = (SOURCE / "README.md").read_text()
COMMANDS = re.findall(r"^ +(queen .*)$", README, re.MULTILINE)
assert len(COMMANDS) > 10, "the page of the example has lost its commands"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example, where nothing belongs to this repository."""
    return Path(shutil.copytree(SOURCE, tmp_path / ".beads-example"))


@pytest.fixture
def hive(example: Path) -> Hive:
    """The example, open for nobody in particular."""
    return Hive.open(example.parent, beads_dir=example, env={})


def test_the_example_is_sound(hive: Hive) -> None:
    # Its leases last until 2099, so that they are always live.
    assert {(each.code, each.severity) for each in examine(hive)} == {("clock", "note")}


def test_every_line_is_whole_and_every_id_is_of_its_time(example: Path) -> None:
    for path in example.glob("queen_*.jsonl"):
        for row in records(path):
            minted = ULID.from_str(row["id"].partition("-")[2]).milliseconds
            assert minted == parse_ms(row["created_at"])
            assert row["rev"] >= 1


def test_three_droids_are_at_work(hive: Hive) -> None:
    assert hive.droids.known() == ["api-engineer", "human", "queen", "reviewer", "ui-engineer"]


def test_assignments_are_in_every_status(hive: Hive) -> None:
    found = hive.assignments.find(status="all")
    assert {(each.issue_id, each.droid, each.status) for each in found} == {
        ("qb-11", "ui-engineer", "completed"),
        ("qb-12", "ui-engineer", "active"),
        ("qb-13", "ui-engineer", "reassigned"),
        ("qb-13", "api-engineer", "active"),
        ("qb-17", "reviewer", "released"),
        ("qb-o20mcg", "reviewer", "completed"),
    }
    [moved] = hive.assignments.find(issue_id="qb-13")
    assert moved.previous_droid == "ui-engineer"


def test_reservations_are_live_expired_released_and_taken_over(hive: Hive) -> None:
    live = {(each.pattern, each.exclusive) for each in hive.reservations.find()}
    assert live == {
        ("src/components/Button/**", True),
        ("src/api/checkout/**", True),
        ("docs/**", False),
    }
    ended = hive.reservations.find(ended=True)
    assert {each.status for each in ended} == {"active", "expired", "released"}
    assert any(each.fields.get("released_by") == "human" for each in ended)


def test_messages_have_threads_read_marks_and_one_that_was_deleted(hive: Hive) -> None:
    thread = hive.messages.thread("qb-12")
    assert len({message.thread for message in thread}) == 2
    assert {message.read for message in thread} == {True, False}
    assert all(message.subject != "ignore me, wrong window" for message in thread)


def test_ready_is_what_the_readme_says(hive: Hive) -> None:
    ready = [issue.id for issue in hive.issues.ready(actor="ui-engineer")]
    assert ready[0] == "qb-16"
    assert "qb-14" not in ready


def test_the_plan_became_its_beads_and_the_first_is_done(quick: QuickQueen, example: Path) -> None:
    command = ("--beads-dir", str(example), "plan", "import", str(example / "plan.md"))
    again = quick(*command, "--dry-run", "--json", cwd=example.parent).json
    assert [change["key"] for change in again["changes"]] == ["1.1", "2.1a", "2.1b", "2.2"]
    assert {path["path"] for change in again["changes"] for path in change["differences"]} <= {
        "metadata.worktree_path"
    }
    shown = quick("--beads-dir", str(example), "bead", "show", "qb-o20mcg", "--json").json
    assert (shown["status"], shown["verification"]["verdict"]) == ("closed", "passed")
    runs = records(example / "queen_verifications.jsonl")
    assert [run["verdict"] for run in runs] == ["failed", "passed"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_readme_answers_and_changes_nothing(
    quick: QuickQueen, example: Path, command: str
) -> None:
    before = snapshot(example)
    ran = quick(*shlex.split(command)[1:], cwd=example.parent)
    assert ran.code == 0
    assert len(ran.out.splitlines()) >= 1
    assert {name: snapshot(example)[name] for name in before} == before


def test_looking_at_the_example_leaves_it_apart_from_the_hive_around_it(
    quick: QuickQueen, repo: Path
) -> None:
    shutil.copytree(SOURCE, repo / ".beads-example")
    quick("msg", "send", "reviewer", "ours", as_="ui-engineer")
    shown = quick("--beads-dir", ".beads-example", "msg", "sent", "--json", as_="ui-engineer")
    assert "ours" not in {message["body"] for message in shown.json}
    assert len(quick("msg", "sent", "--json", as_="ui-engineer").json) == 1


def test_the_settings_are_those_that_init_writes(quick: QuickQueen, repo: Path) -> None:
    quick("init")
    for name in ("queen.toml", ".gitattributes"):
        assert (SOURCE / name).read_text() == (repo / ".beads" / name).read_text()
