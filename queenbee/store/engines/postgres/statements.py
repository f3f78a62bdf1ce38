"""Several statements in one round trip, by libpq's pipeline mode.

psycopg's own pipelines do the same; for statements as short as ours, they cost more than the
server does. A statement is prepared when it is used the second time: most commands use it once,
and a pooler may give their connection to others.
"""

from __future__ import annotations

import select
import struct

from queenbee.store.engines.postgres.late import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Parameter(Protocol):
        """A value as the server gets it."""

        text: bytes
        is_binary: bool

    class PGresult(Protocol):
        """A result, of psycopg or of `libpq`."""

        status: int
        ntuples: int
        nfields: int

        @property
        def error_message(self) -> bytes: ...
        def error_field(self, field: int, /) -> bytes | None: ...
        def get_value(self, row: int, column: int, /) -> bytes | None: ...

    class PGconn(Protocol):
        """A connection, of psycopg or of `libpq`."""

        @property
        def status(self) -> int: ...
        @property
        def socket(self) -> int: ...
        def enter_pipeline_mode(self) -> None: ...
        def exit_pipeline_mode(self) -> None: ...
        def pipeline_sync(self) -> None: ...
        def send_query_params(
            self,
            query: bytes,
            values: Sequence[bytes | None],
            types: None,
            formats: Sequence[int],
            result_format: int,
            /,
        ) -> None: ...
        def send_prepare(self, name: bytes, query: bytes, /) -> None: ...
        def send_query_prepared(
            self,
            name: bytes,
            values: Sequence[bytes | None],
            formats: Sequence[int],
            result_format: int,
            /,
        ) -> None: ...
        def flush(self) -> int: ...
        def is_busy(self) -> int: ...
        def consume_input(self) -> None: ...
        def get_result(self) -> PGresult | None: ...
        def notifies(self) -> object | None: ...

    class Db(Protocol):
        """What holds a connection, of psycopg or of `libpq`."""

        @property
        def closed(self) -> bool: ...
        @property
        def pgconn(self) -> PGconn: ...
        def close(self) -> None: ...


_BINARY = 1
_BAD_CONNECTION = 1
_COMMAND_OK, _TUPLES_OK, _PIPELINE_SYNC, _PIPELINE_ABORTED = 1, 2, 10, 11
_SQLSTATE, _MESSAGE_PRIMARY = ord("C"), ord("M")
"""The numbers that libpq gives to what happens; psycopg's names for them would import all of it."""
_GOOD = (_COMMAND_OK, _TUPLES_OK)
_BYTEA, _INT8, _TEXT = 17, 20, 25
"""The numbers of types, which are the same in every database."""


class Value:
    """One parameter of a statement."""

    __slots__ = ("is_binary", "text")

    def __init__(self, value: str | bytes | int) -> None:
        self.is_binary = isinstance(value, bytes)
        self.text = value if isinstance(value, bytes) else str(value).encode()


class Values:
    """A parameter that is an array, in the server's binary form."""

    __slots__ = ("is_binary", "text")

    def __init__(self, values: Sequence[str] | Sequence[bytes] | Sequence[int]) -> None:
        kind, parts = _TEXT, []
        for value in values:
            if isinstance(value, bytes):
                kind, data = _BYTEA, value
            elif isinstance(value, int):
                kind, data = _INT8, value.to_bytes(8, "big", signed=True)
            else:
                data = value.encode()
            parts += [struct.pack("!i", len(data)), data]
        self.is_binary = True
        self.text = struct.pack("!iiIii", 1, 0, kind, len(values), 1) + b"".join(parts)


class Statement:
    """A statement with values for its parameters `$1`, `$2` ..."""

    __slots__ = ("query", "values")

    def __init__(self, query: str, *values: Parameter) -> None:
        self.query = query
        self.values = values


class Statements:
    """What runs statements on one connection. Raises psycopg's errors. Not safe for threads."""

    def __init__(self, db: Db) -> None:
        self._db = db
        self._used: set[str] = set()
        self._names: dict[str, bytes] = {}
        self._given = 0

    def run(self, *statements: Statement, needed: int | None = None) -> list[PGresult]:
        """Returns their results, after one round trip.

        The first error ends it; no statement after it is run. With `needed`, errors after so many
        results are not raised.
        """
        needed = len(statements) if needed is None else needed
        connection = self._db.pgconn
        results: list[PGresult] = []
        try:
            connection.enter_pipeline_mode()
            fresh: dict[str, bytes] = {}
            answers = [each for part in statements for each in self._send(part, fresh)]
            connection.pipeline_sync()
            failed = _collect(connection, answers, results)
            connection.exit_pipeline_mode()
        except BaseException as error:
            # Lost, or interrupted: nobody could tell the next answer from this one.
            self._db.close()
            if isinstance(error, psycopg.Error) and len(results) >= needed:
                return results
            raise
        if failed is None:
            self._used.update(each.query for each in statements)
            self._names.update(fresh)
        elif len(results) < needed:
            raise _error(failed)
        return results

    def _send(self, statement: Statement, fresh: dict[str, bytes]) -> tuple[bool, ...]:
        """Sends a statement, and its name if it gets one; returns for each answer whether it is the
        statement's result.
        """
        connection, query = self._db.pgconn, statement.query
        values: list[bytes | None] = [value.text for value in statement.values]
        formats = [int(value.is_binary) for value in statement.values]
        name = self._names.get(query) or fresh.get(query)
        if name is None and query not in self._used:
            connection.send_query_params(query.encode(), values, None, formats, _BINARY)
            return (True,)
        answers: tuple[bool, ...] = (True,)
        if name is None:
            # A name that was sent in vain is not used again: the server may know it.
            self._given += 1
            name = fresh[query] = b"queen_%d" % self._given
            connection.send_prepare(name, query.encode())
            answers = (False, True)
        connection.send_query_prepared(name, values, formats, _BINARY)
        return answers


def _collect(
    connection: PGconn, answers: Sequence[bool], results: list[PGresult]
) -> PGresult | None:
    """Adds the results of statements up to the first error, which it returns."""
    failed = None
    pending = iter(answers)
    _wait(connection)
    while True:
        if connection.is_busy():
            _wait(connection)
        result = connection.get_result()
        if result is None or result.status == _PIPELINE_ABORTED:
            continue
        if result.status == _PIPELINE_SYNC:
            return failed
        if result.status not in _GOOD:
            failed = failed or result
            if connection.status == _BAD_CONNECTION:
                raise _error(failed)
        elif next(pending):
            results.append(result)


def _wait(connection: PGconn) -> None:
    """Sends what is not sent, and returns when there is a result."""
    poll = None
    while True:
        unsent = connection.flush()
        if not unsent and not connection.is_busy():
            return
        if poll is None:
            poll = select.poll()
        poll.register(connection.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
        poll.poll()
        connection.consume_input()


def _error(result: PGresult) -> psycopg.Error:
    state = (result.error_field(_SQLSTATE) or b"").decode()
    said = result.error_field(_MESSAGE_PRIMARY) or result.error_message
    text = said.decode(errors="replace")
    if not state:
        return psycopg.OperationalError(text)
    try:
        return psycopg.errors.lookup(state)(text)
    except KeyError:
        return psycopg.DatabaseError(text)
