"""Moving an existing hive to the branch of the remote alone, and back: `queen sync setup`.

The ledgers leave the index of the code's branch and are ignored there; their files stay where they
are. Each step can be repeated, so a setup that was killed is finished by the next. ADR 0029.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.core.text import named, suggested
from queenbee.errors import (
    Conflict,
    ExternalFailure,
    InvalidInput,
    NotFound,
    QueenError,
)
from queenbee.git.contents.landing_messages import commit_options
from queenbee.git.remote.syncing import Synced, sync
from queenbee.git.run import git, line, names_in, without_programs
from queenbee.git.trees.open_operations import open_operations
from queenbee.git.upstream import Upstream, pushing
from queenbee.services.diagnosis import Diagnosis
from queenbee.store import safe_open
from queenbee.store.settings import FILE_NAME
from queenbee.store.settings_file.changing_text import with_values
from queenbee.store.trust import Trust
from queenbee.store.whole_files import read_own, write_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout

_RULES = b"""\
# queen sync setup: the branch of the remote has these, not the branches of the code
/queen_*.jsonl
/archive/queen_*.jsonl
"""
_TRACKER = b"/issues.jsonl\n"
"""The ledger of issues has its rows: the file is made of that, where no other program owns it."""
_AGAIN = "queen sync setup, and the commit that it prints"
_CHANGED = (".gitignore", FILE_NAME)
_OURS = re.compile(r"(?:archive/)?queen_[^/]+\.jsonl")


@dataclass
class Moved:
    """What a setup changed: files of `.beads/`, and ledgers in the index of the main worktree."""

    synced: Synced | None
    files: list[str] = field(default_factory=list)
    untracked: list[str] = field(default_factory=list)
    """Ledgers and segments that are no longer in the index."""
    tracked: list[str] = field(default_factory=list)
    """Those that are in it again."""
    commit: str = ""
    """The command that commits it; empty if there is nothing to commit."""


def set_up(hive: Services) -> Moved:
    """Moves the ledgers to the branch of the remote alone. Raises `Unreachable`, and `Conflict` if
    something else is staged; nothing is changed then.
    """
    # 1. The remote has everything before anything else changes.
    moved = Moved(sync(hive, at_first=True))
    is_begun = _staged(hive)
    _heal(hive)
    # 2. Ignored before they leave the index, so that no `git add` in between brings them back.
    _replace(hive, moved, ".gitignore", lambda text: _with_rules(text, is_owned=_is_owned(hive)))
    _set(hive, moved, "branch")
    moved.untracked = _tracked(hive)
    if moved.untracked:
        names = "".join(f"{each}\0" for each in moved.untracked).encode(errors="surrogateescape")
        _git(hive, "update-index", "--force-remove", "-z", "--stdin", stdin=names)
    # 3. A commit of `.beads` by its name would add the files again that left the index.
    if moved.files or moved.untracked or is_begun:
        _stage(hive, [os.path.join(hive.layout.beads_dir, name) for name in _CHANGED])
        moved.commit = _commit(hive, "Move the ledgers")
    return moved


def why_apart(layout: Layout) -> str:
    """Returns why the records want a branch of their own; empty if they have one, or need none."""
    said = layout.settings
    if said.sync_ledgers == "branch":
        return ""
    if said.land_by == "pr":
        return "records would conflict at the host"
    upstream = Upstream.of_target(layout)
    if upstream is None or os.path.isdir(layout.remote_dir):
        return ""
    return f"records do not travel with what lands on {named([upstream.name])}"


def settle(hive: Services, tell: Callable[[str], None]) -> None:
    """Moves the ledgers where work lands by pull request and they are still with the code: a host
    has no union merge, so two pull requests that append to one would conflict. Tells the command
    for what is left to do. Pushes only where somebody here has agreed to that.
    """
    said = hive.layout.settings
    if said.land_by != "pr" or said.sync_ledgers == "branch":
        return
    why = "nobody here has agreed to push"
    if not Trust(hive.layout).unseen(pushing(hive.layout)):
        try:
            moved = set_up(hive)
        except QueenError as error:
            why = error.message
        else:
            tell(f"the records have a branch of their own now; next: {moved.commit}")
            return
    tell(f"pull requests want the records on a branch of their own ({why}): queen sync setup")


def undo(hive: Services) -> Moved:
    """Moves them back: to the index of the main worktree, for the user to commit. Raises `Conflict`
    if something else is staged.
    """
    moved = Moved(None)
    _staged(hive)
    _heal(hive)
    _set(hive, moved, None)
    _replace(hive, moved, ".gitignore", _without_rules)
    if moved.files:
        beads = hive.layout.beads_dir
        names = [name for name in _files(beads) if _is_moved(hive, name)]
        moved.tracked = _stage(hive, [os.path.join(beads, name) for name in sorted(names)])
        _stage(hive, moved.files)
        moved.commit = _commit(hive, "Move the ledgers back")
    return moved


def tracked_still(hive: Services) -> list[Diagnosis]:
    """Returns the ledgers in git's index that only the branch of the remote is to have."""
    found = list[str]()
    if hive.layout.settings.sync_ledgers == "branch":
        with suppress(ExternalFailure):  # Outside git.
            found = _tracked(hive)
    text = "git tracks this ledger with the code, too: git pull is refused while it changes"
    return [
        Diagnosis("tracked", os.path.join(hive.layout.root, name), text, hint=_AGAIN)
        for name in found
    ]


