"""Grants as the settings want them, and waiting for what another machine has."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import mcp_types as types
import pytest
from hives import QuickQueen
from mcp import Client
from mcp_clients import error_of, inside, result_of
from sync_worlds import World

from queenbee import Hive
from queenbee.core.records import Assignment
from queenbee.errors import Busy, Held, Taken, Unreachable
from queenbee.git.remote import alongside
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.syncing import sync, take_in
from queenbee.git.remote.terms import Terms

PATIENCE_S = 30


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(alongside, "SHORTEST_S", 0.05)
    world = World(tmp_path)
    for name in ("ada", "bob"):
        world.clone(name)
        world.settings(name, '[sync]\nconfirm = "remote"\n')
        rows = [{"id": f"shop-{n}", "title": "a", "status": "open", "priority": n} for n in (1, 2)]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (world.folder / name / ".beads" / "issues.jsonl").write_text(text)
    return world


def claim(world: World, name: str, wait_s: float = 0) -> Assignment:
    hive = world.hive(name)
    (given,) = Terms(hive).granted(
        lambda left_s: [hive.assignments.claim("shop-1", timeout_s=left_s)], wait_s=wait_s
    )
    assert isinstance(given, Assignment)
    return given


class Waiting:
    """A call in a thread, which waits for its turn."""

    def __init__(self, world: World, name: str, call: Callable[[], object]) -> None:
        self._world = world
        self._name = name
        self._answers: list[object] = []
        self._thread = threading.Thread(target=self._run, args=(call,), daemon=True)
        self._thread.start()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            self._answers.append(call())
        except Exception as error:
            self._answers.append(error)

    def until_in_line(self) -> None:
        """Returns when it is in the line of its machine."""
        until_s = time.monotonic() + PATIENCE_S
        while not self._world.hive(self._name).queue.everything():
            assert time.monotonic() < until_s and not self._answers, self._answers
            time.sleep(0.01)

    def answer(self) -> object:
        self._thread.join(PATIENCE_S)
        assert self._answers, "it still waits"
        return self._answers[0]


class TestTheSetting:
    def test_holds_for_the_tools_of_mcp(self, two: World) -> None:
        bob = Hive.open(two.folder / "bob", droid="bob")  # By the clock that the server has.
        bob.reservations.reserve(["docs/**"])
        sync(bob)

        async def scene(client: Client) -> list[types.CallToolResult]:
            said = [
                await client.call_tool(tool, given)
                for tool, given in (
                    ("claim", {"issue": "shop-2"}),
                    ("next", {"reserve": ["b.py"]}),
                    ("reserve", {"patterns": ["a.py"]}),
                    ("reserve", {"patterns": ["docs/a.md"]}),
                )
            ]
            two.cut()
            return [*said, await client.call_tool("reserve", {"patterns": ["c.py"]})]

        said = inside(two.folder / "ada", scene, given={"droid": "ada"})
        claimed, taken, reserved, held, away = said
        assert result_of(claimed)[0]["token"]
        assert result_of(taken)["assignment"]["token"]
        assert all(each["token"] for each in result_of(taken)["reservations"])
        assert result_of(reserved)[0]["token"]
        assert error_of(held)["holders"][0]["droid"] == "bob"
        assert error_of(away)["code"] == "unreachable"

    def test_holds_for_the_next_issue_after_another(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QUEEN_DROID", "ada")
        queen = QuickQueen(two.folder / "ada")
        first = queen("next", "--json").json["issue_id"]
        following_one = queen("complete", first, "--next", "--json").json["next"]
        assert following_one["issue_id"] != first
        assert following_one["assignment"]["token"]

    def test_and_no_remote_leave_the_completion_and_say_so(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QUEEN_DROID", "ada")
        queen = QuickQueen(two.folder / "ada")
        first = queen("next", "--json").json["issue_id"]
        two.cut()
        done = queen("complete", first, "--next", "--json")
        assert done.code == 0
        assert done.json["status"] == "completed"
        assert done.json["next"] is None
        assert "cannot be reached" in done.err
        assert two.hive("ada").assignments.find() == []

    def test_that_cannot_be_sent_leave_the_mail_unread(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("QUEEN_DROID", "ada")
        queen = QuickQueen(two.folder / "ada")
        first = queen("next", "--json").json["issue_id"]
        queen("msg", "send", "ada", "mind the tests", "--new", as_="bob")
        hook = two.bare / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        assert queen("complete", first, "--next", "--json").json["next"] is None
        assert queen("next").code == 8
        assert [each["body"] for each in queen("msg", "read", "--json").json] == ["mind the tests"]


class TestAWait:
    def test_ends_when_the_holder_on_another_machine_releases(self, two: World) -> None:
        claim(two, "ada")
        take_in(two.hive("bob"))
        waits = Waiting(two, "bob", lambda: claim(two, "bob", PATIENCE_S))
        waits.until_in_line()
        two.hive("ada").assignments.release("shop-1")
        sync(two.hive("ada"))
        given = waits.answer()
        assert isinstance(given, Assignment)
        assert (given.droid, bool(given.token)) == ("bob", True)

    def test_goes_on_after_another_machine_was_faster(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push = Branch.push

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            claim(two, "ada")
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        waits = Waiting(two, "bob", lambda: claim(two, "bob", PATIENCE_S))
        until_s = time.monotonic() + PATIENCE_S
        while not [each for each in two.hive("bob").assignments.find() if each.droid == "ada"]:
            assert time.monotonic() < until_s
            time.sleep(0.01)
        two.hive("ada").assignments.release("shop-1")
        sync(two.hive("ada"))
        given = waits.answer()
        assert isinstance(given, Assignment)
        assert (given.droid, bool(given.token)) == ("bob", True)

    def test_that_is_over_says_who_has_it(self, two: World) -> None:
        claim(two, "ada")
        with pytest.raises(Busy, match="assigned to ada"):
            claim(two, "bob", 0.2)

    def test_that_lost_at_the_remote_alone_ends_in_time(self, two: World) -> None:
        """By this clock the lease is over; by the remote's history it may go on for hours."""
        hive = two.hive("ada")
        confirmed(hive, lambda: hive.reservations.reserve(["src/**"], ttl_s=60))
        two.clocks["bob"].advance(61)
        bob = two.hive("bob")
        with pytest.raises(Busy, match="timed out"):
            Terms(bob).granted(
                lambda left_s: bob.reservations.reserve(["src/a.py"], timeout_s=left_s), wait_s=0.5
            )
        assert bob.reservations.find() == []

    def test_without_one_is_refused_at_once(self, two: World) -> None:
        claim(two, "ada")
        with pytest.raises(Taken):
            claim(two, "bob")
        hive = two.hive("ada")
        confirmed(hive, lambda: hive.reservations.reserve(["src/**"]))
        bob = two.hive("bob")
        with pytest.raises(Held):
            Terms(bob).granted(lambda _: bob.reservations.reserve(["src/a.py"]))

    def test_needs_the_remote_for_its_first_look(self, two: World) -> None:
        two.cut()
        with pytest.raises(Unreachable):
            claim(two, "bob", PATIENCE_S)

    def test_goes_through_a_remote_that_is_away_meanwhile(self, two: World) -> None:
        claim(two, "ada")
        take_in(two.hive("bob"))
        waits = Waiting(two, "bob", lambda: claim(two, "bob", PATIENCE_S))
        waits.until_in_line()
        two.cut()
        two.hive("ada").assignments.release("shop-1")
        time.sleep(0.2)  # Some looks fail.
        two.heal()
        sync(two.hive("ada"))
        given = waits.answer()
        assert isinstance(given, Assignment) and given.token


def test_many_looks_at_once_are_one_fetch(two: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fetches = []
    fetch = Branch.fetch

    def counted(branch: Branch) -> str | None:
        fetches.append(1)
        return fetch(branch)

    monkeypatch.setattr(Branch, "fetch", counted)
    threads = [
        threading.Thread(target=lambda: take_in(two.hive("ada"), older_than_s=60)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(fetches) == 1
