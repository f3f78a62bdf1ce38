"""What somebody on this machine has seen and lets run: a file for each command of a repository.

A clone, a pull or a sync can bring commands, but never reaches this folder: it belongs to the user,
outside of every repository. The name of a file is the hash of what it lets run, so that a changed
command is another one; its content is only for people. ADR 0041.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.errors import NotFound, QueenError, Unwritable
from queenbee.store import safe_open
from queenbee.store.git_files.worktrees import (
    current_branch,
    default_of_origin,
    push_remote,
    remote_of,
    worktrees,
)
from queenbee.store.git_trees import config_value, owners_environment, upward
from queenbee.store.whole_files import create_document, read_own

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from queenbee.store.layout import Layout

ALL = "all"
SECTION, NAME = "queenbee", "trust"
"""`git config queenbee.trust all`: the owner of this machine wants no questions."""
_MARK = "queenbee-clone"
"""The file in git's own folder, which no clone delivers, that tells this clone from any other."""
CHECK, SETUP, VERIFIER, GATE, OPTIONS = "check", "setup", "verifier", "gate rule", "options"
COMMAND, SETTING = "command", "setting"
HOOK, CLIENT, DATABASE = "hook", "client settings", "database"
BRANCH, PUSH = "branch", "push"
"""The kinds of commands: of `land.check` and `worktree.setup`, of a bead, of a gate, those of
`team.args`, one that was typed, what a setting has done, hooks of the tracker's program, files of
clients, and a hive in a database; and what `land.target` has work moved: a branch of this
repository, or of a remote.
"""
_HOST = re.compile(r"(?:[a-z+]+://)?(?:[^@/\s]+@)?([A-Za-z0-9.-]+)(.*)")
TARGET, BY, MERGE = "land.target", "land.by", "land.merge"
LABELS, REVIEWERS = "land.labels", "land.reviewers"
CLOSING, SIGNOFF, PRUNING = "host.issues", "land.signoff", "team.prune"
_SAID = {
    SIGNOFF: "sign off each landing with your name",
    PRUNING: "remove worktrees of agents once all has landed, with what git ignores there",
}
"""What some settings have done unasked."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A command that a repository proposes to run here."""

    kind: str
    text: str
    more: tuple[str, ...] = ()
    """What else decides what runs: the shell, the folder, variables with their values."""
    origin: str = ""
    """What it is of. The same command may be elsewhere, too."""
    path: str = field(default="", compare=False)
    """The file that it is written in, as far as that is known; else it is of the settings."""

    @property
    def key(self) -> str:
        """What it is trusted by: two that could run something else have different keys."""
        return _hash(json.dumps([self.kind, self.text, *self.more]).encode())

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return {"kind": self.kind, "from": self.origin, "text": self.text, "more": [*self.more]}

    @classmethod
    def of(cls, said: Mapping[str, object]) -> Self:
        """Returns the command of which `to_dict` gave the parts."""
        kind, text, origin = (str(said.get(each) or "") for each in ("kind", "text", "from"))
        more = said.get("more")
        parts = map(str, more) if isinstance(more, list) else ()
        return cls(kind, text, (*parts,), origin)


_EXCHANGES = {
    "pull": "ask {} for its issues, as you",
    "both": "ask {} for its issues, as you, and close completed ones with a comment",
}
"""What `host.issues` has done at the repository: its client sends the user's token."""


def of_setting(name: str, value: object) -> list[Proposal]:
    """Returns the command that a setting says, if it says one."""
    if name == "land.check" and isinstance(value, str) and value:
        return [Proposal(CHECK, value, origin=name)]
    if name == "worktree.setup" and isinstance(value, str) and value:
        return [Proposal(SETUP, value, origin=name)]
    if name in _SAID and value is True:
        return [Proposal(SETTING, _SAID[name], origin=name)]
    if name == "team.args" and isinstance(value, list | tuple) and value:
        return [Proposal(OPTIONS, shlex.join(map(str, value)), origin=name)]
    return []


