"""The engine over PostgreSQL: how often it is asked, and that no answer is used for too long."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import postgres_server
import pytest
from hives import QuickQueen

from queenbee import Hive
from queenbee.errors import Busy, Unreachable
from queenbee.store.carriers.postgres.carried_memory import CarriedMemory
from queenbee.store.carriers.postgres.connection import Connection
from queenbee.store.carriers.postgres.postgres_carrier import PostgresCarrier

Open = Callable[[str], Hive]


@pytest.fixture
def open_for(repo: Path, beads: Path, server: postgres_server.Server) -> Open:
    postgres_server.use(beads, server)
    return lambda droid: Hive.open(repo, droid=droid, env=postgres_server.environment())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The kinds of each question that is asked outside a turn."""
    questions: list[list[str]] = []
    ask = Connection.ask

    def noting(self: Connection, known: dict[str, int]) -> Any:
        questions.append(sorted(known))
        return ask(self, known)

    monkeypatch.setattr(Connection, "ask", noting)
    return questions


def taken(hive: Hive) -> list[str]:
    return sorted(each.issue_id for each in hive.assignments.find())


class TestAState:
    def test_costs_one_question_each_time(self, open_for: Open, asked: list[list[str]]) -> None:
        ui = open_for("ui")
        for _ in range(2):
            ui.state("assignments")
        assert len(asked) == 2
        assert {"assignments", "issues", "messages"} <= set(asked[0])

    def test_has_what_others_wrote_before_it_was_asked_for(self, open_for: Open) -> None:
        ui, api = open_for("ui"), open_for("api")
        for number in range(3):
            api.assignments.claim(f"qb-{number}")
            assert len(taken(ui)) == number + 1


class TestACommand:
    @pytest.mark.parametrize(
        ("arguments", "most"),
        [
            (["msg", "inbox"], 1),
            (["reserve", "check", "a.py"], 1),
            (["reserve", "list"], 1),
            (["issue", "assignments"], 1),
            (["claim", "qb-3", "--new"], 1),  # before its turn
            (["reserve", "b/**"], 1),
            (["msg", "send", "api", "hello"], 1),
        ],
    )
    def test_asks_once_for_all_kinds_of_records(
        self,
        arguments: list[str],
        most: int,
        open_for: Open,
        quick: QuickQueen,
        asked: list[list[str]],
    ) -> None:
        open_for("api").messages.send("ui", "hello")
        asked.clear()
        assert quick(*arguments, as_="ui").code == 0
        assert 1 <= len(asked) <= most


class TestAReading:
    def test_asks_once(self, open_for: Open, asked: list[list[str]]) -> None:
        ui = open_for("ui")
        ui.assignments.claim("qb-1")
        asked.clear()
        with ui.engine.reading():
            assert ui.reservations.find() == []
            assert taken(ui) == ["qb-1"]
        assert len(asked) == 1

    def test_ends_with_the_context_even_if_that_fails(self, open_for: Open) -> None:
        ui, api = open_for("ui"), open_for("api")
        with pytest.raises(ZeroDivisionError), ui.engine.reading():
            assert taken(ui) == []
            raise ZeroDivisionError
        api.assignments.claim("qb-1")
        assert taken(ui) == ["qb-1"]

    @pytest.mark.parametrize("error", [None, Busy("in use")])
    def test_has_what_a_turn_of_this_thread_wrote(
        self, open_for: Open, error: Busy | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also if the memory cannot take it in: it is recorded."""
        ui = open_for("ui")
        if error:
            monkeypatch.setattr(CarriedMemory, "_take_own", Mock(side_effect=error))
        with ui.engine.reading():
            assert taken(ui) == []
            ui.assignments.claim("qb-1")
            assert taken(ui) == ["qb-1"]

    def test_a_turn_within_it_decides_by_the_present(self, open_for: Open) -> None:
        ui, api = open_for("ui"), open_for("api")
        with ui.engine.reading():
            assert taken(ui) == []
            api.assignments.claim("qb-1")
            with ui.transaction():
                assert taken(ui) == ["qb-1"]

    def test_a_wait_within_it_sees_what_others_write(self, open_for: Open) -> None:
        ui, api = open_for("ui"), open_for("api")
        with ui.engine.reading():
            before = ui.stamp("assignments")
            api.assignments.claim("qb-1")
            assert ui.wait_for_change(
                lambda: ui.stamp("assignments"), before, time.monotonic() + 10
            )
            assert taken(ui) == ["qb-1"]

    def test_without_that_a_wait_would_see_nothing(
        self, open_for: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(CarriedMemory, "read_anew", lambda _: None)
        ui, api = open_for("ui"), open_for("api")
        with ui.engine.reading():
            before = ui.stamp("assignments")
            api.assignments.claim("qb-1")
            assert not ui.wait_for_change(
                lambda: ui.stamp("assignments"), before, time.monotonic() + 0.6
            )

    def test_a_wait_asks_a_database_that_is_away_twice_a_second(
        self, open_for: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Meanwhile, what changes on this machine ends the wait."""
        ui = open_for("ui")
        ui.assignments.find()
        asked: list[float] = []

        def away(*_: object) -> None:
            asked.append(time.monotonic())
            raise Unreachable("away")

        monkeypatch.setattr(PostgresCarrier, "after", away)
        begun = time.monotonic()

        def stamp() -> object:
            return ui.stamp("assignments"), time.monotonic() - begun > 0.7

        before = ui.engine.memory._ends["assignments"], False  # type: ignore[union-attr]
        assert ui.wait_for_change(stamp, before, begun + 30)
        assert 1 <= len(asked) <= 3


def test_a_token_is_refused_where_grants_have_none(open_for: Open, quick: QuickQueen) -> None:
    open_for("ui").reservations.reserve(["a.py"])
    ran = quick("reserve", "check", "b.py", "--token", "1", "--json")
    assert ran.code == 2
    assert "have no token" in ran.error["message"]
