"""What a commit or a push changes: paths from the root of the working tree.

Renames are not followed: the old name was removed, the new one was added, and both count. In a
merge, only what differs from every parent is a change: the rest was committed before. Names are
decoded as the system decodes them, so that names that are not UTF-8 survive.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.errors import ExternalFailure, InvalidInput, Unreadable
from queenbee.git.run import git, line
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import BinaryIO

_NAMES = ("--name-only", "-z", "--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv")
_HEADS = "refs/heads/"
_EVERYTHING = (*_NAMES, "--ignore-submodules=none")
"""Explicit, because the user's configuration may differ."""
_LOG = ("-c", "log.showRoot=true", "log", "--format=", "-c")
"""`-c` after `log`: for merges, the paths that differ from every parent."""


def staged(cwd: str) -> list[str]:
    """Returns what the next commit changes: the index against `HEAD`, and in a merge against
    each of the merged commits too.
    """
    # First, since `diff` does not say that git refuses a repository.
    own = line("rev-parse", "--absolute-git-dir", cwd=cwd)
    heads = merge_heads(own) if own else []
    paths = _names(git("diff", "--cached", *_EVERYTHING, cwd=cwd))
    for parent in heads:
        paths &= _names(git("diff", "--cached", *_EVERYTHING, no_dash(parent), "--", cwd=cwd))
    return sorted(paths)


def in_range(cwd: str, revisions: str) -> list[str]:
    """Returns what the commits of a range such as `main..topic` change. Raises `InvalidInput`."""
    if ".." not in revisions or revisions.startswith("-"):
        raise InvalidInput(
            f"{revisions!r} is not a range of commits", hint="write it as main..HEAD"
        )
    try:
        return sorted(_names(git(*_LOG, *_EVERYTHING, no_dash(revisions), "--", cwd=cwd)))
    except ExternalFailure as error:
        raise InvalidInput(
            f"{revisions!r} is not a range of commits: {error.message.rpartition('fatal: ')[2]}",
            hint="write it as main..HEAD",
        ) from error


def updates_of(env: Mapping[str, str], stdin: BinaryIO) -> list[str]:
    """Returns the lines that git's pre-push hook gets, or as the pre-commit framework says them:
    local ref, local id, remote ref, remote id.
    """
    if env.get("PRE_COMMIT_TO_REF"):
        # The framework reads git's standard input itself and sets variables instead.
        local, there = env["PRE_COMMIT_TO_REF"], env.get("PRE_COMMIT_FROM_REF") or "0"
        return [f"local {local} {env.get('PRE_COMMIT_REMOTE_BRANCH') or 'remote'} {there}"]
    lines = stdin.read().decode(errors="surrogateescape").split("\n")
    return [each for each in lines if each]


def pushed(cwd: str, remote: str, updates: Iterable[str]) -> list[str]:
    """Returns what the commits change that a push sends to a remote for the first time.

    A deleted branch changes nothing; a force push counts like any other.
    """
    wanted, known = [], []
    for update in updates:
        fields = update.split(" ")
        if len(fields) != 4:
            raise InvalidInput(f"{update!r} is not a line that git passes to pre-push")
        local = _commit(cwd, fields[1])
        if local is not None:
            wanted.append(local)
        there = _commit(cwd, fields[3])
        if there is not None:
            known.append(f"^{there}")
    if not wanted:
        return []
    # A remote given by its address has no refs here, so the refs of any remote count.
    named = line("config", f"remote.{remote}.url", cwd=cwd) is not None
    seen = f"--remotes={remote}" if named else "--remotes"
    revisions = "".join(f"{each}\n" for each in [*wanted, *known]).encode()
    log = git(*_LOG, *_EVERYTHING, "--stdin", "--not", seen, cwd=cwd, stdin=revisions)
    return sorted(_names(log))


def overwritten(cwd: str, updates: Iterable[str]) -> list[str]:
    """Returns the branches of a remote that a push deletes, or from which it removes commits.

    Git asks its hook of no update that it refuses itself, but for commits that are not here: as
    nobody has merged these, they would be removed too.
    """
    found = []
    for update in updates:
        _, ours, ref, theirs = update.split(" ")
        if not ref.startswith(_HEADS) or not theirs.strip("0"):
            continue
        local, there = _commit(cwd, ours), _commit(cwd, theirs)
        if local is None or there is None or not _is_ancestor(cwd, there, local):
            found.append(ref.removeprefix(_HEADS))
    return found


def is_applied(cwd: str) -> bool:
    """Returns whether `git am` makes the next commit. Older versions have no `--no-verify`."""
    path = line("rev-parse", "--git-path", "rebase-apply/applying", cwd=cwd)
    return path is not None and os.path.exists(os.path.join(cwd, path))


def _commit(cwd: str, identifier: str) -> str | None:
    """Returns the commit with an id, or None for zeros and for a commit that is not here."""
    if not identifier.strip("0") or not identifier.isalnum():
        return None
    return line("rev-parse", "--quiet", "--verify", no_dash(f"{identifier}^{{commit}}"), cwd=cwd)


def _is_ancestor(cwd: str, old: str, new: str) -> bool:
    return line("rev-list", "--max-count=1", no_dash(old), f"^{new}", "--", cwd=cwd) is None


def merge_heads(git_dir: str) -> list[str]:
    """Returns the commits that a merge that is not finished brings in."""
    try:
        return safe_open.read(os.path.join(git_dir, "MERGE_HEAD"), 64 * 1024).decode().split()
    except (OSError, Unreadable, UnicodeDecodeError):
        return []


def _names(output: bytes) -> set[str]:
    return {os.fsdecode(name) for name in output.split(b"\0") if name}
