"""Commits what a worktree has before it lands, but for what should never be in git."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from queenbee.core.text import named, shell_word
from queenbee.errors import QueenError
from queenbee.git.landing.commands import git
from queenbee.git.landing.refusals import NotLanded
from queenbee.git.run import as_the_user, names_in, user_git
from queenbee.services.writing.secrets import OVERRIDE, credentials_in
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_BYTES = 5 * 2**20
"""A larger file in git's history makes every clone slower for good."""
_RECORDS = (".beads/queen_*.jsonl", ".beads/issues.jsonl", ".beads/archive/**")
"""Those of the main worktree count, and travel with that."""
_SECRET_NAME = re.compile(
    r"(?:^|/)(?:\.env(?:\.(?!example$|sample$|template$)[\w.-]+)?|\.netrc|\.pgpass|id_[a-z0-9]+"
    r"|[^/]+\.(?:p12|pfx|key))$"
)


def commit_all(tree: str, message: str, *, allow_secrets: bool = False) -> None:
    """Commits all changes of a worktree, as `git add -A` and `git commit` do, with its hooks; none
    is no error. Raises `NotLanded` for an unfinished merge, files over 5 MiB, what looks like a
    secret, unless that is allowed, and a hook that refuses; then nothing is committed.
    """
    wanted = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    everything = (".", *(f":(exclude,glob){each}" for each in _RECORDS))
    entries = names_in(git("status", *wanted, "--", *everything, cwd=tree))
    open_ = [each[3:] for each in entries if "U" in each[:2] or each[:2] in ("AA", "DD")]
    if open_:
        raise NotLanded(
            f"in conflict: {named(open_)}", hint="resolve them, git add, then queen land --continue"
        )
    paths = [each[3:] for each in entries if each[:2] != "!!"]
    _refuse_large(tree, paths)
    if not allow_secrets:
        _refuse_secrets(tree, entries)
    if not paths:
        return
    as_the_user("add", "--all", "--", *everything, cwd=tree)
    status, out, err = user_git("commit", "--quiet", f"--message={message}", cwd=tree)
    if status != 0:
        said = " ".join(os.fsdecode(out + err).split())[-1000:]
        raise NotLanded(f"the commit was refused, so nothing was landed: {said}", hint="git status")


def _refuse_large(tree: str, paths: Sequence[str]) -> None:
    large = [path for path in paths if _size(os.path.join(tree, path)) > MOST_BYTES]
    if large:
        raise NotLanded(
            f"larger than 5 MiB: {named(large)}",
            hint=f"echo {shell_word(large[0])} >> .gitignore; or, if it belongs in git, commit it "
            "with git, then queen land",
            files=large,
        )


def _refuse_secrets(tree: str, entries: Sequence[str]) -> None:
    found = [each[3:] for each in entries if "D" not in each[:2] and _SECRET_NAME.search(each[3:])]
    for path, text in _added(tree, entries):
        if path not in found and credentials_in(text):
            found.append(path)
    if found:
        raise NotLanded(
            f"this looks like a secret: {named(found)}",
            hint=f"echo {shell_word(found[0])} >> .gitignore, or remove it; if it is none: "
            f"{OVERRIDE}=1 queen land …",
            files=found,
        )


def _added(tree: str, entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yields the files with the text that they would add: of a tracked one only the new lines."""
    for entry in entries:
        path, state = entry[3:], entry[:2]
        if "D" in state:
            continue
        if state == "??":
            yield path, _text(os.path.join(tree, path))
            continue
        shown = ("diff", "HEAD", "--unified=0", "--no-ext-diff", "--no-textconv", "--no-color")
        lines = (
            git(*shown, "--", f":(literal){path}", cwd=tree).decode(errors="replace").split("\n")
        )
        yield path, "\n".join(each[1:] for each in lines if each[:1] == "+" and each[:3] != "+++")


def _text(path: str) -> str:
    try:
        data = safe_open.read(path, MOST_BYTES)
    except (OSError, QueenError):  # A link, or a repository of its own: git takes no text of it.
        return ""
    return "" if b"\0" in data[:8000] else data.decode(errors="replace")


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
