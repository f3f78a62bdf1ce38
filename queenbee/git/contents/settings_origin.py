"""Who brought a line of `queen.toml`, or a command of another file, in, as git knows it."""

from __future__ import annotations

import json
import os
import tomllib
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import escaped, mentioned, printable, quotation
from queenbee.errors import QueenError
from queenbee.git.run import git
from queenbee.store.settings import FILE_NAME, by_name
from queenbee.store.settings_file.changing_text import text_of
from queenbee.store.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Sequence

    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal

_LIMIT_S = 2.0
_CHARS = 80
_BEFORE_CHARS = 500


def line_of(text: str, name: str) -> int | None:
    """Returns the line, from 1, with which a setting such as `land.check` is set, or None."""
    lines = text.split("\n")
    for number in range(1, len(lines) + 1):
        with suppress(ValueError, QueenError):  # A value of several lines ends later.
            if name in by_name(FILE_NAME, tomllib.loads("\n".join(lines[:number]))):
                return number
    return None


def problem_sentence(layout: Layout) -> str | None:
    """Returns why the settings cannot be read, on which line, who wrote it, and what counts in
    their place; None while they can be.
    """
    settings = layout.settings
    problem = settings.problem
    if problem is None:
        return None
    line, name = problem.details.get("line"), problem.details.get("setting")
    if line is None and isinstance(name, str):
        with suppress(QueenError):
            line = line_of(text_of(os.path.join(layout.beads_dir, FILE_NAME)), name)
    at = f", line {line}" if isinstance(line, int) and isinstance(name, str) else ""
    by = who(layout, line) if isinstance(line, int) else ""
    counts = "the last good settings count" if settings.is_known else "nothing can be written"
    way = problem.hint or "queen doctor --fix"
    return f"{problem.message}{at}{f' ({by})' if by else ''}; until it is mended, {counts}: {way}"


def who(layout: Layout, line: int, folder: str | None = None) -> str:
    """Returns who wrote a line of the settings, in words, or "" if git does not know. Never fails.
    `folder` has those of a branch, in place of the hive's.

    The author is the droid where commits are made under its name, else whoever git names.
    """
    if layout.common_dir is None:
        return ""
    try:
        author, commit = _blamed(folder or layout.beads_dir, FILE_NAME, line)
    except QueenError:
        return ""
    return f"{printable(author)} in {commit}" if commit else "not committed yet"


def written_in(layout: Layout, proposal: Proposal) -> str:
    """Returns in which file a command is, and who wrote it in which commit, in words; none of them
    can be taken for another part of a sentence. Never fails.
    """
    path = proposal.path or os.path.join(layout.beads_dir, FILE_NAME)
    folder, name = os.path.split(path)
    said = mentioned(os.path.relpath(path, layout.root))
    if layout.common_dir is None:
        return f"in {said}"
    with suppress(QueenError, OSError, ValueError):
        if not git("ls-files", "--", name, cwd=folder, repository={}, limit_s=_LIMIT_S):
            return f"in {said}, not committed"
        line = _line_with(text_of(path), proposal)
        if line is not None:
            author, commit = _blamed(folder, name, line)
            by = f"{mentioned(author, _CHARS)} in {commit}" if commit else "not committed"
            return f"in {said}, {by}"
    return f"in {said}"


def shown_commands(layout: Layout, proposals: Sequence[Proposal]) -> list[str]:
    """Returns commands in full, line by line, as a person has to see them before they may run: with
    where they are written, by whom, and what they stand for now.
    """
    lines = []
    for each in proposals:
        before = Trust(layout).before(each)
        after = f"; you agreed before to {quotation(before, _BEFORE_CHARS)}" if before else ""
        what = f"{each.kind} of {each.origin}, {written_in(layout, each)}{after}"
        lines.append(f"{escaped(what)}:")
        texts = [*map(escaped, each.text.split("\n"))]
        # Numbers show blank lines, and where what is said of the command begins.
        lines += (
            [f"  {n}: {said}" for n, said in enumerate(texts, 1)]
            if texts[1:]
            else [f"  {texts[0]}"]
        )
        lines += [f"  ({escaped(said)})" for said in each.more]
    return lines


def _line_with(text: str, proposal: Proposal) -> int | None:
    """Returns the line, from 1, that has a command, or None."""
    if proposal.path == "" or os.path.basename(proposal.path) == FILE_NAME:
        return line_of(text, proposal.origin.split(" ")[0])
    forms = {json.dumps(proposal.text, ensure_ascii=each)[1:-1] for each in (True, False)}
    lines = text.split("\n")
    found = [number for number, each in enumerate(lines, 1) if any(form in each for form in forms)]
    # A file with many rows may have the same command in several.
    own = [number for number in found if json.dumps(proposal.origin) in lines[number - 1]]
    return next(iter([*own, *found]), None)


def _blamed(folder: str, name: str, line: int) -> tuple[str, str]:
    """Returns the author and the commit of a line; both are empty if it is not committed."""
    asked = ("blame", "--porcelain", f"-L{line},{line}", "--", name)
    said = git(*asked, cwd=folder, repository={}, limit_s=_LIMIT_S)
    lines = os.fsdecode(said).split("\n")
    commit = lines[0].partition(" ")[0]
    if not commit.strip("0"):
        return "", ""
    return next((each[7:] for each in lines if each.startswith("author ")), ""), commit[:10]
