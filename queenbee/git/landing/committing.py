"""Commits what a worktree has before it lands, but for what should never be in git."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, one_line, suggested, without_escapes
from queenbee.errors import ExternalFailure, QueenError, Unreadable
from queenbee.git.changes import merge_heads
from queenbee.git.contents.signing import SigningWait
from queenbee.git.contents.unfit_blobs import MOST_BYTES, changes, unfit
from queenbee.git.landing.commands import ACTION, differing, git, is_commit, line
from queenbee.git.landing.judged.nested import lost, unregistered
from queenbee.git.landing.place import UNMERGED
from queenbee.git.landing.refusals import (
    CommitRefused,
    NotLanded,
    ignoring,
    in_conflict,
    locked,
    why_refused,
)
from queenbee.git.run import as_the_user, names_in, user_git
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.hidden import is_sparse, looking
from queenbee.git.trees.open_operations import KEPT, open_operations
from queenbee.git.trees.own_branch import refuse_not_own
from queenbee.git.trees.special_files import special_files
from queenbee.git.worktrees.preparing import copied
from queenbee.services.writing.secrets import OVERRIDE, LooksLikeSecret, refuse_secrets
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import Worktree, commit_at, current_branch
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from queenbee.git.contents.unfit_blobs import Change
    from queenbee.store.layout import Layout

_HUGE_BYTES = 4 * MOST_BYTES
"""No conversion but a filter makes a file so much smaller: git need not store it to find out."""
RECORDS = ("[.]beads/queen_*.jsonl", "[.]beads/issues.jsonl", "[.]beads/archive/**")
"""Those of the main worktree count, and travel with that. Where a path to leave out begins with the
name of a folder that it ignores, `git add` fails: so these begin with a pattern.
"""
_RECORD = re.compile(r"\.beads/(?:queen_[^/]*\.jsonl|issues\.jsonl|archive/.*)", re.DOTALL)
"""The same."""
_MOST_SAID = 20
"""So many lines of what git and its hooks said are passed on, each of so many characters:"""
_MOST_CHARS = 200
_MOST_SAID_CHARS = 1_000
"""Of what refuses a commit."""
_WARNING = b"warning:"
_BY_KEEPING = re.compile(
    rf"^{KEPT}$|\A(?:On .+: autostash|index on .+: [0-9a-f]{{4,64}} .*)$", re.MULTILINE
)
"""What is in the message of a commit that nobody made with `git commit`: the field of those of
QueenBee, or the subject of git's own, of what it put aside.
"""


def commit_all(
    layout: Layout,
    message: str,
    *,
    allow_secrets: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Commits all changes of this worktree, as `git add -A` and `git commit` do, with its hooks;
    none is no error. Returns the lines that git and the hooks said. Where a hook changes files and
    refuses the commit, as formatters do, it is made once more with what that changed.

    Raises `Conflict` for a branch that is not this worktree's own, `NotLanded` for an unfinished
    merge, files over 5 MiB, what looks like a secret, unless that is allowed, special files, other
    repositories, and a hook that refuses; then nothing is committed. Raises
    `LooksLikeSecret` for the message.
    """
    tree = layout.tree
    refuse_elsewhere(tree)
    here = git_tree(tree)
    if here is not None and (branch := current_branch(here.git_dir)) is not None:
        refuse_not_own(layout, Worktree(here.tree, here.git_dir, here.common_dir), branch)
    paths = _paths(tree)
    if not paths:
        return []
    if special := special_files(tree, paths):
        raise NotLanded(
            f"git keeps no FIFO, socket or device: {named(special)}; nothing was landed",
            hint=suggested("git restore", *special),
            files=special,
        )
    if not allow_secrets:
        refuse_secrets({"message": message})
    _refuse_huge(tree, paths)
    commit = _Commit(tree, message, allow_secrets=allow_secrets)
    commit.store()
    refuse_copied(layout, tree, commit.new_files, commit.changed_files)
    if not commit.is_empty:  # Else there is what a submodule has that is not committed there.
        commit.make(tell)
    return _shown(commit.said)


def _paths(tree: str) -> list[str]:
    """Returns what is not committed. Raises `NotLanded` for conflicts and repositories."""
    wanted = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    entries = names_in(git("status", *wanted, cwd=tree, config=looking(tree)))
    if open_ := [each[3:] for each in entries if each[:2] in UNMERGED]:  # Also among the records.
        raise in_conflict(_git_dir(tree), open_)
    paths = [each[3:] for each in entries if not _RECORD.fullmatch(each[3:])]
    # Of all folders, git names only those.
    nested = [each for each in paths if each.endswith("/")]
    if nested:
        raise unregistered(tree, nested)
    return paths


