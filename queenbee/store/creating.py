"""`queen init`, and the folders that the first write makes."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, NotFound, QueenError, Unwritable
from queenbee.store import safe_open, settings
from queenbee.store.files import stamp_of
from queenbee.store.git_files.main_worktree import note_main
from queenbee.store.git_files.worktrees import default_branch, ref_target
from queenbee.store.machine import CHOOSE
from queenbee.store.whole_files import read_own, write_document

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.store.files import Stamp
    from queenbee.store.layout import Layout

ATTRIBUTES = (
    "* !filter !diff !ident !working-tree-encoding",
    "queen_*.jsonl text eol=lf merge=union",
)
"""Git stores the hive's files as they are, whatever it does to others of the repository (Git LFS);
its union driver merges two ledgers correctly: the fold ignores their order.
"""


def init(layout: Layout) -> list[str]:
    """Makes `.beads/` with its attributes and settings; returns the paths of new files.

    Running it again changes nothing; it never empties or resets a hive.
    """
    made: list[str] = []
    note_main(layout)
    make_beads_dir(layout)
    path = os.path.join(layout.beads_dir, settings.FILE_NAME)
    if not os.path.lexists(path):
        branch = default_branch(layout.common_dir) if layout.common_dir is not None else None
        _write(path, template(branch))
        if branch is not None:
            _agree_to(layout, branch)
        made.append(path)
    made.extend(add_attributes(layout))
    make_state_dir(layout)
    _refuse_broken_locks(layout)
    return made


def _agree_to(layout: Layout, branch: str) -> None:
    """Notes that work lands on a branch which nobody has named but git: also an agent may begin."""
    from queenbee.store.trust import Trust, target_proposal  # noqa: PLC0415 - start-up

    with suppress(QueenError):
        Trust(layout).add([target_proposal(layout, branch)])


def refuse_bare(layout: Layout) -> None:
    """Raises `InvalidInput` if the hive would be among the files of a bare repository."""
    folder = os.path.dirname(layout.beads_dir)
    inside = all(os.path.lexists(os.path.join(folder, one)) for one in ("HEAD", "objects", "refs"))
    if layout.common_dir is None and inside:
        clone = f"{folder.removesuffix('.git')}-clone"
        raise InvalidInput(
            f"{folder} is a bare git repository, which has no files to work on",
            hint=f"{suggested('git clone', folder, clone)} && {suggested('cd', clone)} "
            "&& queen init",
        )


def template(target: str | None = None) -> str:
    """Returns a file that sets nothing but the branch on which work lands, if that is known, and
    says of each setting what it is for, and its default.
    """
    from textwrap import wrap  # noqa: PLC0415 - start-up

    lines = ["# QueenBee's settings for this repository; every line is optional.", "#"]
    table = ""
    for setting in settings.SETTINGS:
        within, _, name = setting.name.rpartition(".")
        if within != table:
            table = within
            lines += ["#", f"# [{table}]"]
        first, *rest = wrap(setting.sentence, 70)
        lines.append(f"# {f'{name} = {in_toml(setting.default)}':<25} # {first}")
        lines += [f"#{'':26} # {each}" for each in rest]
    if target is not None:
        lines += ["", "[land]", f"target = {in_toml(target)}"]
    return "\n".join([*lines, ""])


def in_toml(value: object) -> str:
    """Returns the default of a setting as the file says it."""
    return (
        str(value).lower()
        if isinstance(value, bool | int)
        else json.dumps(value, ensure_ascii=False)
    )


def _refuse_broken_locks(layout: Layout) -> None:
    from queenbee.store.lock import excludes, no_lock  # noqa: PLC0415 - start-up

    path = layout.lock_path
    try:
        os.close(safe_open.open_file(path, os.O_RDWR | os.O_CREAT))
    except OSError as error:
        raise Unwritable(
            f"the lock {path} cannot be opened: {error.strerror}",
            hint=what_to_grant(layout, layout.state_dir),
            path=path,
        ) from error
    if not excludes(path):
        raise no_lock(path)


def add_attributes(layout: Layout) -> list[str]:
    """Adds our lines to `.beads/.gitattributes`; returns the path if it did.

    They come first, so that lines of the user count more.
    """
    path = os.path.join(layout.beads_dir, ".gitattributes")
    text = read_attributes(layout)
    there = {line.strip() for line in text.split("\n")}
    missing = [line for line in ATTRIBUTES if line not in there]
    if not missing:
        return []
    write_document(path, "\n".join([*missing, text]).encode(errors="surrogateescape"))
    return [path]


def read_attributes(layout: Layout) -> str:
    """Returns the text of `.beads/.gitattributes`, or "" without one. Raises `Unreadable`."""
    try:
        path = os.path.join(layout.beads_dir, ".gitattributes")
        return read_own(path).decode(errors="surrogateescape")
    except NotFound:
        return ""


_kept: dict[str, tuple[bytes, Stamp]] = {}
"""The settings that this process has kept, and the stamp of that file then: each write asks."""


def make_beads_dir(layout: Layout) -> None:
    """Makes `.beads/` if a checkout removed it."""
    _make(layout.beads_dir, layout)


def make_state_dir(layout: Layout) -> None:
    """Makes the folder for lock and memory; git ignores it inside `.beads/`."""
    if layout.state_dir.startswith(layout.beads_dir + os.sep):
        make_beads_dir(layout)
    _make(layout.state_dir, layout)
    if layout.state_dir.startswith(layout.beads_dir + os.sep):
        ignore = os.path.join(layout.state_dir, ".gitignore")
        if not os.path.lexists(ignore):
            _write(ignore, "*\n")
    text, path = layout.settings.text, settings.last_good_path(layout.state_dir)
    if layout.settings.problem is None and _kept.get(path) != (text, stamp_of(path)):
        settings.keep_good(layout.state_dir, layout.settings)
        _kept[path] = text, stamp_of(path)


def folders_to_grant(layout: Layout) -> list[str]:
    """Returns the folders that a process must be able to write to, to use the hive."""
    if layout.state_dir.startswith(layout.beads_dir + os.sep):
        return [layout.beads_dir]
    return [layout.state_dir, layout.beads_dir]


def what_to_grant(layout: Layout, folder: str, env: Mapping[str, str] = os.environ) -> str:
    """Returns the hint for a folder that is not writable: what to grant, or the setting."""
    beside = f"keep the state with the ledgers: {CHOOSE} beads"
    if any(name.startswith("CODEX_") for name in env):
        if layout.state_dir.startswith(os.path.join(layout.tree, ".git", "")):
            return f"Codex keeps .git read-only: use a linked worktree, or {beside}"
        folders = ", ".join(_toml_string(each) for each in folders_to_grant(layout))
        return (
            "outside Codex's sandbox, run: queen setup codex; or add to [sandbox_workspace_write] "
            f"in ~/.codex/config.toml: writable_roots = [{folders}]"
        )
    if folder.startswith(layout.beads_dir):
        return f"let this process write to {layout.beads_dir}"
    return f"let this process write to {' and '.join(folders_to_grant(layout))}, or {beside}"


def _toml_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _make(folder: str, layout: Layout) -> None:
    layout.refuse_if_moved()
    missing, above = [], folder
    while not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    try:
        safe_open.make_folder(folder)
        for made in missing:
            safe_open.sync_folder(os.path.dirname(made))
    except OSError as error:
        raise Unwritable(
            f"{folder} cannot be created: {error.strerror}; nothing was recorded",
            hint=what_to_grant(layout, folder),
            path=folder,
        ) from error


def _write(path: str, text: str) -> None:
    try:
        safe_open.write(path, text.encode())
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error.strerror}", path=path) from error


def is_only_elsewhere(layout: Layout) -> bool:
    """Returns whether the last fetch saw a branch of records of which this clone took nothing."""
    if layout.common_dir is None or os.path.isdir(layout.remote_dir):
        return False
    ref = f"refs/remotes/{layout.settings.sync_remote}/{layout.settings.sync_branch}"
    return ref_target(layout.common_dir, ref) is not None
