"""Speaking to the server by libpq itself: several statements in one round trip.

Importing psycopg takes twice as long as a whole command on files. A statement is prepared when it
is used the second time: most commands use it once, and a pooler may give their connection to
others. Not safe for threads. ADR 0030.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p
from functools import cache
from importlib.machinery import PathFinder
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Value = str | int | bytes | Sequence[str] | Sequence[int] | Sequence[bytes]
    Row = list[bytes | None]

_BINARY = 1
_BAD_CONNECTION = 1
_COMMAND_OK, _TUPLES_OK, _PIPELINE_SYNC, _PIPELINE_ABORTED = 1, 2, 10, 11
_SQLSTATE, _MESSAGE_PRIMARY = ord("C"), ord("M")
_BYTEA, _INT8, _TEXT = 17, 20, 25
"""The numbers of types, which are the same in every database."""


class _Option(ctypes.Structure):
    _fields_ = (
        ("keyword", c_char_p),
        ("envvar", c_char_p),
        ("compiled", c_char_p),
        ("val", c_char_p),
        ("label", c_char_p),
        ("dispchar", c_char_p),
        ("dispsize", c_int),
    )


_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "PQclear": (None, (c_void_p,)),
    "PQconnectdbParams": (c_void_p, (c_void_p, c_void_p, c_int)),
    "PQconninfoFree": (None, (c_void_p,)),
    "PQconninfoParse": (POINTER(_Option), (c_char_p, c_void_p)),
    "PQconsumeInput": (c_int, (c_void_p,)),
    "PQenterPipelineMode": (c_int, (c_void_p,)),
    "PQerrorMessage": (c_char_p, (c_void_p,)),
    "PQexitPipelineMode": (c_int, (c_void_p,)),
    "PQfinish": (None, (c_void_p,)),
    "PQflush": (c_int, (c_void_p,)),
    "PQfreemem": (None, (c_void_p,)),
    "PQgetResult": (c_void_p, (c_void_p,)),
    "PQgetisnull": (c_int, (c_void_p, c_int, c_int)),
    "PQgetlength": (c_int, (c_void_p, c_int, c_int)),
    "PQgetvalue": (c_void_p, (c_void_p, c_int, c_int)),
    "PQisBusy": (c_int, (c_void_p,)),
    "PQnfields": (c_int, (c_void_p,)),
    "PQnotifies": (c_void_p, (c_void_p,)),
    "PQntuples": (c_int, (c_void_p,)),
    "PQpipelineSync": (c_int, (c_void_p,)),
    "PQresultErrorField": (c_char_p, (c_void_p, c_int)),
    "PQresultErrorMessage": (c_char_p, (c_void_p,)),
    "PQresultStatus": (c_int, (c_void_p,)),
    "PQsendPrepare": (c_int, (c_void_p, c_char_p, c_char_p, c_int, c_void_p)),
    "PQsendQueryParams": (
        c_int,
        (c_void_p, c_char_p, c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int),
    ),
    "PQsendQueryPrepared": (
        c_int,
        (c_void_p, c_char_p, c_int, c_void_p, c_void_p, c_void_p, c_int),
    ),
    "PQsetNoticeProcessor": (c_void_p, (c_void_p, c_void_p, c_void_p)),
    "PQsetnonblocking": (c_int, (c_void_p, c_int)),
    "PQsocket": (c_int, (c_void_p,)),
    "PQstatus": (c_int, (c_void_p,)),
}
_silent = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)(lambda *_: None)
"""Without it, libpq prints the server's warnings on standard error."""


class PgError(Exception):
    """What the server said about an error, with its SQLSTATE; or libpq, which has none."""

    def __init__(self, text: str, sqlstate: str = "") -> None:
        super().__init__(text)
        self.sqlstate = sqlstate


class Statement(NamedTuple):
    """A statement, and the values of its parameters `$1`, `$2` ..."""

    query: str
    values: tuple[Value, ...] = ()


