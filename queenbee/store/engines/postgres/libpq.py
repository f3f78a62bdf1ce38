"""A connection through libpq itself, without psycopg's Python: a command lives for 50 ms.

`connect` uses the libpq that comes with psycopg's wheel. It is a short cut: where it does not find
that, or does not get a connection within a second, it returns None, and psycopg connects, with all
its ways and its errors. What it returns has the part of psycopg's interface that
`store.engines.postgres` uses. Not safe for threads.
"""

from __future__ import annotations

import ctypes
import os
import select
import time
from ctypes import c_char_p, c_int, c_void_p
from importlib.machinery import PathFinder

from queenbee.store.engines.postgres.late import psycopg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_S = 1.0
_READING, _WRITING, _CONNECTED = 1, 2, 3
_BAD = 1
_FUNCTIONS: dict[str, tuple[object, tuple[object, ...]]] = {
    "PQclear": (None, (c_void_p,)),
    "PQconnectPoll": (c_int, (c_void_p,)),
    "PQconnectStartParams": (c_void_p, (c_void_p, c_void_p, c_int)),
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


class Answered:
    """One result, as psycopg's `PGresult`."""

    def __init__(self, library: ctypes.CDLL, pointer: int) -> None:
        self._library = library
        self._pointer = pointer
        self.status: int = library.PQresultStatus(pointer)
        self.ntuples: int = library.PQntuples(pointer)
        self.nfields: int = library.PQnfields(pointer)

    def __del__(self) -> None:
        self._library.PQclear(self._pointer)

    @property
    def error_message(self) -> bytes:
        """What libpq says about an error."""
        return self._library.PQresultErrorMessage(self._pointer) or b""

    def error_field(self, field: int) -> bytes | None:
        """Returns one field of what the server said about an error."""
        found: bytes | None = self._library.PQresultErrorField(self._pointer, field)
        return found

    def get_value(self, row: int, column: int) -> bytes | None:
        """Returns a value as the server sent it, or None for null."""
        at = (self._pointer, row, column)
        if self._library.PQgetisnull(*at):
            return None
        return ctypes.string_at(self._library.PQgetvalue(*at), self._library.PQgetlength(*at))


class Link:
    """A connection: both psycopg's `Connection` and its `pgconn`, as far as we use them."""

    def __init__(self, library: ctypes.CDLL, pointer: int) -> None:
        self._library = library
        self._pointer = pointer
        self._process = os.getpid()

    @property
    def pgconn(self) -> Link:
        """This connection."""
        return self

    def close(self) -> None:
        """Closes the connection; a forked child leaves that to its parent."""
        pointer, self._pointer = self._pointer, 0
        if pointer and os.getpid() == self._process:
            self._library.PQfinish(pointer)

    def __del__(self) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed, or lost."""
        return self.status == _BAD

    @property
    def status(self) -> int:
        """0 if it is open, 1 if not; as libpq has it."""
        status: int = self._library.PQstatus(self._pointer)
        return status

    @property
    def socket(self) -> int:
        """The file descriptor to wait for."""
        descriptor: int = self._library.PQsocket(self._pointer)
        if descriptor < 0:
            raise self._error()
        return descriptor

    def poll(self) -> int:
        """Goes on connecting; returns what to wait for, or whether it is connected."""
        state: int = self._library.PQconnectPoll(self._pointer)
        return state

    def unblock(self) -> None:
        """Lets `flush` return before all is sent."""
        self._library.PQsetNoticeProcessor(self._pointer, _silent, None)
        self._need(self._library.PQsetnonblocking(self._pointer, 1) == 0)

    def enter_pipeline_mode(self) -> None:
        """Begins sending several statements at once."""
        self._need(self._library.PQenterPipelineMode(self._pointer))

    def exit_pipeline_mode(self) -> None:
        """Ends that, after all results were read."""
        self._need(self._library.PQexitPipelineMode(self._pointer))

    def pipeline_sync(self) -> None:
        """Marks the end of statements that belong together."""
        self._need(self._library.PQpipelineSync(self._pointer))

    def send_query_params(
        self,
        query: bytes,
        values: Sequence[bytes | None],
        _types: None,
        formats: Sequence[int],
        result_format: int,
    ) -> None:
        """Sends a statement with its values."""
        sent = self._library.PQsendQueryParams(
            self._pointer, query, len(values), None, *_arrays(values, formats), result_format
        )
        self._need(sent)

    def send_prepare(self, name: bytes, query: bytes) -> None:
        """Sends a statement that gets a name."""
        self._need(self._library.PQsendPrepare(self._pointer, name, query, 0, None))

    def send_query_prepared(
        self,
        name: bytes,
        values: Sequence[bytes | None],
        formats: Sequence[int],
        result_format: int,
    ) -> None:
        """Sends the values for a statement that has a name."""
        sent = self._library.PQsendQueryPrepared(
            self._pointer, name, len(values), *_arrays(values, formats), result_format
        )
        self._need(sent)

    def flush(self) -> int:
        """Sends what can be sent at once; returns 1 if something is left."""
        left: int = self._library.PQflush(self._pointer)
        self._need(left >= 0)
        return left

    def consume_input(self) -> None:
        """Reads what the server sent."""
        self._need(self._library.PQconsumeInput(self._pointer))

    def is_busy(self) -> int:
        """Returns whether `get_result` would wait."""
        busy: int = self._library.PQisBusy(self._pointer)
        return busy

    def get_result(self) -> Answered | None:
        """Returns the next result, or None after the last one of a statement."""
        pointer = self._library.PQgetResult(self._pointer)
        return Answered(self._library, pointer) if pointer else None

    def notifies(self) -> bool | None:
        """Returns True for an announcement that has arrived, each once; None for no other."""
        pointer = self._library.PQnotifies(self._pointer)
        if not pointer:
            return None
        self._library.PQfreemem(pointer)
        return True

    def _need(self, good: object) -> None:
        if not good:
            raise self._error()

    def _error(self) -> Exception:
        said = self._library.PQerrorMessage(self._pointer) or b"the connection is closed"
        return psycopg.OperationalError(said.decode(errors="replace").strip())


def connect(conninfo: str, parameters: Mapping[str, str | int]) -> Link | None:
    """Returns a connection, or None if there is none within a second."""
    if "=" not in conninfo and "://" not in conninfo:
        return None
    library = _library()
    if library is None:
        return None
    # What follows `dbname` takes the place of what it says.
    said = {"dbname": conninfo, **parameters}
    names = (c_char_p * (len(said) + 1))(*(name.encode() for name in said), None)
    values = (c_char_p * (len(said) + 1))(*(str(each).encode() for each in said.values()), None)
    pointer = library.PQconnectStartParams(names, values, 1)
    if not pointer:
        return None
    link = Link(library, pointer)
    try:
        if _is_connected(link):
            link.unblock()
            return link
    except BaseException:
        link.close()
        raise
    link.close()
    return None


def _is_connected(link: Link) -> bool:
    end_s = time.monotonic() + PATIENCE_S
    state = _WRITING
    if link.closed:
        return False
    while (left_s := end_s - time.monotonic()) > 0:
        waiting = select.poll()
        waiting.register(link.socket, select.POLLOUT if state == _WRITING else select.POLLIN)
        if not waiting.poll(left_s * 1000):
            return False
        state = link.poll()
        if state not in (_READING, _WRITING):
            return state == _CONNECTED
    return False


def _arrays(
    values: Sequence[bytes | None], formats: Sequence[int]
) -> tuple[ctypes.Array[c_char_p], ctypes.Array[c_int], ctypes.Array[c_int]]:
    count = len(values)
    lengths = (c_int * count)(*(len(value or b"") for value in values))
    # A pointer to each value: it may hold a zero byte, and the length says where it ends.
    return (c_char_p * count)(*values), lengths, (c_int * count)(*formats)


def _library() -> ctypes.CDLL | None:
    """Returns the libpq of psycopg's wheel."""
    if "PSYCOPG_IMPL" in os.environ:
        return None
    spec = PathFinder.find_spec("psycopg_binary")
    if spec is None or spec.origin is None:
        return None
    package = os.path.dirname(spec.origin)
    try:
        for folder in (f"{package}.libs", os.path.join(package, ".dylibs")):
            if not os.path.isdir(folder):
                continue
            for name in os.listdir(folder):
                if name.startswith(("libpq-", "libpq.")):
                    return _declared(ctypes.CDLL(os.path.join(folder, name)))
    except (OSError, AttributeError):
        pass  # It cannot be loaded, or lacks pipelines: psycopg says why.
    return None


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
