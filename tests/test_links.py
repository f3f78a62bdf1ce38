"""No file of a hive is written through a link: each one, and each folder above it, is replaced."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from bead_files import put_bead, ralph_bead
from bead_folders import bead_folders
from hives import Clock, git
from hook_settings import install

from queenbee import Hive
from queenbee.agents import claude
from queenbee.agents.agent import Agent, Surroundings
from queenbee.agents.files.file_edits import gathered
from queenbee.agents.files.file_edits import write as write_edits
from queenbee.agents.setup import AGENTS
from queenbee.checks.check import Check, CheckResult, Command
from queenbee.checks.verification import EvidenceOfRun, write_failures
from queenbee.cli.exits import UNREADABLE, exit_code
from queenbee.documents.gates.gate_files import create_gate
from queenbee.documents.plans.source_text import annotate_file
from queenbee.documents.ralph.bead_files import find_bead, update_bead
from queenbee.documents.sessions.folder import write_session_folder
from queenbee.errors import QueenError
from queenbee.git import hooks, unmerged
from queenbee.git.collisions.cache import Cache
from queenbee.hook import neighbours
from queenbee.report.saving import save
from queenbee.report.words import GENERATOR
from queenbee.services.care import doctor, indexes
from queenbee.services.waiting.landing_steps import Promises, Step
from queenbee.services.waiting.landing_turn import LandingTurn
from queenbee.store import creating, whole_files
from queenbee.store.droids import agent_sessions as at_work
from queenbee.store.droids import presence
from queenbee.store.droids.identity import remember
from queenbee.store.droids.told import Told
from queenbee.store.git_files.tree_id import keep_tree_id
from queenbee.store.layout import discover
from queenbee.store.logbook import note
from queenbee.workflows.locks import documents_lock, gate_runs, run_lock

PLACES = {
    ".beads/queen.toml": "refused",
    ".beads/.gitattributes": "refused",
    ".beads/queen_messages.jsonl": "refused",
    ".beads/queen_messages.idx.json": "refused",
    ".beads/archive/queen_messages.1.jsonl": "refused",
    ".beads/issues.jsonl": "refused",
    ".beads/active/gt-1.json": "refused",
    ".beads/completed/gt-2.json": "refused",
    ".ralph/beads/gt-3.json": "refused",
    ".beads/evidence/.gitignore": "made only with its folder",
    ".beads/evidence/gt-1/20241214T103000.000Z": "another name is taken",
    ".beads/evidence/gt-1/20241214T103000.000Z/01-tests.log": "another name is taken",
    ".beads/evidence/gt-1/failures.txt": "refused",
    ".claude/state/validation/phase_flow_build.json": "refused",
    ".claude/settings.json": "refused",
    "CLAUDE.md": "refused",
    "AGENTS.md": "refused",
    "GEMINI.md": "refused",
    ".mcp.json": "refused",
    ".claude/skills/queenbee/SKILL.md": "refused",
    ".agents/skills/queenbee/SKILL.md": "refused",
    ".codex/hooks.json": "refused",
    ".codex/config.toml": "refused",
    ".gemini/settings.json": "refused",
    ".qwen/settings.json": "refused",
    ".cursor/hooks.json": "refused",
    ".cursor/mcp.json": "refused",
    ".opencode/plugins/queenbee.js": "refused",
    "opencode.json": "refused",
    ".kilo/plugins/queenbee.js": "refused",
    "kilo.json": "refused",
    ".github/hooks/queenbee.json": "refused",
    ".githooks/pre-commit": "the link is replaced, or the folder refused",
    "docs/plan.md": "refused",
    "docs/report.html": "refused",
    ".beads/.queenbee/.gitignore": "made only if nothing has the name",
    ".beads/.queenbee/lock": "refused",
    ".beads/.queenbee/documents.lock": "refused",
    ".beads/.queenbee/documents.lock.holder": "not written",
    ".beads/.queenbee/run-gt-1-a5b98aff.lock": "refused",
    ".beads/.queenbee/run-gt-1-a5b98aff.lock.holder": "not written",
    ".beads/.queenbee/run-gt-1--547484d3.lock": "refused",
    ".beads/.queenbee/hive.sqlite3": "refused",
    ".beads/.queenbee/hive.sqlite3-wal": "refused",
    ".beads/.queenbee/hive.sqlite3-shm": "refused",
    ".beads/.queenbee/hive.sqlite3-journal": "refused",
    ".beads/.queenbee/journal/messages.jsonl": "refused",
    ".beads/.queenbee/leases.verdicts.json": "the link is replaced",
    ".beads/.queenbee/issues.json": "the link is replaced",
    ".beads/.queenbee/droids": "not written",
    ".beads/.queenbee/droids/ui": "not written",
    ".beads/.queenbee/sessions": "not written",
    ".beads/.queenbee/sessions/lock": "not written",
    ".beads/.queenbee/sessions/git": "not written",
    ".beads/.queenbee/sessions/git/one": "the link is replaced",
    ".beads/.queenbee/told": "not written",
    ".beads/.queenbee/told/ui": "not written",
    ".beads/.queenbee/index/unmerged.json": "the link is replaced",
    ".beads/.queenbee/neighbours": "not written",
    ".beads/.queenbee/neighbours/1b4e.json": "the link is replaced",
    ".beads/.queenbee/seen": "not written",
    ".beads/.queenbee/seen/ui": "the link is replaced",
    ".beads/.queenbee/last/ui": "the link is replaced",
    ".beads/.queenbee/hook.log": "not written",
    ".beads/.queenbee/hook.log.1": "the link is replaced",
    ".beads/.queenbee/collisions": "not written",
    ".beads/.queenbee/droid": "refused",
    ".beads/.queenbee/trees/main": "the link is replaced",
    ".beads/.queenbee/last-good.toml": "the link is replaced",
    ".beads/.queenbee/settings.json": "the link is replaced",
}
"""Every file of the tree that is opened for writing, and what happens if it is a link."""

ALSO = (
    ".beads/.queenbee/last-good.toml",
    ".beads/queen_*.idx.json",
    ".beads/archive/queen_*.jsonl",
    ".beads/evidence/gt-1/*-2/01-tests.log",
    ".beads/.queenbee/droids/ui-*",
    ".git/*",
    "sessions/*",
)
"""What is written beside these: other kinds, later runs, the folder of a new session."""


def whole(repo: Path) -> None:
    """Makes a hive in which every file of the table exists, with its state in the tree."""
    git(repo, "config", "queenbee.state", "beads")
    git(repo, "config", "core.hooksPath", ".githooks")
    (repo / ".githooks").mkdir()
    (repo / "docs").mkdir()
    (repo / "docs" / "plan.md").write_text("# Plan\n\n## Phase 1: A\n\n### Sprint 1.1: B\n")
    for number, folder in enumerate((".beads/active", ".beads/completed", ".ralph/beads"), 1):
        status = {"status": "completed"} if number == 2 else {}
        put_bead(repo, ralph_bead(f"gt-{number}", "true", **status), folder)
    problems = everything(repo, Clock())
    assert not problems, problems


def everything(repo: Path, clock: Clock) -> dict[str, QueenError]:
    """Does whatever writes, and returns what was refused."""
    refused: dict[str, QueenError] = {}

    def do(name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except QueenError as error:
            refused[name] = error

    try:
        layout = discover(str(repo), {}, must_exist=False)
    except QueenError as error:
        return {"discover": error}
    layout.settings.durability = "buffered"
    do("init", lambda: creating.init(layout))
    hive = Hive(layout, actor="ui", clock=clock)
    state = Path(layout.state_dir)

    def send(body: str = "hello") -> None:
        hive.messages.send("api", body)

    def set_up(agent: Agent) -> None:
        run = f"queen-hook {clock.now_ms}"
        place = Surroundings({}, tree=str(repo), hook=run, mcp=["queen", "mcp"], roots=[])
        edits = gathered(agent.parts(place))
        for edit in edits:
            edit.set_up()
        write_edits(edits, str(repo))

    def two_lines() -> None:
        with hive.transaction() as tx:
            for body in ("one", "two"):
                tx.create("messages", {"from": "ui", "to": "api", "body": body})

    def pulled() -> None:
        with open(repo / ".beads" / "queen_messages.jsonl", "a") as ledger:
            line = {"id": f"qm-{clock.now_ms}", "from": "api", "to": "ui", "rev": 1}
            ledger.write(f"{json.dumps(line)}\n")
        send("after a pull")

    def rotated() -> None:
        read = Hive(layout, actor="api", clock=clock)
        read.messages.mark_read([each.id for each in read.messages.inbox(unread=True)])
        clock.advance(5)
        hive.rotate(older_than_s=0)

    def bead(identifier: str) -> None:
        folders = bead_folders(repo)
        folders.lock = documents_lock(hive)
        found = find_bead(folders, identifier)
        update_bead(found, lambda document: document.update(notes=str(clock.now_ms)), folders)

    def gate() -> None:
        folder = str(repo / ".claude" / "state" / "validation")
        metadata = {"workflow_id": "flow", "phase_id": "build"}
        if not os.path.lexists(os.path.join(folder, "phase_flow_build.json")):
            create_gate(folder, {"metadata": metadata})
        else:
            from queenbee.documents.json_documents import read_json, write_object

            path = os.path.join(folder, "phase_flow_build.json")
            write_object(path, {**read_json(path), "n": clock.now_ms})

    def evidence() -> None:
        folder = str(repo / ".beads" / "evidence")
        result = CheckResult(Check("tests", Command("true")), "passed", "")
        EvidenceOfRun(folder, "gt-1", 1_734_172_200_000).add(result)
        write_failures(folder, "gt-1", "it failed")

    def one_run() -> None:
        with run_lock(hive, "gt-1"):
            pass

    def gate_run() -> None:
        with gate_runs(hive, "gt-1", ""):
            pass

    def logs() -> None:
        log = state / "hook.log"
        if log.exists() and log.resolve() == log:
            with open(log, "r+") as file:
                file.truncate(600_000)
        note(str(state), "hook", "text")
        note(str(state), "hook", "text")

    def issue() -> None:
        with hive.transaction() as tx:
            tx.put_issue({"id": "bd-1", "title": "x"})

    def looked() -> None:
        cache = unmerged.Cache(layout)
        cache.is_new = True
        cache.store([])

    def compared() -> None:
        with Cache(layout, str(repo / ".git")):
            pass

    def land_in_turn() -> None:
        with LandingTurn(hive, "main", 0, lambda _: None) as turn:
            with Step.of(turn.folder, layout.tree) as step:
                step.write("merge")
            Promises(turn.folder, layout.tree).add(commit="x")

    def session() -> None:
        folder = repo / "sessions" / f"at-{clock.now_ms}"
        write_session_folder(str(folder), {"team-session.json": b"{}"})

    do("send", send)
    do("two", two_lines)
    if not (repo / ".beads" / "queen_messages.jsonl").is_symlink():
        do("pull", pulled)
    do("rotate", rotated)
    do("fix", lambda: doctor.repair(hive))
    do("issue", issue)
    for number in (1, 2, 3):
        do(f"bead {number}", lambda number=number: bead(f"gt-{number}"))  # type: ignore[misc]
    do("gate", gate)
    do("evidence", evidence)
    do("run", one_run)
    do("gate run", gate_run)
    do("log", logs)
    do("presence", lambda: presence.note(layout, "ui", clock.now_ms))
    do("presence", lambda: presence.note(layout, f"ui-{clock.now_ms}", clock.now_ms))
    do(
        "at work",
        lambda: at_work.begin(
            layout, "one", "one", agent="claude", source="startup", now_ms=clock.now_ms
        ),
    )
    do("told", lambda: Told(layout, "ui").add(["key"]))
    do("seen", lambda: Told(layout, "ui").saw({}, 0))
    do("verdicts", lambda: whole_files.keep(layout.verdicts_path("leases"), {"n": clock.now_ms}))
    do("unmerged", looked)
    do("neighbours", lambda: neighbours._Told(layout, "1b4e").keep([], whole=True))
    do("rebuild", hive.rebuild_memory)
    do("export", lambda: indexes.export(hive))
    do(
        "hook",
        lambda: install(str(repo / claude.SETTINGS), claude.groups(f"queen-hook {clock.now_ms}")),
    )
    for agent in AGENTS.values():
        do(f"setup {agent.name}", lambda agent=agent: set_up(agent))  # type: ignore[misc]
    do("collisions", compared)
    do("guard", lambda: hooks.install(hooks.HookFolder(str(repo))))
    do(
        "annotate",
        lambda: annotate_file(str(repo / "docs" / "plan.md"), {"1.1": f"bd-{clock.now_ms}"}),
    )
    do(
        "report",
        lambda: save(str(repo / "docs" / "report.html"), f"{GENERATOR} {clock.now_ms}"),
    )
    do("turn", land_in_turn)
    do("session", session)
    layout.identity_path = str(state / "droid")
    do("name", lambda: remember(layout, "ui"))
    layout.tree_id_paths = (str(state / "trees" / "main"),)
    do("tree", lambda: keep_tree_id(layout))
    hive.close()
    return refused


def above(path: str) -> Iterator[str]:
    """Yields the path and each folder above it, up to the top of the tree."""
    while path:
        yield path
        path = os.path.dirname(path)


CASES = sorted({"sessions", *(each for path in PLACES for each in above(path))})


@pytest.fixture(scope="module")
def hive_with_everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    repo = tmp_path_factory.mktemp("links") / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    whole(repo)
    return repo


@pytest.fixture
def copied(hive_with_everything: Path, tmp_path: Path) -> Path:
    repo = tmp_path / "copy"
    shutil.copytree(hive_with_everything, repo, symlinks=True)
    return repo


def by_a_link(repo: Path, path: str) -> Path:
    """Replaces a file or folder of the tree by a link to a copy of it outside; returns the copy."""
    place, outside = repo / path, repo.parent / "outside"
    outside.mkdir()
    target = outside / place.name
    if place.is_dir():
        shutil.copytree(place, target)
        shutil.rmtree(place)
    else:
        place.parent.mkdir(exist_ok=True)
        target.write_bytes(place.read_bytes() if place.exists() else b"a file of mine\n")
        if place.name == "pre-commit":
            target.write_text("#!/bin/sh\n")
        place.unlink(missing_ok=True)
    place.symlink_to(target)
    return outside


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Returns what is in each file below a folder, with its inode and mode."""
    return {
        str(path.relative_to(folder)): (
            b"" if path.is_dir() else path.read_bytes(),
            path.stat().st_ino,
            path.stat().st_mode,
        )
        for path in sorted(folder.rglob("*"))
    }


