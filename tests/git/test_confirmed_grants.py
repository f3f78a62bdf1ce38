"""Confirmed grants: the remote's history decides between machines, and no clock does."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hives import Clock, QuickQueen
from sync_worlds import BRANCH, HOUR_S, World

from queenbee.core.records import Assignment, Reservation
from queenbee.errors import Held, Taken, Unreachable
from queenbee.git.remote import branch, confirmed_grants, syncing
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.confirmed_grants import confirmed
from queenbee.git.remote.deciding import Decisions
from queenbee.git.remote.sync_state import Notes
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services.hive import Services


@pytest.fixture
def two(tmp_path: Path) -> World:
    """Ada's clock is an hour ahead, and Bob's an hour behind."""
    world = World(tmp_path)
    world.clone("ada", off_s=HOUR_S)
    world.clone("bob", off_s=-HOUR_S)
    return world


def claim(world: World, name: str, issue_id: str = "shop-1", **more: bool) -> Assignment:
    hive = world.hive(name)
    (given,) = confirmed(hive, lambda: [hive.assignments.claim(issue_id)], **more)
    assert isinstance(given, Assignment)
    return given


def reserve(world: World, name: str, *patterns: str, ttl_s: int = HOUR_S) -> list[Reservation]:
    hive = world.hive(name)
    given = confirmed(hive, lambda: hive.reservations.reserve(patterns, ttl_s=ttl_s))
    return [each for each in given if isinstance(each, Reservation)]


def held_by(world: World, name: str) -> list[str]:
    return [each.droid for each in world.hive(name).assignments.find()]


class TestAClaim:
    def test_that_the_remote_has_is_granted_with_a_token(self, two: World) -> None:
        given = claim(two, "ada")
        assert given.token == 1
        assert not given.unconfirmed
        assert [line.get("token") for line in two.lines()] == [None, 1]

    def test_is_confirmed_for_a_program_where_it_asks_or_the_settings_do(self, two: World) -> None:
        ada = two.hive("ada")
        (given,) = ada.grant(lambda _: [ada.assignments.claim("shop-1")], confirm=True)
        assert given.token == 1
        (given,) = ada.grant(lambda _: [ada.assignments.claim("shop-2")])
        assert given.token == 0
        two.settings("bob", '[sync]\nconfirm = "remote"\n')
        bob = two.hive("bob")
        with pytest.raises(Taken):
            bob.grant(lambda _: [bob.assignments.claim("shop-1")])

    @pytest.mark.parametrize("first", ["ada", "bob"])
    def test_that_another_machine_has_is_refused_whatever_the_clocks(
        self, two: World, first: str
    ) -> None:
        second = "bob" if first == "ada" else "ada"
        claim(two, first)
        with pytest.raises(Taken, match=f"assigned to {first}"):
            claim(two, second)
        for name in (first, second, first):
            sync(two.hive(name))
            assert held_by(two, name) == [first]

    @pytest.mark.parametrize("first", ["ada", "bob"])
    def test_that_is_overtaken_ends_and_nothing_of_it_remains(
        self, two: World, first: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        second = "bob" if first == "ada" else "ada"
        push = Branch.push

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            claim(two, first)
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        with pytest.raises(Taken, match=f"assigned to {first}"):
            claim(two, second)
        for name in (second, first, second):
            sync(two.hive(name))
            assert held_by(two, name) == [first]
            assert two.hive(name).assignments.conflicts() == []

    def test_beats_one_that_was_never_confirmed_and_looks_older(self, two: World) -> None:
        two.hive("bob").assignments.claim("shop-1")
        claim(two, "ada")
        for name in ("bob", "ada", "bob"):
            sync(two.hive(name))
            assert held_by(two, name) == ["ada"]

    def test_is_refused_by_an_unconfirmed_one_that_the_remote_has(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        with pytest.raises(Taken):
            claim(two, "bob")
        sync(two.hive("bob"))
        sync(two.hive("ada"))
        assert held_by(two, "ada") == held_by(two, "bob") == ["ada"]

    def test_follows_a_release_with_a_larger_token(self, two: World) -> None:
        first = claim(two, "ada")
        two.hive("ada").assignments.release("shop-1")
        with pytest.raises(Taken):
            claim(two, "bob")
        sync(two.hive("ada"))
        assert claim(two, "bob").token > first.token
        sync(two.hive("ada"))
        assert held_by(two, "ada") == held_by(two, "bob") == ["bob"]

    def test_repeated_is_the_same(self, two: World) -> None:
        assert claim(two, "ada").to_dict() == claim(two, "ada").to_dict()

    def test_at_an_unreachable_remote_grants_nothing(self, two: World) -> None:
        two.cut()
        with pytest.raises(Unreachable):
            claim(two, "ada")
        assert held_by(two, "ada") == []

    def test_whose_push_cannot_reach_the_remote_grants_nothing(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push = Branch.push

        def cut(branch: Branch, commit: str) -> bool:
            two.cut()
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", cut)
        with pytest.raises(Unreachable):
            claim(two, "ada")
        assert held_by(two, "ada") == []
        monkeypatch.setattr(Branch, "push", push)
        two.heal()
        assert claim(two, "bob").token
        sync(two.hive("ada"))
        assert held_by(two, "ada") == ["bob"]

    def test_whose_answer_was_lost_is_ended_at_the_next_exchange(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push = Branch.push

        def lost(branch: Branch, commit: str) -> bool:
            push(branch, commit)
            raise Unreachable("the connection broke", remote="origin")

        monkeypatch.setattr(Branch, "push", lost)
        with pytest.raises(Unreachable):
            claim(two, "ada")
        monkeypatch.setattr(Branch, "push", push)
        with pytest.raises(Taken):  # The remote still says that Ada has it.
            claim(two, "bob")
        sync(two.hive("ada"))
        assert held_by(two, "ada") == []
        assert claim(two, "bob").token > 1

    def test_that_was_pushed_is_granted_though_a_killed_git_has_our_ref_locked(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim(two, "ada", "shop-0")
        lock = two.folder / "ada" / ".git" / f"{Branch(two.hive('ada')).ref}.lock"
        network = branch.network

        def locked_then(*arguments: str, **more: object) -> object:
            done = network(*arguments, **more)
            if arguments[0] == "push":
                lock.touch()
            return done

        monkeypatch.setattr(branch, "network", locked_then)
        assert claim(two, "ada").token == 2
        lock.unlink()
        monkeypatch.setattr(branch, "network", network)
        assert sync(two.hive("ada"), fetch=False).sent == 0
        assert claim(two, "ada", "shop-2").token == 3
        with pytest.raises(Taken):
            claim(two, "bob")

    def test_can_be_granted_here_alone_and_everybody_sees_it(self, two: World) -> None:
        two.cut()
        given = claim(two, "ada", local_if_offline=True)
        assert given.unconfirmed
        queen = QuickQueen(two.folder / "ada")
        assert "unconfirmed" in queen("issue", "assignments").out
        two.heal()
        assert sync(two.hive("ada")).confirmed == 1
        assert two.hive("ada").assignments.find()[0].token == 1

    def test_is_decided_though_another_process_exchanged_everything_meanwhile(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two.cut()
        claim(two, "ada", local_if_offline=True)
        two.heal()
        with monkeypatch.context() as patch:
            patch.setattr(syncing, "decide", lambda *_: Decisions())
            sync(two.hive("ada"))  # Its lines are on the remote now, and it still waits.
        monkeypatch.setattr(Notes, "round", lambda notes: 0)  # As read before that exchange.
        assert sync(two.hive("ada")).confirmed == 1

    def test_of_a_process_that_was_killed_is_settled_by_the_next(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: object, **__: object) -> None:
            raise SystemError

        with monkeypatch.context() as killed, pytest.raises(SystemError):
            killed.setattr(confirmed_grants, "sync", die)
            killed.setattr(confirmed_grants, "_take_back", die)
            claim(two, "ada")
        assert claim(two, "bob").token
        assert sync(two.hive("ada")).refused == 1
        assert held_by(two, "ada") == ["bob"]


class TestAReservation:
    @pytest.mark.parametrize("first", ["ada", "bob"])
    def test_excludes_overlapping_ones_of_other_machines(self, two: World, first: str) -> None:
        second = "bob" if first == "ada" else "ada"
        reserve(two, first, "src/**")
        with pytest.raises(Held) as refusal:
            reserve(two, second, "src/app.py", ttl_s=2 * HOUR_S)
        assert refusal.value.details["holders"][0]["droid"] == first  # type: ignore[index]
        for name in (second, first, second):
            sync(two.hive(name))
            leases = two.hive(name).reservations.find(ended=True)
            assert [each.droid for each in leases if not each.deleted] == [first]

    def test_is_not_over_because_another_clock_is_ahead(self, two: World) -> None:
        reserve(two, "bob", "src/**", ttl_s=60)  # For Ada it ended an hour and 59 minutes ago.
        with pytest.raises(Held):
            reserve(two, "ada", "src/app.py")

    def test_of_several_patterns_is_confirmed_as_a_whole_or_not_at_all(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push = Branch.push

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            reserve(two, "bob", "docs/**", ttl_s=4 * HOUR_S)
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        with pytest.raises(Held):
            reserve(two, "ada", "src/**", "docs/a.md")
        sync(two.hive("ada"))
        assert [each.droid for each in two.hive("ada").reservations.find()] == ["bob"]

    def test_that_cannot_be_confirmed_ends_what_is_new_and_no_lease_held_before(
        self, two: World
    ) -> None:
        reserve(two, "ada", "src/**")
        hive = two.hive("ada")

        def cut_off() -> list[Reservation]:
            given = hive.reservations.reserve(["src/**", "docs/**"], ttl_s=2 * HOUR_S)
            two.cut()
            return given

        with pytest.raises(Unreachable):
            confirmed(hive, cut_off)
        assert [each.pattern for each in two.hive("ada").reservations.find()] == ["src/**"]

    def test_of_the_same_clone_ends_when_the_clock_of_the_clone_says_so(self, two: World) -> None:
        reserve(two, "ada", "src/**", ttl_s=60)
        two.clocks["ada"].advance(61)
        hive = two.hive("ada", "ann")
        (given,) = confirmed(hive, lambda: hive.reservations.reserve(["src/app.py"]))
        assert given.token == 2

    def test_that_was_confirmed_is_extended_with_a_larger_token(self, two: World) -> None:
        (first,) = reserve(two, "ada", "src/**")
        (second,) = reserve(two, "ada", "src/**", ttl_s=2 * HOUR_S)
        assert second.id == first.id
        assert second.token > first.token

    def test_shared_ones_do_not_exclude_each_other(self, two: World) -> None:
        for name in ("ada", "bob"):
            hive = two.hive(name)
            given = confirmed(
                hive, lambda hive=hive: hive.reservations.reserve(["src/**"], exclusive=False)
            )
            assert given[0].token


class TestManyOfOneMachine:
    def test_are_confirmed_by_one_push(self, two: World, monkeypatch: pytest.MonkeyPatch) -> None:
        push, ask, asked = Branch.push, Notes.add_pending, threading.Semaphore(0)
        first, tokens = threading.Lock(), []
        look, together = confirmed_grants.take_in, threading.Barrier(8)

        def taken_in(hive: Services, branch: Branch) -> None:
            look(hive, branch)
            together.wait(60)  # Whoever came later would wait for the lock of the slow push.

        def noted(notes: Notes, grants: Sequence[tuple[str, str]]) -> str:
            name = ask(notes, grants)
            asked.release()
            return name

        def slow(branch: Branch, commit: str) -> bool:
            if first.acquire(blocking=False):
                for _ in range(8):  # All have asked, this one included.
                    assert asked.acquire(timeout=60)
            return push(branch, commit)

        def work(number: int) -> None:
            hive = two.hive("ada", f"ada-{number}")
            (given,) = confirmed(hive, lambda: [hive.assignments.claim(f"shop-{number}")])
            tokens.append(given.token)

        monkeypatch.setattr(confirmed_grants, "take_in", taken_in)
        monkeypatch.setattr(Notes, "add_pending", noted)
        monkeypatch.setattr(Branch, "push", slow)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert sorted(set(tokens)) in ([1], [1, 2])
        assert len(tokens) == 8


class Killed(BaseException):
    """The process ends here."""


class TestKilledBeforeItsRequestWasNoted:
    """The grant is recorded, and no request waits for its confirmation."""

    @pytest.fixture
    def dead(self, two: World, monkeypatch: pytest.MonkeyPatch) -> World:
        def die(notes: Notes, grants: object) -> str:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(Notes, "add_pending", die)
            with pytest.raises(Killed):
                reserve(two, "ada", "src/**", "docs/a.md")
        return two

    def test_the_next_exchange_confirms_it(self, dead: World) -> None:
        assert sync(dead.hive("ada")).confirmed == 1
        assert [each.token for each in dead.hive("ada").reservations.find()] == [1, 1]
        with pytest.raises(Held):
            reserve(dead, "bob", "src/app.py")

    def test_the_next_exchange_ends_all_of_it_where_another_was_faster(self, dead: World) -> None:
        reserve(dead, "bob", "docs/**", ttl_s=4 * HOUR_S)
        assert sync(dead.hive("ada")).refused == 1
        sync(dead.hive("bob"))
        for name in ("ada", "bob"):
            hive = dead.hive(name)
            assert [each.droid for each in hive.reservations.find()] == ["bob"]
            assert hive.reservations.conflicts() == []

    def test_another_clone_leaves_it_alone(self, dead: World) -> None:
        hive = dead.hive("ada")
        data = Path(hive.layout.ledger_path("reservations")).read_bytes()
        Path(dead.hive("bob").layout.ledger_path("reservations")).write_bytes(data)
        sync(dead.hive("bob"))
        assert [each.token for each in dead.hive("bob").reservations.find()] == [0, 0]


class TestTheCommand:
    @pytest.fixture
    def queen(self, two: World, monkeypatch: pytest.MonkeyPatch) -> QuickQueen:
        monkeypatch.setenv("QUEEN_DROID", "ada")
        return QuickQueen(two.folder / "ada")

    def test_grants_with_a_token_that_check_compares(self, queen: QuickQueen) -> None:
        token = queen("reserve", "a.py", "--confirm", "--json").json[0]["token"]
        assert queen("reserve", "check", "a.py", "--token", str(token)).code == 0
        queen("reserve", "release", "a.py")
        newer = queen("reserve", "a.py", "--confirm", "--json").json[0]["token"]
        assert newer > token
        queen("reserve", "release", "a.py")
        stale = queen("reserve", "check", "a.py", "--token", str(token), "--json")
        assert (stale.code, stale.json[0]["status"]) == (1, "stale")
        assert queen("reserve", "check", "a.py", "--token", str(newer)).code == 0

    def test_is_busy_while_the_remote_is_away(self, two: World, queen: QuickQueen) -> None:
        two.cut()
        for call in (["claim", "--new", "shop-1"], ["reserve", "a.py"]):
            refused = queen(*call, "--confirm", "--json")
            assert (refused.code, refused.error["code"]) == (6, "unreachable")
        assert queen("reserve", "list", "--json").json == []
        assert queen("reserve", "a.py", "--local-if-offline").code == 0
        assert "unconfirmed" in queen("reserve", "list").out

    def test_next_takes_another_issue_where_a_machine_was_faster(
        self, two: World, queen: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("ada", "bob"):
            rows = '{"id":"shop-1","title":"a","status":"open","priority":1}\n'
            rows += '{"id":"shop-2","title":"b","status":"open","priority":2}\n'
            (two.folder / name / ".beads" / "issues.jsonl").write_text(rows)
        push = Branch.push

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            claim(two, "bob")
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        taken = queen("next", "--confirm", "--json")
        assert taken.code == 0
        assert taken.json["issue_id"] == "shop-2"
        assert taken.json["assignment"]["token"] == int(two.git("rev-list", "--count", BRANCH))

    def test_the_setting_asks_for_it_everywhere(self, two: World, queen: QuickQueen) -> None:
        two.settings("ada", '[sync]\nconfirm = "remote"\n')
        assert queen("claim", "--new", "shop-1", "--json").json[0]["token"] == 1
        assert os.path.isdir(two.bare)


class TestAnUnconfirmedGrant:
    """What was granted while the remote was away may be ended by the next exchange."""

    @pytest.fixture
    def queen(self, two: World, monkeypatch: pytest.MonkeyPatch) -> QuickQueen:
        for name in ("ada", "bob"):
            row = '{"id":"shop-1","title":"a","status":"open"}\n'
            (two.folder / name / ".beads" / "issues.jsonl").write_text(row)
        two.cut()
        monkeypatch.setenv("QUEEN_DROID", "ada")
        return QuickQueen(two.folder / "ada")

    def test_says_so_in_every_view(self, queen: QuickQueen) -> None:
        assert "yours, unconfirmed" in queen("next", "--local-if-offline").out
        queen("reserve", "a.py", "--local-if-offline")
        for droid, call in (
            ("ada", ["status"]),
            ("bob", ["status"]),
            ("bob", ["reserve", "check", "a.py"]),
            ("ada", ["issue", "assignments"]),
            ("bob", ["reserve", "list"]),
        ):
            shown = queen(*call, as_=droid).out
            assert "unconfirmed" in shown, (droid, call, shown)
        assert queen("next", "--json").json["assignment"]["unconfirmed"] is True

    def test_that_is_confirmed_says_no_more(self, two: World, queen: QuickQueen) -> None:
        queen("next", "--local-if-offline")
        queen("reserve", "a.py", "--local-if-offline")
        two.heal()
        assert queen("sync").code == 0
        for call in (
            ["status"],
            ["next"],
            ["issue", "assignments"],
            ["reserve", "list"],
            ["reserve", "check", "a.py"],
        ):
            assert "unconfirmed" not in queen(*call).out


def forced(hive: Services, *patterns: str) -> list[Reservation]:
    return hive.reservations.reserve(patterns, ttl_s=12 * HOUR_S, force=True, reason="late")


class TestATakeover:
    """It ends what it takes over in the commit that confirms it, and nowhere else."""

    @pytest.fixture
    def held(self, two: World) -> World:
        reserve(two, "ada", "src/**", ttl_s=12 * HOUR_S)
        sync(two.hive("bob"))
        return two

    def force(
        self, world: World, name: str, pattern: str = "src/a.py", *, local_if_offline: bool = False
    ) -> None:
        hive = world.hive(name)
        confirmed(hive, lambda: forced(hive, pattern), local_if_offline=local_if_offline)

    def holders(self, world: World) -> list[str]:
        """Returns who holds what, as both clones say it after an exchange."""
        for name in ("bob", "ada", "bob"):
            sync(world.hive(name))
        both = [
            [f"{each.droid} {each.pattern}" for each in world.hive(name).reservations.find()]
            for name in ("ada", "bob")
        ]
        assert both[0] == both[1]
        return both[0]

    def test_that_is_confirmed_ends_the_lease_everywhere_and_tells_its_droid(
        self, held: World
    ) -> None:
        self.force(held, "bob")
        live = [line for line in held.lines() if line.get("droid") == "ada"]
        assert live[-1]["status"] == "released"  # In the very commit.
        assert self.holders(held) == ["bob src/a.py"]
        (told,) = held.hive("ada").messages.inbox()
        assert "bob took over src/a.py: late" in told.body
        with pytest.raises(Held):
            reserve(held, "ada", "src/a.py")

    def test_that_the_remote_refuses_leaves_everything_as_it_was(
        self, held: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: object) -> bool:
            raise Unreachable("the remote refuses to take anything", remote="origin")

        with monkeypatch.context() as patch:
            patch.setattr(Branch, "push", refused)
            with pytest.raises(Unreachable):
                self.force(held, "bob")
        with pytest.raises(Held):
            reserve(held, "bob", "src/a.py")
        assert self.holders(held) == ["ada src/**"]
        assert not list(held.hive("ada").messages.inbox())

    def test_that_is_killed_before_the_push_is_settled_whole_by_the_next_exchange(
        self, held: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def die(*_: object, **__: object) -> None:
            raise SystemError

        with monkeypatch.context() as patch:
            patch.setattr(confirmed_grants, "sync", die)
            patch.setattr(confirmed_grants, "_take_back", die)
            with pytest.raises(SystemError):
                self.force(held, "bob")
        assert self.holders(held) == ["bob src/a.py"]

    def test_of_one_lease_by_two_of_one_clone_is_confirmed_to_the_first(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Until it is confirmed, the first loses to what it takes over, and refuses nobody here."""
        reserve(two, "bob", "src/**", ttl_s=12 * HOUR_S)
        sync(two.hive("ada"))

        def die(*_: object, **__: object) -> None:
            raise SystemError

        with monkeypatch.context() as patch:
            patch.setattr(confirmed_grants, "sync", die)
            patch.setattr(confirmed_grants, "_take_back", die)
            with pytest.raises(SystemError):
                self.force(two, "ada")
        reserve(
            two, "bob", "docs/**", ttl_s=12 * HOUR_S
        )  # What arrives has every grant judged anew.
        two.clocks["ada"].advance(1)
        amy = two.hive("ada", "amy")

        def grant() -> list[Reservation]:
            given = forced(amy, "src/a.py")
            reserve(two, "bob", "lib/**", ttl_s=12 * HOUR_S)
            take_in(two.hive("ada"))
            return given

        with pytest.raises(Held, match="held by ada"):
            confirmed(amy, grant)
        assert sorted(self.holders(two)) == ["ada src/a.py", "bob docs/**", "bob lib/**"]

    def test_of_a_lease_that_its_droid_extends_in_the_same_push_is_told(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The extension is refused; what ends the confirmed lease is the takeover, not that."""
        reserve(two, "ada", "src/a.py")

        def die(*_: object, **__: object) -> None:
            raise SystemError

        with monkeypatch.context() as patch:
            patch.setattr(confirmed_grants, "sync", die)
            patch.setattr(confirmed_grants, "_take_back", die)
            with pytest.raises(SystemError):
                reserve(two, "ada", "src/a.py")
        amy = two.hive("ada", "amy")
        confirmed(amy, lambda: forced(amy, "src/a.py"))
        assert self.holders(two) == ["amy src/a.py"]
        (told,) = two.hive("ada").messages.inbox()
        assert "amy took over src/a.py: late" in told.body

    def test_of_several_patterns_ends_a_lease_once(self, held: World) -> None:
        hive = held.hive("bob")
        several = ["src/a.py", "src/b.py"]
        confirmed(hive, lambda: forced(hive, *several))
        assert self.holders(held) == ["bob src/a.py", "bob src/b.py"]
        (told,) = held.hive("ada").messages.inbox()
        assert "src/a.py, src/b.py" in told.body

    def test_without_the_remote_takes_over_here(self, held: World) -> None:
        held.cut()
        self.force(held, "bob", local_if_offline=True)
        (lease,) = held.hive("bob").reservations.find()
        assert (lease.droid, lease.unconfirmed) == ("bob", True)
        held.heal()
        assert self.holders(held) == ["bob src/a.py"]

    def test_of_ones_own_shared_lease_leaves_it_if_it_is_refused(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hive = two.hive("ada")
        confirmed(hive, lambda: hive.reservations.reserve(["doc/**"], exclusive=False))

        def refused(*_: object) -> bool:
            raise Unreachable("the remote refuses to take anything", remote="origin")

        with monkeypatch.context() as patch:
            patch.setattr(Branch, "push", refused)
            with pytest.raises(Unreachable):
                reserve(two, "ada", "doc/**")
        (lease,) = two.hive("ada").reservations.find()
        assert not lease.exclusive
        reserve(two, "ada", "doc/**")
        (lease,) = two.hive("ada").reservations.find()
        assert lease.exclusive


def test_a_copied_folder_is_a_clone_of_its_own(two: World) -> None:
    """Whose clock may be another one, so that its grants count for `clock_skew` longer."""
    reserve(two, "ada", "db/x", ttl_s=600)
    ledger = Branch(two.hive("ada")).ref
    assert Notes(two.hive("ada"), ledger).clone() == Notes(two.hive("ada"), ledger).clone()
    shutil.copytree(two.folder / "ada", two.folder / "eve", symlinks=True)
    two.clocks["eve"] = Clock(two.clocks["ada"].now_ms + 30 * 60_000)
    with pytest.raises(Held):
        reserve(two, "eve", "db/x")
