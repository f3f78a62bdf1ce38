"""Append-only files: safe to open, read from a mark, appended to or rolled back."""

from __future__ import annotations

import errno
import os
import time
import zlib
from contextlib import contextmanager, suppress

from queenbee.errors import DurabilityUnknown, Unreadable, Unwritable
from queenbee.store import safe_open
from queenbee.store.whole_files import write_document, write_while

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

Stamp = tuple[int, ...]
"""A file's inode, size in bytes and time of its last change in ns; empty without a file."""

TAIL_BYTES = 4096
"""How many bytes before a mark are compared before reading on. File systems reuse the inode of a
file that git replaced, and lines have similar lengths: a ledger may get other lines before the same
last one, at the same size. Comparing a page costs 1 µs."""
_RECENT_NS, _WHOLE_SECONDS_NS = 20_000_000, 2_000_000_000
"""A file that changed less than this before it was read may change again without another time: the
second, where a file system notes whole seconds."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.1
"""Between two looks at what is waited for. Ten in a second take 1.4 ms of processor time."""


def checksum(data: bytes) -> int:
    """Returns a 64-bit checksum of a file's tail; 0 for empty data."""
    return zlib.adler32(data, 0) << 32 | zlib.crc32(data)


class Mark:  # noqa: PLW1641 - a place that moves
    """A position in a file, with a checksum that shows a later reader if the file was rewritten."""

    __slots__ = ("inode", "offset", "sum")

    def __init__(self, inode: int, offset: int, tail_sum: int) -> None:
        self.inode: int = inode
        self.offset: int = offset
        self.sum: int = tail_sum
        """Of the last `TAIL_BYTES` before the offset, or fewer."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mark) and (self.inode, self.offset, self.sum) == (
            other.inode,
            other.offset,
            other.sum,
        )


START = Mark(0, 0, 0)


class Chunk:
    """The content of a file after a mark: whole lines, and the rest without a newline."""

    __slots__ = ("end", "lines", "rest", "restarted")

    def __init__(self, lines: bytes, rest: bytes, end: Mark, restarted: bool) -> None:
        self.lines: bytes = lines
        self.rest: bytes = rest
        self.end: Mark = end
        self.restarted: bool = restarted


def read_after(
    path: str, mark: Mark, *, stop: int | None = None, limit: int | None = None
) -> Chunk:
    """Returns what was appended after `mark`, or the whole file if it was rewritten since.

    A missing file counts as empty. `stop` is the offset to stop at. With `limit`, about that
    many bytes are read, and the mark says where to continue. Raises `Unreadable` if it is not a
    regular file or cannot be opened.
    """
    fd = open_regular(path, os.O_RDONLY)
    if fd is None:
        return Chunk(b"", b"", START, restarted=mark.inode != 0)
    try:
        status = os.fstat(fd)
        known = status.st_ino == mark.inode and status.st_size >= mark.offset
        if known and mark.offset:
            known = checksum(_tail(fd, mark.offset)) == mark.sum
        begin = mark.offset if known else 0
        size = status.st_size if stop is None else min(stop, status.st_size)
        wanted = max(0, size - begin)
        lines, rest, end = _piece(fd, begin, wanted, limit or wanted)
        if end - begin == len(lines) and (len(lines) >= TAIL_BYTES or begin == 0):
            tail = lines[-TAIL_BYTES:]
        else:
            tail = _tail(fd, end)
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    except MemoryError as error:
        raise _too_large(path) from error
    finally:
        os.close(fd)
    restarted = mark.inode != 0 and not known
    return Chunk(lines, rest, Mark(status.st_ino, end, checksum(tail)), restarted)


def _piece(fd: int, begin: int, wanted: int, limit: int) -> tuple[bytes, bytes, int]:
    """Returns the whole lines of about `limit` bytes, or all the rest, and where they end."""
    data = _pread_all(fd, begin, min(wanted, limit))
    while len(data) < wanted and b"\n" not in data:  # A line that is longer than the limit.
        more = max(len(data), 4096)
        data += _pread_all(fd, begin + len(data), min(more, wanted - len(data)))
    whole = data.rfind(b"\n") + 1
    return data[:whole], data[whole:] if len(data) >= wanted else b"", begin + whole


def _too_large(path: str) -> Unreadable:
    return Unreadable(
        f"{path} does not fit into memory",
        hint="look for what filled it; lines that are not records can be removed by hand",
        path=path,
    )


def read_at(path: str, offset: int, size: int) -> bytes:
    """Returns the bytes of a file from an offset; fewer at its end, none if it is missing."""
    fd = open_regular(path, os.O_RDONLY)
    if fd is None:
        return b""
    try:
        return _pread_all(fd, offset, size)
    finally:
        os.close(fd)


class Appender:
    """A file open for appending, under the hive's lock.

    `append` writes whole lines; `take_back` removes what this appender wrote, unless somebody
    else has written since; `sync` makes it survive a power cut.
    """

    __slots__ = ("_end", "_fd", "_written", "created", "path", "size")

    def __init__(self, path: str) -> None:
        self.path: str = path
        self.created: bool = not os.path.lexists(path)
        self._written = 0
        fd = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        assert fd is not None
        self._fd = fd
        self.size: int = os.fstat(fd).st_size
        self._end: bytes | None = None

    def ends_with_newline(self) -> bool:
        """Returns whether the file is empty or its last line is whole."""
        return self.size == 0 or self._tail().endswith(b"\n")

    def is_at(self, mark: Mark, changed_ns: int) -> bool:
        """Returns whether the file, when it was opened, ended at a mark, and changed last then."""
        stamp = mark.inode, mark.offset, changed_ns
        return (
            (mark.offset == self.size)
            and self.stamp() == stamp
            and (not self.size or checksum(self._tail()) == mark.sum)
        )

    def mark_after(self, data: bytes) -> Mark:
        """Returns the position after data that is still to be appended."""
        tail = (self._tail() + data)[-TAIL_BYTES:]
        return Mark(self.stamp()[0], self.size + len(data), checksum(tail))

    def date(self, changed_ns: int) -> None:
        """Gives the file a time of its last change, if it is ours: only its owner can."""
        with suppress(OSError):
            os.utime(self._fd, ns=(changed_ns, changed_ns))

    def _tail(self) -> bytes:
        if self._end is None:
            self._end = _tail(self._fd, self.size)
        return self._end

    def append(self, data: bytes) -> None:
        """Writes the bytes at the end: all of them or, with `Unwritable`, none."""
        rest: bytes | memoryview = data
        fd = self._fd
        try:
            while rest:
                count = os.write(fd, rest)
                self._written += count
                if count == len(rest):
                    return
                rest = memoryview(rest)[count:]
        except OSError as error:
            self.take_back()
            raise Unwritable(
                f"{self.path} cannot be written: {error.strerror}; nothing was recorded",
                hint=_what_to_free(error),
                path=self.path,
            ) from error

    def take_back(self) -> None:
        """Removes what was written, unless another program has appended since.

        Raises `Unwritable` if the disk refuses: some of it may then remain.
        """
        try:
            if self._written and os.fstat(self._fd).st_size == self.size + self._written:
                os.ftruncate(self._fd, self.size)
                self._written = 0
        except OSError as error:
            raise Unwritable(
                f"{self.path} cannot be written ({error.strerror}), and part of a failed write "
                "cannot be removed from it",
                hint="check the disk, then see what was recorded: queen doctor",
                path=self.path,
            ) from error

    def stamp(self) -> Stamp:
        """Returns the stamp of what is open, whatever has its name by now."""
        return _stamp(os.fstat(self._fd))

    def follows(self, mark: Mark) -> bool:
        """Returns whether the file has nothing after a mark but what was written here."""
        status = os.fstat(self._fd)
        return (mark.offset, status.st_size) == (self.size, self.size + self._written) and (
            not mark.inode or mark.inode == status.st_ino
        )

    def end(self) -> Mark:
        """Returns the position after what was written."""
        offset = self.size + self._written
        return Mark(os.fstat(self._fd).st_ino, offset, checksum(_tail(self._fd, offset)))

    def sync(self) -> None:
        """Returns when the bytes are on disk. Raises `DurabilityUnknown` if that failed.

        A failed sync is not repeated: the kernel may have dropped the pages, and a second call
        would then succeed without writing them.
        """
        try:
            getattr(os, "fdatasync", os.fsync)(self._fd)
            if self.created:
                safe_open.sync_folder(os.path.dirname(self.path))
        except OSError as error:
            raise DurabilityUnknown(
                f"{self.path} was written, but the disk did not confirm it: {error.strerror}",
                hint="check the disk, then read the record back before you rely on it",
                path=self.path,
            ) from error

    def close(self) -> None:
        """Closes the file; harmless if it is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Original:
    """A file to replace, held open: what others append, even while it is replaced, is kept."""

    def __init__(self, path: str) -> None:
        """Reads the file; a missing one counts as empty. Raises `Unreadable`."""
        self.path = path
        self._fd = open_regular(path, os.O_RDONLY)
        self.stamp: Stamp | tuple[()] = () if self._fd is None else _stamp(os.fstat(self._fd))
        """That of the version that was opened; empty without a file."""
        try:
            self.data: bytes = self._from(0)
            self.size_bytes: int = len(self.data)
        except BaseException:
            self.close()
            raise

    def replace_by(self, data: bytes) -> None:
        """Replaces the content, on disk when it returns. Raises `Unwritable`, and `Unreadable` if
        what was appended in the meantime cannot be read.
        """
        write_document(self.path, data)
        self._add_late()

    def replace_if_current(
        self, data: bytes, turn: Callable[[], AbstractContextManager[bool]]
    ) -> bool:
        """Replaces the content as `replace_by` does, and returns True; or returns False if another
        program has written the file since it was read, or if `turn`, in which the new version gets
        the name, says so. Only the instant of that is not looked at.
        """

        @contextmanager
        def still() -> Iterator[bool]:
            # It is read again while nobody waits, and in the turn only if a change may not show.
            stamp, is_settled = settled_stamp(self.path)
            if self._was_written():
                yield False
                return
            with turn() as may:
                is_same = is_settled and settled_stamp(self.path)[0] == stamp
                yield may and (is_same or not self._was_written())

        if not write_while(self.path, data, still):
            return False
        self._add_late()
        return True

    def _was_written(self) -> bool:
        stamp = stamp_of(self.path)
        if self._fd is None or not stamp:
            return bool(stamp) or self._fd is not None
        return stamp[0] != os.fstat(self._fd).st_ino or self._from(0) != self.data

    def _add_late(self) -> None:
        late = self._from(self.size_bytes)
        if not late:
            return
        file = Appender(self.path)
        try:
            file.append(late)
        finally:
            file.close()

    def close(self) -> None:
        """Closes the old file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def _from(self, begin: int) -> bytes:
        if self._fd is None:
            return b""
        try:
            return _pread_all(self._fd, begin, os.fstat(self._fd).st_size - begin)
        except MemoryError as error:
            raise _too_large(self.path) from error
        except OSError as error:
            raise Unreadable(
                f"{self.path} cannot be read: {error.strerror}", path=self.path
            ) from error


def size_of(path: str) -> int:
    """Returns the size of a file in bytes; 0 if it does not exist."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def stamp_of(path: str) -> Stamp:
    """Returns a value that changes whenever the file does. Does not follow a link.

    Raises `Unreadable`.
    """
    try:
        status = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    return _stamp(status)


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


