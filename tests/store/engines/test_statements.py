"""Several statements in one round trip: what comes back, and what an error leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from queenbee.store.engines.postgres import libpq
from queenbee.store.engines.postgres.statements import Statement, Statements, Value, Values

if TYPE_CHECKING:
    from queenbee.store.engines.postgres.statements import Db


@pytest.fixture(params=["psycopg", "libpq"])
def db(request: pytest.FixtureRequest, server: Any) -> Iterator[Db]:
    """A connection of each sort: commands use libpq itself, a process with psycopg uses that."""
    if request.param == "psycopg":
        opened: Any = psycopg.connect(server.url, autocommit=True)
    else:
        opened = libpq.connect(server.url, {"application_name": "queen test"})
    assert opened is not None
    yield opened
    opened.close()


@pytest.fixture
def statements(db: Db) -> Statements:
    return Statements(db)


def prepared(db: Db) -> int:
    query = "SELECT count(*) FROM pg_prepared_statements WHERE statement !~ 'pg_prepared'"
    return number(db, query)


def number(db: Db, query: str) -> int:
    (result,) = Statements(db).run(Statement(query))
    return int.from_bytes(result.get_value(0, 0) or b"", "big")


ECHO = "SELECT $1::bytea"
DIVIDED = "SELECT 1 / $1::bigint"


def test_each_statement_has_its_result(statements: Statements) -> None:
    for _ in range(3):  # Once as it is, once prepared, once by its name.
        one, two = statements.run(Statement(ECHO, Value(b"a\0")), Statement(ECHO, Value(b"b")))
        assert (one.get_value(0, 0), two.get_value(0, 0)) == (b"a\0", b"b")


def test_a_statement_is_prepared_when_it_is_used_again(statements: Statements, db: Db) -> None:
    """A pooler may give the connection of a command with one question to another one."""
    for names in (0, 1, 1):
        statements.run(Statement(ECHO, Value(b"a")))
        assert prepared(db) == names


def test_arrays_arrive_as_they_are(statements: Statements) -> None:
    query = "SELECT $1::text[] = ARRAY['ä', ''], $2::bigint[] = ARRAY[-1, 9]::bigint[], $3::bytea[]"
    (result,) = statements.run(
        Statement(query, Values(["ä", ""]), Values([-1, 9]), Values([b"\0\xff"]))
    )
    assert result.get_value(0, 0) == result.get_value(0, 1) == b"\1"
    assert (result.get_value(0, 2) or b"").endswith(b"\0\0\0\2\0\xff")


def test_more_than_a_socket_holds(statements: Statements) -> None:
    """Both sides write at once: whoever only sent would wait for ever."""
    data = b"x" * 3_000_000
    for result in statements.run(*[Statement(ECHO, Value(data))] * 4):
        assert result.get_value(0, 0) == data


def test_after_an_error_nothing_else_is_run(statements: Statements, db: Db) -> None:
    statements.run(Statement("CREATE TEMPORARY TABLE made (number bigint)"))
    insert = Statement("INSERT INTO made VALUES ($1::bigint)", Value(1))
    with pytest.raises(psycopg.errors.DivisionByZero, match=r"^division by zero$"):
        statements.run(Statement(DIVIDED, Value(0)), insert)
    assert number(db, "SELECT count(*) FROM made") == 0


def test_an_error_leaves_the_connection_usable(statements: Statements) -> None:
    for number in (0, 1, 0, 1, 0, 1):
        both = Statement(ECHO, Value(b"a")), Statement(DIVIDED, Value(number))
        if number:
            assert len(statements.run(*both)) == 2
        else:
            with pytest.raises(psycopg.errors.DivisionByZero):
                statements.run(*both)


def test_errors_after_what_is_needed_are_not_raised(statements: Statements, db: Db) -> None:
    steps = Statement(ECHO, Value(b"a")), Statement(DIVIDED, Value(0))
    assert len(statements.run(*steps, needed=1)) == 1
    killing = Statement("SELECT pg_terminate_backend(pg_backend_pid())")
    assert len(statements.run(steps[0], killing, needed=1)) == 1
    assert db.closed


def test_a_lost_connection_is_an_error_without_a_state_or_says_that_it_was_ended(
    statements: Statements, db: Db
) -> None:
    killing = Statement("SELECT pg_terminate_backend(pg_backend_pid())")
    with pytest.raises(psycopg.OperationalError) as caught:
        statements.run(killing, Statement(ECHO, Value(b"a")))
    assert caught.value.sqlstate in (None, "57P01")
    with pytest.raises(psycopg.OperationalError):
        statements.run(Statement(ECHO, Value(b"a")))


def test_an_interrupted_question_closes_the_connection(
    statements: Statements, db: Db, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer would be taken for that of the next question."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("queenbee.store.engines.postgres.statements._wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        statements.run(Statement(ECHO, Value(b"a")))
    assert db.closed