def on_no_branch(hive: Services) -> list[Diagnosis]:
    """Returns that clones lack the records, where nothing carries them there."""
    why = why_apart(hive.layout) if hive.engine.ledgers is not None else ""
    if not why:
        return []
    hint, place = "queen sync setup", hive.layout.beads_dir
    return [Diagnosis("records_stay", place, why, hint=hint, severity="note")]


def refuse_tracked(hive: Services, tree: str, changed: Iterable[str]) -> None:
    """Raises `InvalidInput` if git's next commit has files of the hive, and ledgers that only the
    branch of the remote is to have: one of `-- .beads`, or after `git add --force`.
    """
    beads = os.path.basename(hive.layout.beads_dir)
    if any(path.startswith(f"{beads}/") for path in changed):
        # The index is that of the calling hook.
        found = _moved_in(hive, git("ls-files", "-z", "--", beads, cwd=tree))
        if found:
            raise InvalidInput(
                "git would track ledgers that only the branch of the remote is to have: "
                f"{named(found)}",
                hint=_AGAIN,
                files=found,
            )


def _heal(hive: Services) -> None:
    """Gives the ledgers every line of the memory: git may have removed some with a checkout."""
    lost = [kind for kind in hive.kinds() if hive.engine.memory.lacking(kind)]
    if lost:
        with hive.transaction() as tx:
            for kind in lost:
                tx.touch(kind)


def _files(beads: str) -> list[str]:
    archive = os.path.join(beads, "archive")
    inner = os.listdir(archive) if os.path.isdir(archive) else []
    return [*os.listdir(beads), *(f"archive/{name}" for name in inner)]


def _tracked(hive: Services) -> list[str]:
    beads = os.path.basename(hive.layout.beads_dir)
    return _moved_in(hive, _git(hive, "ls-files", "-z", "--", beads))


def _moved_in(hive: Services, listed: bytes) -> list[str]:
    """Returns those of listed files of the hive that are moved."""
    names = dict.fromkeys(names_in(listed))  # Unmerged: once each.
    begin = os.path.basename(hive.layout.beads_dir) + "/"
    return [name for name in names if _is_moved(hive, name.removeprefix(begin))]