def settled_stamp(path: str) -> tuple[list[int], bool]:
    """Returns what changes whenever a file does, four numbers; and whether it would change if the
    file were written now.
    """
    try:
        status = os.stat(path)
    except OSError:
        return [0, 0, 0, 0], True
    now_ns = time.time_ns()
    times = status.st_mtime_ns, status.st_ctime_ns
    is_coarse = all(each % 1_000_000_000 == 0 for each in times)
    recent_ns = _WHOLE_SECONDS_NS if is_coarse else _RECENT_NS
    is_settled = all(abs(now_ns - each) > recent_ns for each in times)
    return [status.st_ino, status.st_size, *times], is_settled


def wait_for_change(stamp: Callable[[], object], before: object, deadline_s: float) -> bool:
    """Returns True as soon as `stamp()` is no longer `before`, or False at the deadline, on the
    monotonic clock.

    It looks again and again: events of the file system take 40 ms to set up, as long as most wait.
    Raises `Cancelled` once this thread is to give up.
    """
    from queenbee.store import giving_up  # noqa: PLC0415 - start-up

    pause_s = _FIRST_PAUSE_S
    while stamp() == before:
        giving_up.refuse()
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            return False
        time.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
    return True


def split_lines(data: bytes) -> list[bytes]:
    r"""Returns the lines of a file that are not blank, split on `\n` only, without a final `\r`."""
    lines = data.split(b"\n")
    if b"\r" in data:
        lines = [line.removesuffix(b"\r") for line in lines]
    if not lines[-1]:
        lines.pop()
    if b"" in lines or any(map(bytes.isspace, lines)):
        lines = [line for line in lines if line and not line.isspace()]
    return lines