class _Commit:
    """A commit of all that a worktree has."""

    def __init__(self, tree: str, message: str, *, allow_secrets: bool) -> None:
        self._tree = tree
        self._message = message
        self._allow_secrets = allow_secrets
        self._sides = _sides(tree)
        self._files = ""
        """The tree of what is to be committed."""
        self._changed: list[Change] = []
        self.said = b""
        """What git and its hooks said."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self._changed and not self._sides[1:]

    @property
    def new_files(self) -> list[str]:
        """The files that no side has."""
        return [each.path for each in self._changed if each.is_there and not each.before]

    @property
    def changed_files(self) -> list[str]:
        """The files that differ, and are there."""
        return [each.path for each in self._changed if each.is_there]

    def store(self) -> None:
        """Stores what the worktree has now. Raises `NotLanded` for what should not be in git."""
        self._files, said = _stored(self._tree)
        self.said += said
        self._look(self._files)

    def make(self, tell: Callable[[str], None]) -> None:
        """Makes it, also once more with what a hook has changed. Raises `NotLanded`; then nothing
        is committed, and what was staged before is staged.
        """
        try:
            self._make(tell)
        except CommitRefused as error:
            before = self._files
            self.store()
            by_hook = [*differing(self._tree, before, self._files)]
            if not by_hook:
                raise
            if self.is_empty:  # The hook has taken all of it back.
                return
            tell(f"a hook changed {named(by_hook)} and refused the commit; committing once more")
            try:
                self._make(tell)
            except CommitRefused as again:
                raise again.after(by_hook) from error
        self._look_again()

    def _look_again(self) -> None:
        """Takes it back, and raises `NotLanded`, if a hook has made it unfit; also with commits
        that one has made on top.
        """
        head, *_ = self._sides
        asked = ("log", "--topo-order", "-z", "--format=%H %T%n%B")
        said = git(*asked, "HEAD", f"^{no_dash(head)}", "--", cwd=self._tree)
        newest, *older = said.decode(errors="replace").split("\0")
        first, _, message = newest.partition("\n")
        commit, _, files = first.partition(" ")
        texts = [message, *(each.partition("\n")[2] for each in older)]
        try:
            if files != self._files:  # A hook has changed it.
                self._look(commit)
            if not self._allow_secrets and (refusal := secret_message("\n".join(texts))):
                raise refusal
        except NotLanded:
            take_back(self._tree, self._sides, commit)
            raise

    def _look(self, files: str) -> None:
        allow = self._allow_secrets
        self._changed = _refuse_unfit(self._tree, self._sides, files, allow_secrets=allow)

    def _make(self, tell: Callable[[str], None]) -> None:
        tree, staged = self._tree, _Index(self._tree)
        # The index gets what was looked at, whatever the files are by now.
        try:
            as_the_user("read-tree", "-i", "-m", no_dash(self._files), cwd=tree)
        except ExternalFailure as error:
            lock = os.path.join(_git_dir(tree), "index.lock")
            raise locked(tree, lock) if os.path.lexists(lock) else error from None
        # A user's `commit.cleanup` is for what an editor shows: `#124` is no comment here.
        how = ("commit", "--quiet", "--cleanup=whitespace", f"--message={self._message}")
        status, out, err = user_git(*how, cwd=tree, on_tick=SigningWait(tree, tell).look)
        if status != 0:
            staged.put_back(self._files)
            why = without_escapes(os.fsdecode(out + err))[-_MOST_SAID_CHARS:].strip()
            raise CommitRefused(
                *why_refused("the commit was refused, so nothing was landed", why, status),
                hint=_way_on(tree),
                files=[each.path for each in self._changed],
            )
        # Of a hook that refuses nothing, as of git, a warning counts.
        lines = (out + err).splitlines(keepends=True)
        self.said += b"".join(each for each in lines if each.startswith(_WARNING))


def way_to_identity(tree: str) -> str:
    """Returns the command that tells git who commits; empty if it knows."""
    if line("var", "GIT_COMMITTER_IDENT", cwd=tree, repository={}) is not None:
        return ""
    return "git config user.name NAME && git config user.email EMAIL"


def _way_on(tree: str) -> str:
    """Returns what may help where git refuses a commit."""
    if way := way_to_identity(tree):
        return f"{way}, then queen land again"
    return (
        "mend what it names, or the key that signs, then the same queen land again; if a hook "
        "refuses the message, in its form: queen land -m MESSAGE"
    )


class _Index:
    """What is staged in a worktree, as it was before a commit."""

    def __init__(self, tree: str) -> None:
        self._tree = tree
        self._path = os.path.join(_git_dir(tree), "index")
        self._bytes = safe_open.read(self._path) if safe_open.is_there(self._path) else None

    def put_back(self, files: str) -> None:
        """Puts it back, as git replaces an index, with what somebody has staged since it had the
        files of a tree. Another git at work there comes first.
        """
        if self._bytes is None:
            return
        lock = f"{self._path}.lock"
        with suppress(OSError, QueenError):
            safe_open.write(lock, self._bytes, os.O_CREAT | os.O_EXCL)
            try:
                staged, asked = self._staged_since(files), {"GIT_INDEX_FILE": lock}
                how = ("update-index", "-z", "--index-info")
                git(*how, cwd=self._tree, stdin=staged, repository=asked)
                safe_open.replace(lock, self._path)
            except BaseException:
                safe_open.unlink(lock)
                raise

    def _staged_since(self, files: str) -> bytes:
        """Returns it as entries of an index. Raises `ExternalFailure` for conflicts."""
        import tempfile  # noqa: PLC0415 - start-up

        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": shutil.copy2(self._path, folder)}
            now = git("write-tree", cwd=self._tree, repository=index).decode().strip()
        raw = git(
            "diff-tree", "-r", "-z", "--no-renames", no_dash(files), no_dash(now), cwd=self._tree
        )
        fields = iter(raw.split(b"\0")[:-1])
        entries = [(each.split(b" "), path) for each, path in zip(fields, fields, strict=True)]
        return b"".join(b"%b %b\t%b\0" % (said[1], said[3], path) for said, path in entries)


def refuse_resolved(tree: str) -> None:
    """Raises `NotLanded` if what resolves the conflicts of a merge or of a rebase, and was added to
    the index, should never be in git.
    """
    sides = _sides(tree)
    if sides[1:] and not git("ls-files", "--unmerged", "-z", cwd=tree):
        files = git("write-tree", cwd=tree).decode().strip()
        _refuse_unfit(tree, sides, files, allow_secrets=False)


def refuse_kept(tree: str, target: str, head: str) -> None:
    """Raises `NotLanded` for what looks like a secret in those commits that QueenBee made itself of
    what somebody had left, and the target has not: whoever goes on with them did not look.
    """
    asked = ("log", "-z", "--format=%H %P%n%B", no_dash(f"{target}..{head}"), "--")
    commits, secrets = list[str](), dict[str, None]()
    for row in git(*asked, cwd=tree).decode(errors="replace").split("\0"):
        ids, _, message = row.partition("\n")
        if not _BY_KEEPING.search(message):
            continue
        commit, *parents = ids.split()
        if not parents:
            parents = [git("hash-object", "-t", "tree", "--stdin", cwd=tree).decode().strip()]
        if secret := unfit(tree, changes(tree, parents, commit)).secret:
            commits.append(commit)
            secrets.update(dict.fromkeys(secret))
    if not secrets:
        return
    base = line("merge-base", no_dash(target), no_dash(head), cwd=tree) or target
    unstage = suggested("git reset -q --", *(f":/{each}" for each in secrets))
    raise NotLanded(
        f"this looks like a secret: {named([*secrets])}; nobody committed it, {commits[0][:10]} "
        "only keeps what was left in a worktree",
        hint=f"git reset --soft {base[:10]} && {unstage}, which makes all commits of this branch "
        "one change and leaves the files as they are, then queen land -m MESSAGE, which says how "
        f"to leave it out; if it is none: {OVERRIDE}=1 queen land …",
        files=[*secrets],
    )


def _sides(tree: str) -> list[str]:
    """Returns the commits whose lines are no new ones: this one, and what a merge or a rebase that
    is not finished brings in.
    """
    git_dir = _git_dir(tree)
    head, rebased = commit_at(tree), list[str]()
    if not is_commit(head) or any(each.startswith("rebase") for each in open_operations(git_dir)):
        there = git("rev-parse", "--revs-only", "HEAD", "REBASE_HEAD", cwd=tree)
        head, *rebased = (there or git("rev-parse", "--verify", "HEAD", cwd=tree)).decode().split()
    return [head, *merge_heads(git_dir), *rebased]


def _stored(tree: str) -> tuple[str, bytes]:
    """Stores all changes in a tree object, without touching the index; returns its name, and what
    git said.
    """
    import tempfile  # noqa: PLC0415 - start-up

    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": os.path.join(folder, "index")}
        try:  # With its time, by which git knows which files it need not read.
            shutil.copy2(os.path.join(_git_dir(tree), "index"), *index.values())
        except FileNotFoundError:
            git("read-tree", "HEAD", cwd=tree, repository=index)
        sparse = ("--sparse",) if is_sparse(tree) else ()
        but = (f":(exclude,glob){each}" for each in RECORDS)
        how = ("add", "--all", *sparse, "--", ".", *but)
        said = as_the_user(*how, cwd=tree, repository=index, config=looking(tree))
        files = git("write-tree", cwd=tree, repository=index)
        return files.decode().strip(), said


def secret_message(message: str) -> NotLanded | None:
    """Returns the refusal for a message that looks like a secret, as a hook of git left it."""
    try:
        refuse_secrets({"message": message})
    except LooksLikeSecret as error:
        return NotLanded(
            f"as the hooks left it, {error.message.partition(';')[0]}; nothing was landed",
            hint="look at the hooks prepare-commit-msg and commit-msg; if it is no secret: "
            f"{OVERRIDE}=1 queen land …",
        )
    return None


def take_back(tree: str, sides: Sequence[str], commit: str) -> None:
    """Takes the commit back that was just made, and leaves the files and the index."""
    head, *merged = sides
    as_the_user("update-ref", "-m", ACTION, "HEAD", no_dash(head), no_dash(commit), cwd=tree)
    if merged:
        said = "".join(f"{each}\n" for each in merged).encode()
        safe_open.write(os.path.join(_git_dir(tree), "MERGE_HEAD"), said)


def _git_dir(tree: str) -> str:
    """Returns a worktree's own git directory. Raises `Unreadable` outside git."""
    here = git_tree(tree)
    if here is None:
        raise Unreadable(f"{tree} is no working tree of git", path=tree)
    return here.git_dir


