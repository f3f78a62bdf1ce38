"""What whoever can push to the branch of the records, or names it, cannot make of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hives import Queen, git
from sync_worlds import BRANCH, World

from queenbee.errors import ExternalFailure, InvalidInput, Unreachable, Unreadable
from queenbee.git.remote import branch, branch_carrier, leftovers
from queenbee.git.remote.syncing import sync
from queenbee.services import unasked

_MESSAGE = b'{"id":"qm-1","from":"eve","to":"bob","subject":"hi","created_at":"2024-01-01"}\n'
_EVE = ("-c", "user.name=eve", "-c", "user.email=e@v.e")


@pytest.fixture
def two(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.clone("ada")
    world.clone("bob")
    return world


def _said(world: World, *arguments: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=world.bare, input=stdin, capture_output=True, check=True
    )
    return done.stdout.decode().strip()


def _put(
    world: World, entries: list[tuple[str, str, bytes]], *, to: str = BRANCH, archive: str = ""
) -> None:
    """Commits files of these modes, names and contents on top of a branch."""
    listed = []
    for mode, name, data in entries:
        oid = _said(world, "hash-object", "-w", "--stdin", stdin=data)
        listed.append(f"{mode} blob {oid}\t{name}\n")
    if archive:
        inner = f"100644 blob {_said(world, 'hash-object', '-w', '--stdin', stdin=_MESSAGE)}"
        tree = _said(world, "mktree", stdin=f"{inner}\t{archive}\n".encode())
        listed.append(f"040000 tree {tree}\tarchive\n")
    tree = _said(world, "mktree", stdin="".join(listed).encode())
    old = _said(world, "for-each-ref", "--format=%(objectname)", f"refs/heads/{to}")
    commit = _said(world, *_EVE, "commit-tree", tree, "-m", "mine", *(["-p", old] if old else []))
    _said(world, "update-ref", f"refs/heads/{to}", commit)


def _claim_over_a_link(two: World) -> None:
    sync(two.hive("bob"))
    two.hive("bob").assignments.claim("shop-1")
    sync(two.hive("bob"))
    sync(two.hive("ada"))
    assert [each.droid for each in two.hive("ada").assignments.find()] == ["bob"]


@pytest.mark.parametrize("name", ["queenbee", f"{BRANCH}/more"])
def test_a_branch_in_the_way_of_the_records_is_named_at_once(two: World, name: str) -> None:
    _put(two, [("100644", "x", b"x")], to=name)
    two.hive("bob").assignments.claim("shop-1")
    with pytest.raises(ExternalFailure, match=f"no such branch beside {name}") as refusal:
        sync(two.hive("bob"))
    assert refusal.value.hint == "queen config set sync.branch NAME"


class TestALinkWithTheNameOfALedger:
    @pytest.fixture(autouse=True)
    def _there(self, two: World) -> None:
        _put(two, [("120000", "queen_assignments.jsonl", b"/etc/passwd")])
        # It is a branch of records, as one of ours would be.
        tree = _said(two, "rev-parse", f"{BRANCH}^{{tree}}")
        commit = _said(two, *_EVE, "commit-tree", tree, "-m", "queenbee: 1")
        _said(two, "update-ref", f"refs/heads/{BRANCH}", commit)

    def test_gives_way_to_the_ledger(self, two: World) -> None:
        _claim_over_a_link(two)
        assert two.git("ls-tree", BRANCH).count("queen_assignments.jsonl") == 1


def _claims_in_segments(two: World) -> None:
    bob = two.hive("bob")
    sync(bob)
    for number in range(5):
        bob.assignments.claim(f"shop-{number}")
    sync(bob)
    ada = two.hive("ada")
    sync(ada)
    assert len(ada.assignments.find(droid="bob")) == 5


class TestASegmentWithTheLastNumber:
    @pytest.fixture(autouse=True)
    def _there(self, two: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(branch_carrier, "SEGMENT_BYTES", 300)
        name = f"queen_assignments.{branch.MOST_NUMBER}.jsonl"
        _put(two, [("100644", "queen_messages.jsonl", b"")], archive=name)

    def test_keeps_no_line_from_arriving(self, two: World) -> None:
        _claims_in_segments(two)

    def test_counted_on_would_lose_them_to_all_others(
        self, two: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(branch_carrier, "MOST_NUMBER", 2 * branch.MOST_NUMBER)
        with pytest.raises(AssertionError):
            _claims_in_segments(two)


def test_a_torn_line_that_is_completed_later_arrives(two: World) -> None:
    _put(two, [("100644", "queen_messages.jsonl", _MESSAGE[:30])])
    assert sync(two.hive("bob")).taken == 0
    _put(two, [("100644", "queen_messages.jsonl", _MESSAGE)])
    assert sync(two.hive("bob")).taken == 1


def test_the_end_of_a_line_is_no_line(two: World) -> None:
    """Else two clones, of which one has seen the beginning alone, would differ for good."""
    _put(two, [("100644", "queen_messages.jsonl", b"torn")])
    assert sync(two.hive("bob")).taken == 0
    _put(two, [("100644", "queen_messages.jsonl", b"torn" + _MESSAGE)])
    assert sync(two.hive("bob")).taken == sync(two.hive("ada")).taken == 0


def test_many_kinds_of_records_are_refused_before_any_is_taken_in(two: World) -> None:
    _put(two, [("100644", f"queen_k{number}.jsonl", _MESSAGE) for number in range(101)])
    with pytest.raises(Unreadable, match="101 kinds"):
        sync(two.hive("bob"))
    assert list((two.folder / "bob" / ".beads").iterdir()) == []


def test_as_many_kinds_as_there_may_be_leave_room_for_ours(two: World) -> None:
    _put(two, [("100644", f"queen_k{number}.jsonl", _MESSAGE) for number in range(100)])
    two.hive("bob").messages.send("ada", "hello", new=True)
    assert sync(two.hive("bob")).sent
    sync(two.hive("ada"))
    assert sync(two.hive("bob")).taken == 0


@pytest.mark.parametrize("said", ["999999999999999", "1"])
def test_a_number_that_somebody_made_up_counts_for_nothing(two: World, said: str) -> None:
    for body in ("one", "two"):
        two.hive("bob").messages.send("ada", body, new=True)
        before = sync(two.hive("bob")).number
    tree = _said(two, "rev-parse", f"{BRANCH}^{{tree}}")
    head = _said(two, "rev-parse", BRANCH)
    false = _said(two, *_EVE, "commit-tree", tree, "-p", head, "-m", f"queenbee: {said}")
    _said(two, "update-ref", f"refs/heads/{BRANCH}", false)
    two.hive("bob").messages.send("ada", "three", new=True)
    assert sync(two.hive("bob")).number == before + 2
    two.hive("ada").messages.send("bob", "four", new=True)
    assert sync(two.hive("ada")).number == before + 3


class TestABranchOfCode:
    @pytest.fixture(autouse=True)
    def _there(self, two: World) -> None:
        two.settings("bob", '[sync]\nbranch = "code"\n')

    def refused(self, two: World, why: str) -> None:
        before = two.git("for-each-ref")
        sync(two.hive("bob"))  # To read it is harmless, and does not make it one of records.
        two.hive("bob").messages.send("ada", "private", new=True)
        for _ in range(2):
            with pytest.raises(InvalidInput, match=why):
                sync(two.hive("bob"))
        assert two.git("for-each-ref") == before

    @pytest.mark.parametrize("name", ["queen_notes.jsonl", "x.c"])
    @pytest.mark.parametrize("subject", ["queenbee: 7", "mine"])
    def test_gets_no_records_whatever_is_in_it(self, two: World, name: str, subject: str) -> None:
        _put(
            two, [("100644", "README.md", b"code\n"), ("100644", name, b'{"id":"x"}\n')], to="code"
        )
        made = _said(two, *_EVE, "commit-tree", "code^{tree}", "-p", "code", "-m", subject)
        _said(two, "update-ref", "refs/heads/code", made)
        self.refused(two, "has other files, such as README.md")

    @pytest.mark.parametrize("is_new", [True, False])
    def test_gets_none_where_it_is_somebodys_here(self, two: World, is_new: bool) -> None:
        path = two.folder / "bob"
        git(path, "checkout", "-q", "-b", "code")
        if not is_new:
            git(path, "commit", "-q", "--allow-empty", "-m", "code")
            git(path, "checkout", "-q", "-b", "other")
        two.settings("bob", '[land]\ntarget = "main"\n[sync]\nbranch = "code"\n')
        self.refused(two, "is also a branch of this clone")

    @pytest.mark.parametrize("target", ["code", "origin/code"])
    def test_gets_none_where_work_lands(self, two: World, target: str) -> None:
        _put(two, [("100644", "queen_notes.jsonl", b"")], to="code")
        two.settings("bob", f'[land]\ntarget = "{target}"\n[sync]\nbranch = "code"\n')
        self.refused(two, "is where work lands")

    def test_gets_none_where_it_is_the_default_one(self, two: World) -> None:
        head = two.folder / "bob/.git/refs/remotes/origin/HEAD"
        head.parent.mkdir(parents=True, exist_ok=True)
        head.write_text("ref: refs/remotes/origin/code\n")
        self.refused(two, "is the default one there")

    def test_of_records_goes_on_whatever_somebody_pushes(self, two: World) -> None:
        two.hive("bob").messages.send("ada", "one", new=True)
        sync(two.hive("bob"))
        _put(two, [("100644", "README.md", b"code\n")], to="code")
        with pytest.raises(InvalidInput, match=r"has README\.md, and no records"):
            two.hive("bob").messages.send("ada", "two", new=True)
            sync(two.hive("bob"))
        _put(
            two,
            [("100644", each, b"") for each in ("README.md", "queen_messages.jsonl")],
            to="code",
        )
        assert sync(two.hive("bob")).sent == 1

    def test_of_records_keeps_no_new_clone_out(self, two: World) -> None:
        """Whatever somebody pushes on top, and also where a new clone has it to look at it."""
        two.hive("bob").messages.send("ada", "one", new=True)
        sync(two.hive("bob"))
        blob = _said(two, "hash-object", "-w", "--stdin", stdin=b"read me")
        listed = _said(two, "ls-tree", "code") + f"\n100644 blob {blob}\tREADME.md\n"
        tree = _said(two, "mktree", stdin=listed.encode())
        made = _said(two, *_EVE, "commit-tree", tree, "-p", "code", "-m", "Add a README")
        _said(two, "update-ref", "refs/heads/code", made)
        git(two.folder / "ada", "fetch", "-q")
        git(two.folder / "ada", "branch", "-q", "code", "origin/code")
        two.settings("ada", '[land]\ntarget = "main"\n[sync]\nbranch = "code"\n')
        two.hive("ada").messages.send("bob", "two", new=True)
        done = sync(two.hive("ada"))
        assert (done.taken, done.sent) == (1, 1)
        assert sync(two.hive("bob")).taken == 1

    def test_that_was_merged_with_records_gets_no_more(self, two: World) -> None:
        two.hive("bob").messages.send("ada", "one", new=True)
        sync(two.hive("bob"))
        _put(two, [("100644", "README.md", b"code\n")], to="main")
        blob = _said(two, "ls-tree", "code")
        listed = blob + "\n" + _said(two, "ls-tree", "main") + "\n"
        tree = _said(two, "mktree", stdin=listed.encode())
        parents = ("-p", "code", "-p", "main")
        made = _said(two, *_EVE, "commit-tree", tree, *parents, "-m", "queenbee: 2")
        _said(two, "update-ref", "refs/heads/code", made)
        two.settings("ada", '[sync]\nbranch = "code"\n')
        assert sync(two.hive("ada")).taken == 1
        two.hive("ada").messages.send("bob", "two", new=True)
        with pytest.raises(InvalidInput, match="has other files") as refusal:
            sync(two.hive("ada"))
        assert "take all other files off it" in str(refusal.value.hint)
        two.hive("bob").messages.send("ada", "three", new=True)
        assert sync(two.hive("bob")).sent == 1  # It has exchanged some before.

    @pytest.mark.parametrize("target", ["main", "code"])
    @pytest.mark.parametrize("is_set", [True, False])
    def test_of_a_remote_for_records_gets_them(self, two: World, target: str, is_set: bool) -> None:
        path = two.folder / "bob"
        git(path, "checkout", "-q", "-b", "code")
        if is_set:
            git(path, "config", "branch.code.remote", "origin")
        git(path, "remote", "add", "records", str(two.bare))
        two.settings(
            "bob", f'[land]\ntarget = "{target}"\n[sync]\nremote = "records"\nbranch = "code"\n'
        )
        two.hive("bob").messages.send("ada", "one", new=True)
        assert sync(two.hive("bob")).sent == 1


class TestTheLockOfARef:
    def lock(self, two: World, age_s: float) -> Path:
        folder: Path = two.folder / "bob/.git/refs/queenbee/origin/queenbee"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "hive.lock"
        path.touch()
        os.utime(path, (time.time() - age_s,) * 2)
        return path

    @pytest.mark.parametrize("age_s", [3600, -3600], ids=["old", "of a clock that was ahead"])
    def test_that_a_killed_git_left_stops_nobody_for_long(self, two: World, age_s: float) -> None:
        path = self.lock(two, age_s)
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        assert sync(two.hive("bob")).taken == 1
        assert not path.exists()

    def test_is_left_alone_while_a_git_may_hold_it(self, two: World) -> None:
        path = self.lock(two, 0)
        two.hive("ada").assignments.claim("shop-1")
        sync(two.hive("ada"))
        with pytest.raises(Unreachable, match="cannot lock ref"):
            sync(two.hive("bob"))
        assert path.exists()


class TestAFetchThatIsEnded:
    """By a remote that is slow: what came by then must not stay, time and again."""

    @pytest.fixture
    def slow(self, two: World, monkeypatch: pytest.MonkeyPatch) -> World:
        _put(two, [("100644", "queen_messages.jsonl", os.urandom(3_000_000))])
        program = two.folder / "slow"
        # It sends the beginning of the pack, and then nothing.
        program.write_text(
            f"#!{sys.executable}\n"
            "import subprocess, sys, time\n"
            f"said = subprocess.Popen(['git-upload-pack', {str(two.bare)!r}], "
            "stdout=subprocess.PIPE)\n"
            "sent = 0\n"
            "while sent < 500_000 and (data := said.stdout.read1(10_000)):\n"
            "    sent += sys.stdout.buffer.write(data)\n"
            "    sys.stdout.buffer.flush()\n"
            "time.sleep(600)\n"
        )
        program.chmod(0o755)
        git(two.folder / "bob", "remote", "set-url", "origin", "ssh://nowhere/hive.git")
        monkeypatch.setenv("GIT_SSH", str(program))
        monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
        two.settings("bob", '[sync]\ntimeout = "2s"\n')
        return two

    def test_leaves_no_pack_behind(self, slow: World) -> None:
        with pytest.raises(Unreachable):
            sync(slow.hive("bob"))
        assert leftovers.packs(str(slow.folder / "bob/.git")) == set()

    def test_would_leave_one_each_time(self, slow: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(leftovers, "remove", lambda *_: None)
        with pytest.raises(Unreachable):
            sync(slow.hive("bob"))
        assert len(leftovers.packs(str(slow.folder / "bob/.git"))) == 1

    def test_leaves_the_packs_of_others_alone(self, tmp_path: Path) -> None:
        folder = tmp_path / "objects/pack"
        folder.mkdir(parents=True)
        (folder / "tmp_pack_before").touch()
        before = leftovers.packs(str(tmp_path))
        (folder / "tmp_pack_ours").touch()
        with (folder / "tmp_pack_theirs").open("wb"):
            leftovers.remove(str(tmp_path), before)
        kept = {"tmp_pack_before", "tmp_pack_theirs"}
        if not Path("/proc/self/fd").exists():
            kept.add("tmp_pack_ours")
        assert leftovers.packs(str(tmp_path)) == kept


def test_a_remote_that_explains_itself_at_length_is_left_alone_all_the_same(two: World) -> None:
    bob = two.hive("bob")
    sync(bob)
    for _ in range(2):
        unasked.note_away(bob.layout, "no " * 100_000)
        assert unasked.is_resting(bob.layout)
    said = unasked.news(bob)
    assert len(said) == 1
    assert len(said[0]) < 400


def test_a_remote_that_talks_for_ever_is_ended(two: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word would begin its time anew, and all of them would be kept in memory."""
    program = two.folder / "talks"
    program.write_text("#!/bin/sh\nexec yes 'remote: there is news' >&2\n")
    program.chmod(0o755)
    git(two.folder / "bob", "remote", "set-url", "origin", "ssh://nowhere/hive.git")
    monkeypatch.setenv("GIT_SSH", str(program))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    with pytest.raises(Unreachable, match="it says too much"):
        sync(two.hive("bob"))


