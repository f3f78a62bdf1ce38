"""What `queen next` offers with an issue: what belongs with it, held for one droid."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acting import answer
from hives import Clock, git, write_lines

from queenbee import Hive
from queenbee.store.droids import offers

Opener = Callable[[str], Hive]
MODULES = ("one", "two", "three")


def row(identifier: str, text: str, *needs: str) -> dict[str, object]:
    return {"id": identifier, "title": text, "status": "open", "dependencies": list(needs)}


@pytest.fixture
def modules(repo: Path, beads: Path) -> None:
    """Twelve issues: four about each of three modules, and all of them about one list."""
    for each in (*(f"{name}.py" for name in MODULES), "names.md"):
        (repo / each).touch()
    rows = [row(f"qb-{n}", f"{MODULES[n % 3]}.py, and names.md") for n in range(12)]
    write_lines(beads / "issues.jsonl", *rows)


def share(hive: Hive, *options: str) -> tuple[str, list[str]]:
    taken: dict[str, Any] = answer(hive, "next", *options)
    return taken["issue_id"], taken["share"]


@pytest.mark.usefixtures("modules")
def test_each_droid_is_offered_other_issues_of_its_own_module(open_as: Opener) -> None:
    shares = [share(open_as(each)) for each in ("api", "db", "ui")]
    offered = [{first, *rest} for first, rest in shares]
    assert sum(map(len, offered)) == len(set().union(*offered)) == 12
    assert all(len({int(each[3:]) % 3 for each in one}) == 1 for one in offered)


@pytest.mark.usefixtures("modules")
def test_the_files_of_most_issues_are_nobodys(open_as: Opener) -> None:
    open_as("api").assignments.claim("qb-0")
    open_as("db").assignments.claim("qb-3")
    taken = answer(open_as("ui"), "next")
    assert taken["issue_id"] == "qb-1"
    assert [each["shared_files"] for each in taken["others"]] == [[], []]


@pytest.mark.usefixtures("modules")
def test_what_is_held_for_another_is_taken_last_and_its_last_first(open_as: Opener) -> None:
    _, held = share(open_as("api"))
    late = open_as("late")
    taken = []
    for _ in range(11):
        issue_id, _ = share(late)
        taken.append(issue_id)
        late.assignments.complete(issue_id)
    assert taken[-3:] == held[::-1]


@pytest.mark.usefixtures("modules")
def test_an_offer_ends_after_two_minutes(open_as: Opener, clock: Clock) -> None:
    hive = open_as("api")
    _, held = share(hive)
    assert list(offers.held(hive.layout, hive.now_ms())) == held
    clock.advance(seconds=120)
    assert share(hive)[1] == []
    assert offers.held(hive.layout, hive.now_ms()) == {}


@pytest.mark.usefixtures("modules")
def test_take_claims_what_nobody_else_has_taken(open_as: Opener) -> None:
    hive = open_as("api")
    _, held = share(hive)
    open_as("db").assignments.claim(held[1])
    taken = answer(hive, "next", "--take")
    assert (taken["again"], taken["with_it"], taken["share"]) == (True, [held[0], held[2]], [])
    mine = {each.issue_id for each in hive.assignments.find(droid="api")}
    assert mine == {taken["issue_id"], held[0], held[2]}


def test_what_waits_for_the_issue_alone_is_offered_however_little_is_left(
    open_as: Opener, beads: Path
) -> None:
    first, then, last = row("qb-1", "a"), row("qb-2", "b", "qb-1"), row("qb-3", "c", "qb-2")
    write_lines(beads / "issues.jsonl", first, then, last)
    assert share(open_as("api")) == ("qb-1", ["qb-2"])
    assert answer(open_as("api"), "next", "--take")["with_it"] == ["qb-2"]


def test_what_others_wait_for_is_no_part_of_a_share(open_as: Opener, beads: Path) -> None:
    about = [row(f"qb-{n}", "`Parser`") for n in range(3)]
    rows = [*about, row("qb-3", "x", "qb-1"), row("qb-4", "y", "qb-1"), row("qb-5", "z", "qb-1")]
    rows += [row(f"qb-{n}", "something else") for n in range(6, 10)]
    write_lines(beads / "issues.jsonl", *rows)
    assert share(open_as("api")) == ("qb-1", [])  # It is to land soon, and alone.
    assert share(open_as("db")) == ("qb-0", ["qb-2"])


def test_names_of_code_tell_what_belongs_together(open_as: Opener, beads: Path) -> None:
    texts = ("`Parser`", "something", "another", "more of `Parser()`")
    rows = [row(f"qb-{n}", text) for n, text in enumerate(texts)]
    write_lines(beads / "issues.jsonl", *rows)
    assert share(open_as("api")) == ("qb-0", ["qb-3"])


@pytest.mark.usefixtures("modules")
def test_worktrees_that_somebody_has_begun_in_count_as_droids(
    open_as: Opener, repo: Path, clock: Clock
) -> None:
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "all")
    hive = open_as("api")
    entries = [repo / ".git" / "worktrees" / name for name in "abcde"]

    def begin() -> None:
        for entry in entries:
            os.utime(entry, ns=(hive.now_ms() * 10**6,) * 2)

    for entry in entries:
        git(repo, "worktree", "add", "-q", str(repo.parent / entry.name), "-b", entry.name)
    begin()
    assert len(share(hive)[1]) == 11 // 5  # An equal part of those that are left.
    for entry in entries[:2]:
        (entry / "locked").touch()
    begin()
    assert len(share(open_as("db"))[1]) == 10 // 3
    clock.advance(seconds=16 * 60)
    assert len(share(open_as("ui"))[1]) == 3  # All that is left of a module.


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize(
    "said", [b"{", b"[1]", b'{"qb-3": 5}', b'{"qb-3": ["db", 1e300]}', b"\xff"]
)
def test_an_offer_that_cannot_be_read_holds_nothing(open_as: Opener, said: bytes) -> None:
    hive = open_as("api")
    hive.assignments.claim("qb-0")
    Path(hive.layout.state_dir, "offers").write_bytes(said)
    assert share(open_as("ui")) == ("qb-1", ["qb-4", "qb-7", "qb-10"])


@pytest.mark.usefixtures("modules")
def test_a_state_that_cannot_be_written_keeps_nobody_from_an_issue(open_as: Opener) -> None:
    hive = open_as("api")
    hive.assignments.find()
    Path(hive.layout.state_dir, "offers").mkdir(parents=True)
    assert len(share(hive)[1]) == 3


def test_processes_at_once_are_never_offered_the_same(hive: Hive, repo: Path) -> None:
    hive.assignments.find()
    hive.messages.send("somebody", "makes the state folder")
    script = """
import sys
from queenbee import Hive
from queenbee.store.droids import offers
hive = Hive.open(sys.argv[1], droid=sys.argv[2])
for _ in range(20):
    found = offers.offer(hive.layout, sys.argv[2], [f"qb-{n}" for n in range(16)], 4, 1000)
    held = offers.held(hive.layout, 1000)
    assert [key for key, droid in held.items() if droid == sys.argv[2]] == found, (found, held)
print(*found)
"""
    argv = [sys.executable, "-c", script, str(repo)]
    started = [
        subprocess.Popen([*argv, f"d-{n}"], stdout=subprocess.PIPE, text=True) for n in range(4)
    ]
    found = [each for process in started for each in process.communicate()[0].split()]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(found) == sorted(f"qb-{n}" for n in range(16))


def test_what_is_about_files_everywhere_is_in_no_share(open_as: Opener, beads: Path) -> None:
    rows = [row(f"qb-{n}", "`Parser`") for n in range(6)]
    rows[0]["labels"] = rows[2]["labels"] = ["across"]
    write_lines(beads / "issues.jsonl", *rows)
    assert share(open_as("api")) == ("qb-0", [])
    assert share(open_as("db")) == ("qb-1", ["qb-3", "qb-4"])
