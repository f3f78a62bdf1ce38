"""The branch of a remote that holds the records of a hive and no code.

It is read and written by git's plumbing alone: no worktree, index, branch or reflog of the user
is touched, and no hook runs. What is there was written by others: only files with the names of
ledgers and segments are read, up to a size, and nothing is ever checked out. ADR 0029.
"""

from __future__ import annotations

import math
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.kinds import KINDS
from queenbee.core.text import mentioned, printable, shell_word
from queenbee.errors import ExternalFailure, InvalidInput, Unreachable, Unreadable
from queenbee.git.objects import Objects, TooLarge
from queenbee.git.remote import leftovers
from queenbee.git.run import NotTrusted, git, network
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from queenbee.services.open_store import Store

MOST_FILE_BYTES = 64 * 2**20
"""A file on the branch is at most so large; ours are cut at a sixtieth of it."""
MOST_BYTES = 2**30
_MOST_TREE_BYTES = 2**23
"""A folder of a hundred thousand files."""
_MOST_KINDS = 100
"""Each kind has files of its own here, which every command would look at."""
MOST_NUMBER = 999_999_999
"""Of a segment, as `_NAME` says."""
_UNTIL_UNLOCKED_S = (0.05, 0.2, 0.8, 0.0)
"""How long to wait after each try to move a ref that another git has locked."""
_LOCKED_S = 60.0
"""Git holds the lock of a ref for an instant; a lock of this age was left behind by a kill."""
_ARCHIVE = "archive"
_NAME = re.compile(
    r"queen_(?P<kind>[a-z][a-z0-9_-]{0,40})(?:\.(?P<number>[1-9][0-9]{0,8}))?\.jsonl"
)
_SUBJECT = re.compile(rb"queenbee: ([1-9][0-9]{0,14})")
_LOOKED_BACK = 100
_ORDINARY = re.compile(r"(?!HEAD$)[A-Za-z0-9][A-Za-z0-9_-]*(?:/[A-Za-z0-9][A-Za-z0-9_-]*)*")
"""Git need not be asked whether this can be the name of a branch."""
_TREE, _SUBMODULE, _FILES = "40000", "160000", ("100644", "100755")
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "queenbee"), ("EMAIL", "queenbee@localhost"))
}
_QUIET = {"core.logAllRefUpdates": "false"}
_FETCH = ("fetch", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--progress")
_RACED = ("fetch first", "non-fast-forward", "cannot lock ref", "incorrect old value",
          "failed to update ref", "reference already exists", "failed to lock")  # fmt: skip
"""What git says of a push that another one overtook."""


def is_kind(kind: str) -> bool:
    """Returns whether a kind of record can be on the branch."""
    return _NAME.fullmatch(f"queen_{kind}.jsonl") is not None


@dataclass(frozen=True, slots=True)
class File:
    """A ledger or segment on the branch: its kind, its number (0 for the ledger), and its blob."""

    kind: str
    number: int
    oid: str


@dataclass(slots=True)
class Tree:
    """The files of one commit of the branch, by kind and number; all else is kept as it is."""

    files: dict[tuple[str, int], File] = field(default_factory=dict)
    others: dict[str, list[str]] = field(default_factory=lambda: {"": [], _ARCHIVE: []})
    """Entries of other names, as `git mktree` takes them."""
    archive: str | None = None
    """The folder of segments."""

    def strange(self) -> list[str]:
        """Returns the names of entries that no version of QueenBee gives a file there."""
        names = [each.partition("\t")[2] for entries in self.others.values() for each in entries]
        return [each for each in names if not each.startswith("queen_")]


class Branch:
    """One branch of one remote. Raises `InvalidInput` if this hive has none to be on.

    Used as a context manager for as long as it is read: one git reads all objects. All that talks
    to the remote takes no longer than `most_s` together.
    """

    def __init__(self, store: Store, *, most_s: float = math.inf) -> None:
        layout = store.layout
        home = git_tree(layout.root) if layout.common_dir is not None else None
        if home is None or home.tree != layout.root:
            raise InvalidInput(
                "only the hive at the top of a git repository can be synced",
                hint="run queen hive where to see which hive this is",
            )
        settings = layout.settings
        self.remote: str = settings.sync_remote
        self.name: str = settings.sync_branch
        self._cwd = layout.root
        self._timeout_s = settings.sync_timeout_s
        self._until_s = time.monotonic() + most_s
        # The settings came with a clone: they may only choose among what this machine configured.
        remotes = self._line("config", "--null", "--get-regexp", r"^remote\.") or ""
        said = dict(each.partition("\n")[::2] for each in remotes.split("\0"))
        self._is_partial = f"remote.{self.remote}.promisor" in said
        if self.remote.startswith("-") or f"remote.{self.remote}.url" not in said:
            raise InvalidInput(
                f"this repository has no remote {printable(self.remote)!r}",
                hint=f"git remote add {shell_word(self.remote)} URL, or "
                "queen config set sync.remote NAME",
            )
        if self.name.startswith(("refs/", "+")) or (
            _ORDINARY.fullmatch(self.name) is None
            and self._line("check-ref-format", "--branch", no_dash(self.name)) != self.name
        ):
            raise InvalidInput(
                f"{printable(self.name)!r} cannot be a branch",
                hint="queen config set sync.branch NAME",
            )
        self.ref: str = f"refs/queenbee/{self.remote}/{self.name}"
        """Where the commit that was fetched last is kept: outside of the user's branches."""
        self._common_dir = layout.common_dir or ""
        self._objects = Objects(self._cwd)
        self._commits: dict[str, tuple[list[str], bytes]] = {}

    def __enter__(self) -> Branch:
        return self

    def __exit__(self, *exits: object) -> None:
        self._objects.__exit__(*exits)

    def left_s(self) -> float:
        """Returns how long the remote may still take."""
        return max(0.0, self._until_s - time.monotonic())

    def fetch(self) -> str | None:
        """Returns the newest commit there; None if there is no such branch yet.

        Raises `Unreachable`.
        """
        self._unlock()
        before = leftovers.packs(self._common_dir)
        try:
            return self._fetched()
        except Unreachable:
            leftovers.remove(self._common_dir, before)
            raise

    def _fetched(self) -> str | None:
        """Returns what `fetch` does."""
        status, _, said = self._network(
            *_FETCH,
            # A shallow or partial clone gets all of this branch: it is small, and all of it counts.
            *("--no-filter", "--refmap=", "--no-show-forced-updates"),
            *(no_dash(self.remote), f"+refs/heads/{self.name}:{self.ref}"),
            config={"fetch.fsckObjects": "true"},
        )
        if status == 0:
            head = self.head()
            if self._is_partial and head is not None:
                self._complete(head)
            return head
        if "couldn't find remote ref" in said:
            if self.head() is not None:
                self._git("update-ref", "-d", self.ref)
            return None
        raise self._unreachable(said)

    def _complete(self, commit: str) -> None:
        """Fetches the files of a commit that a partial clone left out.

        A `git fetch` of the user gets all branches, this one too, by the filter of the clone.
        """
        named = ("rev-list", "--objects", "--no-walk", "--missing=print", no_dash(commit))
        missing = [each[1:] for each in self._text(*named).split("\n") if each.startswith("?")]
        if not missing:
            return
        status, _, said = self._network(
            *(*_FETCH, "--filter=blob:none", "--stdin", no_dash(self.remote)),
            stdin="".join(f"{each}\n" for each in missing).encode(),
            config={"fetch.negotiationAlgorithm": "noop"},
        )
        if status != 0:
            raise self._unreachable(said)

    def _unlock(self) -> None:
        """Removes the lock of our ref that a killed git left: none but ours writes it, one at a
        time, and as long as it is there, nothing could be exchanged.
        """
        path = os.path.join(self._common_dir, f"{self.ref}.lock")
        with suppress(OSError):
            if abs(time.time() - os.lstat(path).st_mtime) > _LOCKED_S:
                os.unlink(path)

    def head(self) -> str | None:
        """Returns the commit that was fetched last, or None."""
        found = self._objects.read(f"{self.ref}^{{commit}}")
        return found[0] if found is not None else None

    def follows(self, older: str, newer: str) -> bool:
        """Returns whether one commit is in the history of the other."""
        at = newer
        for _ in range(_LOOKED_BACK):
            if at == older:
                return True
            read = self._commit(at)
            if read is None or len(read[0]) != 1:
                break
            at = read[0][0]
        try:
            self._git("merge-base", "--is-ancestor", no_dash(older), no_dash(newer))
        except ExternalFailure:
            return False
        return True

    def number(self, commit: str | None) -> int:
        """Returns the number of a commit: each push of ours adds one, so it only grows."""
        if commit is None:
            return 0
        at = commit
        for distance in range(_LOOKED_BACK):
            read = self._commit(at)
            if read is None:
                break
            parents, subject = read
            found = _SUBJECT.fullmatch(subject)
            if found and self._is_next(int(found[1]), parents):
                return int(found[1]) + distance
            if not parents:
                break
            at = parents[0]
        return int(self._git("rev-list", "--count", "--first-parent", no_dash(commit)))

    def _is_next(self, number: int, parents: Sequence[str]) -> bool:
        """Returns whether a commit may have this number: whoever can push can write any subject."""
        if not parents:
            return number == 1
        read = self._commit(parents[0])
        if read is None:  # A shallow clone.
            return True
        found = _SUBJECT.fullmatch(read[1])
        before = int(found[1]) if found else self.number(parents[0])
        return number == before + 1

    def _commit(self, oid: str) -> tuple[list[str], bytes] | None:
        """Returns the parents and the subject of a commit; None if a shallow clone lacks it."""
        if oid not in self._commits:
            read = self._read(oid, _MOST_TREE_BYTES, "has a commit")
            if read is None:
                return None
            head, _, message = read[2].partition(b"\n\n")
            lines = head.split(b"\n")
            parents = [each[7:].decode() for each in lines if each.startswith(b"parent ")]
            self._commits[oid] = parents, message.partition(b"\n")[0]
        return self._commits[oid]

    def _read(self, name: str, most_bytes: int, what: str) -> tuple[str, str, bytes] | None:
        try:
            return self._objects.read(name, most_bytes)
        except TooLarge as error:
            raise self._too_large(f"{what} with {error.size_bytes} bytes") from None

    def _content(self, name: str, most_bytes: int, what: str) -> tuple[str, bytes]:
        """Returns the id and the content of an object that has to be there."""
        read = self._read(name, most_bytes, what)
        if read is None:
            raise ExternalFailure(f"git has no object {name}", program="git")
        return read[0], read[2]

    def tree(self, commit: str | None) -> Tree:
        """Returns the files of a commit. Raises `Unreadable` if they are too many to be ours."""
        found = Tree()
        if commit is None:
            return found
        for mode, name, oid in self._entries(f"{commit}^{{tree}}"):
            if name != _ARCHIVE:
                _sort(found, "", mode, name, oid)
            elif mode == _TREE:  # Anything else has to go: ours will have that name.
                found.archive = oid
                for entry in self._entries(oid):
                    _sort(found, _ARCHIVE, *entry)
        # Ours do not count: what a push of ours adds must not be too many.
        if (kinds := len({kind for kind, _ in found.files} - KINDS.keys())) > _MOST_KINDS:
            raise self._too_large(f"has {kinds} kinds of records")
        return found

    def is_of_records(self, commit: str | None) -> bool:
        """Returns whether all history of a commit begins with records and nothing else."""
        if commit is None:
            return False
        roots = self._text("rev-list", "--max-parents=0", no_dash(commit)).split()
        trees = map(self.tree, roots)
        return all(each.files and not each.strange() for each in trees)

    def read(self, files: Iterable[File], total: int = 0) -> dict[str, bytes]:
        """Returns the content of files by their blobs. Raises `Unreadable` if they are too large
        to be ours, together with `total` bytes of others.
        """
        found: dict[str, bytes] = {}
        for each in files:
            if each.oid in found:
                continue
            what = f"has {name_of(each.kind, each.number)}"
            _, found[each.oid] = self._content(each.oid, MOST_FILE_BYTES, what)
            total += len(found[each.oid])
            if total > MOST_BYTES:
                raise self._too_large(f"holds more than {MOST_BYTES} bytes")
        return found

    def write(
        self,
        tree: Tree,
        contents: Iterable[tuple[tuple[str, int], bytes]],
        parent: str | None,
        number: int,
    ) -> str:
        """Returns a new commit with these files, one after the other, in place of those in `tree`.

        Raises `InvalidInput` if that is a branch of something else: the settings, which came with a
        clone, name it, and nobody means to push records on top of code.
        """
        if not tree.files and (strange := tree.strange()):
            raise self.not_for_records(f"has {mentioned(strange[0])}, and no records")
        folders = {name: list(entries) for name, entries in tree.others.items()}
        blobs = {key: each.oid for key, each in tree.files.items()}
        for key, data in contents:
            blobs[key] = self._text("hash-object", "-w", "-t", "blob", "--stdin", stdin=data)
        for (kind, count), oid in sorted(blobs.items()):
            folder = _ARCHIVE if count else ""
            name = name_of(kind, count)
            # A link or a folder of this name has to go: git takes no tree that has a name twice.
            others = folders[folder]
            folders[folder] = [each for each in others if each.partition("\t")[2] != name]
            folders[folder].append(f"100644 blob {oid}\t{name}")
        if folders[_ARCHIVE]:
            segments = any(count for _, count in blobs.keys() - tree.files.keys())
            kept = None if segments else tree.archive
            archive = kept or self._make_tree(folders[_ARCHIVE])
            folders[""].append(f"040000 tree {archive}\t{_ARCHIVE}")
        made = self._make_tree(folders[""])
        parents = [f"-p{parent}"] if parent else []
        said = f"queenbee: {number}\n".encode()
        return git(
            *("commit-tree", no_dash(made), *parents),
            cwd=self._cwd,
            stdin=said,
            repository=_NOBODY,
            config=_QUIET,
        ).decode().strip()  # fmt: skip

    def push(self, commit: str) -> bool:
        """Makes a commit the newest one there; returns whether nobody else was faster.

        Raises `Unreachable` if the outcome is unknown: the next `fetch` tells. Raises
        `ExternalFailure` if the remote refuses it for good.
        """
        self._unlock()
        status, out, said = self._network(
            *("push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-signed"),
            *("--progress", "--recurse-submodules=no", no_dash(self.remote)),
            no_dash(f"{commit}:refs/heads/{self.name}"),
        )
        if status == 0:
            self._note_pushed(commit)
            return True
        refused = [each for each in out.splitlines() if each.startswith("!")]
        if not refused:
            raise self._unreachable(said)
        why = refused[0].rpartition("\t")[2]
        other = self._in_its_place() if self.head() is None else ""
        way = "queen config set sync.branch NAME"
        if other:
            why = f"git can have no such branch beside {other}"
        elif any(each in why or each in said for each in _RACED):
            return False
        raise ExternalFailure(
            f"{self.remote} refuses {self.name}: {printable(why)}",
            hint=way if other else f"let pushes to this branch pass there, or: {way}",
            program="git",
            status=status,
        )

    def _in_its_place(self) -> str:
        """Returns a branch there whose name is a folder of this one's, or below it; else empty."""
        parts = self.name.split("/")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        names = (f"refs/heads/{each}" for each in (*above, f"{self.name}/*"))
        _, out, _ = self._network("ls-remote", "--", self.remote, *names)
        first = out.partition("\n")[0].partition("\t")[2]
        return printable(first.removeprefix("refs/heads/"))

    def _network(
        self, *arguments: str, stdin: bytes = b"", config: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Returns the status and the outputs of a git that talks to the remote."""
        return network(
            *arguments,
            cwd=self._cwd,
            timeout_s=self._timeout_s,
            most_s=self.left_s(),
            stdin=stdin,
            config={"core.logAllRefUpdates": "false", **(config or {})},
        )

    def _note_pushed(self, commit: str) -> None:
        """Moves our ref, which the git of a process that was killed may have locked: what the
        remote has counts, and the next fetch moves it.
        """
        for pause_s in _UNTIL_UNLOCKED_S:
            with suppress(ExternalFailure):
                self._git("update-ref", self.ref, no_dash(commit))
                return
            time.sleep(pause_s)

    def _entries(self, tree: str) -> list[tuple[str, str, str]]:
        """Returns the mode, name and id of each entry of a tree."""
        own, data = self._content(tree, _MOST_TREE_BYTES, "has a folder")
        found, at, id_bytes = [], 0, len(own) // 2
        while at < len(data):
            end = data.index(b"\0", at)
            mode, _, name = data[at:end].partition(b" ")
            at = end + 1 + id_bytes
            found.append((mode.decode().lstrip("0"), os.fsdecode(name), data[end + 1 : at].hex()))
        return found

    def _make_tree(self, entries: Iterable[str]) -> str:
        data = b"".join(os.fsencode(each) + b"\0" for each in entries)
        return self._text("mktree", "-z", "--missing", stdin=data)

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return git(*arguments, cwd=self._cwd, stdin=stdin, repository={}, config=_QUIET)

    def _text(self, *arguments: str, stdin: bytes = b"") -> str:
        return self._git(*arguments, stdin=stdin).decode().strip()

    def _line(self, *arguments: str) -> str | None:
        try:
            return self._text(*arguments) or None
        except NotTrusted:
            raise
        except ExternalFailure:
            return None

    def _unreachable(self, said: str) -> Unreachable:
        lines = [each for each in said.strip().splitlines() if each.strip()]
        # The rest is what the remote tells of its progress.
        telling = [each for word in ("fatal:", "error:") for each in lines if each.startswith(word)]
        why = next(iter([*telling, *lines]), "")
        return Unreachable(
            f"the remote {self.remote} cannot be reached: {printable(why)}",
            hint=f"see what git says: git ls-remote {shell_word(self.remote)}",
            remote=self.remote,
        )

    def not_for_records(self, why: str) -> InvalidInput:
        """Returns the refusal of a branch that is one of code."""
        return InvalidInput(
            f"the branch {self.name} of {self.remote} {why}: it is no branch for records",
            hint="use another branch: queen config set sync.branch NAME; "
            "if the hive is on this one, take all other files off it",
        )

    def _too_large(self, what: str) -> Unreadable:
        return Unreadable(
            f"the branch {self.name} of {self.remote} {printable(what)}: no hive is that large",
            hint="look at what was pushed there, or: queen config set sync.branch NAME",
            path=self.ref,
        )


def name_of(kind: str, number: int) -> str:
    """Returns the name of a ledger (0) or a segment on the branch."""
    return f"queen_{kind}.{number}.jsonl" if number else f"queen_{kind}.jsonl"


def _sort(tree: Tree, folder: str, mode: str, name: str, oid: str) -> None:
    """Adds an entry where it belongs."""
    match = _NAME.fullmatch(name)
    if match is not None and bool(match["number"]) == (folder == _ARCHIVE) and mode in _FILES:
        number = int(match["number"] or 0)
        tree.files[match["kind"], number] = File(match["kind"], number, oid)
        return
    kind = {_TREE: "tree", _SUBMODULE: "commit"}.get(mode, "blob")
    tree.others[folder].append(f"{mode:0>6} {kind} {oid}\t{name}")
