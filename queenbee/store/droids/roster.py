"""Which agents `queen start` looks after on this machine: a file for each, in git's own folder.

A run that was killed leaves them, and the next one goes on from there: no agent may write them.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.names import is_name
from queenbee.errors import QueenError
from queenbee.store import safe_open
from queenbee.store.droids.liveness import described, is_running
from queenbee.store.git_files.worktrees import branch_head
from queenbee.store.settings import CLIENTS
from queenbee.store.whole_files import keep, recall

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from queenbee.core.beads import Issue
    from queenbee.store.layout import Layout

RUN = "\x1e"
"""Begins a line of an agent's output that says that another run begins: no client prints it."""
_MOST_BYTES = 2**16
_MOST_WAITING_BYTES = 2**20
_WAITING = ".waits"
_UNSEEN = "unseen"
_SESSIONS, _MOST_SESSIONS = "sessions", 200
_TEXTS = ("client", "path", "state", "process", "issue_id", "session", "supervisor", "team")
STEPS = ("developing", "judging")
"""The states of an agent that works on a sprint bead, which is landed for it."""
_NUMBERS = ("since_ms", "landed")


class Entry:
    """One agent: what runs, on what, since when, and how it has fared."""

    def __init__(self, name: str, fields: object = None) -> None:
        said = fields if isinstance(fields, dict) else {}
        self.name = name
        self.client = ""
        """What runs it: the name of a client, or a command."""
        self.path = ""
        """Its worktree."""
        self.state = ""
        self.process = ""
        """The process that runs now, as `liveness` notes one; empty if none does."""
        self.supervisor = ""
        """The process of `queen start` that looks after it."""
        self.issue_id = ""
        self.session = ""
        """The last session of its client, which can be resumed."""
        self.team = ""
        """The team of the sprint beads that it works on."""
        self.since_ms = 0
        """When its present state began."""
        self.landed = 0
        """How many issues it has completed in this run."""
        self.is_ending: bool = said.get("is_ending") is True
        """Whether it is to take no further issue."""
        self.only: list[str] | None = _names(said.get("only"))
        """The issues that it may take; all if there are none."""
        self.without: list[str] = _names(said.get("without")) or []
        """The issues that it gave back, and does not take again."""
        self.avoids: list[str] = _names(said.get("avoids")) or []
        """The teams of others."""
        for names, kind in ((_TEXTS, str), (_NUMBERS, int)):
            for each in names:
                if type(said.get(each)) is kind:
                    setattr(self, each, said[each])

    def is_at(self, tree: str) -> bool:
        """Returns whether this is the worktree that it was given."""
        return bool(self.path) and os.path.realpath(self.path) == os.path.realpath(tree)

    def wants(self, issue_id: str) -> bool:
        """Returns whether an issue is one of those that it was started for."""
        return self.only is None or issue_id in self.only

    def may_take(self, issue: Issue) -> bool:
        """Returns whether it may take an issue. A sprint bead is given to it by `queen start`."""
        team = issue.team
        if team is not None and (team in self.avoids or not self.is_looked_after_here):
            return False
        return self.wants(issue.id) and not self.is_ending and issue.id not in self.without

    def sentence(self) -> str:
        """Returns its line: what runs it, what it does, and how much it has landed."""
        doing = " ".join(filter(None, (self.state, self.issue_id if self.process else "")))
        return f"{self.name} ({self.program}): {doing}, {self.landed} landed"

    @property
    def program(self) -> str:
        """The name of what runs it."""
        word = self.client.split(" ")[0]
        return os.path.basename(word) if word in CLIENTS or "/" in word else "program"

    @property
    def is_looked_after(self) -> bool:
        """Whether a `queen start` runs that knows of it."""
        return bool(self.supervisor) and is_running(self.supervisor) is not False

    @property
    def is_looked_after_here(self) -> bool:
        """Whether this very process looks after it: no process of an agent is that."""
        return self.supervisor == described(os.getpid())

    @property
    def is_judged(self) -> bool:
        """Whether it is in a step of a sprint bead that is looked after."""
        return self.state in STEPS and self.is_looked_after

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, as far as can be told from here."""
        return bool(self.process) and is_running(self.process) is not False

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return dict(vars(self))


def read(layout: Layout, name: str) -> Entry | None:
    """Returns what is known of an agent, or None."""
    return read_in(folder(layout), name)


def read_in(place: str, name: str) -> Entry | None:
    """Returns the same from the folder of any team."""
    path = os.path.join(place, f"{name}.json")
    fields = recall(path, _MOST_BYTES) if is_name(name) else None
    return Entry(name, fields) if isinstance(fields, dict) else None


def everybody(layout: Layout) -> list[Entry]:
    """Returns the agents that are looked after now, or still run, by name."""
    return [each for each in _noted(layout) if each.is_looked_after or each.is_alive]


def _noted(layout: Layout) -> Iterator[Entry]:
    names = (each.removesuffix(".json") for each in safe_open.names_in(folder(layout)))
    return (found for name in names if (found := read(layout, name)) is not None)


def write(layout: Layout, entry: Entry) -> None:
    """Notes an agent. Never fails."""
    keep(_path(layout, entry.name), entry.to_dict())


def forget(layout: Layout, name: str) -> None:
    """Forgets an agent that is done. Never fails."""
    with suppress(OSError, QueenError):
        safe_open.unlink(_path(layout, name))


def note_end(
    layout: Layout,
    at_ms: int,
    said: list[str],
    ran: dict[str, str],
    given_back: dict[str, bool] | None = None,
) -> None:
    """Notes how a run ended, a sentence each, what ran each agent, and the issues that none of them
    could land: true for those that the next run leaves alone. Never fails.
    """
    known = programs(layout) | ran
    ended = {"at_ms": at_ms, "said": said, "programs": known, "given_back": given_back or {}}
    keep(os.path.join(folder(layout), "ended"), ended)


def note_session(layout: Layout, issue_id: str, session: str) -> None:
    """Notes the session in which an agent of a team worked on a sprint bead. Never fails."""
    known = {key: said for key, said in sessions(layout).items() if key != issue_id}
    last = [*known.items(), (issue_id, session)][-_MOST_SESSIONS:]
    keep(os.path.join(folder(layout), _SESSIONS), dict(last))


def sessions(layout: Layout) -> dict[str, str]:
    """Returns the last session of each sprint bead on this machine, the latest last: what a row
    says of one, anybody may have written.
    """
    said = recall(os.path.join(folder(layout), _SESSIONS), _MOST_BYTES)
    return {key: str(each) for key, each in said.items()} if isinstance(said, dict) else {}


def given_back(layout: Layout) -> dict[str, bool]:
    """Returns the issues that the last run gave back, and whether the next one leaves them alone:
    agents of that run landed others.
    """
    said = _ended(layout).get("given_back")
    return {str(key): each is True for key, each in said.items()} if isinstance(said, dict) else {}


def programs(layout: Layout) -> dict[str, str]:
    """Returns what runs each agent, or ran it in its last run."""
    last = _ended(layout).get("programs")
    known = last.items() if isinstance(last, dict) else ()
    return {str(name): str(program) for name, program in known} | {
        each.name: each.program for each in everybody(layout)
    }


def ended_ms(layout: Layout, name: str) -> int:
    """Returns when the last run ended, if an agent was of that or an earlier one, and its process
    has ended, too; else 0.
    """
    said = _ended(layout)
    at_ms, ran = said.get("at_ms"), said.get("programs")
    if not isinstance(at_ms, int) or not isinstance(ran, dict) or name not in ran:
        return 0
    return 0 if any(each.name == name for each in everybody(layout)) else at_ms


def sentences(layout: Layout, since_ms: int) -> list[str]:
    """Returns what the agents do that are looked after now, or how the last run ended, unless that
    was before `since_ms`.
    """
    found = [each.sentence() for each in everybody(layout)]
    ended = _ended(layout) if not found else {}
    is_recent = ended.get("at_ms", -1) >= since_ms
    return _names(ended.get("said")) or [] if is_recent and not found else found


def looked_after(layout: Layout, name: str | None) -> Entry | None:
    """Returns an agent that a `queen start` looks after, or None: the issues that it may take."""
    known = name is not None and os.path.isdir(folder(layout))
    entry = read(layout, name) if known and name is not None else None
    return entry if entry is not None and entry.is_looked_after else None


def of_issue(layout: Layout, issue_id: str) -> list[Entry]:
    """Returns the agents that are looked after, and were last on an issue."""
    found = everybody(layout) if os.path.isdir(folder(layout)) else []
    return [each for each in found if each.issue_id == issue_id and each.is_looked_after]


def of_tree(layout: Layout) -> Entry | None:
    """Returns the agent that is looked after and works in this very worktree, or None."""
    return at(layout, layout.tree) if layout.worktree else None


def at(layout: Layout, tree: str) -> Entry | None:
    """Returns the agent that is looked after and works in a worktree, or None."""
    found = _noted(layout) if os.path.isdir(folder(layout)) else ()
    return next((each for each in found if each.is_at(tree) and each.is_looked_after), None)


def note_waiting(layout: Layout, name: str, waiting: list[dict[str, object]]) -> None:
    """Keeps what an agent has made and could not land, for the next run. Never fails."""
    if waiting:
        keep(os.path.join(folder(layout), f"{name}{_WAITING}"), waiting)
    else:
        with suppress(OSError, QueenError):
            safe_open.unlink(os.path.join(folder(layout), f"{name}{_WAITING}"))


def waiting_of(layout: Layout, name: str) -> list[dict[str, Any]]:
    """Returns what an agent of an earlier run has made and could not land."""
    said = recall(os.path.join(folder(layout), f"{name}{_WAITING}"), _MOST_WAITING_BYTES)
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def waiting(layout: Layout, *, without: str | None = None) -> dict[str, str]:
    """Returns the issues of which the work is done and lands by the next `queen start`, with what
    it waits for, but for those of an agent: as far as it is on a branch as its agent left it.
    """
    found = dict[str, str]()
    for file in safe_open.names_in(folder(layout)):
        name = file.removesuffix(_WAITING)
        for each in waiting_of(layout, name) if name not in (file, without) else ():
            branch, head = str(each.get("branch") or ""), each.get("head")
            if head and branch and branch_head(str(layout.common_dir), branch) == head:
                made = f"{name} has worked on it, and that waits to land"
                found[str(each.get("issue_id"))] = f"{made}: {each.get('why')}"
    return found


def note_unseen(layout: Layout, commands: list[dict[str, object]]) -> None:
    """Keeps what clients did not begin for, until a team is started again. Never fails."""
    if commands or safe_open.is_there(os.path.join(folder(layout), _UNSEEN)):
        keep(os.path.join(folder(layout), _UNSEEN), commands)


def unseen(layout: Layout) -> list[dict[str, Any]]:
    """Returns what clients did not begin for: nobody on this machine had seen it."""
    said = recall(os.path.join(folder(layout), _UNSEEN), _MOST_WAITING_BYTES)
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def folder(layout: Layout) -> str:
    """Returns the folder of what `queen start` knows, with each agent's output."""
    return os.path.join(layout.private_dir, "team")


def log_path(layout: Layout, name: str) -> str:
    """Returns the file with an agent's output."""
    return os.path.join(folder(layout), f"{name}.log")


def mark_run(layout: Layout, name: str, at: str) -> None:
    """Notes in the file with an agent's output that another run begins now. Never fails."""
    with suppress(OSError, QueenError):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        fd = safe_open.open_file(log_path(layout, name), flags, 0o600)
        try:
            os.write(fd, f"\n{RUN}queen start, {at}\n".encode())
        finally:
            os.close(fd)


def _ended(layout: Layout) -> dict[str, Any]:
    """Returns what was noted of the end of the last run; its time is a number, if it is there."""
    said = recall(os.path.join(folder(layout), "ended"), _MOST_BYTES)
    is_whole = isinstance(said, dict) and type(said.get("at_ms")) is int
    return said if is_whole else {}


def _names(said: object) -> list[str] | None:
    return [str(each) for each in said] if isinstance(said, list) else None


def _path(layout: Layout, name: str) -> str:
    return os.path.join(folder(layout), f"{name}.json")