def _tail(fd: int, end: int) -> bytes:
    return os.pread(fd, min(TAIL_BYTES, end), max(0, end - TAIL_BYTES))


def open_regular(path: str, flags: int) -> int | None:
    """Returns the descriptor of a regular file, or None if it is missing and not to be made.

    Raises `Unreadable`, and `Unwritable` if it was to be made.
    """
    try:
        fd = safe_open.open_file(path, flags)
    except FileNotFoundError as error:
        if flags & os.O_CREAT:
            raise Unwritable(f"{path} cannot be created: {error.strerror}", path=path) from error
        return None
    except OSError as error:
        if flags & os.O_CREAT:
            raise Unwritable(
                f"{path} cannot be written: {error.strerror}; nothing was recorded", path=path
            ) from error
        if isinstance(error, IsADirectoryError):
            raise safe_open.irregular(path) from error
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error
    return fd


def _pread_all(fd: int, begin: int, size: int) -> bytes:
    data = os.pread(fd, size, begin)
    if len(data) == size:
        return data
    parts = [data]
    while data:
        begin += len(data)
        size -= len(data)
        data = os.pread(fd, size, begin)
        parts.append(data)
    return b"".join(parts)


def _what_to_free(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free some disk space, then try again"
    return "check the disk and the file's permissions, then try again"