def _refuse_unfit(
    tree: str, sides: Sequence[str], files: str, *, allow_secrets: bool
) -> list[Change]:
    """Returns what a commit changes. Raises `NotLanded` for what should never be in git."""
    changed = changes(tree, sides, files)
    refusal = lost(tree, changed, files)
    if refusal is not None:
        raise refusal
    large, secret = unfit(tree, changed, allow_secrets=allow_secrets)
    if large:
        raise _too_large(tree, large)
    if secret:
        raise NotLanded(
            f"this looks like a secret: {named(secret)}",
            hint=f"{ignoring(tree, secret[0])}, or remove it; if it is none: "
            f"{OVERRIDE}=1 queen land …",
            files=secret,
        )
    return changed


def refuse_copied(
    layout: Layout, tree: str, new: Sequence[str], changed: Iterable[str] = (), *, hint: str = ""
) -> None:
    """Raises `NotLanded` for new files that were copied from the main worktree, where git ignores
    them, and changed ones with the content of such a file: they are for this machine. The hint says
    what else to do than ignoring them.
    """
    if files := copied(layout, tree, new, changed):
        raise NotLanded(
            f"copied from the main worktree, where git does not track it: {named(files)}",
            hint=hint
            or f"{ignoring(tree, files[0])}; or, if it belongs in git, commit it in the main "
            "worktree",
            files=files,
        )


