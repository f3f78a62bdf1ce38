"""The hook: the parts inside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import (
    NAME,
    SESSION,
    recorded,
)
from hives import git
from start_up import edit_event

from queenbee import Hive, Reservation
from queenbee.agents import claude
from queenbee.errors import Held, Unreachable
from queenbee.hook import editing, session_events
from queenbee.hook import main as hook
from queenbee.services.leases import edits
from queenbee.store.lock import KernelLock

Ask = Callable[..., dict[str, Any] | None]


def hive_of(tree: Path, droid: str | None = None) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def live(tree: Path) -> list[Reservation]:
    return hive_of(tree).reservations.find()


def hold(tree: Path, *patterns: str, droid: str = "reviewer", **more: Any) -> Reservation:
    return hive_of(tree, droid).reservations.reserve(patterns, **more)[0]


def reason_of(answer: dict[str, Any] | None) -> str:
    assert answer is not None
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "PreToolUse"
    assert output["permissionDecision"] == "deny"
    return str(output["permissionDecisionReason"])


def test_an_edit_of_a_free_file_reserves_it_for_the_session(ask: Ask, tree: Path) -> None:
    assert ask(recorded("claude/pre-edit", tree)) is None

    (lease,) = live(tree)
    assert (lease.pattern, lease.droid, lease.session) == ("src/app.py", NAME, SESSION)
    assert not lease.exclusive
    assert 0 < lease.expires_ms - lease.created_ms <= edits.TTL_S * 1000


@pytest.mark.parametrize("name", ["claude/pre-edit", "claude/post-edit", "cursor/after-file-edit"])
def test_an_edit_renews_a_lease_of_which_less_than_half_is_left(
    ask: Ask, tree: Path, name: str
) -> None:
    first = hold(tree, "src/app.py", droid="ui-engineer", ttl_s=edits.TTL_S // 2 - 5)
    ask(recorded(name, tree), QUEEN_DROID="ui-engineer")
    (lease,) = live(tree)
    assert lease.id == first.id
    assert lease.expires_ms >= first.expires_ms + edits.TTL_S * 1000 // 2 - 5_000


def test_a_bug_stops_nothing_and_is_logged(
    ask: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    hold(tree, "docs/**")
    monkeypatch.setattr(edits, "keep", broken)
    assert ask(recorded("claude/pre-edit", tree)) is None
    assert "ZeroDivisionError: a bug" in capsys.readouterr().err
    log = (tree / ".git" / "queenbee" / "hook.log").read_text()
    assert "claude PreToolUse: ZeroDivisionError: a bug" in log


def test_an_edit_of_a_held_file_is_denied_even_if_writing_fails(
    ask: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("disk full")

    hold(tree, "src/**")
    monkeypatch.setattr(edits, "keep", broken)
    assert "reserved by reviewer" in reason_of(ask(recorded("claude/pre-edit", tree)))


def test_the_droid_that_was_faster_keeps_the_file(
    ask: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = edits.look

    def late(hive: Hive, paths: list[str], session: str | None) -> Any:
        found = look(hive, paths, session)
        if not live(tree):
            hold(tree, "src/app.py")
        return found

    monkeypatch.setattr(edits, "look", late)
    assert "reserved by reviewer" in reason_of(ask(recorded("claude/pre-edit", tree)))


@pytest.mark.parametrize("error", [Held("src", holders=[]), OSError("disk full")], ids=type)
def test_an_edit_in_two_hives_keeps_no_lease_where_the_second_grants_none(
    ask: Ask, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    second = tmp_path / "second"
    second.mkdir()
    git(second, "init", "-q")
    (second / ".beads").mkdir()
    keep, kept = edits.keep, []

    def once(reservations: Any, *more: Any) -> Any:
        if kept:
            raise error
        kept.extend(keep(reservations, *more))
        return kept

    monkeypatch.setattr(edits, "keep", once)
    patch = f"*** Begin Patch\n*** Update File: src/app.py\n*** Update File: {second}/a.py\n"
    event = {
        "hook_event_name": "PreToolUse",
        "tool_name": "apply_patch",
        "tool_input": {"command": patch},
        "cwd": str(tree),
    }
    ask(json.dumps(event).encode(), QUEEN_DROID="ui")
    assert [each.pattern for each in kept] == ["src/app.py"]
    assert live(tree) == []


@pytest.mark.parametrize(("event", "denied"), [("PreToolUse", True), ("PostToolUse", False)])
def test_an_edit_that_is_done_is_not_denied_where_the_hive_cannot_be_reached(
    ask: Ask, tree: Path, beads: Path, monkeypatch: pytest.MonkeyPatch, event: str, denied: bool
) -> None:
    def unreachable(*_: object) -> None:
        raise Unreachable("the database cannot be reached")

    (beads / "queen.toml").write_text('[engine]\nhook = "refuse"\n')
    monkeypatch.setattr(editing, "answer", unreachable)
    answer = ask(edit_event(tree, "src/app.py", hook_event_name=event).encode())
    assert answer is not None
    assert ("deny" in str(answer)) is denied
    assert ("this edit is not guarded" in str(answer)) is not denied


def test_a_hive_that_stays_locked_holds_an_edit_up_for_the_hooks_own_time_only(
    ask: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hive's own timeout is for commands, which a person can interrupt."""
    hold(tree, "docs/**")
    monkeypatch.setattr(session_events, "_LOCK_TIMEOUT_S", 0.05)
    with KernelLock(str(tree / ".git/queenbee/lock"), holder="reviewer", timeout_s=10):
        assert ask(recorded("claude/pre-edit", tree)) is None
        said = capsys.readouterr().err
        assert "timed out after 0.05 s: the hive is locked by reviewer" in said


