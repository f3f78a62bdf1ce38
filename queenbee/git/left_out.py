"""What git lacks of a hive: segments that a commit of their ledger left behind, and records of
which it stores something else.

Rotation moves lines to a new file. If only the ledger is then committed, every clone gets the
shorter ledger without those lines. Where a rule of the repository gives the records to Git LFS, git
has pointers, which it cannot merge. On this machine all is there, so nothing else would notice.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import git, line, names_in, without_programs
from queenbee.services.diagnosis import Diagnosis
from queenbee.store.files import START, read_after, split_lines
from queenbee.store.memory.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from queenbee.workflows.complete_hive import Hive

_IGNORED, _UNTRACKED = "!!", "??"
_CHANGING = ("filter", "ident", "working-tree-encoding")
_POINTER = "^version https://git-lfs"


def left_out(hive: Hive) -> list[Diagnosis]:
    """Returns what git lacks of the ledgers that it has; nothing outside git."""
    if hive.layout.settings.sync_ledgers == "branch" or hive.engine.ledgers is None:
        return []  # git carries none of them with the code.
    beads, tree = hive.layout.beads_dir, hive.layout.tree
    # In a hook, git names its index from the top of the tree.
    top = tree if beads.startswith(tree + os.sep) else beads
    try:
        said = git(
            *("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all"),
            *("--ignored", "--untracked-files=all", "--", beads),
            cwd=top,
            config=without_programs(top),
        )
    except ExternalFailure:
        return []
    entries = {text[3:]: text[:2] for text in said.decode(errors="replace").split("\0") if text}
    prefix = (line("rev-parse", "--show-prefix", cwd=top) or "") + _below(beads, top)
    ledgers = {kind: hive.layout.ledger_path(kind) for kind in hive.kinds()}
    found = [
        finding
        for kind, ledger in ledgers.items()
        for finding in _of_ledger(ledger, kind, prefix, entries)
    ]
    return found + list(_not_as_they_are(top, beads, list(ledgers.values())))


def _not_as_they_are(top: str, beads: str, ledgers: list[str]) -> Iterator[Diagnosis]:
    """Yields the rule by which git stores something else than the records, or what it has now."""
    names = [_below(beads, top) + os.path.basename(each) for each in ledgers]
    asked = os.fsencode("".join(f"{each}\0" for each in names))
    said = names_in(git("check-attr", "-z", "--stdin", *_CHANGING, cwd=top, stdin=asked))
    for name, value in zip(said[1::3], said[2::3], strict=True):
        if value not in ("unspecified", "unset"):
            yield Diagnosis(
                "attributes",
                os.path.join(beads, ".gitattributes"),
                f"the rule {name}={value} changes what git stores of the records, "
                "which it cannot merge then",
                hint="queen doctor --fix",
            )
            return
    pointers = line("grep", "--cached", "-l", "-e", _POINTER, "--", *names, cwd=top)
    if pointers is not None:
        yield Diagnosis(
            "pointer",
            os.path.join(beads, os.path.basename(pointers.partition("\n")[0])),
            "git has a pointer of Git LFS in place of these records: clones do not get them",
            hint=suggested("git add --renormalize", beads) + " && git commit",
        )


def left_out_of(hive: Hive, changed: Iterable[str]) -> list[Diagnosis]:
    """Returns what a commit of these paths, if they include a ledger, leaves behind."""
    # In a linked worktree the hive is not part of what is committed.
    ledgers = os.path.relpath(hive.layout.beads_dir, hive.layout.tree) + "/queen_"
    if any(path.startswith(ledgers) for path in changed):
        with suppress(QueenError):
            return left_out(hive)
    return []


def _of_ledger(
    ledger: str, kind: str, prefix: str, entries: Mapping[str, str]
) -> Iterator[Diagnosis]:
    ours = _status(f"{prefix}queen_{kind}.jsonl", entries)
    if ours in (_IGNORED, _UNTRACKED):
        return
    archive = Archive(ledger)
    left = {name: _status(f"{prefix}archive/{name}", entries) for name in archive.listing()}
    # A ledger with unstaged changes will be committed later, with its segments.
    wanted = (_IGNORED,) if ours[1] != " " else (_IGNORED, _UNTRACKED)
    for name in [name for name, status in left.items() if status in wanted]:
        tracked = read_after(ledger, START)
        lines = set(split_lines(archive.read(name)))
        lines.difference_update(split_lines(tracked.lines + tracked.rest))
        if lines:
            yield _finding(archive.path(name), len(lines), ignored=left[name] == _IGNORED)


def _finding(path: str, count: int, *, ignored: bool) -> Diagnosis:
    return Diagnosis(
        "left_out",
        path,
        f"git {'ignores' if ignored else 'does not have'} this segment, and {count} of its lines "
        "are nowhere else: clones do not get them",
        hint=f"see the rule: {suggested('git check-ignore -v', path)}"
        if ignored
        else suggested("git add", path),
    )


def _below(folder: str, top: str) -> str:
    return os.path.relpath(folder, top).replace(os.sep, "/") + "/" if folder != top else ""


def _status(path: str, entries: Mapping[str, str]) -> str:
    """Returns git's two status letters for a path; spaces if it is unchanged."""
    parts = path.split("/")
    folders = ["/".join(parts[:count]) + "/" for count in range(1, len(parts))]
    return next((entries[each] for each in (path, *folders) if each in entries), "  ")
