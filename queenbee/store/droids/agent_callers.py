"""Who calls: an agent of a team, somebody who cannot be told from one, or neither.

An environment, a name and a folder are easily changed. On Linux, all that an agent has started
stays below its minder, the process that `queen start` begins for it. In another PID namespace, such
as that of a sandbox, nobody sees that process: a lock that the minder holds still shows that it
runs, and it ends with it, however it ends.
"""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.core.text import mentioned, suggested
from queenbee.errors import QueenError, UnknownCaller
from queenbee.store import safe_open
from queenbee.store.callers.agent_above import is_agent
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import (
    OUTERMOST,
    ids_above,
    is_running,
    own_space,
    space_and_id,
)
from queenbee.store.lock import is_held
from queenbee.store.whole_files import create_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queenbee.store.layout import Layout

ALIVE = ".alive"
"""What is added to the name of an agent's log: the file that its minder has locked."""
_TEAMS = (".local", "state", "queenbee", "teams")
"""The user's folder with the folder of each team. No variable moves it: an agent could set that."""
_MOST_BYTES = 2**12


class Agent:
    """An agent of a team, or somebody who may be one."""

    def __init__(self, entry: roster.Entry, *, is_here: bool, is_known: bool = True) -> None:
        self._entry = entry
        self.name: str = entry.name
        """If it is not known which, that of one that is at work."""
        self.path: str = entry.path
        self.is_here = is_here
        """Whether it is known, and its team works in this very repository."""
        self.is_known = is_known

    def is_at(self, tree: str) -> bool:
        """Returns whether this is the worktree that it was given."""
        return self.is_known and self._entry.is_at(tree)

    def has_inside(self, path: str | None) -> bool:
        """Returns whether this is in the worktree that it was given, as what its tests make."""
        own = os.path.join(os.path.realpath(self.path), "")
        return bool(self.path) and path is not None and os.path.realpath(path).startswith(own)

    def refuse_unknown(self, deed: str) -> None:
        """Raises `UnknownCaller` for somebody who is not known; `deed` says what is not done."""
        if not self.is_known:
            raise UnknownCaller(
                f"{self.name} works for queen start in {mentioned(self.path)} and may have started "
                f"this process, which is in another PID namespace (a container, a sandbox): {deed}",
                hint="a person: the same in a terminal outside of the container, or once the team "
                f"has ended ({suggested('queen status')}); an agent: in its own worktree",
            )


def calling_agent(layout: Layout) -> Agent | None:
    """Returns the agent of a team that has started this process, in this repository or another one
    of this user, or somebody who may be one; None for a person.

    In another PID namespace than a team, whoever is in the worktree of an agent counts as it.
    """
    own = _team_folder(layout)
    found = [(entry, folder == own) for folder in _folders(own) for entry in _at_work(folder)]
    if not found:
        return None
    space, (above, is_all) = own_space(), ids_above()
    processes = {space_and_id(entry.process): (entry, is_here) for entry, is_here in found}
    for pid in above:
        if (space, pid) in processes:
            entry, is_here = processes[space, pid]
            agent = Agent(entry, is_here=is_here)
            return None if not is_here and agent.has_inside(layout.common_dir) else agent
    if is_all and (space == OUTERMOST or all(each == space for each, _ in processes)):
        return None
    agents = [Agent(entry, is_here=True) for entry, is_here in found if is_here]
    here = next((each for each in agents if each.is_at(layout.tree)), None)
    return here or Agent(found[0][0], is_here=False, is_known=False)


def is_by_agent(layout: Layout) -> bool:
    """Returns whether an agent runs this process, as its environment or a client above says, or an
    agent of a team is known.
    """
    return is_agent() or calling_agent(layout) is not None


def note_team(layout: Layout) -> str:
    """Notes where a team is, for the other repositories of this user; returns why it could not."""
    folder = _team_folder(layout)
    try:
        for each in _places()[:1]:
            os.makedirs(each, 0o700, exist_ok=True)
            for path in (os.path.join(each, name) for name in safe_open.names_in(each)):
                if not os.path.isdir(_read(path)):  # Of a repository that is gone.
                    safe_open.unlink(path)
            create_document(_note_in(each, folder), os.fsencode(folder))
            return ""
    except QueenError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return "this user has no home folder"


def forget_team(layout: Layout) -> None:
    """Removes the note of a team of which nothing runs any more. Never fails."""
    folder = _team_folder(layout)
    if not any(_at_work(folder)):
        for each in _places()[:1]:
            with suppress(OSError, QueenError):
                safe_open.unlink(_note_in(each, folder))


def _at_work(folder: str) -> Iterator[roster.Entry]:
    """Yields the agents with a process that runs."""
    for name in safe_open.names_in(folder):
        entry = roster.read_in(folder, name.removesuffix(".json"))
        if entry is not None and entry.process:
            log = os.path.join(folder, f"{entry.name}.log")
            # A minder holds its lock: the kernel ends that with it.
            if is_running(entry.process) or is_held(f"{log}{ALIVE}"):
                yield entry


def _folders(own: str) -> list[str]:
    """Returns the folders of the teams of this user, that of this repository first."""
    notes = [os.path.join(each, name) for each in _places() for name in safe_open.names_in(each)]
    return list(dict.fromkeys([own, *filter(None, map(_read, notes))]))


def _team_folder(layout: Layout) -> str:
    return os.path.realpath(roster.folder(layout))


def _read(path: str) -> str:
    with suppress(OSError, QueenError):
        return os.fsdecode(safe_open.read(path, _MOST_BYTES))
    return ""


def _note_in(place: str, folder: str) -> str:
    return os.path.join(place, sha256(os.fsencode(folder)).hexdigest()[:32])


def _places() -> list[str]:
    """Returns the folders with notes on teams, without links: that of the user who runs us, and of
    the home that the environment names, for a system that does not know the user. In a user
    namespace nobody is who it seems to be: then those of all users.
    """
    homes = []
    with suppress(KeyError):
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    if not _is_outermost_user():
        homes += [each.pw_dir for each in pwd.getpwall()]
    homes.append(os.path.expanduser("~"))
    absolute = dict.fromkeys(each for each in homes if os.path.isabs(each))
    return [os.path.realpath(os.path.join(each, *_TEAMS)) for each in absolute]


def _is_outermost_user() -> bool:
    """Returns whether users are outside of all user namespaces, or the system has none."""
    try:
        with open("/proc/self/uid_map", encoding="ascii") as file:
            return file.read().split() == ["0", "0", "4294967295"]
    except (OSError, ValueError):
        return not os.path.isdir("/proc/self")
