"""What a branch changes of the check itself: its settings, the files that it runs, workflows, and
the agents that judge.

Only what can be said for certain: the words of the command that are files of the repository, what
some programs read by their own rules, and where hosts look for workflows. A test that the check
runs is not of the check.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from typing import TYPE_CHECKING

from queenbee.core.text import named
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

_READS = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
}
"""The files at the top of a tree that say what a program does."""
_WORKFLOWS = (
    *(".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/"),
    *(".circleci/", ".buildkite/", ".woodpecker/"),
    ".claude/agents/",  # They judge sprint beads.
)
_WORKFLOW_FILES = {
    *(".gitlab-ci.yml", ".travis.yml", ".drone.yml", ".woodpecker.yml", "Jenkinsfile"),
    *("azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml"),
}
SHOWN_CHECK = "queenbee-land-check"
"""The file, in the git directory of a worktree, that says which change of the check was shown."""


class CheckGuarded(NotLanded):
    """A landing that changes the check, and waits for a person."""

    code = "check_guarded"


def check_files(commands: Sequence[str], changed: Collection[str]) -> list[str]:
    """Returns those of the changed files that checks run, workflows, and files of agents."""
    words = {word for each in commands for word in _words(each)}
    wanted = {posixpath.normpath(each) for each in words} | _WORKFLOW_FILES
    wanted.update(name for word in words for name in _READS.get(posixpath.basename(word), ()))
    return sorted(each for each in changed if each in wanted or each.startswith(_WORKFLOWS))


def _words(command: str) -> Iterator[str]:
    """Yields the words of a command, also of those within quotes, and what is after a `=`."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = [*lexer]
    except ValueError:  # A quote that is not closed.
        words = command.split()
    for word in words:
        yield word
        yield word.partition("=")[2]
        if word != command and len(word.split()) > 1:
            yield from _words(word)


def refuse_unaccepted(git_dir: str, blobs: Mapping[str, str], *, accepts: bool) -> None:
    """Refuses a change of the check that no person has accepted: these files with these blobs.

    Only what was shown before is accepted. Raises `CheckGuarded`; its `is_new` says whether this
    change is shown for the first time.
    """
    path, files = os.path.join(git_dir, SHOWN_CHECK), dict(blobs)
    said = recall(path)
    known = said if isinstance(said, dict) else {}
    is_new = known.get("files") != files
    if not is_new and (accepts or known.get("accepted") is True):
        keep(path, {"files": files, "accepted": True})
        return
    keep(path, {"files": files, "accepted": False})
    listed = [*files]
    raise CheckGuarded(
        f"this branch changes the check: {named(listed, SHOWN)}; nothing was landed, it waits for "
        "a person",
        hint="a person looks at it and types here: queen land --accept-check",
        files=listed,
        is_new=is_new,
    )
