"""`queen land --confirm`: what other machines hold counts before anything lands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hives import COMMAND, QuickQueen, commit_file, git
from sync_worlds import World

from queenbee import Hive
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.syncing import sync


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Two clones with a commit; Ada has a linked worktree with work to land."""
    monkeypatch.setenv("QUEEN_DROID", "ada")
    world = World(tmp_path)
    ada = world.clone("ada")
    git(ada, "symbolic-ref", "HEAD", "refs/heads/main")
    commit_file(ada, "a.txt", "a\n")
    git(ada, "push", "-q", "origin", "main")
    world.git("symbolic-ref", "HEAD", "refs/heads/main")
    world.clone("bob")
    git(ada, "worktree", "add", "-q", str(tmp_path / "work"), "-b", "work")
    commit_file(tmp_path / "work", "new.txt", "x\n")
    return world


@pytest.fixture
def queen(two: World) -> QuickQueen:
    return QuickQueen(two.folder / "work")


def bob(world: World) -> Hive:
    """Bob's hive, by the clock that the command has."""
    return Hive.open(world.folder / "bob", droid="bob")


def is_landed(world: World) -> bool:
    return "new.txt" in git(world.folder / "ada", "ls-tree", "--name-only", "main")


def test_the_remote_has_the_grant_before_and_the_completion_after(
    two: World, queen: QuickQueen
) -> None:
    queen("claim", "--new", "shop-1")
    done = queen("land", "--unchecked", "--confirm", "--json")
    assert done.code == 0, done
    assert is_landed(two)
    hive = bob(two)
    sync(hive)
    (given,) = hive.assignments.find(status="completed")
    assert (given.droid, bool(given.token)) == ("ada", True)


def test_an_issue_that_another_machine_has_is_not_landed(two: World, queen: QuickQueen) -> None:
    queen("claim", "--new", "shop-1")
    hive = bob(two)
    confirmed(hive, lambda: [hive.assignments.claim("shop-1")])
    refused = queen("land", "--unchecked", "--confirm", "--json")
    assert (refused.code, refused.error["code"]) == (5, "taken")
    assert not is_landed(two)


def test_nothing_lands_if_another_machine_has_a_further_issue(
    two: World, queen: QuickQueen
) -> None:
    queen("claim", "--new", "shop-1", "shop-2")
    hive = bob(two)
    confirmed(hive, lambda: [hive.assignments.claim("shop-2")])
    refused = queen("land", "shop-1", "shop-2", "--unchecked", "--confirm", "--json")
    assert (refused.code, refused.error["code"]) == (5, "taken")
    assert not is_landed(two)


def test_files_that_another_machine_reserved_are_not_landed(two: World, queen: QuickQueen) -> None:
    hive = bob(two)
    hive.reservations.reserve(["new.txt"])
    sync(hive)
    refused = queen("land", "--unchecked", "--confirm")
    assert "held by others: new.txt (bob)" in refused.err
    assert not is_landed(two)


def during_the_check(world: World) -> str:
    """Returns a check in which Bob reserves the file on his machine, and tells the remote."""
    call = f"{shlex.join(COMMAND)} --as bob"
    return f"cd {shlex.quote(str(world.folder / 'bob'))} && {call} reserve new.txt && {call} sync"


def test_a_reservation_made_during_the_check_counts_too(two: World, queen: QuickQueen) -> None:
    refused = queen("land", "--confirm", "--check", during_the_check(two))
    assert "held by others: new.txt (bob)" in refused.err
    assert not is_landed(two)


def test_without_the_remote_nothing_is_landed(two: World, queen: QuickQueen) -> None:
    queen("claim", "--new", "shop-1")
    two.cut()
    refused = queen("land", "--unchecked", "--confirm", "--json")
    assert (refused.code, refused.error["code"]) == (6, "unreachable")
    assert not is_landed(two)
    assert [each.status for each in Hive.open(two.folder / "ada").assignments.find()] == ["active"]
    assert queen("land", "--unchecked").code == 0  # Not asked for, the remote is not needed.


def test_the_setting_asks_for_it(two: World, queen: QuickQueen) -> None:
    two.settings("ada", '[sync]\nconfirm = "remote"\n')
    two.cut()
    assert queen("land", "--unchecked").code == 6
    two.heal()
    assert queen("land", "--unchecked").code == 0
    assert is_landed(two)


def test_a_remote_that_is_lost_after_the_landing_is_told(two: World, queen: QuickQueen) -> None:
    queen("claim", "--new", "shop-1", "--confirm")
    gone = f"test -e {shlex.quote(str(two.folder / 'ada'))}"
    hook = two.folder / "ada" / ".git" / "hooks" / "post-merge"
    hook.write_text(f"#!/bin/sh\nmv {two.bare} {two.folder}/away.git 2>/dev/null; {gone}\n")
    hook.chmod(0o755)
    done = queen("land", "--unchecked", "--confirm")
    assert done.code == 0, done
    assert "recorded here alone" in done.out
    assert is_landed(two)
