"""A hive in PostgreSQL that stays open and writes: what it looks at again, and when."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import postgres_server
import pytest

from queenbee import Hive
from queenbee.errors import Unreadable
from queenbee.store.layout import noted_hive

Open = Callable[..., Hive]


@pytest.fixture
def hive_name(server: postgres_server.Server, beads: Path) -> str:
    return postgres_server.use(beads, server)


@pytest.fixture
def open_for(repo: Path, hive_name: str) -> Open:
    def opened(droid: str) -> Hive:
        return Hive.open(repo, droid=droid, env=postgres_server.environment())

    return opened


def holders(hive: Hive) -> dict[str, str]:
    return {each.issue_id: each.droid for each in hive.assignments.find()}


class TestATurn:
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
