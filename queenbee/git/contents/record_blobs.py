"""What of the hive's files may be committed without a check: records, as blobs of the very bytes
that were read and understood.

Anybody may write below `.beads/`: an `.env`, a dump, a draft, a line by hand. So a file is read
once. Every line of a ledger, a segment or the tracker must be one, of a kind that this version
knows, and no new line may hold a secret, or a field twice. A bead must have the bytes that QueenBee
wrote last.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from queenbee._hashing import sha256
from queenbee.core.command_lines import no_dash
from queenbee.core.kinds import KINDS
from queenbee.core.text import mentioned, suggested, without_escapes
from queenbee.documents.folders import bead_notes
from queenbee.errors import ExternalFailure, Unreadable
from queenbee.git.contents.running_hooks import (
    HOOK_BY_ALIAS,
    HOOK_BY_GIT,
    hooks_there,
    runs_hooks,
)
from queenbee.git.contents.signing import signs
from queenbee.git.index_lock import INDEX, PREPARED, IndexLock
from queenbee.git.objects import Objects
from queenbee.git.run import git, line, user_git
from queenbee.git.trees.open_operations import OPEN, open_operations
from queenbee.services.writing.secrets import LooksLikeSecret, refuse_secrets, refuse_secrets_in_row
from queenbee.store import safe_open
from queenbee.store.codec import Unusable, decoder
from queenbee.store.git_files.worktrees import current_branch
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import recall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.services.open_store import Store

_LEDGER = re.compile(r"\.beads/(?:archive/)?queen_([a-z]+)(?:\.\d+)?\.jsonl")
_TRACKER = ".beads/issues.jsonl"
_BEAD = re.compile(r"\.beads/(?:active|completed)/[^/]+\.json")
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")
_MOST_SAID = 1_000
_STAGES = (
    "a hook of git staged other files for the commit of the records: they are not in it (look for "
    "git add in pre-commit, prepare-commit-msg, commit-msg)"
)


class Records(NamedTuple):
    """Records to commit, and those that cannot be."""

    blobs: Mapping[str, str | None]
    """The blob of each file; None for a bead that was moved away."""
    left_out: list[str]
    """Why files are left out, a sentence each."""

    def tree_in(self, root: str, repository: Mapping[str, str]) -> str:
        """Gives an index these blobs, and returns its tree. Raises `ExternalFailure`."""
        gone = ""
        if None in self.blobs.values():  # Git reads an id, although it means nothing.
            some = git("hash-object", "--stdin", cwd=root, repository=repository)
            gone = "0" * len(some.strip())
        lines = (
            f"0 {gone}\t{path}\0" if blob is None else f"100644 {blob}\t{path}\0"
            for path, blob in self.blobs.items()
        )
        entries = "".join(lines).encode(errors="surrogateescape")
        how = ("update-index", "--add", "-z", "--index-info")
        git(*how, cwd=root, stdin=entries, repository=repository)
        return git("write-tree", cwd=root, repository=repository).decode().strip()

    def commit(self, objects: Objects, target: str | None, message: str) -> str | None:
        """Commits them as the user would, in the worktree of these objects; returns what a hook
        says that refuses it, else "", and None where git is at work there, or something in the way.

        With an index of its own, so that nothing else is in the commit. The lock of the worktree's
        index is ours meanwhile, as it is git's for `git commit --only`: a commit that moved `HEAD`
        in between would be undone by this one.
        """
        import tempfile  # noqa: PLC0415 - start-up

        here = git_tree(objects.cwd)
        if here is None:
            return ""
        index = os.path.join(here.git_dir, "index")
        with suppress(FileExistsError), IndexLock(here.git_dir):
            if not in_the_way(objects.cwd, target):
                own = tempfile.mkdtemp(prefix=PREPARED, dir=here.git_dir)  # The lock removes it.
                os.chmod(own, 0o755)  # noqa: S103 - if we are killed, another user may complete it
                return self._commit(objects, str(target), message, index, os.path.join(own, INDEX))
        return None

    def _commit(self, objects: Objects, target: str, message: str, index: str, own: str) -> str:
        root, asked = objects.cwd, {"GIT_INDEX_FILE": own}
        files, head = self._copied(index, root, asked), objects.read("HEAD")
        if head is None or head[2].startswith(b"tree %s\n" % files.encode()):
            return ""
        made = _Commit(root, asked, f"{own}.message")
        if not made.obeys(message):
            return made.said
        if made.hooks and line("write-tree", cwd=root, repository=asked) != files:
            self.left_out.append(_STAGES)
            self._copied(index, root, asked)
        with suppress(ExternalFailure):  # It says so of a file that has changed meanwhile.
            git("update-index", "-q", "--refresh", cwd=root, repository=asked)
        if not made.make(files, head[0], target):
            return made.said
        if current_branch(os.path.dirname(index)) != target:  # A `git switch -c` takes no lock.
            return ""
        os.replace(own, index)
        return ""

    def _copied(self, index: str, root: str, asked: Mapping[str, str]) -> str:
        """Makes the index of a commit: that of the worktree, where nothing is staged, with them;
        returns its tree.
        """
        shutil.copyfile(index, asked["GIT_INDEX_FILE"])
        return self.tree_in(root, asked)


class _Commit:
    """A commit of a tree on top of `HEAD`, made as `git commit` makes one, but for one thing: what
    its hooks stage is not in it, not even for a moment.
    """

    def __init__(self, root: str, asked: Mapping[str, str], message: str) -> None:
        self._root = root
        self._asked = asked
        self._message = message
        """The path of its message."""
        self.hooks: set[str] = hooks_there(root, _HOOKS)
        """Those that git may have something to run for."""
        self.said = ""
        """What git said that failed, or a hook that refuses it."""

    def obeys(self, message: str) -> bool:
        """Returns whether the hooks agree to it, with what they make of a message."""
        with open(self._message, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{message}\n")
        run = HOOK_BY_GIT if not self.hooks or runs_hooks() else HOOK_BY_ALIAS
        words = dict(zip(_HOOKS, ((), (self._message, "message"), (self._message,)), strict=True))
        for hook in (each for each in _HOOKS if each in self.hooks):
            if not self._does(*run, no_dash(hook), "--", *words[hook]):
                return False
        with open(self._message, "rb") as file:
            tidy = file.read().rstrip(b"\n") + b"\n"
        if self.hooks:
            tidy = git("stripspace", cwd=self._root, stdin=tidy, repository={})
        try:
            refuse_secrets({"message": tidy.decode(errors="surrogateescape")})
        except LooksLikeSecret as error:
            self.said = f"as the hooks left it, {error.message.partition(';')[0]}"
        with open(self._message, "wb") as file:
            file.write(tidy)
        return not self.said

    def make(self, files: str, before: str, target: str) -> bool:
        """Makes it, and moves the target to it; returns whether that was possible."""
        how = ["-p", no_dash(before), *(["-S"] if signs(self._root) else [])]
        if not self._does("commit-tree", *how, f"-F{self._message}", no_dash(files)):
            return False
        commit = self._answer
        how = ["-m", "queen: records", f"refs/heads/{target}"]
        return self._does("update-ref", *how, no_dash(commit), no_dash(before))

    def _does(self, *arguments: str) -> bool:
        asked = {**self._asked, "GIT_EDITOR": ":"}
        status, out, err = user_git(*arguments, cwd=self._root, repository=asked)
        self._answer = os.fsdecode(out).strip()
        if status != 0:
            said = " ".join(without_escapes(os.fsdecode(out + err)).split())
            self.said = said[-_MOST_SAID:] or f"status {status}"
        return status == 0


def is_bead(path: str) -> bool:
    """Returns whether a file may be a bead of the hive."""
    return _BEAD.fullmatch(path) is not None


def records_of(
    store: Store, objects: Objects, root: str, commit: str, paths: Sequence[str]
) -> Records:
    """Reads records below the top of a worktree, and writes those that may be committed to git as
    blobs; `commit` has what was committed before. The lines are those of one moment: the turn at
    writing is only needed to open the files. Raises `Busy` and `ExternalFailure`.
    """
    import tempfile  # noqa: PLC0415 - start-up

    blobs: dict[str, str | None] = {}
    fit: list[str] = []
    left_out: list[str] = []
    stays = set[str]()
    noted = recall(bead_notes(store.layout))
    written = noted if isinstance(noted, dict) else {}
    with ExitStack() as ending:
        with store.transaction():  # No line is half written, and of no write is only a part here.
            ledgers = {path: _opened(root, path, ending) for path in paths if _grows(path)}
        folder = ending.enter_context(tempfile.TemporaryDirectory())
        for path in paths:
            data = ledgers[path]() if path in ledgers else _content(os.path.join(root, path))
            if is_bead(path):
                # A draft of somebody's is nothing to tell of.
                if written.get(path.removeprefix(".beads/")) != digest(data):
                    continue
                blobs[path] = None
            if data is not None:
                before = objects.read(f"{commit}:{path}")
                fault = _fault(path, data, before[2] if before is not None else b"")
                if fault:
                    left_out.append(f"{mentioned(path)} is not committed: {fault}")
                    stays.add(os.path.basename(path))
                    continue
                # The bytes that were looked at, whatever the file has by now.
                safe_open.write(os.path.join(folder, str(len(fit))), data, os.O_CREAT | os.O_EXCL)
                fit.append(path)
        # A bead that cannot be committed where it is now stays where it was.
        for path in [each for each in blobs if os.path.basename(each) in stays]:
            del blobs[path]
        blobs.update(zip(fit, _blobs(root, folder, len(fit)), strict=True))
    return Records(blobs, left_out)


def in_the_way(root: str, target: str | None) -> str:
    """Returns why nothing is to be committed in a worktree now; empty if nothing is in the way.

    A commit in the midst of a person's rebase would become a part of it, and one beside what they
    staged would change what they are about to commit.
    """
    if why := under_way(root, target):
        return why
    staged = git("diff-index", "--cached", "--name-only", "HEAD", "--", cwd=root, repository={})
    return f"something is staged in {root}" if staged else ""


def under_way(root: str, target: str | None) -> str:
    """Returns why nothing is to be committed in a worktree, whatever is staged there. Records go to
    the branch on which work lands, and to no other one.
    """
    here = git_tree(root)
    if here is None:
        return f"{root} is not in git"
    opened = open_operations(here.git_dir)
    if opened:
        return f"git {OPEN[opened[0]][0]} is under way in {root}"
    branch = current_branch(here.git_dir)
    if branch is None:
        way = f"; try: {suggested('git -C', root)} {suggested('switch', target)}" if target else ""
        return f"{root} is on no branch{way}"
    if branch != target:
        return f"{root} is on another branch than {target}"
    return ""


def digest(data: bytes | None) -> str:
    """Returns what a note says of the bytes of a bead; empty if there is none."""
    return sha256(data).hexdigest() if data is not None else ""


def _fault(path: str, data: bytes, before: bytes) -> str:
    """Returns why a file may not be committed as it is, or nothing."""
    if is_bead(path):  # It is all of one piece: what was in it before is judged again.
        fault = _fault_in(data)
        return fault and f"the bead{fault}"
    named = _LEDGER.fullmatch(path)
    if path != _TRACKER and (named is None or named[1] not in KINDS):
        return "this version knows no such records"
    decode, known = decoder(len(data)), set(before.split(b"\n"))
    for number, raw in enumerate(data.split(b"\n"), start=1):
        text = raw.removesuffix(b"\r")
        if not text or text.isspace() or raw in known:
            continue
        try:
            decode(text)
        except Unusable as error:
            return f"line {number} is no record: {error}"
        if fault := _fault_in(text):
            return f"line {number}{fault}"
    return ""


def _fault_in(text: bytes) -> str:
    """Returns why an object may not be committed, after what it is called, or nothing."""
    try:
        refuse_secrets_in_row(json.loads(text, object_pairs_hook=once))
    except Unusable as error:
        return f" is no record: {error}"
    except LooksLikeSecret as error:
        return f": {error.message.partition(';')[0]}"
    return ""


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Returns an object. Raises `Unusable` if a name is in it twice: readers see one value alone,
    and git has both.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Unusable("a field is in it twice")
    return fields


def _grows(path: str) -> bool:
    """Returns whether a file gets lines, or other ones, in the turn at writing."""
    return os.path.dirname(path) == ".beads"


def _opened(root: str, path: str, ending: ExitStack) -> Callable[[], bytes | None]:
    """Opens a file; returns what reads what is in it now: it grows, or another takes its name."""
    try:
        fd = safe_open.open_file(os.path.join(root, path), os.O_RDONLY)
    except (OSError, Unreadable):
        return lambda: None
    file, size = ending.enter_context(os.fdopen(fd, "rb")), os.fstat(fd).st_size
    return lambda: file.read(size)


def _content(path: str) -> bytes | None:
    """Returns the bytes of a regular file; None where there is none."""
    try:
        return safe_open.read(path)
    except (OSError, Unreadable):
        return None


def _blobs(root: str, folder: str, count: int) -> list[str]:
    """Writes the files of a folder, named by numbers, to git as blobs; returns their ids."""
    if not count:
        return []
    paths = "".join(f"{os.path.join(folder, str(number))}\n" for number in range(count))
    how = ("hash-object", "-w", "--no-filters", "--stdin-paths")
    return git(*how, cwd=root, stdin=os.fsencode(paths), repository={}).decode().split()
