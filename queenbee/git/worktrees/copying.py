"""Copies files that git ignores from the main worktree into another one. ADR 0046.

A file is copied if a pattern names it and git ignores it, here and there: what git does not ignore
in the other worktree would be committed with it. In a folder that git ignores by its name, such as
`node_modules`, only patterns count that name this folder, or a path in it. Nothing is written over
another file, and no link is followed, on either side.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from queenbee.core.text import mentioned
from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import git, names_in
from queenbee.store import safe_open
from queenbee.store.git_files.ignore_files import has_many_stars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import IO

    from pathspec import GitIgnoreSpec

INCLUDE = ".worktreeinclude"
"""The file of Claude Code, Codex and others, with patterns as in `.gitignore`."""
STAGING = ".queenbee-copying"
"""Each file gets its content in this folder first. It ignores itself: if we are killed, nothing of
it is committed, and the next call removes it.
"""
MOST_FILES = 20_000
MOST_BYTES = 1 << 30
_MOST_BYTES = 1 << 16
"""Of `.worktreeinclude`."""
_MOST_PATTERNS = 1_000
_LIMIT_S = 60.0
_LISTED = ("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
_OWN = (".git", ".beads")
"""No part of a path may have one of these names."""
_FICLONE = 0x4004_9409
"""`FICLONE` of Linux: both files share their blocks until one of them changes."""


@dataclass
class Selection:
    """What is to be copied, as paths from the top, and what is not, with the reason."""

    files: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    size_bytes: int = 0


def included(main: str) -> list[str]:
    """Returns the patterns in `.worktreeinclude` of the main worktree."""
    try:
        data = safe_open.read(os.path.join(main, INCLUDE), _MOST_BYTES)
    except (OSError, QueenError):
        return []
    lines = data.decode(errors="surrogateescape").removeprefix("\ufeff").split("\n")
    return [line.rstrip("\r") for line in lines if line.strip() and not line.startswith("#")]


def select(main: str, tree: str, patterns: Sequence[str]) -> Selection:
    """Returns what these patterns, as in `.gitignore`, name in the main worktree and a worktree
    lacks. Raises `ExternalFailure` if git does not say what it ignores.
    """
    safe = _safe(patterns)
    found = Selection()
    if left_out := len(patterns) - len(safe):
        found.left_out.append(f"{left_out} patterns: too many of them, or with too many stars")
    if not safe:
        return found
    selecting = _Selecting(main, tree, found)
    files, folders = _ignored_by_name(main)
    spec = _spec(safe)
    for path in filter(spec.match_file, files):
        selecting.add([path], path)
    for folder in folders:
        inner = _of_folder(safe, folder)
        spec = _spec(inner)
        if any(_leads_into(each, folder) for each in inner) or spec.match_file(folder):
            selecting.add([*filter(spec.match_file, _walked(main, folder))], folder)
    selecting.leave_out_seen()
    return found


def copies(main: str, patterns: Sequence[str], paths: Sequence[str]) -> list[str]:
    """Returns those of the paths that these patterns name, and that the main worktree has without
    that git tracks them there: a file at such a path is a copy, or in the way of one.
    """
    found = filter(_spec(_safe(patterns)).match_file, paths)
    there = [each for each in found if os.path.lexists(os.path.join(main, each))]
    if not there:
        return []
    how = ("--literal-pathspecs", "ls-files", "-z", "--", *there)
    return sorted({*there} - {*names_in(git(*how, cwd=main, repository={}))})


def copy(main: str, tree: str, files: Iterable[str]) -> Iterator[str]:
    """Copies files, and yields why, of each that is not copied. What is there stays."""
    staging = os.path.join(tree, STAGING)
    clear(tree)
    # The `.gitignore` of a folder that ignores itself comes before its other files.
    ordered = sorted(files, key=lambda each: (each.rpartition("/")[2] != ".gitignore", each))
    made = False
    try:
        for path in ordered:
            target = os.path.join(tree, path)
            if os.path.lexists(target):
                continue
            if not made:
                made = safe_open.make_folder(staging)
                safe_open.write(os.path.join(staging, ".gitignore"), b"*\n")
            try:
                _copy(os.path.join(main, path), target, os.path.join(staging, "file"))
            except FileExistsError:
                continue
            except (OSError, QueenError) as error:
                why = error.strerror if isinstance(error, OSError) else error
                yield f"{mentioned(path)}: {why}"
    finally:
        clear(tree)


def clear(tree: str) -> None:
    """Removes what a copy that was killed has left. Never fails."""
    staging = os.path.join(tree, STAGING)
    for name in safe_open.names_in(staging) if not os.path.islink(staging) else ():
        # The file that keeps git away from the others goes last.
        if name != ".gitignore":
            with suppress(OSError, QueenError):
                safe_open.unlink(os.path.join(staging, name))
    with suppress(OSError, QueenError):
        safe_open.unlink(os.path.join(staging, ".gitignore"))
    with suppress(OSError):
        os.rmdir(staging)


def _copy(source: str, target: str, draft: str) -> None:
    """Copies one file or link. Raises `FileExistsError` if there is anything by now."""
    with safe_open.At(source) as (name, folder):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        link = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(status.st_mode) else ""
    with suppress(FileNotFoundError):
        safe_open.unlink(draft)
    if link:
        with safe_open.At(draft) as (name, folder):
            os.symlink(link, name, dir_fd=folder)
    else:
        made = safe_open.open_file(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(made, "wb") as taken:
            with os.fdopen(safe_open.open_file(source, os.O_RDONLY), "rb") as given:
                _fill(given, taken)
            taken.flush()
            os.fchmod(made, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
    safe_open.make_folder(os.path.dirname(target))
    _give_name(draft, target)


def _give_name(draft: str, target: str) -> None:
    """Moves a file to its place. Raises `FileExistsError` if there is anything: nothing is
    replaced, as `rename` would.
    """
    with safe_open.At(draft) as (name, folder), safe_open.At(target) as (to_name, to_folder):
        at = {"src_dir_fd": folder, "dst_dir_fd": to_folder}
        try:
            os.link(name, to_name, follow_symlinks=False, **at)
            os.unlink(name, dir_fd=folder)
        except FileExistsError:
            raise
        except (OSError, NotImplementedError):  # No hard links here.
            if os.path.lexists(target):
                raise FileExistsError(target) from None
            os.replace(name, to_name, **at)


def _fill(given: IO[bytes], taken: IO[bytes]) -> None:
    """Gives a new file the content of another one, by sharing its blocks where that works."""
    try:
        fcntl.ioctl(taken.fileno(), _FICLONE, given.fileno())
    except OSError:
        shutil.copyfileobj(given, taken, 1 << 20)


def _ignored_by_name(main: str) -> tuple[list[str], list[str]]:
    """Returns the files that git ignores in a worktree, and the folders, with a slash, that it
    ignores by their own name or that of a folder above. Those files are in none of these folders.
    """
    listed = names_in(git(*_LISTED, "--directory", cwd=main, repository={}, limit_s=_LIMIT_S))
    files = [each for each in listed if not each.endswith("/")]
    shown = [each for each in listed if each.endswith("/")]
    folders = _checked(main, shown)
    # Git also shows a folder in which it only ignores each file.
    open_ = [each for each in shown if each not in folders]
    if open_:
        how = ("--literal-pathspecs", *_LISTED, "--", *open_)
        inner = names_in(git(*how, cwd=main, repository={}, limit_s=_LIMIT_S))
        above = _checked(main, {above for each in inner for above in _above(each)})
        for each in inner:
            top = next((folder for folder in _above(each) if folder in above), None)
            if top is None:
                files.append(each)
            else:
                folders.add(top)
    # Git names some of them twice.
    alone = [each for each in dict.fromkeys(files) if folders.isdisjoint(_above(each))]
    own = [*alone, *sorted(folders)]
    own = [each for each in own if not {*each.lower().split("/")} & {*_OWN, STAGING}]
    return [each for each in own if each[-1:] != "/"], [each for each in own if each[-1:] == "/"]


def _above(path: str) -> list[str]:
    """Returns the folders above a path, with a slash, the highest first."""
    parts = path.rstrip("/").split("/")[:-1]
    return ["/".join(parts[: count + 1]) + "/" for count in range(len(parts))]


def _checked(tree: str, paths: Iterable[str]) -> set[str]:
    """Returns those of these paths that git ignores, and does not track."""
    stdin = b"".join(os.fsencode(each) + b"\0" for each in paths)
    if not stdin:
        return set()
    how = ("check-ignore", "-z", "--stdin")
    try:
        said = git(*how, cwd=tree, repository={}, stdin=stdin, limit_s=_LIMIT_S)
    except ExternalFailure as error:
        if error.details.get("status") != 1:  # 1: there are none.
            raise
        return set()
    return {*names_in(said)}


def _safe(patterns: Sequence[str]) -> list[str]:
    return [each for each in patterns[:_MOST_PATTERNS] if not has_many_stars(each)]


def _spec(patterns: Iterable[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - start-up

    valid = []
    for each in patterns:
        with suppress(ValueError):  # Git takes no notice of a line that is no pattern.
            GitIgnoreSpec.from_lines([each])
            valid.append(each)
    return GitIgnoreSpec.from_lines(valid)


def _parts(pattern: str) -> list[str]:
    return pattern.removeprefix("!").rstrip(" ").rstrip("/").split("/")


def _of_folder(patterns: Sequence[str], folder: str) -> list[str]:
    """Returns the patterns that count in a folder that git ignores by its name."""
    return [
        each
        for each in patterns
        if each.startswith("!") or len(_parts(each)) > 1 or _spec([each]).match_file(folder)
    ]


def _leads_into(pattern: str, folder: str) -> bool:
    """Returns whether a pattern names a path in a folder, from its beginning."""
    parts, names = [each for each in _parts(pattern) if each], folder.rstrip("/").split("/")
    if pattern.startswith("!") or len(parts) <= len(names):
        return False
    return all(fnmatchcase(*each) for each in zip(names, parts, strict=False))


def _walked(main: str, folder: str) -> Iterator[str]:
    """Yields what is in a folder, but for repositories, until it is too much for a copy."""
    left, count = [folder], 0
    while left:
        inside = left.pop()
        try:
            with os.scandir(os.path.join(main, inside)) as entries:
                found = sorted(entries, key=lambda each: each.name)
        except OSError:
            continue
        if any(each.name.lower() in _OWN for each in found):
            continue
        for entry in found:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                left.append(f"{inside}{entry.name}/")
            else:
                yield f"{inside}{entry.name}"
        if count > 4 * MOST_FILES:
            return


class _Selecting:
    """Decides what is copied from one worktree to another one."""

    def __init__(self, main: str, tree: str, found: Selection) -> None:
        self._main = main
        self._tree = tree
        self._found = found
        self._folders: dict[str, str] = {"": ""}
        """Why nothing is copied into a folder, if so."""

    def add(self, group: Sequence[str], name: str) -> None:
        """Adds files that belong together, or none of them if they are too many or too large."""
        found, size_bytes, own = self._found, 0, list[str]()
        for path in group:
            try:
                status = os.lstat(os.path.join(self._main, path))
            except OSError:
                continue
            if os.path.lexists(os.path.join(self._tree, path)):
                continue
            why = self._kind_problem(path, status) or self._place_problem(path)
            if why:
                found.left_out.append(f"{mentioned(path)} {why}")
                continue
            size_bytes += status.st_size
            own.append(path)
        if len(found.files) + len(own) > MOST_FILES or found.size_bytes + size_bytes > MOST_BYTES:
            found.left_out.append(
                f"{mentioned(name)} is too much: {len(own):,} files, {size_bytes >> 20:,} MiB "
                f"(at most {MOST_FILES:,} files and {MOST_BYTES >> 20:,} MiB in all)"
            )
            return
        found.files += own
        found.size_bytes += size_bytes

    def leave_out_seen(self) -> None:
        """Leaves out what git would see in the other worktree, and commit with it."""
        files = self._found.files
        ignored, wanted = _checked(self._tree, files), {*files}
        own = {each for path in files for each in _above(path) if f"{each}.gitignore" in wanted}
        own = {each for each in own if self._ignores_itself(each)}
        self._found.files = [
            each for each in files if each in ignored or not own.isdisjoint(_above(each))
        ]
        for each in sorted(wanted - {*self._found.files}):
            self._found.left_out.append(f"{mentioned(each)} would not be ignored there")

    def _ignores_itself(self, folder: str) -> bool:
        """Returns whether a new folder has a `.gitignore` for all that is in it, which is copied
        first.
        """
        if os.path.lexists(os.path.join(self._tree, folder.rstrip("/"))):
            return False
        with suppress(OSError, QueenError):
            path = os.path.join(self._main, folder, ".gitignore")
            lines = safe_open.read(path, _MOST_BYTES).split(b"\n")
            return b"*" in lines and not any(each.startswith(b"!") for each in lines)
        return False

    def _kind_problem(self, path: str, status: os.stat_result) -> str:
        if stat.S_ISREG(status.st_mode):
            return ""
        if not stat.S_ISLNK(status.st_mode):
            return "is no regular file"
        with suppress(OSError):
            leads = os.readlink(os.path.join(self._main, path))
            names = os.path.normpath(os.path.join(os.path.dirname(path), leads)).split(os.sep)
            if not os.path.isabs(leads) and {*names}.isdisjoint((os.pardir, *_OWN)):
                return ""
        return "is a link that leads out of the repository"

    def _place_problem(self, path: str) -> str:
        """Returns why nothing is copied to this place, or ""."""
        for above in _above(path):
            if above not in self._folders:
                there = os.path.join(self._tree, above.rstrip("/"))
                why = ""
                if os.path.lexists(there) and (os.path.islink(there) or not os.path.isdir(there)):
                    why = f"has a link or a file in place of {mentioned(above)} there"
                elif os.path.lexists(os.path.join(there, ".git")):
                    why = f"is in another repository there, {mentioned(above)}"
                self._folders[above] = why
            if self._folders[above]:
                return self._folders[above]
        return ""
