"""`queen sync`: the records of several clones on a branch of their remote."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hives import QuickQueen, git
from sync_worlds import BRANCH, World

from queenbee.errors import Busy, InvalidInput, Unreachable, Unreadable
from queenbee.git.remote import branch_carrier, syncing
from queenbee.git.remote.branch import Branch
from queenbee.git.remote.sync_state import Notes
from queenbee.git.remote.syncing import sync
from queenbee.store.lock import LongLock

_GITS = ("config", "fetch", "cat-file", "hash-object", "mktree", "commit-tree", "push",
         "update-ref")  # fmt: skip
"""What one exchange that sends something starts."""


def _round(world: World, name: str) -> int:
    hive = world.hive(name)
    return Notes(hive, Branch(hive).ref).round()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def two(world: World) -> World:
    world.clone("ada")
    world.clone("bob")
    return world


class TestSync:
    def test_both_clones_get_all_records_of_both(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        two.hive("bob").reservations.reserve(["src/**"])
        sync(two.hive("ada"))
        sync(two.hive("bob"))
        sync(two.hive("ada"))
        for name in ("ada", "bob"):
            assert [each.droid for each in two.hive(name).assignments.find()] == ["ada"]
            assert [each.pattern for each in two.hive(name).reservations.find()] == ["src/**"]

    def test_an_exchange_with_nothing_new_makes_no_commit(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        assert sync(two.hive("ada")).sent == 1
        before = two.git("rev-parse", BRANCH)
        for name in ("ada", "bob", "ada", "bob"):
            assert sync(two.hive(name)).sent == 0
        assert two.git("rev-parse", BRANCH) == before

    def test_no_line_is_on_the_branch_twice(self, two: World) -> None:
        for turn in range(3):
            for name in ("ada", "bob"):
                two.hive(name).assignments.claim(f"{name}-{turn}")
                sync(two.hive(name))
        ids = [line["id"] for line in two.lines()]
        assert len(ids) == len(set(ids)) == 6

    def test_it_touches_nothing_of_the_user(self, two: World) -> None:
        path = two.folder / "ada"
        git(path, "commit", "-q", "--allow-empty", "-m", "one")
        (path / "draft.txt").write_text("not added\n")
        (path / "staged.txt").write_text("added\n")
        git(path, "add", "staged.txt")

        def seen() -> list[str]:
            status = git(path, "status", "--porcelain", "--", "draft.txt", "staged.txt")
            return [status, git(path, "branch"), git(path, "reflog", "--all")]

        hook = path / ".git" / "hooks" / "pre-push"
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        before = seen()
        two.hive("ada").assignments.claim("shop-1")
        assert sync(two.hive("ada")).sent == 1
        assert seen() == before

    def test_a_push_that_was_overtaken_is_done_again_on_top(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two.hive("ada").assignments.claim("shop-1")
        two.hive("bob").assignments.claim("shop-2")
        push, overtaken = Branch.push, []

        def late(branch: Branch, commit: str) -> bool:
            if not overtaken:
                overtaken.append(commit)
                monkeypatch.setattr(Branch, "push", push)
                sync(two.hive("bob"))
            return push(branch, commit)

        monkeypatch.setattr(Branch, "push", late)
        sync(two.hive("ada"))
        assert overtaken
        assert {line["issue_id"] for line in two.lines()} == {"shop-1", "shop-2"}
        assert {each.droid for each in two.hive("ada").assignments.find()} == {"ada", "bob"}

    def test_many_who_wait_are_served_by_few_pushes(self, two: World) -> None:
        def work(number: int) -> None:
            hive = two.hive("ada", f"ada-{number}")
            hive.assignments.claim(f"shop-{number}")
            sync(hive)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert {line["issue_id"] for line in two.lines()} == {f"shop-{n}" for n in range(8)}
        assert int(two.git("rev-list", "--count", BRANCH)) < 8

    def test_many_who_ask_for_what_is_there_are_served_by_few_fetches(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two.hive("bob").assignments.claim("shop-1")
        sync(two.hive("bob"))
        fetch, begun, go, fetches = Branch.fetch, threading.Event(), threading.Event(), []

        def slow(branch: Branch) -> str | None:
            fetches.append(1)
            begun.set()
            assert go.wait(60)
            return fetch(branch)

        asked, round_ = threading.Semaphore(0), Notes.round

        def noted(notes: Notes) -> int:
            number = round_(notes)
            asked.release()
            return number

        monkeypatch.setattr(Branch, "fetch", slow)
        threads = [
            threading.Thread(target=syncing.take_in, args=(two.hive("ada"),)) for _ in range(8)
        ]
        threads[0].start()
        assert begun.wait(60)
        monkeypatch.setattr(Notes, "round", noted)
        for each in threads[1:]:
            each.start()
        for _ in threads[1:]:
            assert asked.acquire(timeout=60)
        # The first fetch had begun before they asked: it may not have seen what they are to see.
        go.set()
        for each in threads:
            each.join()
        assert len(fetches) == 2
        assert [each.droid for each in two.hive("ada").assignments.find()] == ["bob"]

    def test_who_was_served_does_not_wait_for_the_lock(self, two: World) -> None:
        hive = two.hive("ada")
        notes = Notes(hive, Branch(hive).ref)
        hive.layout.settings.lock_timeout_s = 60
        lock = LongLock(notes.lock_path, holder="another")
        with lock:
            name = notes.add_pending([("assignments", "qa-1")])
            thread = threading.Thread(target=sync, args=(hive,), kwargs={"request": name})
            thread.start()
            thread.join(0.2)
            assert thread.is_alive()
            notes.remove_pending(name)  # As whoever pushes does at the end.
            thread.join(60)
            assert not thread.is_alive()

    def test_with_another_memory_amid_it_it_sends_every_line(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another memory counts the lines otherwise."""
        hive = two.hive("ada")
        for number in range(9):
            hive.assignments.claim(f"shop-{number}")
        for _ in range(9):
            hive.messages.send("bob", "hello", new=True)
        sync(hive)
        hive.messages.send("bob", "last", new=True)
        fetch = Branch.fetch

        def lost(branch: Branch) -> str | None:
            monkeypatch.setattr(Branch, "fetch", fetch)
            hive.engine.memory.database.set_aside()
            return fetch(branch)

        monkeypatch.setattr(Branch, "fetch", lost)
        sync(hive)
        sync(two.hive("ada"))
        assert [line for line in two.lines() if line.get("body") == "last"]

    def test_a_lock_that_stays_is_busy(self, two: World) -> None:
        two.settings("ada", '[sync]\ntimeout = "1s"\n')
        hive = two.hive("ada")
        hive.layout.settings.lock_timeout_s = -3
        with (
            LongLock(Notes(hive, Branch(hive).ref).lock_path, holder="another"),
            pytest.raises(Busy, match="another process exchanges") as error,
        ):
            sync(hive)
        assert error.value.details["holder"]["holder"] == "another"  # type: ignore[index]

    def test_lost_numbers_of_rounds_let_nobody_be_served_by_the_past(self, two: World) -> None:
        for _ in range(3):
            syncing.take_in(two.hive("ada"))
        two.hive("ada").engine.memory.note("sync round", None)
        two.hive("bob").assignments.claim("shop-1")
        sync(two.hive("bob"))
        assert syncing.take_in(two.hive("ada")).taken == 1

    def test_a_round_that_fetched_nothing_serves_nobody(self, two: World) -> None:
        syncing.take_in(two.hive("ada"))
        asked = _round(two, "ada")
        sync(two.hive("ada"), fetch=False)
        two.hive("bob").assignments.claim("shop-1")
        sync(two.hive("bob"))
        notes = Notes(two.hive("ada"), Branch(two.hive("ada")).ref)
        assert notes.fetched() <= asked

    def test_entries_of_any_kind_stay_as_they_are(self, two: World) -> None:
        hive = two.hive("ada")
        hive.assignments.claim("shop-1")
        sync(hive)
        commit = two.git("rev-parse", BRANCH)
        entries = [
            f"100644 blob {two.git('rev-parse', f'{commit}:queen_assignments.jsonl')}",
            f"120000 blob {two.git('rev-parse', f'{commit}:queen_assignments.jsonl')}",
            f"160000 commit {commit}",
            f"040000 tree {two.git('rev-parse', f'{commit}^{{tree}}')}",
        ]
        names = ["queen_assignments.jsonl", "link", "module", "a folder\twith a \u00fc"]
        listed = [f"{entry}\t{name}" for entry, name in zip(entries, names, strict=True)]
        made = subprocess.run(
            ["git", "mktree", "-z"], cwd=two.bare, check=True, capture_output=True,
            input="".join(f"{each}\0" for each in listed).encode(),
        ).stdout.decode().strip()  # fmt: skip
        env = ("-c", "user.name=eve", "-c", "user.email=e@v.e")
        theirs = two.git(*env, "commit-tree", made, "-p", commit, "-m", "mine")
        two.git("update-ref", f"refs/heads/{BRANCH}", theirs)
        hive.assignments.claim("shop-2")
        sync(hive)
        before, after = (two.git("ls-tree", each).splitlines() for each in (theirs, BRANCH))
        assert before[1:] != []
        changed = [each for each in (*before, *after) if (each in before) != (each in after)]
        assert {each.rpartition("\t")[2] for each in changed} == {"queen_assignments.jsonl"}
        assert two.git("log", "-1", "--format=%s", BRANCH) == "queenbee: 3"

    def test_a_branch_that_is_shallow_here_goes_on(self, two: World) -> None:
        for turn in range(3):
            two.hive("ada").assignments.claim(f"shop-{turn}")
            sync(two.hive("ada"))
        path = two.clone("eve", options=("--depth", "1", "--no-single-branch"))
        assert sync(two.hive("eve")).number == 3
        git(path, "fetch", "-q", "--depth", "1", "origin", f"+refs/heads/{BRANCH}:refs/heads/own")
        commit = two.git(
            *("-c", "user.name=eve", "-c", "user.email=e@v.e", "commit-tree"),
            *(f"{BRANCH}^{{tree}}", "-p", BRANCH, "-m", "not ours"),
        )
        two.git("update-ref", f"refs/heads/{BRANCH}", commit)
        two.hive("eve").assignments.claim("shop-9")
        assert sync(two.hive("eve")).number == 5

    def test_an_exchange_starts_few_gits(self, two: World, monkeypatch: pytest.MonkeyPatch) -> None:
        sync(two.hive("ada"))
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        two.hive("ada").assignments.claim("shop-2")
        started = []
        popen, spawn = subprocess.Popen.__init__, os.posix_spawnp

        def note(command: Sequence[str]) -> None:
            started.append(next(each for each in command[1:] if each in _GITS))

        def popened(process: subprocess.Popen[bytes], command: list[str], **more: object) -> None:
            note(command)
            popen(process, command, **more)  # type: ignore[call-overload]

        def spawned(path: str, command: Sequence[str], *more: Any, **options: Any) -> int:
            note(command)
            return spawn(path, command, *more, **options)

        monkeypatch.setattr(subprocess.Popen, "__init__", popened)
        monkeypatch.setattr(os, "posix_spawnp", spawned)
        sync(two.hive("ada"))
        assert started == [*_GITS]

    def test_a_large_ledger_is_cut_into_segments(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(branch_carrier, "SEGMENT_BYTES", 2000)
        for count in range(30):
            two.hive("ada").messages.send("bob", "x" * 200, subject=f"m{count:02}")
            if count % 7 == 0:
                sync(two.hive("ada"))
        sync(two.hive("ada"))
        names = two.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()
        assert len([name for name in names if name.startswith("archive/queen_messages.")]) > 2
        sync(two.hive("bob"))
        assert len(two.hive("bob").messages.inbox(limit=100)) == 30
        assert sync(two.hive("bob")).sent == 0

    def test_lines_that_a_merge_brought_go_on(self, two: World) -> None:
        sync(two.hive("ada"))
        path = two.folder / "ada" / ".beads"
        path.mkdir(exist_ok=True)
        line = '{"id":"qa-1","created_at":"2024-12-14T10:00:00.000Z","issue_id":"x","droid":"eve"}'
        (path / "queen_assignments.jsonl").write_text(line + "\n")
        sync(two.hive("ada"))
        assert [each["id"] for each in two.lines()] == ["qa-1"]

    def test_a_rewritten_branch_gets_back_what_it_lost(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        old = two.git("rev-parse", BRANCH)
        two.hive("ada").assignments.claim("shop-2")
        sync(two.hive("ada"))
        two.git("update-ref", f"refs/heads/{BRANCH}", old)
        sync(two.hive("ada"))
        assert {line["issue_id"] for line in two.lines()} == {"shop-1", "shop-2"}
        two.git("update-ref", "-d", f"refs/heads/{BRANCH}")
        sync(two.hive("ada"))
        assert {line["issue_id"] for line in two.lines()} == {"shop-1", "shop-2"}

    def test_without_its_notes_it_changes_nothing(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        before = two.git("rev-parse", BRANCH)
        two.hive("ada").engine.memory.note("sync known", None)
        assert sync(two.hive("ada")).sent == 0
        assert two.git("rev-parse", BRANCH) == before

    def test_an_unreachable_remote_is_said_and_nothing_is_lost(self, two: World) -> None:
        two.hive("ada").assignments.claim("shop-1")
        two.cut()
        with pytest.raises(Unreachable, match="origin cannot be reached"):
            sync(two.hive("ada"))
        two.heal()
        assert sync(two.hive("ada")).sent == 1

    def test_a_remote_that_was_never_configured_is_refused(self, two: World) -> None:
        two.settings("ada", '[sync]\nremote = "ext::sh -c whoami"\n')
        with pytest.raises(InvalidInput, match="has no remote"):
            sync(two.hive("ada"))

    @pytest.mark.some(1)
    @pytest.mark.parametrize(
        "options", [("--depth", "1"), ("--filter=blob:none",), ("--depth", "1", "--single-branch")]
    )
    def test_a_shallow_or_partial_clone_has_everything(
        self, two: World, options: tuple[str, ...]
    ) -> None:
        two.git("config", "uploadpack.allowFilter", "true")
        git(two.folder / "ada", "commit", "-q", "--allow-empty", "-m", "one")
        git(two.folder / "ada", "commit", "-q", "--allow-empty", "-m", "two")
        git(two.folder / "ada", "push", "-q", "origin", "HEAD")
        for count in range(3):
            two.hive("ada").assignments.claim(f"shop-{count}")
            sync(two.hive("ada"))
        two.clone("new", options=options)
        assert sync(two.hive("new")).taken == 3
        two.hive("new").assignments.claim("shop-9")
        assert sync(two.hive("new")).sent == 1


class TestWhatARemoteMaySend:
    def put(self, world: World, entries: list[tuple[str, str, bytes]]) -> None:
        """Commits files of these modes, names and contents to the branch."""
        listed = []
        for mode, name, data in entries:
            oid = self.git(world, "hash-object", "-w", "--stdin", stdin=data)
            listed.append(f"{mode} blob {oid}\t{name}\n")
        tree = self.git(world, "mktree", stdin="".join(listed).encode())
        env = ["-c", "user.name=eve", "-c", "user.email=e@v.e"]
        commit = self.git(world, *env, "commit-tree", tree, "-m", "mine")
        world.git("update-ref", f"refs/heads/{BRANCH}", commit)

    def git(self, world: World, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=world.bare, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def test_links_and_other_names_are_not_read_and_stay_there(self, two: World) -> None:
        two.hive("bob").assignments.claim("shop-0")
        sync(two.hive("bob"))
        good = b'{"id":"qm-1","from":"eve","to":"bob","subject":"hi","created_at":"2024-01-01"}\n'
        self.put(
            two,
            [
                ("120000", "queen_assignments.jsonl", b"/etc/passwd"),
                ("100644", "queen_messages.jsonl", good),
                ("100644", "queen_UP.jsonl", b'{"id":"x"}\n'),
                ("100644", "README.md", b"about\n"),
                ("100644", "queen.toml", b'[land]\ncheck = "rm -rf /"\n'),
            ],
        )
        done = sync(two.hive("bob"))
        assert done.taken == 1
        assert sorted(p.name for p in (two.folder / "bob/.beads").iterdir()) == [
            "queen_assignments.jsonl",
            "queen_messages.jsonl",
        ]
        two.hive("bob").assignments.claim("shop-1")
        sync(two.hive("bob"))
        names = two.git("ls-tree", "-r", "--name-only", BRANCH).splitlines()
        assert {"README.md", "queen.toml", "queen_UP.jsonl"} <= set(names)

    def test_lines_that_are_no_records_are_left_there(self, two: World) -> None:
        torn = (
            b'{"id":"qm-1","from":"eve","to":"bob","subject":"ok"}\n{"id": "qm-2", \nnull\n\xff\n'
        )
        self.put(two, [("100644", "queen_messages.jsonl", torn + b"x" * 2_000_000 + b"\n" + b"{")])
        assert sync(two.hive("bob")).taken == 1
        two.hive("bob").messages.send("eve", "b")
        assert sync(two.hive("bob")).sent == 1
        assert sync(two.hive("bob")).taken == 0

    def test_a_file_that_is_too_large_is_refused(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from queenbee.git.remote import branch

        monkeypatch.setattr(branch, "MOST_FILE_BYTES", 1000)
        self.put(two, [("100644", "queen_messages.jsonl", b"x" * 2000)])
        with pytest.raises(Unreadable, match="no hive is that large"):
            sync(two.hive("bob"))


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    world = World(tmp_path)
    queen = QuickQueen(world.clone("ada"))
    assert queen("sync").out == f"nothing to send, and no {BRANCH} of origin yet\n"
    assert not world.git("branch", "--list", BRANCH)
    world.hive("ada").assignments.claim("shop-1")
    assert queen("sync").out == f"{BRANCH} of origin: 0 lines taken in, 1 sent\n"
    assert queen("sync").out == f"in step with {BRANCH} of origin\n"
