"""What a check would read in place of what git has: files that only one worktree has.

A program takes the first of several files, and Python the first of several modules. One that git
does not track, or ignores, would so take the check away from a branch, and from all that are
checked with it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, shell_word, suggested
from queenbee.git.landing.commands import git
from queenbee.git.landing.judged.command_reads import CommandReads, forms
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.git.run import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def refuse_shadowed(commands: Sequence[str], tree: str, target: str) -> None:
    """Raises `NotLanded` for files of a worktree that are not in its commit, and that checks would
    read in place of those of the commit, or of the target's.
    """
    reads = [CommandReads(each) for each in commands if each]
    names = {each for one in reads for each in _names(one) if not each.startswith(("/", "../"))}
    asked = [each for each in names if not os.path.isdir(os.path.join(tree, each))]
    here = {each for each in asked if os.path.lexists(os.path.join(tree, each))}
    if not here:
        return
    literal = "--literal-pathspecs"
    ours = {*names_in(git(literal, "ls-files", "-z", "--", *asked, cwd=tree))}
    listed = ("ls-tree", "-r", "--name-only", "-z", no_dash(target), "--", *asked)
    theirs = {*names_in(git(literal, *listed, cwd=tree))}
    instead = {each for one in reads for each in _instead_of(one, ours | theirs)}
    found = sorted((here - ours) & (theirs | instead))
    if found:
        raise NotLanded(
            f"the check would read what git does not have: {named(found, SHOWN)}",
            hint=f"{suggested('rm', os.path.join(tree, found[0]))}, then queen land again; or, to "
            f"land it too: git add -f {shell_word(found[0])}",
            files=found,
        )


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
