"""The index of the tracker is disposable: commands answer the same whatever became of it."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from hives import Clock, Queen, QuickQueen, git, write_lines
from index_worlds import WORLDS, Happening, Off, World

from queenbee import Hive
from queenbee.core.ids import ulid
from queenbee.errors import Unreadable
from queenbee.services import issues as issues_module
from queenbee.services import store as store_module

pytestmark = pytest.mark.slow

PROGRAM = """
status
ready
ready --limit 3
next
show qb-4
complete qb-0 --reason done
status
issues
issues --all
issues --status closed
issue new Search --id qb-new --depends-on qb-5
next
ready
claim qb-9
claim qb-new
release qb-9
issue edit qb-7 --priority 0
issue close qb-8
show qb-8
show qb-gone
issue reopen qb-8
reserve src/app.py --as reviewer
next
status
complete qb-5 --next
wait qb-5 --timeout 0s
wait --ready --timeout 0s
prime
ready
"""


def run_program(repo: Path, monkeypatch: pytest.MonkeyPatch, world: World) -> list[object]:
    """Returns what each command answers in such a hive."""
    shutil.rmtree(repo, ignore_errors=True)
    (repo / "src").mkdir(parents=True)
    (repo / ".beads").mkdir()
    (repo / "src" / "app.py").write_text("text\n")
    git(repo, "init", "-q", "-b", "main")
    monkeypatch.setattr(issues_module, "INDEX_FROM_BYTES", 0)
    monkeypatch.setattr(Happening, "others", ("issues",))
    monkeypatch.setenv("QUEEN_DURABILITY", "buffered")
    clock, minted = Clock(), iter(range(10**6))
    monkeypatch.setattr(time, "time_ns", lambda: clock.now_ms * 1_000_000)
    monkeypatch.setattr(
        store_module, "ulid", lambda now_ms, _random: ulid(now_ms, next(minted).to_bytes(10))
    )
    happening = world(repo, monkeypatch)
    happening.begin()
    rows = [
        {
            "id": f"qb-{n}",
            "title": f"Change {'src/app.py' if n % 3 else 'all'}",
            "status": "open" if n % 4 else "closed" if n else "open",
            "priority": n % 3,
            "dependencies": [f"qb-{n - 1}"] if n % 5 == 2 else [],
        }
        for n in range(30)
    ]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    quick = QuickQueen(repo)
    quick("status", as_="tester")
    happening.half_way()
    told: list[object] = []
    for line in PROGRAM.strip().splitlines():
        happening.before_command()
        with happening.during_command():
            ran = quick(*line.split(), "--json", as_="tester")
        told.append((line, ran.code, ran.out, ran.err))
        clock.advance(30)
    told.append((repo / ".beads" / "issues.jsonl").read_bytes())
    return told


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hive") / "repo"


@pytest.fixture(scope="module")
def truth(place: Path) -> list[object]:
    """What the commands answer where there is no index."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        return run_program(place, monkeypatch, Off)


@pytest.mark.parametrize("name", WORLDS)
def test_commands_answer_alike(
    truth: list[object], place: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    told = run_program(place, monkeypatch, WORLDS[name])
    for one, other in zip(told, truth, strict=True):
        assert one == other


@pytest.fixture
def tracked(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tracker that is large enough for an index."""
    monkeypatch.setattr(issues_module, "INDEX_FROM_BYTES", 0)
    path = repo / ".beads" / "issues.jsonl"
    write_lines(path, *({"id": f"qb-{n}", "status": "open", "title": "x"} for n in range(5)))
    return path


def index_of(repo: Path) -> Path:
    return repo / ".git" / "queenbee" / "index" / "issues.sqlite3"


def test_a_small_tracker_has_no_index(repo: Path, quick: QuickQueen) -> None:
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "status": "open"})
    assert quick("ready", as_="tester").code == 0
    assert not index_of(repo).exists()


def test_a_large_one_has_one(tracked: Path, repo: Path, quick: QuickQueen) -> None:
    assert quick("ready", as_="tester").code == 0
    assert index_of(repo).exists()


@pytest.mark.parametrize("line", [b"<<<<<<< ours\n", b'{"id": "qb-9", "title"\n', b'["a"]\n'])
def test_a_damaged_tracker_is_read_itself(
    tracked: Path, hive: Hive, reviewer: Hive, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And each next process knows that without trying again."""
    assert len(hive.issues.ready()) == 5
    with tracked.open("ab") as file:
        file.write(line)
    assert len(hive.issues.ready()) == 5
    assert hive.issues.unusable == 1

    def never(*_: object) -> None:
        raise AssertionError("it was read for an index again")

    monkeypatch.setattr("queenbee.services.tracker.upkeep.Upkeep.do", never)
    assert len(reviewer.issues.ready()) == 5
    assert reviewer.issues.unusable == 1


def test_an_index_is_used_again_once_the_damage_is_gone(tracked: Path, hive: Hive) -> None:
    whole = tracked.read_bytes()
    tracked.write_bytes(whole + b"damage\n")
    assert hive.issues.unusable == 0
    hive.issues.ready()
    assert hive.issues.unusable == 1
    tracked.write_bytes(whole)
    assert hive.issues.ask_index(lambda view: view.counts()["ready"]) == 5
    assert hive.issues.unusable == 0


def test_a_link_in_its_place_is_not_followed(
    tracked: Path, hive: Hive, repo: Path, tmp_path: Path
) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious")
    index_of(repo).parent.mkdir(parents=True, exist_ok=True)
    index_of(repo).symlink_to(target)
    with pytest.raises(Unreadable, match="symbolic link"):
        hive.issues.ready()
    assert target.read_bytes() == b"precious"


def test_a_state_that_cannot_be_written_is_read_all_the_same(
    queen: Queen, repo: Path, tmp_path: Path
) -> None:
    rows = ({"id": f"qb-{n}", "status": "open", "title": "x" * 1000} for n in range(400))
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    truth = queen("status", as_="b", unprivileged=True, env={"QUEEN_INDEX": "off"}).out
    assert queen("status", as_="b").out == truth
    assert index_of(repo).exists()
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-new", "status": "open"})
    truth = queen("status", as_="b", unprivileged=True, env={"QUEEN_INDEX": "off"}).out
    places = [index_of(repo).parent, *index_of(repo).parent.iterdir()]
    try:
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert queen("status", as_="b", unprivileged=True).out == truth
    finally:
        for path in places:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_fork_does_not_use_the_index_of_its_parent(tracked: Path, hive: Hive) -> None:
    assert len(hive.issues.ready()) == 5
    child = os.fork()
    if not child:
        right = len(hive.issues.ready()) == 5
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert hive.issues.ask_index(lambda view: view.counts()["ready"]) == 5