def of_exchange(layout: Layout, value: object) -> list[Proposal]:
    """Returns what `host.issues` says, if it asks a repository at a code host."""
    if not isinstance(value, str) or value not in _EXCHANGES:
        return []
    host, slug = _address_of(layout, hosted_remote(layout))
    where = shlex.quote(f"{host}{slug}") if host else "the code host"
    return [Proposal(PUSH, _EXCHANGES[value].format(where), origin=CLOSING)]


def hosted_remote(layout: Layout) -> str:
    """Returns the remote whose host has the issues: that of `land.target`, if somebody here has
    agreed to it, or else `origin`.
    """
    remote = remote_of(layout.common_dir or "", layout.settings.land_target)
    return remote if remote is not None and builds_on_target(layout) else "origin"


def target_proposal(layout: Layout, name: str, **said: Any) -> Proposal:
    """Returns what landings move where `land.target` says this; without a name, the branch that the
    main worktree has at that time. `by`, `merge`, `labels` and `reviewers` are those of `land`, if
    not as they are set.
    """
    remote = remote_of(layout.common_dir or "", name)
    if remote is None:
        return Proposal(BRANCH, name or "HEAD", origin=TARGET)
    branch = name.removeprefix(f"{remote}/")
    if said.get("by", layout.settings.land_by) == "pr":
        merges = said.get("merge", layout.settings.land_merge) == "auto"
        to = push_remote(layout.common_dir or "", remote)
        text = f"{shlex.join(['git', 'push', to])} BRANCH; a pull request for "
        host, _ = _address_of(layout, remote)
        text += f"{shlex.quote(branch)} at {shlex.quote(host) if host else 'its host'}"
        text += ", which is merged unasked" if merges else ""
        for what in ("labels", "reviewers"):
            if names := said.get(what, getattr(layout.settings, f"land_{what}")):
                text += f"; its {what}: {shlex.join(names)}"
        return Proposal(PUSH, text, origin=BY)
    where = ["git", "push", remote, branch]
    return Proposal(PUSH, shlex.join(where), origin=TARGET)


def _address_of(layout: Layout, remote: str) -> tuple[str, str]:
    """Returns the host of a remote, and what follows in its address, as git's settings name them:
    its client gets the user's token. Both are empty if none is named.
    """
    config = os.path.join(layout.common_dir or "", "config")
    paths = [config, *_config_paths(owners_environment(os.environ))]
    said = next(filter(None, (config_value(each, SECTION, "host") for each in paths)), None)
    pushed, fetched = (
        config_value(config, f"remote.{remote}", each) for each in ("pushurl", "url")
    )
    found = _HOST.match(said or pushed or fetched or "")
    return (found[1], found[2].removesuffix("/").removesuffix(".git")) if found else ("", "")


def of_target(layout: Layout) -> list[Proposal]:
    """Returns what landings move here, as somebody has to agree to it: not the branch that is the
    default one of `origin`, nor that of the main worktree where nobody has agreed to another one.
    """
    asked, common_dir = target_proposal(layout, layout.settings.land_target), layout.common_dir
    if asked.kind == PUSH or common_dir is None:
        return [asked]
    has = current_branch(common_dir)
    target = layout.settings.land_target or has
    is_first = target == has and not Trust(layout).before(asked)
    return [] if is_first or target == default_of_origin(common_dir) else [asked]


def builds_on_target(layout: Layout) -> bool:
    """Returns whether worktrees may begin at what `land.target` names, and follow it: somebody here
    has agreed to it, or it is the default branch of `origin`. Else it has what somebody works on.
    """
    default = f"origin/{default_of_origin(layout.common_dir or '')}"
    return layout.settings.land_target == default or not Trust(layout).unseen(of_target(layout))