def _usual(paths: Iterable[str]) -> Iterator[Any]:
    """Yields the paths, marked thorough but for the first ones of each folder and outcome."""
    seen: Counter[tuple[str, str]] = Counter()
    for path in paths:
        what = path.rpartition("/")[0], PLACES.get(path, "refused")
        seen[what] += 1
        yield path if seen[what] == 1 else pytest.param(path, marks=pytest.mark.thorough)


@pytest.mark.parametrize("path", list(_usual(CASES)))
def test_nothing_is_written_through_a_link(copied: Path, path: str) -> None:
    outside = by_a_link(copied, path)
    before = contents(outside)
    refused = everything(copied, Clock(Clock().now_ms + 60_000))
    assert contents(outside) == before
    assert {exit_code(each) for each in refused.values()} <= {UNREADABLE}
    assert bool(refused) == (PLACES.get(path, "refused") == "refused"), refused


def test_every_file_that_is_written_is_in_the_table(copied: Path) -> None:
    before = contents(copied)
    assert everything(copied, Clock(Clock().now_ms + 60_000)) == {}
    written = {path for path, what in contents(copied).items() if before.get(path) != what}
    files = {path for path in written if (copied / path).is_file()}
    known = [*PLACES, *ALSO]
    assert {path for path in files if not any(fnmatch(path, each) for each in known)} == set()
    assert len(files) > 20


def test_a_folder_is_not_taken_for_the_one_that_was_there_before(copied: Path) -> None:
    evidence = str(copied / ".beads" / "evidence")
    write_failures(evidence, "gt-1", "before")
    outside = by_a_link(copied, ".beads/evidence")
    before = contents(outside)
    with suppress(QueenError):
        write_failures(evidence, "gt-1", "after")
    assert contents(outside) == before