def _staged(hive: Services) -> bool:
    """Returns whether something of this is staged. Raises `Conflict` if anything else is, which the
    commit would take, too; not within a merge, whose commit has all of it.
    """
    root, beads = hive.layout.root, os.path.basename(hive.layout.beads_dir)
    said = _git(hive, "diff", "--cached", "--name-only", "--no-renames", "-z")
    prefix = f"{line('rev-parse', '--show-prefix', cwd=root) or ''}{beads}/"
    names = [name for name in said.decode(errors="surrogateescape").split("\0") if name]
    others = [name for name in names if not _is_ours(hive, name, prefix)]
    git_dir = line("rev-parse", "--absolute-git-dir", cwd=root)
    if others and not (git_dir and open_operations(git_dir)):
        raise Conflict(
            f"something else is staged, which the commit would take, too: {named(others)}",
            hint=f"{_in_root(hive, 'git commit')}, or unstage it: {_in_root(hive, 'git reset')}",
            files=others,
        )
    return bool(names)


def _is_ours(hive: Services, name: str, prefix: str) -> bool:
    inner = name.removeprefix(prefix)
    return name.startswith(prefix) and (inner in _CHANGED or _is_moved(hive, inner))


def _commit(hive: Services, message: str) -> str:
    """Returns the command that commits what is staged; empty if nothing is."""
    is_staged = _git(hive, "diff", "--cached", "--name-only")
    options = commit_options(hive.layout.settings, message)
    return f"{_in_root(hive, 'git commit')} {options}" if is_staged else ""


def _in_root(hive: Services, command: str) -> str:
    """Returns a command of git as one types it where the actor is."""
    if hive.layout.tree == hive.layout.root:
        return command
    return suggested("git -C", hive.layout.root) + command.removeprefix("git")


def _is_owned(hive: Services) -> bool:
    return hive.tracker().is_owned()


def _is_moved(hive: Services, name: str) -> bool:
    """Returns whether a file of `.beads/` is moved: a ledger, its archive, or the tracker."""
    return bool(_OURS.fullmatch(name)) or (name == "issues.jsonl" and not _is_owned(hive))


def _without_rules(text: bytes) -> bytes:
    return text.replace(_RULES + _TRACKER, b"").replace(_RULES, b"")


def _with_rules(text: bytes, *, is_owned: bool) -> bytes:
    """Returns a `.gitignore` with our rules; those of an earlier version lack the tracker."""
    rules = _RULES if is_owned else _RULES + _TRACKER
    if rules in text:
        return text
    return text.replace(_RULES, rules) if _RULES in text else _line(text) + rules


def _in_tree(hive: Services, path: str) -> str:
    return os.path.relpath(path, hive.layout.root)


def _stage(hive: Services, files: list[str]) -> list[str]:
    """Brings the index up to date with those files that git does not ignore; returns the names of
    those that it did not have.
    """
    if not files:
        return []
    names = [_in_tree(hive, path) for path in files]
    others = _git(hive, "ls-files", "-z", "--others", "--exclude-standard", "--", *names)
    known = _git(hive, "ls-files", "-z", "--", *names)
    if others or known:
        _git(hive, "update-index", "--add", "--remove", "-z", "--stdin", stdin=others + known)
    return [name for name in others.decode(errors="surrogateescape").split("\0") if name]


def _git(hive: Services, *arguments: str, stdin: bytes = b"") -> bytes:
    root = hive.layout.root
    config = without_programs(root)
    return git(*arguments, cwd=root, stdin=stdin, repository={}, config=config)


def _replace(hive: Services, moved: Moved, name: str, change: Callable[[bytes], bytes]) -> None:
    path = os.path.join(hive.layout.beads_dir, name)
    try:
        before = read_own(path)
    except NotFound:
        before = b""
    after = change(before)
    if after == before:
        return
    if after or name == FILE_NAME:
        write_document(path, after)
    else:
        safe_open.unlink(path)
    moved.files.append(path)


def _set(hive: Services, moved: Moved, ledgers: str | None) -> None:
    """Sets where the ledgers are."""

    def change(text: bytes) -> bytes:
        return with_values(text.decode(), {"sync.ledgers": ledgers}).encode()

    _replace(hive, moved, FILE_NAME, change)


def _line(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"
