"""What an index needs of `sqlite3`, without what importing that loads for dates: 2 ms."""

from __future__ import annotations

TYPE_CHECKING = False  # Not typing's: a further edit loads this module.
if TYPE_CHECKING:
    from collections.abc import Callable

try:
    import _sqlite3 as _library
except ImportError:
    import sqlite3 as _library  # type: ignore[no-redef]

SQLITE_ERROR = _library.SQLITE_ERROR
Connection = _library.Connection
DatabaseError = _library.DatabaseError
Error = _library.Error
OperationalError = _library.OperationalError
ProgrammingError = _library.ProgrammingError
connect: Callable[..., Connection] = _library.connect
