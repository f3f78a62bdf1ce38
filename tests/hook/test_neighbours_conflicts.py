"""After an edit, the agent learns that its change conflicts with another worktree's."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acting import remember_name
from entry_points import run_hook
from hives import commit_file, git
from start_up import HOOK, edit_event, loaded

from queenbee import Hive
from queenbee.git import run, touched
from queenbee.hook import neighbours
from queenbee.hook.events import Event
from queenbee.services.leases.reservations import PathStatus

TEXT = "".join(f"line {number}\n" for number in range(1, 31))
PATH = "src/app.py"
Tell = Callable[..., str | None]


def hive_in(tree: Path, droid: str) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def change(tree: Path, line: int, text: str, path: str = PATH) -> None:
    lines = (tree / path).read_text().splitlines(keepends=True)
    lines[line - 1] = f"{text}\n"
    (tree / path).write_text("".join(lines))


@pytest.fixture
def api(repo: Path, tmp_path: Path) -> Path:
    """The worktree of the agent that edits."""
    commit_file(repo, PATH, TEXT)
    git(repo, "worktree", "add", "-q", "-b", "api", str(tmp_path / "api"))
    git(repo, "worktree", "add", "-q", "-b", "ui", str(tmp_path / "ui"))
    return tmp_path / "api"


@pytest.fixture(autouse=True)
def _time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_BUDGET_S", 60)


@pytest.fixture
def ui(api: Path) -> Path:
    """The worktree of another agent, which has announced the file."""
    ui = api.parent / "ui"
    remember_name(ui, "ui-droid")
    hive_in(ui, "ui-droid").reservations.reserve([PATH], exclusive=False, session="other")
    return ui


@pytest.fixture
def tell(api: Path) -> Tell:
    """Returns what the agent in `api` is told of conflicts after an edit, or None."""

    def told(path: str = PATH, session: str = "s") -> str | None:
        hive = hive_in(api, "api-droid")
        leases = hive.reservations.overlapping(path)
        fields = {"hook_event_name": "PostToolUse", "session_id": session, "cwd": str(api)}
        event = Event(fields, str(api))
        answer: Any = neighbours.answer(event, hive, [PathStatus(path, "free", leases)])
        text = "" if answer is None else str(answer["hookSpecificOutput"]["additionalContext"])
        return text if "conflict" in text else None

    return told


def test_a_conflict_is_told_with_lines_and_whom_to_ask(api: Path, ui: Path, tell: Tell) -> None:
    (ui / PATH).write_text("top\n" + TEXT.replace("line 5\n", "theirs\n"))
    change(api, 5, "mine")
    assert tell() == (
        "Your change of src/app.py would conflict with that of ui-droid on ui: your lines 5 "
        "against theirs 6. Nothing is lost, but one of you will have to merge it. Agree on it "
        "now: queen msg send ui-droid 'About src/app.py: ...' --as api-droid"
    )


def test_it_is_told_once_and_again_if_other_lines_meet(api: Path, ui: Path, tell: Tell) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)
    assert tell() is not None
    change(api, 5, "again")
    assert tell() is None
    change(ui, 20, "ui")
    change(api, 20, "api")
    assert "your lines 5 against theirs 5; your lines 20" in str(tell())
    assert tell(session="another") is not None


def test_an_event_that_carries_nothing_to_the_model_uses_nothing_up(
    api: Path, ui: Path, tell: Tell
) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)
    hive = hive_in(api, "api-droid")
    fields = {"hook_event_name": "afterFileEdit", "conversation_id": "s", "cwd": str(api)}
    status = PathStatus(PATH, "free", hive.reservations.overlapping(PATH))
    assert neighbours.answer(Event(fields, str(api)), hive, [status]) is None
    assert tell() is not None


def test_commits_count_like_what_is_not_committed(api: Path, ui: Path, tell: Tell) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)
        git(tree, "commit", "-qam", "work")
    assert tell() is not None


def test_changes_elsewhere_in_the_file_are_not_told(api: Path, ui: Path, tell: Tell) -> None:
    change(api, 5, "api")
    change(ui, 25, "ui")
    assert tell() is None


def test_equal_changes_and_those_of_one_side_are_not_told(api: Path, ui: Path, tell: Tell) -> None:
    change(api, 5, "the same")
    assert tell() is None
    change(ui, 5, "the same")
    assert tell() is None


def test_who_announced_nothing_is_compared_too(api: Path, tell: Tell) -> None:
    for tree in (api, api.parent / "ui"):
        change(tree, 5, tree.name)
    assert str(tell()).startswith(
        "Your change of src/app.py would conflict with the one on ui: your lines 5 against theirs "
        "5. Nothing is lost, but one of you will have to merge it."
    )


def test_one_edit_brings_one_warning_and_each_is_told_once(api: Path, ui: Path, tell: Tell) -> None:
    """The conflict if there is one, and the others' work in the file at the next edit."""
    third = api.parent / "third"
    git(api, "worktree", "add", "-q", "-b", "third", str(third))
    change(api, 5, "api")
    change(ui, 5, "ui")
    change(third, 25, "third")
    event = edit_event(api, PATH, hook_event_name="PostToolUse", session_id="s").encode()

    def said() -> str:
        return str(run_hook(event, {"QUEEN_DROID": "api-droid"}, str(api)))

    first = said()
    assert "would conflict" in first and "third" not in first
    second = said()
    assert "Not merged yet: third changed src/app.py line 25" in second
    assert "conflict" not in second and "ui" not in second
    assert said() == "None"


def test_a_file_that_both_added(api: Path, ui: Path, tell: Tell) -> None:
    hive_in(ui, "ui-droid").reservations.reserve(["new.py"], exclusive=False, session="other")
    for tree in (api, ui):
        (tree / "new.py").write_text(tree.name)
    assert "both of you added it" in str(tell("new.py"))