def test_a_shorter_timeout_of_the_hive_holds_for_the_hook_too(
    ask: Ask, tree: Path, beads: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (beads / "queen.toml").write_text('lock_timeout = "0s"\n')
    hold(tree, "docs/**")
    with KernelLock(str(tree / ".git/queenbee/lock"), holder="reviewer", timeout_s=10):
        assert ask(recorded("claude/pre-edit", tree)) is None
    assert "timed out after 0 s: the hive is locked by" in capsys.readouterr().err


def test_the_hook_gives_up_before_its_agent_does() -> None:
    assert 2 * session_events._LOCK_TIMEOUT_S <= claude._TIMEOUT_S


def test_the_entry_point_is_where_the_installed_script_looks_for_it() -> None:
    assert callable(hook.main)


def test_a_name_that_no_file_can_have_does_not_let_a_held_file_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One impossible name in an edit of several files hides none of the others."""
    repo = tmp_path / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / ".beads").mkdir()
    with Hive.open(repo, droid="bob", env={}) as hive:
        hive.reservations.reserve(["src/**"])
    for other in ("a\0b", "a\ud800", "a" * 5000):
        event = {
            "hook_event_name": "PreToolUse",
            "session_id": "s",
            "cwd": str(repo),
            "tool_name": "Edit",
            "tool_input": {"file_path": "src/a", "files": [other]},
        }
        answer = hook.respond(json.dumps(event).encode(), {}, str(repo))
        assert answer is not None
        assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_held_name_with_a_control_character_is_denied(tmp_path: Path) -> None:
    repo = tmp_path / "shop"
    (repo / ".git").mkdir(parents=True)
    (repo / ".beads").mkdir()
    with Hive.open(repo, droid="bob", env={}) as hive:
        hive.reservations.reserve(["src/**"])
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(repo),
        "tool_name": "Edit",
        "tool_input": {"file_path": "src/a\x1b[31m"},
    }
    answer = hook.respond(json.dumps(event).encode(), {}, str(repo))
    assert answer is not None
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