class Link:
    """An open connection. Raises `PgError`."""

    def __init__(self, conninfo: str, parameters: Mapping[str, str | int]) -> None:
        self._pointer = 0
        self._process = os.getpid()
        self._pq = _library()
        said = {**parsed(conninfo), **{name: str(value) for name, value in parameters.items()}}
        names = (c_char_p * (len(said) + 1))(*(name.encode() for name in said), None)
        values = (c_char_p * (len(said) + 1))(*(value.encode() for value in said.values()), None)
        # libpq waits for each address in turn, and Python could not interrupt it: a thread can be
        # left behind.
        connecting = Thread(target=self._connect, args=(names, values), daemon=True)
        connecting.start()
        connecting.join()
        self._used: set[str] = set()
        self._names: dict[str, bytes] = {}
        self._given = 0
        if self.closed:
            error = self._error()
            self.close()
            raise error
        self._pq.PQsetNoticeProcessor(self._pointer, _silent, None)
        self._need(self._pq.PQsetnonblocking(self._pointer, 1) == 0)

    def _connect(self, names: object, values: object) -> None:
        self._pointer = self._pq.PQconnectdbParams(names, values, 0)

    def close(self) -> None:
        """Closes the connection; a forked child leaves that to its parent."""
        pointer, self._pointer = self._pointer, 0
        if pointer and os.getpid() == self._process:
            self._pq.PQfinish(pointer)

    def __del__(self) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or lost."""
        return bool(self._pq.PQstatus(self._pointer) == _BAD_CONNECTION)

    def run(self, *statements: Statement) -> list[list[Row]]:
        """Returns the rows of each statement, with values as the server sent them in binary form,
        after one round trip. The first error ends it; no statement after it is run.
        """
        try:
            self._need(self._pq.PQenterPipelineMode(self._pointer))
            fresh: dict[str, bytes] = {}
            answers = [each for part in statements for each in self._send(part, fresh)]
            self._need(self._pq.PQpipelineSync(self._pointer))
            results, failed = self._collect(answers)
            self._need(self._pq.PQexitPipelineMode(self._pointer))
        except BaseException:
            # Lost, or interrupted: nobody could tell the next answer from this one.
            self.close()
            raise
        if failed is not None:
            raise failed
        self._used.update(each.query for each in statements)
        self._names.update(fresh)
        return results

    def was_told(self, timeout_s: float) -> bool:
        """Returns whether an announcement has arrived, or does within this time."""
        select.select([self._socket()], [], [], timeout_s)
        self._need(self._pq.PQconsumeInput(self._pointer))
        told = False
        while pointer := self._pq.PQnotifies(self._pointer):
            self._pq.PQfreemem(pointer)
            told = True
        return told

    def _send(self, statement: Statement, fresh: dict[str, bytes]) -> tuple[bool, ...]:
        """Sends a statement, and its name if it gets one; returns for each answer whether it is the
        statement's result.
        """
        query = statement.query
        arrays = _arrays([_encoded(value) for value in statement.values])
        count = len(statement.values)
        name = self._names.get(query) or fresh.get(query)
        if name is None and query not in self._used:
            text = query.encode()
            sent = self._pq.PQsendQueryParams(self._pointer, text, count, None, *arrays, _BINARY)
            self._need(sent)
            return (True,)
        answers: tuple[bool, ...] = (True,)
        if name is None:
            # A name that was sent in vain is not used again: the server may know it.
            self._given += 1
            name = fresh[query] = b"queen_%d" % self._given
            self._need(self._pq.PQsendPrepare(self._pointer, name, query.encode(), 0, None))
            answers = (False, True)
        self._need(self._pq.PQsendQueryPrepared(self._pointer, name, count, *arrays, _BINARY))
        return answers

    def _collect(self, answers: Sequence[bool]) -> tuple[list[list[Row]], PgError | None]:
        """Returns the results of statements up to the first error, and that."""
        results: list[list[Row]] = []
        failed: PgError | None = None
        pending = iter(answers)
        for result, status in self._results():
            if status in (_COMMAND_OK, _TUPLES_OK):
                if next(pending):
                    results.append(self._rows(result))
            elif status != _PIPELINE_ABORTED:
                failed = failed or self._refused(result)
                if self.closed:
                    raise failed
        return results, failed

    def _results(self) -> Iterator[tuple[int, int]]:
        """Yields the results up to the end of the pipeline, each with its status."""
        pq = self._pq
        while True:
            self._wait()
            result = pq.PQgetResult(self._pointer)
            if not result:
                continue
            try:
                status = pq.PQresultStatus(result)
                if status == _PIPELINE_SYNC:
                    return
                yield result, status
            finally:
                pq.PQclear(result)

    def _wait(self) -> None:
        """Sends what is not sent, and returns when there is a result."""
        while True:
            unsent = self._pq.PQflush(self._pointer)
            self._need(unsent >= 0)
            if not unsent and not self._pq.PQisBusy(self._pointer):
                return
            waiting = select.poll()
            waiting.register(self._socket(), select.POLLIN | (select.POLLOUT if unsent else 0))
            waiting.poll()
            self._need(self._pq.PQconsumeInput(self._pointer))

    def _rows(self, result: int) -> list[Row]:
        columns = range(self._pq.PQnfields(result))
        rows = range(self._pq.PQntuples(result))
        return [[self._value(result, row, column) for column in columns] for row in rows]

    def _value(self, result: int, row: int, column: int) -> bytes | None:
        size = self._pq.PQgetlength(result, row, column)
        if size:
            return ctypes.string_at(self._pq.PQgetvalue(result, row, column), size)
        return None if self._pq.PQgetisnull(result, row, column) else b""

    def _refused(self, result: int) -> PgError:
        state = self._pq.PQresultErrorField(result, _SQLSTATE) or b""
        said = self._pq.PQresultErrorField(result, _MESSAGE_PRIMARY)
        said = said or self._pq.PQresultErrorMessage(result) or b""
        return PgError(said.decode(errors="replace").strip(), state.decode())

    def _socket(self) -> int:
        descriptor: int = self._pq.PQsocket(self._pointer)
        self._need(descriptor >= 0)
        return descriptor

    def _need(self, good: object) -> None:
        if not good:
            raise self._error()

    def _error(self) -> PgError:
        said = self._pq.PQerrorMessage(self._pointer) if self._pointer else b""
        return PgError((said or b"the connection is closed").decode(errors="replace").strip())


def parsed(conninfo: str) -> dict[str, str]:
    """Returns what the address of a database says, by keyword. Raises `PgError`."""
    pq = _library()
    message = c_void_p()
    options = pq.PQconninfoParse(conninfo.encode(), byref(message))
    if not options:
        said = ctypes.string_at(message.value) if message.value else b"out of memory"
        pq.PQfreemem(message)
        raise PgError(said.decode(errors="replace").strip())
    found: dict[str, str] = {}
    try:
        number = 0
        while (keyword := options[number].keyword) is not None:
            if (value := options[number].val) is not None:
                found[keyword.decode()] = value.decode(errors="replace")
            number += 1
    finally:
        pq.PQconninfoFree(options)
    return found


def _encoded(value: Value) -> tuple[bytes, bool]:
    """Returns a value as the server gets it, and whether that is its binary form."""
    if isinstance(value, bytes):
        return value, True
    if isinstance(value, (str, int)):
        return str(value).encode(), False
    kind, parts = _TEXT, []
    for each in value:
        if isinstance(each, bytes):
            kind, data = _BYTEA, each
        elif isinstance(each, int):
            kind, data = _INT8, each.to_bytes(8, "big", signed=True)
        else:
            data = each.encode()
        parts += [struct.pack("!i", len(data)), data]
    return struct.pack("!iiIii", 1, 0, kind, len(value), 1) + b"".join(parts), True


def _arrays(
    values: Sequence[tuple[bytes, bool]],
) -> tuple[ctypes.Array[c_char_p], ctypes.Array[c_int], ctypes.Array[c_int]]:
    count = len(values)
    # A pointer to each value: it may hold a zero byte, and the length says where it ends.
    data = (c_char_p * count)(*(each for each, _ in values))
    lengths = (c_int * count)(*(len(each) for each, _ in values))
    return data, lengths, (c_int * count)(*(int(binary) for _, binary in values))


@cache
def _library() -> ctypes.CDLL:
    """Returns the libpq of psycopg's wheel, or the system's. Raises `ImportError`."""
    for path in (*_of_the_wheel(), "libpq.so.5", "libpq.5.dylib"):
        try:
            library = ctypes.CDLL(path)
            for name, (result, arguments) in _FUNCTIONS.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError):
            continue  # It is not there, or too old for pipelines.
        return library
    raise ImportError("there is no libpq of version 14 or later")


def _of_the_wheel() -> Iterator[str]:
    spec = PathFinder.find_spec("psycopg_binary")
    if spec is None or spec.origin is None:
        return
    package = os.path.dirname(spec.origin)
    for folder in (f"{package}.libs", os.path.join(package, ".dylibs")):
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                if name.startswith(("libpq-", "libpq.")):
                    yield os.path.join(folder, name)


_library()  # Whoever chooses this engine is told at once that it is missing.
