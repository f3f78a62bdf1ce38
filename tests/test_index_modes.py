"""Promise 6: indexes are disposable. Every command answers the same whatever became of them."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import clean_environment
from hives import Clock, Queen, QuickQueen, Ran, git
from index_worlds import WORLDS, Happening, Off, World
from long_history import FROM_BYTES, ids, write_past
from queenbee.store.index import indexed as index
from queenbee.store.ledger.ledger import Ledger

from queenbee.cli import main
from queenbee.core.ids import ulid
from queenbee.services import open_store as store_module
from queenbee.services.care import indexes
from queenbee.store.engines import opening

pytestmark = pytest.mark.slow

GATE = "--workflow wf --phase p1"
READS = {
    "hive engine status": [""],
    "hive where": [""],
    "hive whoami": [""],
    "version": [""],
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
tester: worktree remove extra
writer: next --reserve src/part61/**
tester: issue new Search --id qb-new --depends-on qb-5
tester: issue edit qb-new --priority 0
tester: issue dep qb-new qb-21 --remove
tester: issue close qb-new
tester: issue reopen qb-new
tester: issue delete qb-new
tester: issue import {issues}
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


def make_hive(repo: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> tuple[Happening, Clock]:
    """Makes the hive with a past in a world."""
    shutil.rmtree(repo, ignore_errors=True)
    (repo / ".beads").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    happening = world(repo, monkeypatch)
    happening.begin()
    clock = _deterministic(monkeypatch)
    write_past(QuickQueen(repo), clock, happening.half_way)
    return happening, clock


def run_program(repo: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> dict[str, object]:
    """Runs every command in such a hive, and returns all that was answered and all that is left."""
    happening, clock = make_hive(repo, monkeypatch, world)
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
    """Returns what a command said, but for what it says about indexes and how long it took."""
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
            and not (isinstance(each, dict) and each.get("code") == "clock_behind")
        ]
    if isinstance(value, dict):
        about_indexes = {"index_bytes", "state"} if "index_bytes" in value else set()
        return {
            key: _plain(each)
            for key, each in value.items()
            if key not in about_indexes and not key.startswith("duration") and key != "elapsed_s"
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
    for module in (opening, indexes):
        monkeypatch.setattr(module, "INDEX_FROM_BYTES", FROM_BYTES)
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
def truth(place: Path) -> dict[str, object]:
    """What every command answers where there is no index."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        clean_environment(monkeypatch)
        return run_program(place, monkeypatch, Off)


_ALWAYS = ("on", "failing")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in _ALWAYS else pytest.mark.thorough) for name in WORLDS],
)
def test_every_command_answers_alike(
    truth: dict[str, object], place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    told = run_program(place, monkeypatch, WORLDS[name])
    assert differences(truth, told) == []
    assert not any("a bug in queen" in str(answer) for answer in told.values())


def test_every_command_of_queen_is_in_a_table() -> None:
    """One that is new has to answer alike in all of these worlds too."""
    written = [line.split(": ")[1] for line in WRITES.strip().splitlines()]
    for name in _commands(main.queen, click.Context(main.queen)):
        covered = name in READS or any(f"{line} ".startswith(f"{name} ") for line in written)
        assert covered, f"queen {name} is neither in READS nor in WRITES"


def test_each_ledger_of_the_hive_has_an_index(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing here would be compared."""
    opened = []
    begin = index.Indexed.__init__

    def counted(self: index.Indexed, kind: str, *args: Any, **kwargs: Any) -> None:
        opened.append(kind)
        begin(self, kind, *args, **kwargs)

    monkeypatch.setattr(index.Indexed, "__init__", counted)
    make_hive(place, monkeypatch, Happening)
    quick = QuickQueen(place)
    for line, kind in (
        ("msg inbox", "messages"),
        ("assignments", "assignments"),
        ("reserved", "reservations"),
    ):
        opened.clear()
        assert quick(*line.split(" "), as_="tester").code == 0
        assert kind in opened
    assert [row["unusable"] for row in quick("stats", "--json").json] == [2, 2, 0]


# The real command, at its own measure of what is large.


@pytest.fixture
def large(queen: Queen, repo: Path) -> Queen:
    """The real command, on a hive whose messages fill 200 KiB."""
    folder = repo / ".git" / "queenbee"
    ledger = Ledger(
        str(repo / ".beads/queen_messages.jsonl"), str(folder / "journal/messages.jsonl")
    )
    (folder / "journal").mkdir(parents=True)
    rows = [
        {"id": f"qm-{n:04}", "created_at": "2024-12-14T10:00:00Z", "from": "a", "to": "b"}
        | {"body": f"number {n} of {'many ' * (n % 90)}", "rev": 1}
        for n in range(600)
    ]
    ledger.append([json.dumps(row).encode() for row in rows]).close()
    return queen


LINES = (
    "msg inbox --json --limit 900",
    "msg search many --json",
    "msg thread qm-0007",
    "show qb-1",
)


def asked(queen: Queen, *, env: dict[str, str] | None = None) -> list[tuple[int, str, str]]:
    """Returns what processes without a right to write where it is forbidden are told."""
    ran = [queen(*each.split(" "), as_="b", env=env, unprivileged=True) for each in LINES]
    return [(each.code, each.out, each.err) for each in ran]


@pytest.mark.parametrize("indexed", [True, False], ids=["with an index", "without an index"])
def test_a_state_that_cannot_be_written_is_read_all_the_same(
    large: Queen, repo: Path, indexed: bool
) -> None:
    asked(large, env={"QUEEN_INDEX": "off"})  # Mail is told once, beside the first answer.
    truth = asked(large, env={"QUEEN_INDEX": "off"})
    state = repo / ".git" / "queenbee"
    if indexed:
        assert asked(large) == truth
        large("msg", "send", "b", "late", as_="a", env={"QUEEN_INDEX": "off"})
        asked(large, env={"QUEEN_INDEX": "off"})
        truth = asked(large, env={"QUEEN_INDEX": "off"})
    assert (state / "index" / "messages.sqlite3").exists() is indexed
    places = [state, *(path for path in state.rglob("*") if path.name != "lock")]
    modes = {path: path.stat().st_mode for path in places}
    try:
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert asked(large) == truth
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_processes_that_all_build_the_index_at_once_answer_alike(large: Queen, repo: Path) -> None:
    truth = large("msg", "inbox", "--json", "--limit", "900", as_="b", env={"QUEEN_INDEX": "off"})
    started = [large.start("msg", "inbox", "--json", "--limit", "900", as_="b") for _ in range(6)]
    for each in started:
        out, err = each.communicate(timeout=60)
        assert (each.returncode, out, err) == (0, truth.out, "")
    assert (repo / ".git" / "queenbee" / "index" / "messages.sqlite3").exists()
