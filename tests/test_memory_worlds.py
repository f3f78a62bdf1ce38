"""Promise 6: the memory can be made again. Every command answers the same whatever became of it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import click
import pytest
from conftest import clean_environment
from hives import Clock, Queen, QuickQueen, Ran, git, write_lines
from long_history import ids, write_past
from memory_worlds import WORLDS, Happening

from queenbee.cli import main
from queenbee.core.ids import ulid
from queenbee.services import open_store as store_module
from queenbee.store.memory import connecting, tables

pytestmark = pytest.mark.slow

GATE = "--workflow wf --phase p1"
READS = {
    "hive engine status": [""],
    "hive where": [""],
    "hive whoami": [""],
    "hive forget": ["nowhere"],
    "hive list": [""],
    "version": [""],
    "schema": ["", "msg send"],
    "mcp": [],  # It ends its process: it has tests of its own.
    "watch": [""],
    "start": ["--logs nobody"],
    "completion": ["bash"],
    "msg inbox": [
        "",
        "--limit 500",
        "--unread --limit 500",
        "--since 26h --limit 500",
        "--since 2024-12-13T12:00:00Z --from tester --limit 90",
        "--issue qb-5",
        "--for reviewer --limit 7",
        "--overdue --limit 99",
        "--after {other}",
        "--after qm-gone",
    ],
    "msg search": [
        "header",
        "login token",
        '"button and"',
        "größe --limit 500",
        "cach* --issue qb-5",
        "token --from tester --since 30h",
        "nowhere",
    ],
    "msg sent": ["", "--limit 500"],
    "msg thread": ["{message}", "{old}", "qb-5", "qm-gone"],
    "msg wait": ["--timeout 1s", "--timeout 1s --from tester"],
    "issue assignments": [
        "",
        "--status all",
        "--status completed --droid tester",
        "--issue qb-5 --status all",
        "--droid reviewer --status released",
    ],
    "reserve list": ["", "--all", "--droid tester", "--path src/part61/x.py", "--stale"],
    "reserve check": ["src/part61/x.py docs/60.md free.py lib/13/a", "src/part75/y", "lib/13.py"],
    "reserve overlap": ["src/* src/a", "a b"],
    "reserve conflicts": [""],
    "worktree collisions": ["", "--order", "--check"],
    "issues": ["", "--all", "--status closed"],
    "issue list": [""],
    "config list": [""],
    "config get": ["land.check"],
    "config trust": ["--list"],
    "status": [""],
    "prime": ["", "--full"],
    "prompt": ["", "--for tmux --ascii"],
    "issue wait": [
        "--ready --timeout 0s",
        "qb-5 --free src/** --timeout 0s",
        "--mail --timeout 0s",
    ],
    "help": ["", "msg send"],
    "show": ["qb-5", "qb-21", "qb-25", "qb-gone"],
    "issue ready": [""],
    "log": [],  # Its cursors are those of one memory.
    "report": ["", "--since 26h"],
    "hive history": ["{message}", "{old}", "{assignment}", "{lease}", "qa-go", "qr-go", "qr-gone"],
    "doctor": [""],
    "hive stats": [""],
    "hive index status": [""],
    "hive index export": [""],
    "bead list": [""],
    "bead ready": [""],
    "bead schema": ["ralph"],
    "bead show": ["gt-1", "bd-1"],
    "bead validate": ["gt-1 bd-1"],
    "plan check": ["{plan}"],
    "plan graph": ["{plan}"],
    "plan convert": ["{plan}"],
    "gate check": [GATE],
    "gate history": [GATE],
    "gate hook": [GATE],
    "gate show": [GATE],
    "gate status": [GATE],
    "gate schema": [""],
    "gate validate": ["-"],
    "session status": ["--session {session}"],
    "session validate": ["--session {session}"],
    "guard check": ["src/part61/x.py docs/60.md", "--staged"],
    "guard status": [""],
    "worktree list": [""],
    "hooks status": ["claude"],
}
"""The command lines that change no record, by command."""

WRITES = """
tester: msg send ui-engineer,writer news --issue qb-5
writer: msg send @all hello --ack
ui-engineer: msg reply {message} answer
ui-engineer: answer {message} fine
ui-engineer: msg read {message} {other}
reviewer: msg read {message}
writer: msg ack {message}
writer: msg delete {other}
human: msg notify --once
tester: claim qb-44
ui-engineer: claim qb-44
ui-engineer: issue assign qb-44 writer --reassign --reason busy
reviewer: claim qb-28
tester: release qb-28
ui-engineer: claim qb-46
ui-engineer: note more
ui-engineer: complete qb-46 --reason done
tester: claim qb-21
writer: next
writer: complete qb-5 --next --reason done
writer: land --next
writer: sync
tester: worktree add extra
tester: worktree list
tester: worktree setup --dry-run
tester: worktree remove extra
tester: worktree prune
writer: next --reserve src/part61/**
tester: issue new Search --id qb-new --depends-on qb-5
tester: issue edit qb-new --priority 0
tester: issue dep qb-new qb-21 --remove
tester: issue close qb-new
tester: issue reopen qb-new
tester: issue delete qb-new
tester: undo
tester: issue import {issues}
tester: issue pull
tester: issue push
tester: review reply T1 yes
tester: review withdraw qb-21
tester: issue export
tester: config set land.check true
tester: config unset land.check
tester: msg nudge reviewer
reviewer: reserve src/part61/x.py
reviewer: reserve src/part61/x.py --force --reason urgent
tester: reserve new/** other.py --ttl 1h --issue qb-5
tester: reserve new/** --shared
writer: reserve docs/read.md --read
tester: reserve docs/read.md --read
writer: reserve new/a
reviewer: reserve renew --all
tester: reserve renew new/** --ttl 5h
tester: reserve release other.py
writer: reserve release other.py
reviewer: reserve release --id {lease}
ui-engineer: reserve release --all
tester: bead record result bd-1 {{"status":"pass","message":"ok"}}
tester: bead edit bd-1 --set metadata.rig=other
tester: bead verify gt-1 --dry-run
tester: bead verify gt-1
tester: bead run gt-2 --dry-run
tester: plan annotate {plan}
tester: plan import {plan}
tester: gate new --workflow wf --phase p1
tester: gate add-rule --workflow wf --phase p1 --exists accounts.md
tester: gate add-rule --workflow wf --phase p1 --test false --id extra
tester: gate remove-rule --workflow wf --phase p1 extra
tester: gate run --workflow wf --phase p1
tester: session import --session {session}
tester: session new task --dir made
tester: hive index rebuild
tester: msg send reviewer more
human: hive delete {assignment}
tester: hive migrate v1_to_v2
tester: hive rotate --older-than 1h
tester: hive engine use files
tester: doctor --fix
tester: init
tester: hive whoami --set tester
tester: setup claude
tester: setup --undo
tester: hooks install claude
tester: hooks uninstall claude
tester: guard install
tester: guard uninstall
"""
"""A script of commands that write, each with who runs it."""


def make_hive(
    repo: Path, monkeypatch: pytest.MonkeyPatch, world: type[Happening], *, is_taken: bool
) -> tuple[Happening, Clock]:
    """Makes the hive with a past in a world; git takes lines away at its end, or does not."""
    shutil.rmtree(repo, ignore_errors=True)
    (repo / ".beads").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    happening = world(repo)
    clock = _deterministic(monkeypatch)
    write_past(QuickQueen(repo), clock, happening.half_way, is_taken=is_taken)
    return happening, clock


def run_program(
    repo: Path, monkeypatch: pytest.MonkeyPatch, world: type[Happening], *, is_taken: bool
) -> dict[str, object]:
    """Runs every command in such a hive, and returns all that was answered and all that is left."""
    happening, clock = make_hive(repo, monkeypatch, world, is_taken=is_taken)
    quick, names = QuickQueen(repo), ids(repo)
    answers: dict[str, object] = {}

    def ask(droid: str, line: str) -> None:
        happening.before_command()
        words = [word.format(**names) for word in line.split(" ") if word]
        with happening.during_command():
            ran = quick(*words, "--json", as_=droid)
        answers[f"{len(answers)} {droid}: queen {line}"] = told(ran)

    for name, lines in READS.items():
        for rest in lines:
            # The order of arrival is told by the memory alone.
            if is_taken or rest != "--after {other}":
                ask("reviewer", f"{name} {rest}")
    for line in WRITES.strip().splitlines():
        droid, _, words = line.partition(": ")
        ask(droid, words)
        clock.advance(30)
    for name, lines in READS.items():
        for rest in lines[-1:]:
            ask("tester", f"{name} {rest}")
    return {**answers, **_files(repo)}


def told(ran: Ran) -> object:
    """Returns what a command said, but for how large the memory is and how long it took."""
    out, err = ran.out, ran.err
    try:
        return ran.code, _plain(json.loads(out)) if out else "", err
    except ValueError:
        return ran.code, out, err


def _plain(value: object) -> object:
    if isinstance(value, list):
        # What a check took is part of what is recorded of it; and the files here are of today.
        return [
            _plain(each)
            for each in value
            if not _is_of_verifications(each)
            and not (isinstance(each, dict) and each.get("code") in ("clock_behind", "set_aside"))
        ]
    if isinstance(value, dict):
        # When a command was seen is told by its file, in the user's folder.
        of_today = {"memory_bytes", "elapsed_s", *(["at_ms"] if "repository" in value else [])}
        return {
            key: _plain(each)
            for key, each in value.items()
            if key not in of_today and not key.startswith("duration")
        }
    return value


def _is_of_verifications(row: object) -> bool:
    return isinstance(row, dict) and row.get("kind") == "verifications"


def _files(repo: Path) -> dict[str, object]:
    """Returns what the ledgers and their archive hold at the end, and what was exported."""
    return {
        path.name: path.read_bytes()
        for path in sorted((repo / ".beads").rglob("*"))
        if path.name.startswith("queen_") and "verifications" not in path.name
    }


def _commands(command: click.Command, context: click.Context, path: str = "") -> list[str]:
    if not isinstance(command, click.Group):
        return [path]
    found = []
    for name in command.list_commands(context):
        each = command.get_command(context, name)
        assert each is not None
        found += _commands(each, context, f"{path} {name}".strip())
    return found


def _deterministic(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Makes time and ids the same in each world; returns the clock."""
    clock = Clock()
    minted = iter(range(10**6))
    monkeypatch.setattr(time, "time_ns", lambda: clock.now_ms * 1_000_000)
    monkeypatch.setattr(
        store_module, "ulid", lambda now_ms, _random: ulid(now_ms, next(minted).to_bytes(10))
    )
    monkeypatch.setenv("QUEEN_DURABILITY", "buffered")
    return clock


def differences(left: dict[str, object], right: dict[str, object]) -> list[str]:
    """Returns what differs, in words."""
    assert left.keys() == right.keys()
    return [f"{key}\n  {left[key]!r}\n  {right[key]!r}" for key in left if left[key] != right[key]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where every hive is made, one after the other: what is compared names it."""
    return tmp_path_factory.mktemp("hive") / "repo"


@pytest.fixture(scope="module")
def truths() -> dict[bool, dict[str, object]]:
    """What every command answers where nothing happens: with lines that only the memory has, and
    without.
    """
    return {}


_ALWAYS = ("damaged",)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.thorough) for name in WORLDS],
)
def test_every_command_answers_alike(
    truths: dict[bool, dict[str, object]], place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    is_taken = WORLDS[name].keeps_lines
    if is_taken not in truths:
        with pytest.MonkeyPatch.context() as patch:
            clean_environment(patch)
            truths[is_taken] = run_program(place, patch, Happening, is_taken=is_taken)
    told = run_program(place, monkeypatch, WORLDS[name], is_taken=is_taken)
    assert differences(truths[is_taken], told) == []
    assert not any("a bug in queen" in str(answer) for answer in told.values())


def test_every_command_of_queen_is_in_a_table() -> None:
    """One that is new has to answer alike in all of these worlds too."""
    written = [line.split(": ")[1] for line in WRITES.strip().splitlines()]
    for name in _commands(main.queen, click.Context(main.queen)):
        covered = name in READS or any(f"{line} ".startswith(f"{name} ") for line in written)
        assert covered, f"queen {name} is neither in READS nor in WRITES"


# The real command.


@pytest.fixture
def large(queen: Queen, repo: Path) -> Queen:
    """The real command, on a hive whose messages fill 200 KiB, and were never read here."""
    rows = [
        {"id": f"qm-{n:04}", "created_at": "2024-12-14T10:00:00Z", "from": "a", "to": "b"}
        | {"body": f"number {n} of {'many ' * (n % 90)}", "rev": 1}
        for n in range(600)
    ]
    write_lines(repo / ".beads" / "queen_messages.jsonl", *rows)
    return queen


LINES = (
    "msg inbox --json --limit 900",
    "msg search many --json",
    "msg thread qm-0007",
    "show qb-1",
)


def asked(queen: Queen) -> list[tuple[int, str, str]]:
    """Returns what processes without a right to write where it is forbidden are told."""
    ran = [queen(*each.split(" "), as_="b", unprivileged=True) for each in LINES]
    return [(each.code, each.out, each.err) for each in ran]


@pytest.mark.parametrize("memory", ["new", "old", "none"])
def test_a_state_that_cannot_be_written_is_read_all_the_same(
    large: Queen, repo: Path, memory: str
) -> None:
    asked(large)  # Mail is told once, beside the first answer.
    late = {"id": "qm-late", "from": "a", "to": "b", "body": "late", "rev": 1}
    if memory == "new":
        truth = asked(large)
    write_lines(repo / ".beads" / "queen_messages.jsonl", late)
    if memory != "new":
        before = {path: path.read_bytes() for path in state_files(repo)}
        asked(large)
        truth = asked(large)
        for path in state_files(repo):
            path.unlink()
            if memory == "old":
                path.write_bytes(before.get(path, b""))
    else:
        truth = asked(large) and asked(large)
    state = repo / ".git" / "queenbee"
    places = [state, *(path for path in state.rglob("*") if path.name != "lock")]
    modes = {path: path.stat().st_mode for path in places}
    try:
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert asked(large) == truth
        refused = large("msg", "send", "a", "x", as_="b", unprivileged=True)
        assert (refused.code, "cannot be" in refused.err) == (7, True)
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def state_files(repo: Path) -> list[Path]:
    return sorted((repo / ".git" / "queenbee").glob("hive.sqlite3*"))


def test_processes_that_all_read_a_long_history_at_once_answer_alike(
    large: Queen, repo: Path
) -> None:
    words = ("msg", "inbox", "--json", "--limit", "900")
    started = [large.start(*words, as_="b") for _ in range(6)]
    said = [(*each.communicate(timeout=60), each.returncode) for each in started]
    assert {code for *_, code in said} == {0}
    assert {out for out, *_ in said} == {large(*words, as_="b").out}
    assert state_files(repo)


def test_a_short_history_that_is_only_read_leaves_no_file(queen: Queen, repo: Path) -> None:
    write_lines(repo / ".beads" / "queen_messages.jsonl", {"id": "qm-1", "from": "a", "to": "b"})
    assert len(queen("msg", "inbox", "--json", as_="b").json) == 1
    assert state_files(repo) == []


NEWER = ("msg inbox", "msg send a hello", "claim qb-1 --new", "hive index rebuild", "doctor --fix")


@pytest.mark.parametrize("words", NEWER)
def test_a_memory_of_a_newer_version_is_refused_in_one_line_and_left_alone(
    large: Queen, repo: Path, words: str
) -> None:
    large("msg", "send", "b", "the first write makes it", as_="a")
    happening = Happening(repo)
    happening.change(f"PRAGMA user_version = {tables.LINES_VERSION + 1}")
    before = happening.path.read_bytes()
    refused = large(*words.split(" "), as_="b")
    assert refused.code != 0
    [said, hint] = refused.err.strip().splitlines()
    assert "made by a newer version of QueenBee" in said
    assert "pip install --upgrade queenbee-hive" in hint
    assert happening.path.read_bytes() == before


def test_a_memory_that_another_process_writes_to_for_long_is_busy(
    quick: QuickQueen, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "WAIT_S", 0.0)
    with closing(sqlite3.connect(Happening(small).path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        refused = quick("msg", "send", "reviewer", "again", "--json", as_="ui-engineer")
        assert refused.error["code"] == "busy"
        assert "in use by another process" in refused.error["message"]
        assert quick("msg", "inbox", as_="ui-engineer").code == 0
    assert quick("msg", "send", "reviewer", "again", as_="ui-engineer").code == 0


def test_a_damaged_memory_is_set_aside_with_what_only_it_had_kept(
    quick: QuickQueen, small: Path
) -> None:
    """The page that is damaged is of the records, which the lines are folded to again."""
    (small / ".beads" / "queen_messages.jsonl").write_bytes(b"")  # A checkout.
    happening = Happening(small)
    happening.change()
    with closing(sqlite3.connect(happening.path)) as other:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'records messages'"
        [page] = other.execute(query).fetchone()
    data = bytearray(happening.path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    happening.remove()
    happening.path.write_bytes(data)
    assert [each["body"] for each in quick("msg", "inbox", "--json", as_="ui-engineer").json] == [
        "hello"
    ]
    assert len(list(happening.path.parent.glob("hive.sqlite3.damaged-*"))) >= 1