class Trust:
    """What was seen here of one repository, in all of its worktrees. Safe for processes."""

    def __init__(self, layout: Layout) -> None:
        self.repository: str = safe_open.real_path(layout.common_dir or layout.root)
        """Another clone of the same repository asks for itself, also one in the same place."""
        self._mark = os.path.join(layout.common_dir or layout.state_dir, _MARK)
        self._config = layout.common_dir and os.path.join(layout.common_dir, "config")
        self.layout = layout
        self._base: str | None = None

    @property
    def asks_nothing(self) -> bool:
        """Whether the owner of this machine wants no questions."""
        found, env = None, owners_environment(os.environ)
        for path in [*_config_paths(env), *filter(None, [self._config])]:
            found = config_value(path, SECTION, NAME) or found
        for key, value in _config_in_environment(env):
            if key.lower() == f"{SECTION}.{NAME}":
                found = value
        return found == ALL

    def unseen(self, proposals: list[Proposal]) -> list[Proposal]:
        """Returns those that nobody has seen. Nothing counts as seen where the folder cannot be
        used.
        """
        if not proposals or self.asks_nothing:
            return []
        seen: set[str] = set()
        with suppress(OSError, QueenError):
            seen.update(self._names() if _is_own(self.folder) else ())
        return [each for each in proposals if each.key not in seen]

    def add(self, proposals: list[Proposal]) -> None:
        """Remembers that somebody has seen these. Raises `Unwritable` if that cannot be kept."""
        for each in proposals:
            said = {**each.to_dict(), "repository": self.repository}
            try:
                path = os.path.join(self._made(), each.key)
                # The name says everything: a file that a crash left empty counts.
                fd = safe_open.open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with suppress(OSError), os.fdopen(fd, "w", encoding="ascii") as file:
                    file.write(json.dumps(said))
            except FileExistsError:  # Another process, at this moment.
                continue
            except OSError as error:
                raise _unwritable(str(error.filename), str(error.strerror)) from error

    def replace_target(self, proposals: list[Proposal]) -> None:
        """Remembers the same of where work lands, in place of the remotes and ways that were agreed
        to before: who has typed that it is proposed has taken back that it is pushed.
        """
        with suppress(OSError):
            for each in self.seen():
                is_way = each.get("kind") == PUSH or each.get("more")
                if is_way and each.get("from") in (TARGET, BY):
                    safe_open.unlink(os.path.join(self.folder, str(each["key"])))
        self.add(proposals)

    def seen(self) -> list[dict[str, object]]:
        """Returns what is remembered, as `Proposal.to_dict` has it, and `at_ms`, when it was agreed
        to; the newest last.
        """
        found = list[dict[str, object]]()
        with suppress(QueenError, OSError):
            for name in self._names():
                said: object = {}
                path, at_ms = os.path.join(self.folder, name), 0
                with suppress(NotFound, ValueError, RecursionError, OSError):
                    # Nothing changes the file after it was made.
                    at_ms = os.lstat(path).st_mtime_ns // 1_000_000
                    said = json.loads(read_own(path))
                found.append(
                    {**(said if isinstance(said, dict) else {}), "key": name, "at_ms": at_ms}
                )
        return sorted(found, key=lambda each: str(each["at_ms"]).zfill(20))

    def before(self, proposal: Proposal) -> str:
        """Returns the command that somebody agreed to last for the same setting; empty if none is
        known. Beads and gates have several commands, and none is known to stand for another.
        """
        if proposal.kind in (VERIFIER, GATE, SETUP):
            return ""
        said = [
            str(each.get("text")) for each in self.seen() if each.get("from") == proposal.origin
        ]
        return said[-1] if said else ""

    def forget(self) -> None:
        """Forgets everything that was seen of this repository. Raises `Unwritable`."""
        try:
            for name in safe_open.names_in(self.folder):
                safe_open.unlink(os.path.join(self.folder, name))
        except OSError as error:
            raise _unwritable(self.folder, str(error.strerror)) from error

    @property
    def folder(self) -> str:
        """Where it is kept. Raises `Unwritable` if the user has no folder for that, or has it in
        a worktree of this very repository, where a pull could write.
        """
        if self._base is None:
            base = state_home()
            if _is_in_tree(base, self.layout):
                raise _unwritable(base, "it is in this repository")
            self._base = os.path.join(base, "queenbee", "trusted")
        name = _hash(os.fsencode(self.repository) + b"\0" + self._marked())
        return os.path.join(self._base, name[:32])

    def _names(self) -> Sequence[str]:
        """Returns what is kept. Without a mark, that is nothing: anybody could name the folder."""
        return safe_open.names_in(self.folder) if self._marked() else ()

    def _marked(self) -> bytes:
        """Returns what tells this clone from any other; empty if nothing was kept yet."""
        with suppress(OSError, QueenError):
            return safe_open.read(self._mark, 64)
        return b""

    def _made(self) -> str:
        """Makes the folder, for this user alone, and the mark of this clone. Raises `OSError`,
        `Unwritable`.
        """
        create_document(self._mark, f"{os.urandom(16).hex()}\n".encode())
        trusted = os.path.dirname(self.folder)
        os.makedirs(os.path.dirname(os.path.dirname(trusted)), 0o700, exist_ok=True)
        for path in (os.path.dirname(trusted), trusted, self.folder):
            with suppress(FileExistsError), safe_open.At(path) as (name, handle):
                os.mkdir(name, 0o700, dir_fd=handle)
        if not _is_own(self.folder):
            raise _unwritable(self.folder, "others may write there")
        return self.folder