def _refuse_huge(tree: str, paths: Sequence[str]) -> None:
    """Raises `NotLanded` for files that need not be stored first to know that they are too large:
    those that no filter makes smaller.
    """
    huge = [path for path in paths if _size(os.path.join(tree, path)) > _HUGE_BYTES]
    if huge:
        asked = os.fsencode("\0".join(huge))
        said = names_in(git("check-attr", "-z", "--stdin", "filter", cwd=tree, stdin=asked))
        filters = dict(zip(said[::3], said[2::3], strict=True))
        if large := [each for each in huge if filters.get(each) in ("unspecified", "unset")]:
            raise _too_large(tree, large)


def _too_large(tree: str, files: Sequence[str]) -> NotLanded:
    return NotLanded(
        f"larger than 5 MiB: {named(files)}",
        hint=f"{ignoring(tree, files[0])}; or, if it belongs in git, commit it with git, then "
        "queen land",
        files=files,
    )


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _shown(said: bytes) -> list[str]:
    text = without_escapes(os.fsdecode(said))
    lines = [one_line(each, _MOST_CHARS) for each in text.splitlines() if each.strip()]
    more = [f"… {len(lines) - _MOST_SAID} more lines"] if len(lines) > _MOST_SAID else []
    return lines[:_MOST_SAID] + more
