"""What a check would read in place of what git has: files that only one worktree has.

A program takes the first of several files, and Python the first of several modules. One that git
does not track, or ignores, would so take the check away from a branch, and from all that are
checked with it.
"""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.git.landing.commands import git
from queenbee.git.landing.judged.command_reads import CommandReads, forms
from queenbee.git.landing.judged.included import included
from queenbee.git.landing.judged.make_targets import taken_for_made
from queenbee.git.landing.judged.python_reads import PythonReads
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.git.run import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def refuse_shadowed(
    commands: Sequence[str], tree: str, target: str, tracked: set[str]
) -> list[str]:
    """Returns the files of a worktree that are not in its commit, and that checks may read all the
    same. Raises `NotLanded` for those that they would read in place of those of the commit, or of
    the target's.
    """
    reads = [CommandReads(each) for each in commands if each]
    python = PythonReads.of(tree, tracked)
    makefiles = [each for one in reads for each in _makefiles(one, tracked)]
    more = dict(included(tree, makefiles, tracked))
    found = _of_commands(reads, tree, target, tracked) | {*python.instead}
    found |= {path for path, is_left_out in more.items() if is_left_out}
    found |= taken_for_made(commands, tree, tracked)
    if found:
        first = min(found)
        is_folder = os.path.isdir(os.path.join(tree, first))
        remove = suggested("rm -r" if is_folder else "rm", os.path.join(tree, first))
        raise NotLanded(
            f"the check would read what git does not have: {named(sorted(found), SHOWN)}",
            hint=f"{remove}, then queen land again; or, to "
            f"land it too: git add -f {shell_word(first)}",
            files=sorted(found),
        )
    return sorted({*python.beside, *more})


def _of_commands(reads: Sequence[CommandReads], tree: str, target: str, ours: set[str]) -> set[str]:
    """Returns what the commands themselves would read."""
    names = {each for one in reads for each in _names(one) if not each.startswith(("/", "../"))}
    asked = [each for each in names if not os.path.isdir(os.path.join(tree, each))]
    here = {each for each in asked if os.path.lexists(os.path.join(tree, each))}
    if not here:
        return set()
    listed = ("ls-tree", "-r", "--name-only", "-z", no_dash(target), "--", *asked)
    theirs = {*names_in(git("--literal-pathspecs", *listed, cwd=tree))}
    instead = {each for one in reads for each in _instead_of(one, ours | theirs)}
    return (here - ours) & (theirs | instead)


def _makefiles(reads: CommandReads, tracked: set[str]) -> Iterator[str]:
    files = [*reads.words, *(each for family in reads.families for each in family.files)]
    for each in files:
        name = posixpath.basename(each).lower()
        if each in tracked and name.endswith(("makefile", ".mk")):
            yield each


def _names(reads: CommandReads) -> Iterator[str]:
    yield from reads.names
    for each in reads.words:
        yield from forms(each.replace(".", "/"))


def _instead_of(reads: CommandReads, known: set[str]) -> Iterator[str]:
    """Yields what would be read in place of known files, or beside them."""
    for family in reads.families:
        yield from family.instead_of(known)
    for module in reads.modules:
        yield from forms(module)
    for package, main, plain in (forms(each.replace(".", "/")) for each in reads.words):
        if plain in known:
            yield from (package, main)
