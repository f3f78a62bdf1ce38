"""Permits: a further edit passes at once, if and only if the full way would let it pass."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from acting import remember_name
from agent_inputs import NAME, OTHER_SESSION, SESSION, edit_of, recorded
from entry_points import run_hook
from extent import examples
from hives import commit_file, git, snapshot, write_lines
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stamps import format_ms

from queenbee import Hive
from queenbee.errors import QueenError
from queenbee.hook import editing, events, permits, permitting

pytestmark = pytest.mark.linux

ENV = {"QUEEN_DURABILITY": "buffered"}
FAR = format_ms(4_000_000_000_000)


class Clock:
    """The system's clock, which can be put forward and back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real, self.ahead_s = time.time_ns, 0
        monkeypatch.setattr(time, "time_ns", lambda: real() + self.ahead_s * 1_000_000_000)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Files that were written just now count as settled."""
    monkeypatch.setattr(permitting, "_TICK_NS", 0)
    return Clock(monkeypatch)


def edit(tree: Path, path: str = "src/app.py", **changes: object) -> bytes:
    return edit_of(tree / path, tree, **changes)


def ask(tree: Path, data: bytes, **env: str) -> Any:
    return run_hook(data, {**ENV, **env}, str(tree))


def passes(tree: Path, data: bytes, **env: str) -> bool:
    """Returns whether an edit passes without asking the hive."""
    event = events.read_event(data, str(tree))
    sight = permits.look(event, {**ENV, **env})
    return sight is not None and permits.stands(sight, event)


def permitted(tree: Path, data: bytes, **env: str) -> None:
    """Edits until that is permitted: the process above must be met twice."""
    for _ in range(5):
        assert ask(tree, data, **env) is None
    assert passes(tree, data, **env)


def hive(tree: Path, droid: str | None = "reviewer") -> Hive:
    return Hive.open(tree, droid=droid, env=ENV)


def hold(tree: Path, pattern: str, **more: Any) -> None:
    hive(tree).reservations.reserve([str(tree / pattern)], **more)


def foreign(tree: Path, pattern: str, **more: object) -> None:
    """Adds a lease to the ledger, as a pull does."""
    fields = {"id": f"qr-{os.urandom(8).hex()}", "droid": "elsewhere", "pattern": pattern}
    row = {**fields, "expires_at": FAR, "exclusive": True, "rev": 1, **more}
    write_lines(tree / ".beads/queen_reservations.jsonl", row)


# What passes at once


def test_a_further_edit_passes_without_asking_the_hive(
    tree: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    permitted(tree, edit(tree))
    monkeypatch.setattr("queenbee.hook.editing.answer", None)
    assert ask(tree, edit(tree)) is None


def test_edits_of_several_files_in_turn_all_pass(tree: Path, clock: Clock) -> None:
    for path in ("src/app.py", "src/new.py", "README.md"):
        permitted(tree, edit(tree, path))
    assert passes(tree, edit(tree, "src/app.py"))


def test_leases_on_other_files_do_not_end_it(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    hold(tree, "src/other.py")
    assert ask(tree, edit(tree, "src/more.py", session_id=OTHER_SESSION)) is None
    assert passes(tree, edit(tree))


def test_what_the_full_way_notes_of_a_session_is_noted(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    clock.ahead_s = 60
    assert passes(tree, edit(tree))
    state = Path(Hive.open(tree, env={}).layout.state_dir)
    for path in (state / "droids" / NAME, *(state / "sessions").rglob(SESSION)):
        assert abs(path.stat().st_mtime - time.time_ns() / 1e9) < 30


def test_in_a_worktree_it_passes_while_others_work_was_just_looked_at(
    tree: Path, clock: Clock
) -> None:
    commit_file(tree, "app.py")
    linked = tree.parent / "linked"
    git(tree, "worktree", "add", "-q", str(linked))
    permitted(linked, edit(linked, "app.py"))
    clock.ahead_s = 61
    assert not passes(linked, edit(linked, "app.py"))


def test_where_nothing_is_reserved_a_free_file_passes(tree: Path, clock: Clock) -> None:
    (tree / ".beads/queen.toml").write_text('[hook]\nreserve = "off"\n')
    hive(tree).reservations.reserve([str(tree / "docs/**")])  # So there is a memory.
    permitted(tree, edit(tree))
    hold(tree, "src/app.py")
    assert not passes(tree, edit(tree))


def test_a_session_with_a_name_from_its_user_passes_too(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree), QUEEN_DROID="ui")
    assert not passes(tree, edit(tree), QUEEN_DROID="reviewer")


# What ends it


def test_a_lease_that_may_cover_the_file_ends_it(tree: Path, clock: Clock) -> None:
    for pattern in ("docs/**", "src/[b]*", "SRC/APP.py"):
        permitted(tree, edit(tree))
        hold(tree, pattern)
        assert not passes(tree, edit(tree)), pattern


def test_a_lease_that_came_by_git_ends_it(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    foreign(tree, "src/other.py")
    assert not passes(tree, edit(tree))


@pytest.mark.parametrize("how", ["taken away", "deleted"])
def test_a_lease_that_counts_again_ends_it(tree: Path, clock: Clock, how: str) -> None:
    """It had lost to an older one on another file, which git takes away or which was deleted."""
    permitted(tree, edit(tree))
    ledger = tree / ".beads/queen_reservations.jsonl"
    foreign(tree, "src/**", id="qr-2", created_at="2024-02-01T00:00:00.000Z")
    before = ledger.read_bytes()
    older = {"id": "qr-1", "droid": "older", "created_at": "2024-01-01T00:00:00.000Z"}
    foreign(tree, "src/other.py", **older)
    permitted(tree, edit(tree))
    if how == "taken away":
        ledger.write_bytes(before)
    else:
        foreign(tree, "src/other.py", **older, deleted=True, rev=2)
    assert any(each.pattern == "src/**" for each in hive(tree).reservations.find())
    assert not passes(tree, edit(tree))


def test_it_ends_in_time_to_renew_the_lease_and_does_not_count_before_it_was_given(
    tree: Path, clock: Clock
) -> None:
    permitted(tree, edit(tree))
    for clock.ahead_s in (8 * 60, 20 * 60, -60):
        assert not passes(tree, edit(tree)), clock.ahead_s


def test_another_name_another_session_or_a_subagent_is_asked(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    assert not passes(tree, edit(tree, session_id=OTHER_SESSION))
    assert not passes(tree, edit(tree, agent_id="a1"))
    assert not passes(tree, edit(tree), QUEEN_DROID="reviewer")
    assert not passes(tree, edit(tree, agent="codex"))
    remember_name(tree, "ui")
    assert not passes(tree, edit(tree))


def test_other_settings_end_it(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    (tree / ".beads/queen.toml").write_text('[hook]\nreserve = "exclusive"\n')
    assert not passes(tree, edit(tree))


@pytest.mark.parametrize("inner", ["src/.beads", "src/.git"])
def test_another_hive_or_repository_between_ends_it(tree: Path, clock: Clock, inner: str) -> None:
    permitted(tree, edit(tree))
    (tree / inner).mkdir()
    assert not passes(tree, edit(tree))


def test_a_link_in_place_of_the_file_ends_it(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    (tree / "src/app.py").unlink()
    (tree / "src/app.py").symlink_to("other.py")
    assert not passes(tree, edit(tree))


def test_the_end_of_the_agent_or_of_the_session_ends_it(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    ask(tree, recorded("claude/session-end", tree))
    assert not passes(tree, edit(tree))


def test_an_agent_that_has_ended_is_asked_again(
    tree: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    permitted(tree, edit(tree))
    monkeypatch.setattr(permits, "is_running", lambda process: False)
    assert not passes(tree, edit(tree))


def test_at_first_it_is_only_written_what_is_to_be_looked_at(tree: Path, clock: Clock) -> None:
    folder = tree / ".git" / permits.FOLDER
    while not folder.exists():
        assert ask(tree, edit(tree)) is None
    assert [json.loads(path.read_text())["files"] for path in folder.iterdir()] == [{}]


def test_what_was_written_while_it_was_decided_ends_it(tree: Path, clock: Clock) -> None:
    """A permit says how things were before the decision, not after it."""
    permitted(tree, edit(tree))
    event = events.read_event(edit(tree, "src/new.py"), str(tree))
    sight = permits.look(event, ENV)
    hold(tree, "src/n*.py")
    assert editing.answer(event, ENV, sight) is not None
    (tree / ".beads/queen.toml").write_text('[hook]\nreserve = "off"\n')
    assert not passes(tree, edit(tree))


def test_a_permit_that_cannot_be_read_is_none(tree: Path, clock: Clock) -> None:
    permitted(tree, edit(tree))
    [path] = (tree / ".git" / permits.FOLDER).iterdir()
    for content in (b"", b"[]", b"{", b'{"places": 1, "rests_on": 2}', b"\xff"):
        path.write_bytes(content)
        assert not passes(tree, edit(tree))
        assert ask(tree, edit(tree)) is None
    permitted(tree, edit(tree))


def test_a_file_name_that_is_a_pattern_is_never_permitted(tree: Path, clock: Clock) -> None:
    for name in ("src/[id].py", "src/é.py", "src/a b.py"):
        for _ in range(5):
            assert ask(tree, edit(tree, name)) is None
        assert not passes(tree, edit(tree, name))


# The law

PATHS = ("src/app.py", "src/b.py", "docs/x")
PATTERNS = ("src/**", "src/app.py", "**", "*.md", "src/{app,b}.py", "docs/*", "SRC/b.py", "lib/z")
STEPS = st.one_of(
    st.tuples(
        st.just("edit"), st.sampled_from([(path,) for path in PATHS] + [PATHS[:2]]),
        st.sampled_from((SESSION, OTHER_SESSION)),
    ),
    st.tuples(st.just("reserve"), st.sampled_from(PATTERNS), st.booleans()),
    st.tuples(st.just("release"), st.sampled_from(("reviewer", NAME))),
    st.tuples(st.just("pull"), st.sampled_from(PATTERNS), st.sampled_from(("2024", "2099"))),
    st.tuples(st.just("checkout")),
    st.tuples(st.just("time"), st.sampled_from((-3600, -60, 40, 500, 1000))),
    st.tuples(st.just("settings"), st.sampled_from(("auto", "exclusive", "shared", "off", "odd"))),
    st.tuples(st.just("name"), st.sampled_from(("ui", NAME))),
    st.tuples(st.just("link"), st.booleans()),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(STEPS, max_size=14))
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_passes_at_once_is_let_pass_by_the_full_way_which_then_writes_nothing(
    tmp_path: Path, repo: Path, clock: Clock, steps: list[tuple[Any, ...]]
) -> None:
    tree = tmp_path / "example"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(repo, tree)
    (tree / "src").mkdir()
    clock.ahead_s = 0
    for data in [edit(tree, PATHS[0])] * 3 + [edit(tree, PATHS[1])] * 2:
        ask(tree, data)
    for step in [*steps, ("edit", PATHS[:1], SESSION), ("edit", PATHS[:2], SESSION)]:
        _take(step, tree, clock)


def _take(step: tuple[Any, ...], tree: Path, clock: Clock) -> None:
    ledger = tree / ".beads/queen_reservations.jsonl"
    match step:
        case ("edit", paths, session):
            _compare(tree, patch_of(paths, tree, session))
        case ("reserve", pattern, exclusive):
            with suppress(QueenError):
                hold(tree, pattern, exclusive=exclusive)
        case ("release", droid):
            with suppress(QueenError):
                hive(tree, droid).reservations.release(everything=True)
        case ("pull", pattern, year):
            foreign(tree, pattern, created_at=f"{year}-01-01T00:00:00.000Z")
        case ("checkout",):
            ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-1]))
        case ("time", seconds):
            clock.ahead_s += seconds
        case ("settings", "odd"):
            (tree / ".beads/queen.toml").write_text("[")
        case ("settings", reserve):
            (tree / ".beads/queen.toml").write_text(f'[hook]\nreserve = "{reserve}"\n')
        case ("name", name):
            remember_name(tree, name)
        case ("link", True):
            (tree / PATHS[0]).unlink(missing_ok=True)
            (tree / PATHS[0]).symlink_to("b.py")
        case ("link", False):
            (tree / PATHS[0]).unlink(missing_ok=True)


def patch_of(paths: tuple[str, ...], tree: Path, session: str) -> bytes:
    """Returns the event before an edit of these files, together."""
    edits = [{"file_path": str(tree / path)} for path in paths]
    fields = json.loads(edit(tree, paths[0], session_id=session))
    return json.dumps({**fields, "tool_name": "MultiEdit", "tool_input": {"edits": edits}}).encode()


def _compare(tree: Path, data: bytes) -> None:
    quick = passes(tree, data)
    if quick:
        before = snapshot(tree / ".beads", tree / ".git")
        answer = _full(tree, data)
        assert answer is None
        assert snapshot(tree / ".beads", tree / ".git") == before
    ask(tree, data)


def _full(tree: Path, data: bytes) -> Any:
    """Returns the answer of the full way."""
    return editing.answer(events.read_event(data, str(tree)), ENV)
