"""A hive in PostgreSQL that stays open and writes: what it looks at again, and when."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest

from queenbee import Hive
from queenbee.errors import Unreadable
from queenbee.store.engines.postgres.engine import PostgresEngine
from queenbee.store.engines.postgres.noted import noted_hive
from queenbee.store.index import records as index
from queenbee.store.ledger.ledger import Ledger

Open = Callable[..., Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def open_for(repo: Path, hive_name: str) -> Open:
    def opened(droid: str) -> Hive:
        return Hive.open(repo, droid=droid, env=postgres_server.environment())

    return opened


def engine_of(hive: Hive) -> PostgresEngine:
    assert isinstance(hive.engine, PostgresEngine)
    return hive.engine


def holders(hive: Hive) -> dict[str, str]:
    return {each.issue_id: each.droid for each in hive.assignments.find()}


class TestATurn:
    def test_looks_at_the_copy_of_a_kind_once(
        self, open_for: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        looks: list[str] = []
        stamp = Ledger.stamp

        def counted(ledger: Ledger) -> tuple[object, ...]:
            looks.append(ledger.journal_path)
            return stamp(ledger)

        monkeypatch.setattr(Ledger, "stamp", counted)
        ui.assignments.release("qb-1")
        assert looks
        assert len(looks) == len(set(looks))

    def test_reads_what_others_wrote_since_the_last_one(self, open_for: Open) -> None:
        _takes_turns(open_for)


def _takes_turns(open_for: Open) -> None:
    ui, api = open_for("ui"), open_for("api")
    for number in range(3):
        with ui.transaction() as tx:
            ui.assignments.stage_claim(tx, f"qb-{number}")
        api.assignments.assign(f"qb-{number}", "docs", reassign=True)
        with ui.transaction():
            assert holders(ui).get(f"qb-{number}") == "docs"


class TestTheNoteOnThisMachine:
    """It keeps a checkout of an old branch from bringing the files back to life."""

    def test_comes_back_with_the_next_write_of_an_open_hive(
        self, open_for: Open, hive_name: str
    ) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        Path(ui.layout.engine_path).unlink()
        ui.assignments.claim("qb-2")
        assert noted_hive(ui.layout) == hive_name

    def test_is_corrected_if_another_engine_wrote_it(self, open_for: Open, hive_name: str) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        Path(ui.layout.engine_path).write_text("postgres another\n")
        ui.assignments.claim("qb-2")
        assert noted_hive(ui.layout) == hive_name


def test_a_repository_that_was_moved_takes_no_more_writes(open_for: Open, repo: Path) -> None:
    ui = open_for("ui")
    ui.assignments.claim("qb-1")
    shutil.move(repo, repo.with_name("elsewhere"))
    repo.mkdir()
    with pytest.raises(Unreadable, match="moved"), ui.transaction():
        pass


class TestACopyThatIsHeldOpen:
    def test_is_not_used_once_another_process_began_it_anew(self, open_for: Open) -> None:
        _begins_anew(open_for)

    def test_is_closed_with_the_hive(self, open_for: Open) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        ui.assignments.claim("qb-2")
        held = engine_of(ui).cache("assignments")
        assert held.journal._held is not None
        ui.close()
        assert held.journal._held is None
        assert held._lock is None
        assert set(holders(ui)) == {"qb-1", "qb-2"}


def _begins_anew(open_for: Open) -> None:
    ui, api = open_for("ui"), open_for("api")
    for number in range(3):
        ui.assignments.claim(f"qb-{number}")
    engine_of(api).cache("assignments").discard()
    api.assignments.claim("qb-3")
    ui.assignments.claim("qb-4")
    assert set(holders(ui)) == set(holders(open_for("docs"))) == {f"qb-{n}" for n in range(5)}
    assert engine_of(ui).cache("assignments").is_whole()


class TestAnIndex:
    @pytest.fixture
    def busy(self, open_for: Open, monkeypatch: pytest.MonkeyPatch) -> Hive:
        """Returns a hive whose messages have an index, and which has begun to write."""
        monkeypatch.setattr("queenbee.store.engines.opening.INDEX_FROM_BYTES", 1)
        monkeypatch.setattr(index, "_FOLDED_PER_INTAKE_BYTES", 300)
        open_for("api").messages.send("ui", "the first header")
        ui = open_for("ui")
        assert isinstance(ui.state("messages"), index.Indexed)
        return ui

    def test_is_left_for_memory_by_whoever_keeps_writing(self, busy: Hive, open_for: Open) -> None:
        bodies = ["the first header"]
        state = busy.state("messages")
        for number in range(12):
            bodies.append(f"header {number}")
            busy.messages.send("ui", bodies[-1])
            read = open_for("ui")
            assert {each.body for each in busy.messages.inbox(limit=50)} == set(bodies)
            assert {each.body for each in read.messages.inbox(limit=50)} == set(bodies)
        assert isinstance(state, index.Indexed)
        assert state._folded is not None
        assert len(busy.messages.search("header")) == len(bodies)

    def test_stays_if_the_ledger_is_too_large_for_that(
        self, busy: Hive, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(index, "_MOST_FOLDED_BYTES", 100)
        for number in range(12):
            busy.messages.send("ui", f"header {number}")
            busy.messages.inbox()
        state = busy.state("messages")
        assert isinstance(state, index.Indexed)
        assert state._folded is None
