"""Exchanges after answers, and looks at the remote before reading: `[sync] when`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hives import COMMAND, QuickQueen, git
from mcp_clients import error_of, inside, result_of
from sync_worlds import World, there

from queenbee import Hive
from queenbee.cli import progress
from queenbee.errors import Untrusted
from queenbee.git.remote import alongside
from queenbee.git.remote.alongside import send
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.syncing import sync, take_in
from queenbee.services import unasked


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("QUEEN_DROID", "ada")
    made = World(tmp_path)
    for name in ("ada", "bob"):
        made.clone(name)
        unasked.allow(made.hive(name).layout)
    return made


def layout(world: World, name: str = "ada"):  # type: ignore[no-untyped-def]
    return world.hive(name).layout


@pytest.fixture
def writing(world: World) -> QuickQueen:
    world.settings("ada", '[sync]\nwhen = "write"\n')
    return QuickQueen(world.folder / "ada")


class TestWrite:
    def test_is_pushed_after_the_answer(self, world: World, writing: QuickQueen) -> None:
        assert writing("claim", "shop-1", "--new").code == 0
        assert there(world) == {"shop-1"}
        assert not unasked.is_asked(layout(world))

    def test_comes_after_the_answer(
        self, world: World, writing: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        printed = []
        push = Branch.push

        def noted(branch: Branch, commit: str) -> bool:
            printed.append(sys.stdout.buffer.getvalue())  # type: ignore[attr-defined]
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", noted)
        writing("claim", "shop-1", "--new")
        assert printed == [b"shop-1 is assigned to ada\n"]

    def test_of_a_tool_is_pushed_too(self, world: World, writing: QuickQueen) -> None:
        inside(world.folder / "ada", lambda client: client.call_tool("claim", {"issue": "shop-1"}))
        assert there(world) == {"shop-1"}

    def test_of_the_library_goes_out_with_the_next_command(
        self, world: World, writing: QuickQueen
    ) -> None:
        world.hive("ada").assignments.claim("shop-1")
        assert there(world) == set()
        writing("status")
        assert there(world) == {"shop-1"}

    def test_reads_send_nothing(
        self, world: World, writing: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Branch, "push", None)
        monkeypatch.setattr(Branch, "fetch", None)
        assert writing("status").code == 0
        assert not unasked.is_asked(layout(world))

    def test_and_by_default_nothing_is_pushed(self, world: World) -> None:
        QuickQueen(world.folder / "ada")("claim", "shop-1", "--new")
        assert there(world) == set()
        assert not unasked.is_asked(layout(world))

    def test_during_an_exchange_is_sent_by_the_next(
        self, world: World, writing: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        push = Branch.push

        def late(branch: Branch, commit: str) -> bool:
            monkeypatch.setattr(Branch, "push", push)
            world.hive("ada", "dora").assignments.claim("shop-2")
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        writing("claim", "shop-1", "--new")
        assert there(world) == {"shop-1"}
        assert unasked.is_asked(layout(world))
        writing("status")
        assert there(world) == {"shop-1", "shop-2"}

    def test_is_pushed_on_top_of_what_others_pushed_meanwhile(
        self, world: World, writing: QuickQueen
    ) -> None:
        world.hive("bob").assignments.claim("shop-2")
        sync(world.hive("bob"))
        writing("claim", "shop-1", "--new")
        assert there(world) == {"shop-1", "shop-2"}
        assert len(world.hive("ada").assignments.find()) == 2

    def test_request_is_left_where_its_exchange_is_killed(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def dies(*_: object) -> None:
            raise SystemError

        monkeypatch.setattr(Branch, "push", dies)
        world.hive("ada").assignments.claim("shop-1")
        unasked.request(layout(world))
        with pytest.raises(SystemError):
            send(world.hive("ada"))
        assert unasked.is_asked(layout(world))
        unasked.served(layout(world))

    def test_of_whoever_confirms_starts_no_second_push(
        self, world: World, writing: QuickQueen
    ) -> None:
        assert writing("claim", "shop-1", "--new", "--confirm", "--json").json[0]["token"] == 1
        assert not unasked.is_asked(layout(world))


class TestAKill:
    def test_at_each_step_leaves_the_request_to_the_next(self, world: World) -> None:
        """A command is killed at each call of git after its answer."""
        world.settings("ada", '[sync]\nwhen = "write"\n')
        place, counter = layout(world), world.folder / "calls"
        shims = world.folder / "shims"
        shims.mkdir()
        real = subprocess.run(["sh", "-c", "command -v git"], capture_output=True, text=True)
        shim = shims / "git"
        shim.write_text(
            f'#!/bin/sh\nn=$(($(cat "{counter}") + 1))\necho $n > "{counter}"\n'
            f'[ $n = "$KILL_AT" ] && kill -9 $PPID\nexec {real.stdout.strip()} "$@"\n'
        )
        shim.chmod(0o755)
        killed = 0
        for at in range(1, 60):
            counter.write_text("0")
            path = f"{shims}{os.pathsep}{os.environ['PATH']}"
            env = {**os.environ, "PATH": path, "KILL_AT": str(at), "QUEEN_DROID": f"d{at}"}
            done = subprocess.run(
                [*COMMAND, "claim", f"shop-{at}", "--new"],
                cwd=world.folder / "ada",
                env=env,
                capture_output=True,
                text=True,
            )
            assert done.stdout == f"shop-{at} is assigned to d{at}\n"
            if done.returncode == 0:
                break
            killed += 1
            assert unasked.is_asked(place)
        assert killed >= 6
        assert not unasked.is_asked(place)
        assert there(world) == {f"shop-{n}" for n in range(1, killed + 2)}
        lines = [line["id"] for line in world.lines()]
        assert len(lines) == len(set(lines))


class TestConsent:
    """An unpacked archive brings settings, a git config and notes, all made by its author."""

    @pytest.fixture
    def unpacked(self, world: World) -> Path:
        world.settings("ada", '[sync]\nwhen = "read"\nmax_age = "0s"\n')
        path = world.folder / "unpacked"
        shutil.copytree(world.folder / "ada", path, symlinks=True)
        git(path, "config", "core.sshCommand", f"touch {world.folder}/ran; false")
        git(path, "remote", "set-url", "origin", "ssh://nobody@localhost/x.git")
        return path

    def test_is_not_in_the_archive(self, world: World, unpacked: Path) -> None:
        assert not unasked.is_allowed(Hive.open(unpacked).layout)
        queen = QuickQueen(unpacked)
        for call in (
            ["status"],
            ["claim", "shop-1", "--new"],
            ["reserve", "check", "a.py"],
            ["claim", "shop-2", "--new"],
        ):
            assert "once you have run: queen sync" in queen(*call).err or call[0] == "check"
        inside(unpacked, lambda client: client.call_tool("status", {}))
        assert not unasked.is_asked(Hive.open(unpacked).layout)
        assert not (world.folder / "ran").exists()

    def test_is_an_explicit_exchange(self, world: World, unpacked: Path) -> None:
        assert QuickQueen(unpacked)("sync").code == 6
        assert (world.folder / "ran").exists()
        assert unasked.is_allowed(Hive.open(unpacked).layout)


@pytest.mark.parametrize("changed", ['remote = "public"', 'branch = "other"'])
def test_another_place_is_exchanged_with_once_somebody_has_asked_for_it(
    world: World, changed: str
) -> None:
    ada, public = world.folder / "ada", world.folder / "public.git"
    git(world.folder, "init", "-q", "--bare", str(public))
    git(ada, "remote", "add", "public", str(public))
    world.settings("ada", f'[sync]\nwhen = "read"\nmax_age = "0s"\n{changed}\n')
    queen = QuickQueen(ada)
    done = queen("msg", "send", "bob", "hello")
    assert done.code == 0 and "once you have run: queen sync" in done.err
    assert git(public, "for-each-ref") == ""
    assert "other" not in git(ada, "ls-remote", "origin")
    assert queen("sync").code == 0
    assert "other" in git(ada, "ls-remote", "origin") or git(public, "for-each-ref")


@pytest.mark.usefixtures("asking")
class TestAPlaceThatAPullNames:
    """`remote`, `branch` and `confirm` came with a pull, and nobody here agreed to them."""

    @pytest.fixture(params=['remote = "public"', 'branch = "gh-pages"', ""])
    def pulled(self, world: World, request: pytest.FixtureRequest) -> QuickQueen:
        ada, public = world.clone("eve"), world.folder / "public.git"
        git(world.folder, "init", "-q", "--bare", str(public))
        git(ada, "remote", "add", "public", str(public))
        git(ada, "commit", "-q", "--allow-empty", "-m", "begin")
        world.settings("eve", f'[sync]\n{request.param}\nconfirm = "remote"\n')
        world.hive("eve").messages.send("bob", "private")
        return QuickQueen(ada)

    def sent(self, world: World) -> str:
        return world.git("for-each-ref") + git(world.folder / "public.git", "for-each-ref")

    @pytest.mark.parametrize(
        "words",
        [
            ("claim", "shop-1", "--new"),
            ("claim", "shop-1", "--new", "--confirm", "--local-if-offline"),
            ("reserve", "a.py"),
            ("start", "--agent", "true"),
        ],
    )
    def test_gets_nothing(self, world: World, pulled: QuickQueen, words: tuple[str, ...]) -> None:
        assert pulled("config", "set", "land.check", "true").code == 0
        refused = pulled(*words, "--json")
        assert (refused.code, refused.error["code"]) == (5, "untrusted"), refused
        assert refused.error["hint"].endswith("queen sync")
        assert self.sent(world) == ""

    def test_gets_nothing_by_a_tool_or_the_library(self, world: World, pulled: QuickQueen) -> None:
        asked = {"issue": "shop-1"}
        refused = inside(world.folder / "eve", lambda client: client.call_tool("claim", asked))
        assert error_of(refused)["code"] == "untrusted"
        with pytest.raises(Untrusted):
            world.hive("eve").next(confirm=True)
        with pytest.raises(Untrusted):
            take_in(world.hive("eve"))
        assert self.sent(world) == ""

    def test_is_agreed_to_by_a_person(self, world: World, pulled: QuickQueen) -> None:
        assert pulled("sync").code == 0
        assert pulled("claim", "shop-1", "--new", "--json").json[0]["token"]
        assert self.sent(world)


@pytest.mark.usefixtures("asking")
class TestAnAgentThatTypesIt:
    """It means the place that it knows; where another one came by a pull, a person agrees."""

    @pytest.fixture
    def agent(self, world: World) -> QuickQueen:
        queen = QuickQueen(world.clone("eve"))
        queen.env["CLAUDECODE"] = "1"
        world.hive("eve").messages.send("bob", "private")
        return queen

    def test_sends_to_where_the_clone_came_from(self, world: World, agent: QuickQueen) -> None:
        assert agent("sync").code == 0
        assert world.git("for-each-ref")
        assert not unasked.is_allowed(layout(world, "eve"))

    @pytest.mark.parametrize("words", [("sync",), ("sync", "setup"), ("sync", "--watch")])
    def test_sends_nothing_elsewhere(
        self, world: World, agent: QuickQueen, words: tuple[str, ...]
    ) -> None:
        world.settings("eve", '[sync]\nbranch = "gh-pages"\n')
        assert agent(*words, "--json").error["code"] == "untrusted"
        assert world.git("for-each-ref") == ""

    def test_sends_nothing_to_the_usual_place_where_a_person_chose_another(
        self, world: World, agent: QuickQueen
    ) -> None:
        git(world.folder, "init", "-q", "--bare", "private.git")
        git(world.folder / "eve", "remote", "add", "private", str(world.folder / "private.git"))
        world.settings("eve", '[sync]\nremote = "private"\n')
        assert QuickQueen(world.folder / "eve")("sync").code == 0
        world.settings("eve", "")
        assert agent("sync", "--json").error["code"] == "untrusted"
        assert world.git("for-each-ref") == ""


@pytest.mark.parametrize("name", ["refs/heads/main", "+main", "a..b"])
def test_no_branch_is_made_that_git_takes_for_another(world: World, name: str) -> None:
    world.settings("ada", f'[sync]\nbranch = "{name}"\n')
    done = QuickQueen(world.folder / "ada")("sync")
    assert done.code == 2 and f"{name!r} cannot be a branch" in done.err


class TestOffline:
    def test_each_droid_hears_of_it_once_and_goes_on(
        self, world: World, writing: QuickQueen
    ) -> None:
        world.cut()
        claimed = writing("claim", "shop-1", "--new")
        assert (claimed.code, claimed.out) == (0, "shop-1 is assigned to ada\n")
        assert claimed.err.count("cannot be reached") == 1
        for name, times in (("ada", 0), ("dora", 1), ("dora", 0)):
            said = writing("status", "--as", name).err
            assert said.count("cannot be reached") == times, (name, said)
        assert unasked.is_asked(layout(world))

    def test_is_in_the_one_document_on_standard_error(
        self, world: World, writing: QuickQueen
    ) -> None:
        world.cut()
        said = writing("claim", "shop-1", "--new", "--json")
        assert said.json[0]["droid"] == "ada"
        (notice,) = json.loads(said.err)["notices"]
        assert "cannot be reached" in notice

    def test_a_remote_that_says_nothing_is_left_after_some_seconds(
        self, world: World, writing: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shim = world.folder / "silent"
        shim.write_text("#!/bin/sh\nexec sleep 60\n")
        shim.chmod(0o755)
        for name in ("uploadpack", "receivepack"):
            git(world.folder / "ada", "config", f"remote.origin.{name}", str(shim))
        monkeypatch.setattr(alongside, "_BRIEF_S", 0.3)
        begun_s = time.monotonic()
        claimed = writing("claim", "shop-1", "--new")
        assert claimed.code == 0
        assert "cannot be reached" in claimed.err
        assert time.monotonic() - begun_s < 30
        assert unasked.is_asked(layout(world))

    def test_a_refused_push_changes_no_status(self, world: World, writing: QuickQueen) -> None:
        hook = world.bare / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        claimed = writing("claim", "shop-1", "--new")
        assert claimed.code == 0
        assert "origin refuses queenbee/hive" in claimed.err

    def test_the_remote_is_left_alone_for_a_while(
        self, world: World, writing: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unasked.note_away(layout(world), "away")
        monkeypatch.setattr(Branch, "push", None)
        assert writing("claim", "shop-1", "--new").code == 0
        assert unasked.is_asked(layout(world))

    def test_what_waited_is_sent_when_it_is_back(self, world: World, writing: QuickQueen) -> None:
        world.cut()
        writing("claim", "shop-1", "--new")
        assert unasked.is_resting(layout(world))
        world.heal()
        sync(world.hive("ada"))
        assert there(world) == {"shop-1"}
        assert not unasked.is_resting(layout(world))
        assert not unasked.is_asked(layout(world))

    def test_a_clock_that_is_set_back_ends_the_rest(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unasked.note_away(layout(world), "away")
        now_ns = time.time_ns()
        monkeypatch.setattr(time, "time_ns", lambda: now_ns - 10**12)
        assert not unasked.is_resting(layout(world))


def test_whoever_waits_is_told_that_the_records_are_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0)
    ada = QuickQueen(world.folder / "ada")
    ada("issue", "new", "Prices", "--id", "shop-1")
    ada("claim", "shop-1", as_="bob")
    assert ada("sync").code == 0
    assert "queen sync" not in ada("next").out
    seven_minutes_ago = time.time() - 420
    os.utime(Path(layout(world).remote_dir) / "fetched", (seven_minutes_ago,) * 2)
    old = "the records of other clones are 7m old: queen sync; queen config set sync.when read"
    assert old in ada("next").out
    assert old in ada("next", "--wait", "1s").err
    world.settings("ada", '[sync]\nwhen = "write"\n')
    assert "m old" not in ada("next").out


class TestRead:
    @pytest.fixture
    def reading(self, world: World) -> QuickQueen:
        world.settings("ada", '[sync]\nwhen = "read"\nmax_age = "0s"\n')
        bob = Hive.open(world.folder / "bob", droid="bob")
        bob.reservations.reserve(["src/**"])
        sync(bob)
        return QuickQueen(world.folder / "ada")

    def test_takes_in_what_others_pushed(self, reading: QuickQueen) -> None:
        assert [each["droid"] for each in reading("reserve", "list", "--json").json] == ["bob"]

    def test_holds_for_check_too(self, reading: QuickQueen) -> None:
        assert reading("reserve", "check", "src/a.py").code == 1

    def test_holds_for_the_tools(self, world: World, reading: QuickQueen) -> None:
        said = inside(
            world.folder / "ada", lambda client: client.call_tool("check", {"paths": ["src/a.py"]})
        )
        assert result_of(said)[0]["status"] == "held"

    @pytest.mark.parametrize("words", [("claim", "shop-9"), ("show", "shop-9"), ("next",)])
    def test_an_issue_that_is_missed_is_looked_for_once(
        self, world: World, reading: QuickQueen, words: tuple[str, ...]
    ) -> None:
        world.settings("ada", '[sync]\nwhen = "read"\nmax_age = "1h"\n')
        world.settings("bob", '[sync]\nwhen = "write"\n')
        assert reading("issue", "new", "Done", "--id", "shop-8").code == 0
        assert reading("claim", "shop-8").code == 0
        assert reading("complete", "shop-8").code == 0
        assert reading("sync").code == 0
        bob = QuickQueen(world.folder / "bob")
        assert bob("issue", "new", "Late", "--id", "shop-9", as_="bob").code == 0
        assert bob("sync", as_="bob").code == 0
        found = reading(*words)
        assert (found.code, "Late" in found.out or "shop-9" in found.out) == (0, True), found

    def test_what_is_young_enough_is_not_fetched_again(
        self, world: World, reading: QuickQueen, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.settings("ada", '[sync]\nwhen = "read"\nmax_age = "1h"\n')
        fetches = []
        fetch = Branch.fetch
        monkeypatch.setattr(Branch, "fetch", lambda self: (fetches.append(1), fetch(self))[1])
        for _ in range(3):
            reading("reserve", "list")
        assert len(fetches) == 1

    def test_offline_says_so_once_and_goes_on(self, world: World, reading: QuickQueen) -> None:
        reading("reserve", "list")
        world.cut()
        first, second = reading("reserve", "list"), reading("reserve", "list")
        assert (first.code, second.code) == (0, 0)
        assert "src/**" in first.out
        assert "cannot be reached" in first.err
        assert second.err == ""

    def test_it_writes_as_well(self, world: World, reading: QuickQueen) -> None:
        reading("claim", "shop-1", "--new")
        assert "shop-1" in there(world)


def test_a_repository_that_was_removed_ends_the_look_at_its_remote(
    hive: Hive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_gone(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(alongside, "take_in", is_gone)
    told: list[str] = []
    alongside._follow(hive, told.append, threading.Event())  # It returns.
    assert told == []


@pytest.mark.parametrize("name", ["lock", "clone", "fetched"])
def test_the_doctor_names_a_folder_in_the_place_of_a_note(world: World, name: str) -> None:
    queen = QuickQueen(world.folder / "ada")
    Path(layout(world).remote_dir, "pending").mkdir(parents=True)  # As up to 0.2.
    assert queen("sync").code == 0
    assert "rm -r" not in queen("doctor").out
    path = Path(layout(world).remote_dir, name)
    path.unlink(missing_ok=True)
    path.mkdir()
    found = queen("doctor")
    assert (found.code, f"rm -r {path}" in found.out) == (1, True)
    assert queen("sync").code in (0, 7)
    path.rmdir()
    assert queen("sync").code == 0
    assert "rm -r" not in queen("doctor").out