def _is_in_tree(folder: str, layout: Layout) -> bool:
    """Returns whether a folder without links is in a working tree of a repository."""
    above, tops = upward(folder), {*map(safe_open.real_path, (layout.root, layout.tree))}
    if any(os.path.lexists(os.path.join(each, ".git")) for each in above):  # As each other has.
        tops |= trees(layout)
    return not tops.isdisjoint(above)


def trees(layout: Layout) -> set[str]:
    """Returns the working trees of a repository, each without links."""
    tops = (layout.root, layout.tree, *(each.path for each in worktrees(layout)))
    return {safe_open.real_path(each) for each in tops}


def _hash(said: bytes) -> str:
    return sha256(said).hexdigest()


def _is_own(folder: str) -> bool:
    """Returns whether nobody else can put a file there; reached without a link."""
    for path in (os.path.dirname(folder), folder):
        handle = safe_open.open_folder(path)
        try:
            status = os.fstat(handle)
        finally:
            os.close(handle)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return False
    return True


def state_home() -> str:
    """Returns the user's folder for state, without links. A path that is not absolute counts for
    nothing: it would lead into a repository.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(base):
        raise _unwritable(base, "there is no home folder")
    return safe_open.real_path(base)


def _unwritable(path: str, reason: str) -> Unwritable:
    return Unwritable(
        f"what you have seen cannot be kept in {path}: {reason}",
        hint="set XDG_STATE_HOME to a folder that is yours alone; on a machine that wants no "
        f"questions: git config --global {SECTION}.{NAME} {ALL}",
        path=path,
    )


def _config_paths(env: Mapping[str, str]) -> Iterator[str]:
    """Yields the files of git's settings of the machine and the user; the last one counts."""
    if env.get("GIT_CONFIG_NOSYSTEM", "0").lower() in ("", "0", "false", "no", "off"):
        yield env.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    if "GIT_CONFIG_GLOBAL" in env:
        yield env["GIT_CONFIG_GLOBAL"]
        return
    home = os.path.expanduser("~")
    yield os.path.join(env.get("XDG_CONFIG_HOME") or f"{home}/.config", "git", "config")
    yield os.path.join(home, ".gitconfig")


def _config_in_environment(env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    count = env.get("GIT_CONFIG_COUNT", "")
    for number in range(int(count) if count.isascii() and count.isdigit() else 0):
        yield env.get(f"GIT_CONFIG_KEY_{number}", ""), env.get(f"GIT_CONFIG_VALUE_{number}", "")
