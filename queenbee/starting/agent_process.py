"""One agent of a team as its processes: one runs at a time, is looked at, and ends."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.starting.processes.child import Child
from queenbee.starting.processes.silence import Silence
from queenbee.store.droids import agent_sessions, roster

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.command_lines import CommandLine
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.starting.clients import Client
    from queenbee.store.layout import Layout
    from queenbee.workflows.complete_hive import Hive

_LOOK_AGAIN_S = 1.0


@dataclass
class AgentProcess(ABC):
    """One agent: its place in the team, and the process that it has now, if any."""

    hive: Hive
    """Opened in its worktree, under its name."""
    home: Hive
    """Of whoever started the team."""
    made: Made
    """Its worktree, to which it comes back from those of sprint beads."""
    client: Client
    options: Sequence[str]
    env: Mapping[str, str]
    tell: Callable[[str], None]
    entry: roster.Entry
    _child: Child | None = None
    _output: bytes = b""
    """The end of what its last process printed."""
    _look_at_s: float = 0.0
    _rest_until_s: float = 0.0

    def __post_init__(self) -> None:
        self._silence = Silence(self.home, self.name)
        if self.entry.process:
            log = roster.log_path(self.hive.layout, self.name)
            self._child = Child(self.entry.process, log=log)
        if self.entry.is_alive:
            self.tell(f"{self.name} is still at work: it goes on")

    @property
    def name(self) -> str:
        """The droid."""
        return self.entry.name

    @property
    def is_over(self) -> bool:
        """Whether it does no more."""
        return self.entry.state == "ended"

    @property
    def is_running(self) -> bool:
        """Whether a process of it runs."""
        return self._child is not None

    def tick(self) -> None:
        """Does what is to be done now; to be called some times a second. Never waits for long."""
        if self._child is not None:
            ended = self._child.ended()
            if ended is not None:
                child, self._child = self._child, None
                self._output = child.printed()
                self._settle(self._silence.why or ended, is_own=child.is_own)
            elif self._silence.why:
                self._child.stop()
            elif time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + _LOOK_AGAIN_S
                self._look_for_signs()
        elif not self.is_over and time.monotonic() >= self._rest_until_s:
            self._begin()

    @abstractmethod
    def _begin(self) -> None:
        """Begins with something, or ends."""

    @abstractmethod
    def _settle(self, ended: str, *, is_own: bool) -> None:
        """Decides what follows the end of a process; `ended` is empty for one that succeeded, and
        `is_own` says whether this run has started it.
        """

    @abstractmethod
    def _cannot_start(self, why: str) -> None:
        """Decides what follows if a process cannot be started."""

    def stop(self) -> None:
        """Asks its process to end, and ends it some seconds later; to be called again."""
        if self._child is not None and self._child.ended() is None:
            self._child.stop()
        else:
            self._child = None
            self._note("ended")

    def end(self) -> None:
        """Ends its process, and it; its issue stays its own until somebody takes it over."""
        if self._child is not None:
            self._child.end()
        self._child, self.entry.process = None, ""
        self._note("ended")

    def let_end(self) -> None:
        """Lets it finish its issue and take no other."""
        if not self.entry.is_ending:
            self.entry.is_ending = True
            self._note(self.entry.state)

    def rest(self, state: str, for_s: float) -> None:
        """Does nothing for some seconds."""
        self._rest_until_s = time.monotonic() + for_s
        self._note(state)

    def leave_alone(self, issue_id: str) -> None:
        """Has it not take an issue."""
        if issue_id not in self.entry.without:
            self.entry.without.append(issue_id)
            self._note(self.entry.state)

    def avoid(self, teams: set[str]) -> None:
        """Has it take no sprint beads of some teams."""
        if teams != set(self.entry.avoids):
            self.entry.avoids = sorted(teams)
            self._note(self.entry.state)

    def _start(
        self, argv: CommandLine, state: str, env: Mapping[str, str], *, said: str = ""
    ) -> None:
        log = roster.log_path(self.hive.layout, self.name)
        self._note(state)  # First: the process must not act before its state is known.
        try:
            self._child = Child.start(argv, cwd=self.entry.path, env=env, log=log, said=said)
        except OSError as error:
            self._cannot_start(f"{argv[0]} cannot be started: {error.strerror}")
            return
        self._silence = Silence(self.home, self.name)
        self.entry.process = self._child.process
        self._note(state)

    def _look_for_signs(self) -> None:
        """Notes signs of life."""
        session = agent_sessions.newest(self._sessions()) or self.entry.session
        if session != self.entry.session:
            self.entry.session = session
            self._note(self.entry.state)
        self._silence.look(self.entry.since_ms)

    def _sessions(self) -> Layout:
        """Returns where its sessions are noted."""
        return self.hive.layout

    def _note(self, state: str) -> None:
        if state != self.entry.state:
            self.entry.state, self.entry.since_ms = state, self.hive.now_ms()
        roster.write(self.hive.layout, self.entry)