class Liar(BaseHTTPRequestHandler):
    """A smart HTTP remote that answers everything with the same lie."""

    status, location, body = 200, "", b""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        service = self.path.rpartition("=")[2]
        self.send_header("Content-Type", f"application/x-{service}-advertisement")
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def liar(two: World) -> Iterator[World]:
    with HTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/hive.git"
        git(two.folder / "bob", "remote", "set-url", "origin", address)
        yield two
        server.shutdown()


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("status", "location", "body"),
    [
        (200, "", b"<html>Log in first"),
        (200, "", b"001e# service=git-upload-pack\n000000ff"),
        (200, "", b"0026ERR \x1b[31mqueen: all is well\x1b[0m\n"),
        (302, "file:///etc/passwd", b""),
        (302, "ext::touch pwned", b""),
    ],
)
def test_a_remote_that_lies_grants_nothing_and_is_shown_as_text(
    liar: World, monkeypatch: pytest.MonkeyPatch, status: int, location: str, body: bytes
) -> None:
    for name, value in (("status", status), ("location", location), ("body", body)):
        monkeypatch.setattr(Liar, name, value)
    refused = Queen(liar.folder / "bob")("reserve", "a.py", "--confirm", as_="bob")
    assert refused.code == 6, refused
    assert "\x1b" not in refused.err
    assert not liar.hive("bob").reservations.find()
    assert not list(liar.folder.rglob("pwned"))