@pytest.mark.parametrize("odd", ["missing", "a link", "a folder", "large", "binary"])
def test_what_it_cannot_judge_is_left_to_the_whole_comparison(
    api: Path, ui: Path, tell: Tell, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(api, 5, "api")
    (ui / PATH).unlink()
    if odd == "a link":
        (ui / PATH).symlink_to("/etc/hostname")
    elif odd == "a folder":
        (ui / PATH).mkdir()
    elif odd == "large":
        monkeypatch.setattr(touched, "MOST_BYTES", 200)
        (ui / PATH).write_text("x" * 1000)
    elif odd == "binary":
        (ui / PATH).write_bytes(b"\0" + TEXT.encode())
    assert tell() is None


def test_a_series_of_edits_costs_two_differences_each(
    api: Path, ui: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)
    tell()
    time.sleep(0.2)  # After a moment, no file can have changed without a trace.
    change(api, 6, "more")
    tell()
    said: list[str] = []
    ask = run._run

    def noting(arguments: Any, *more: Any) -> tuple[int, bytes, bytes]:
        said.append(
            next(each for each in ("status", "config", "diff", "other") if each in arguments)
        )
        return ask(arguments, *more)

    monkeypatch.setattr(run, "_run", noting)
    change(api, 7, "more")
    assert tell() is not None
    assert said == ["config", "diff", "diff"]


def test_names_of_others_add_nothing_to_the_command(api: Path, ui: Path, tell: Tell) -> None:
    name = "src/a; touch X #.py"
    hive_in(ui, "ui-droid").reservations.reserve([name], exclusive=False, session="other")
    for tree in (api, ui):
        (tree / name).write_text(tree.name)
    assert "'About src/a; touch X #.py: ...'" in str(tell(name))


def test_no_program_of_an_attribute_is_run(
    repo: Path, api: Path, ui: Path, tell: Tell, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n: > {tmp_path}/mark\ncat\n")
    program.chmod(0o755)
    for key in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"):
        git(repo, "config", key, str(program))
    (repo / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    for tree in (api, ui):
        change(tree, 5, tree.name)
    assert tell() is not None
    assert not (tmp_path / "mark").exists()


def test_nothing_of_git_is_touched(repo: Path, api: Path, ui: Path, tell: Tell) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)

    def of_git() -> dict[str, tuple[int, bytes]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.read_bytes())
            for path in (repo / ".git").rglob("*")
            if path.is_file() and "/queenbee/" not in str(path)
        }

    before = of_git()
    assert tell() is not None
    assert of_git() == before
    assert list((repo / ".git" / "queenbee" / "collisions").glob("run-*")) == []


def test_an_edit_in_the_only_worktree_loads_nothing_of_it(small: Path) -> None:
    event = edit_event(small, "src/x.py", hook_event_name="PostToolUse")
    modules = loaded(small, HOOK, stdin=event)
    lets_ask = {"queenbee.git"}
    assert {name for name in modules if name.startswith("queenbee.git")} <= lets_ask
    assert "queenbee.hook.neighbours" not in modules


def test_it_does_not_load_what_costs_more_than_the_call(api: Path, ui: Path, repo: Path) -> None:
    for tree in (api, ui):
        change(tree, 5, tree.name)
    event = edit_event(api, PATH, hook_event_name="PostToolUse", session_id="y")
    modules = loaded(api, HOOK, stdin=event)
    assert "queenbee.git.touched" in modules
    assert not modules & {"subprocess", "hashlib", "tempfile", "signal"}


@pytest.mark.slow
def test_it_says_what_git_merge_says(repo: Path, api: Path) -> None:
    """Of 60 pairs of versions of a text, all are judged as `git merge-file` judges them."""
    chance = random.Random(7)
    other = api.parent / "ui"
    hive = hive_in(api, "api-droid")
    wrong = []
    for number in range(60):
        for tree in (api, other):
            lines = TEXT.splitlines(keepends=True)
            for _ in range(chance.randint(0, 2)):
                first = chance.randint(0, len(lines) - 1)
                new = [f"new {chance.randint(0, 2)}\n"] * chance.randint(0, 2)
                lines[first : first + chance.randint(0, 3)] = new
            (tree / PATH).write_text("".join(lines))
        (repo / "base").write_text(TEXT)
        files = [str(api / PATH), "base", str(other / PATH)]
        merged = subprocess.run(["git", "merge-file", "-p", *files], cwd=repo, capture_output=True)
        seen = touched.by_others(hive, [PATH], budget_s=60)
        if any(map(seen.conflict, seen.touches)) != (merged.returncode > 0):
            wrong.append(number)
    assert wrong == []


def test_two_agents_that_edit_one_file_in_two_worktrees(api: Path, tmp_path: Path) -> None:
    """By the hook alone: the second edit that meets the first one is told, neither is refused."""
    ui = tmp_path / "ui"

    def edited(tree: Path, line: int, droid: str) -> object:
        before, after = (
            run_hook(
                edit_event(tree, PATH, hook_event_name=name, session_id=droid).encode(),
                {"QUEEN_DROID": droid, "QUEEN_DURABILITY": "buffered"},
                str(tree),
            )
            for name in ("PreToolUse", "PostToolUse")
            if name == "PreToolUse" or change(tree, line, droid) is None
        )
        assert before is None or "Not merged yet" in str(before)
        assert "permissionDecision" not in str(before)
        return after

    assert edited(ui, 5, "ui-droid") is None
    edited(api, 20, "api-droid")
    told: Any = edited(api, 5, "api-droid")
    assert "would conflict with that of ui-droid on ui: your lines 5 against theirs 5" in str(told)
    assert edited(ui, 6, "ui-droid") is not None
