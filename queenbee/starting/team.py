"""A team: its agents, one after the other, again and again, until all is done or a limit is met."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

from queenbee.checks.processes import Interrupts
from queenbee.core.text import some, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, Conflict, InvalidInput, QueenError
from queenbee.git.landed import commit_records
from queenbee.git.ownership import is_foreign, worktree_note
from queenbee.git.worktrees.worktree_care import remove
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender, broken_place
from queenbee.starting.bead_worker import BeadWorker
from queenbee.starting.child import Child
from queenbee.starting.clients import (
    CLIENTS,
    LOOP,
    client_of,
    installed,
    path_of,
    refuse_missing,
    shell_options,
)
from queenbee.starting.interactive import open_clients
from queenbee.starting.worker import abort_landing
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.droids.liveness import described
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.git_files.worktrees import worktrees
from queenbee.store.lock import LongLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.starting.clients import Client
    from queenbee.store.layout import Layout
    from queenbee.workflows.hive import Hive

_TICK_S = 0.2
_STOP_S = 9.0
_NAMES = ("amber", "birch", "cedar", "dahlia", "elm", "fern", "ginger", "hazel")
_LEAST_MEMORY = 512 * 2**20
_MOST_LOAD = 4.0
"""Of each core: with more, one agent more makes all slower."""
_LOOKS = 3
"""So often everybody finds nothing to do, one after the other, before that counts."""
_MOST_TRIED = 2
"""So many agents try an issue before it is left to people."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a team ends although there is work left; 0: no limit."""

    minutes: float = 0
    issues: int = 0
    failures: int = 0
    cost_usd: float = 0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is started: who, with which agents, for what."""

    names: Sequence[str] = ()
    size: int = 0
    agent: str = ""
    """Instead of what the settings say."""
    only: Sequence[str] | None = None
    """The issues to do; all if None."""
    until_done: bool = False
    """Whether to wait for what others do, or what is blocked."""
    args: Sequence[str] = ()
    """Options for the clients."""
    yolo: bool = False
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class Ended:
    """How a team ended."""

    why: str
    """Empty if all is done."""
    seconds: float
    landed: dict[str, int]
    """How many issues each agent completed."""
    gave_back: dict[str, str]
    """Why issues were given back, by id."""
    left: list[str]
    """The issues that are not done."""
    cost_usd: float
    clients: dict[str, str]
    """What ran each agent."""
    kept: dict[str, str]
    """Whose an issue still is, by id."""
    ended_early: dict[str, str]
    """Why an agent did not begin, or ended before the others, by name."""
    on_hold: dict[str, str]
    """What issues wait for that only people can do, by id."""

    def to_dict(self) -> dict[str, object]:
        """Returns the parts as plain values."""
        return dict(vars(self))


class Team:
    """The agents that one `queen start` looks after."""

    def __init__(
        self, hive: Hive, wanted: Wanted, *, env: Mapping[str, str], tell: Callable[[str], None]
    ) -> None:
        self._hive = hive
        self._wanted = wanted
        self._env = env
        self._tell = tell
        self._begun_s = time.monotonic()
        self._unmade: dict[str, str] = {}
        """Why agents did not begin, by name."""
        self.workers: list[BeadWorker] = []

    def run(self, on_tick: Callable[[Team], None] = lambda _: None) -> Ended:
        """Starts the agents and looks after them; returns when none is at work any more.

        Raises `Busy` while another `queen start` runs here, and what making a worktree raises.
        """
        folder = roster.folder(self._hive.layout)
        safe_open.make_folder(folder)
        lock = os.path.join(folder, "lock")
        holder = self._hive.actor_or_none or "queen start"
        with ExitStack() as stack:
            try:
                stack.enter_context(LongLock(lock, holder=holder, timeout_s=1.0))
            except Busy as error:
                team = "a team is already at work here"
                raise Busy(team, hint="queen status, or Ctrl-C there") from error
            interrupts = stack.enter_context(Interrupts())
            got = without_tokens(self._env, self._hive.layout.common_dir)
            if kept_back := sorted(self._env.keys() - got.keys()):
                names = ", ".join(kept_back)
                self._tell(f"agents do not get {names}; to give it: git config queenbee.env NAME")
            self.workers = self._all_workers()
            return self._ended(self._look_after(interrupts, on_tick))

    def open(self) -> None:
        """Opens the clients for a person: in this terminal, or in windows of tmux."""
        most = None if self._wanted.names or self._wanted.size else 1
        opened = {}
        for name, client in list(self.clients().items())[:most]:
            made = self._made(name, client)
            prompt = LOOP.format(name=name, alone="")
            opened[name] = (made.path, client.opened(prompt, self._options(client)))
        env = without_tokens(self._env, self._hive.layout.common_dir)
        open_clients(opened, env, path_of(env))

    def clients(self) -> dict[str, Client]:
        """Returns what runs each agent: those that are given take turns. Raises `InvalidInput`."""
        given = [self._wanted.agent]
        if set(self._wanted.agent.split(",")) <= set(CLIENTS):
            given = self._wanted.agent.split(",")
        turns = zip(self._names(), cycle(given), strict=False)
        agents = {name: agent_of(self._hive.layout, name, each, self._env) for name, each in turns}
        return {name: client_of(each, self._env) for name, each in agents.items()}

    def _options(self, client: Client) -> list[str]:
        yolo = client.yolo if self._wanted.yolo else ()
        return [*self._wanted.args, *yolo, *shell_options(client, self._env)]

    def _look_after(self, interrupts: Interrupts, on_tick: Callable[[Team], None]) -> str:
        why = ""
        while not all(each.is_over for each in self.workers):
            if interrupts.count > 1:
                self._stop()
                return "stopped"
            reason = "ended by Ctrl-C" if interrupts.count else self._limit()
            if reason and not why:
                why = reason
                self._tell(f"{reason}: the agents finish what they have; Ctrl-C stops them")
            for each in self.workers:
                if why:
                    each.let_end()
                self._tick(each)
                self._leave_alone()  # Before the next one looks for an issue.
            if not self._wanted.until_done and self._is_stuck():
                why = why or "what is left waits for something that this team does not do"
            on_tick(self)
            time.sleep(_TICK_S)
        return why

    def _tick(self, worker: BeadWorker) -> None:
        others = (each for each in self.workers if each is not worker and not each.is_over)
        worker.avoid({each.entry.team for each in others if each.entry.team})
        try:
            worker.tick()
        except (QueenError, OSError) as error:
            worker.note_trouble(error)

    def _leave_alone(self) -> None:
        """Has nobody take an issue that several agents gave back."""
        back = [key for each in self.workers for key in each.gave_back]
        tried = {key for key in back if back.count(key) >= _MOST_TRIED}
        for issue_id in tried.union(*(each.given_up for each in self.workers)):
            for each in self.workers:
                each.leave_alone(issue_id)

    def _is_stuck(self) -> bool:
        """Returns whether everybody waits, and for nobody of this team."""
        if any(each.is_running for each in self.workers):
            for each in self.workers:
                each.looks = 0
        waits = [each for each in self.workers if not each.is_over]
        return bool(waits) and all(each.looks >= _LOOKS for each in waits)

    def _limit(self) -> str:
        limits, spent_s = self._wanted.limits, time.monotonic() - self._begun_s
        reached = {
            "the time is up": limits.minutes and spent_s >= limits.minutes * 60,
            "so many issues are done": limits.issues
            and sum(each.entry.landed for each in self.workers) >= limits.issues,
            "so many runs failed": limits.failures
            and sum(each.failures for each in self.workers) >= limits.failures,
            "so much is spent": limits.cost_usd
            and sum(each.cost_usd for each in self.workers) >= limits.cost_usd,
        }
        fatal = [each.fatal for each in self.workers if each.fatal]
        return next(
            iter([*fatal, *(each for each, is_reached in reached.items() if is_reached)]), ""
        )

    def _stop(self) -> None:
        until_s = time.monotonic() + _STOP_S
        while any(each.is_running for each in self.workers) and time.monotonic() < until_s:
            for each in self.workers:
                each.stop()
            time.sleep(0.05)

    def _ended(self, why: str) -> Ended:
        held = {each.name: each.settle_up() for each in self.workers}
        left = self._hive.issues.open()
        why = why if left else ""
        if not why and left and any(each.gave_back for each in self.workers):
            why = "issues were given back"
        early = {each.name: each.ended_early for each in self.workers if each.ended_early}
        if not why and left and early:
            why = "agents ended early"
        ended = Ended(
            why,
            time.monotonic() - self._begun_s,
            {each.name: each.entry.landed for each in self.workers},
            {
                key: why
                for each in self.workers
                for key, why in each.gave_back.items()
                if key in left
            },
            [each for each in left if self._wanted.only is None or each in self._wanted.only],
            sum(each.cost_usd for each in self.workers),
            {each.name: each.entry.program for each in self.workers},
            {issue_id: name for name, issue_id in held.items() if issue_id},
            self._unmade | early,
            {
                issue_id: each.because
                for issue_id, each in self._hive.issues.standings_of(left).items()
                if each.state == "on_hold" and each.because
            },
        )
        said = sentences(ended)
        roster.note_end(self._hive.layout, self._hive.now_ms(), said, ended.clients)
        try:
            if left_out := commit_records(self._hive, is_end=True):
                self._tell(left_out)
        except (QueenError, OSError):  # Such as a full disk.
            for each in said:
                self._tell(each)
            raise
        return ended

    def _names(self) -> list[str]:
        """Returns the agents: those named, or what a killed run left and as many as wanted."""
        if self._wanted.names:
            return list(dict.fromkeys(self._wanted.names))
        settings = self._hive.layout.settings
        layout = self._hive.layout
        left = [each.name for each in roster.everybody(layout)]
        notes = [note for each in worktrees(layout) if (note := worktree_note(each))]
        adopted = [each.droid for each in notes if each.adopted and each.droid in _NAMES]
        free = [each for each in _NAMES if each in left or not is_foreign(layout, each)]
        own = {each.droid for each in notes}
        names = dict.fromkeys([*adopted, *left, *(each for each in free if each in own), *free])
        return [*names][: self._wanted.size or len(left) or settings.team_size]

    def _made(self, name: str, client: Client) -> Made:
        """Returns an agent's worktree, put right. Raises `InvalidInput`, and makes none, if its
        program would not be there.
        """
        known = _path_of(self._hive, name)
        entry = roster.read(self._hive.layout, name)
        if known is not None and (entry is None or not entry.is_alive):
            log = roster.log_path(self._hive.layout, name)
            abort = partial(abort_landing, known, self._env, log)
            add_again = partial(add, self._hive, name, path=known)
            mender = WorktreeMender(self._hive, known, name, add_again)
            for said in mender.mend(f"work-{name}", keeps_merge=True, abort=abort):
                self._tell(f"{name}: {said}")
        made = add(self._hive, name, path=known)
        try:
            refuse_missing(client, made.path)
        except InvalidInput:
            if known is None:
                with suppress(QueenError):
                    remove(self._hive, made.path)
            raise
        return made

    def _all_workers(self) -> list[BeadWorker]:
        """Returns the agents; raises as `_worker` does if there would be none."""
        found, errors = [], list[Exception]()
        for name, client in self.clients().items():
            try:
                found.append(self._worker(name, client))
            except InvalidInput:  # What was asked for is wrong, for all of them.
                raise
            except (QueenError, OSError) as error:
                errors.append(error)
                hint = error.hint if isinstance(error, QueenError) else ""
                self._unmade[name] = f"{error}; try: {hint}" if hint else str(error)
                self._tell(f"{name} does not begin: {self._unmade[name]}")
        if not found:
            raise errors[0]
        return found

    def _worker(self, name: str, client: Client) -> BeadWorker:
        layout = self._hive.layout
        made = self._made(name, client)
        before = roster.read(layout, name)
        goes_on = before is not None and (before.is_alive or before.state == "working")
        if not goes_on:  # What a run that was killed left ends, even what it had not noted.
            Child(before.process if before else "", log=roster.log_path(layout, name)).end()
        entry = roster.Entry(name, before.to_dict() if before and goes_on else None)
        entry.client, entry.is_ending = client.name, False
        entry.path = entry.path if entry.is_alive else made.path
        entry.supervisor = described(os.getpid())
        entry.only = list(self._wanted.only) if self._wanted.only is not None else None
        roster.write(layout, entry)
        return BeadWorker(
            type(self._hive).open(made.path, droid=name, env=self._env),
            self._hive,
            made,
            client,
            self._options(client) if client.loops else (),
            self._env,
            self._tell,
            entry,
            # One agent is always at work, whatever else this machine does.
            lambda: no_room() if any(each.is_running for each in self.workers) else "",
        )


def agent_of(layout: Layout, name: str, given: str, env: Mapping[str, str]) -> str:
    """Returns what runs an agent: as given, as the settings say, or the only client that is
    installed. Raises `InvalidInput` if nothing says so.
    """
    of_names = dict(each.split("=", 1) for each in layout.settings.team_agents if "=" in each)
    found = given or of_names.get(name) or layout.settings.team_agent
    if found and found != given and found not in CLIENTS:
        # A clone may have set it: it names a client, and no program of its own.
        raise InvalidInput(
            f"team.agents names {found!r} for {name}, which is no client",
            hint=f"the clients are {', '.join(CLIENTS)}; a program: queen start --agent COMMAND",
        )
    if found:
        return found
    here = installed(env)
    if len(here) != 1:
        raise InvalidInput(
            f"which client is to run is not set; installed are: {', '.join(here) or 'none'}",
            hint=f"queen start --agent {','.join(here) or 'COMMAND, a client or a program'}; "
            "for everybody: queen config set team.agent NAME",
        )
    return here[0]


def no_room() -> str:
    """Returns why this machine has no memory or processors for one more agent, or nothing."""
    try:
        load, most = os.getloadavg()[0], _MOST_LOAD * (os.cpu_count() or 1)
        if load > most:
            return f"the load is {load:.0f}, more than {most:.0f}"
        said = safe_open.read("/proc/meminfo", 4096).decode()
        line = next(each for each in said.splitlines() if each.startswith("MemAvailable:"))
        free, least = int(line.split()[1]) // 1024, _LEAST_MEMORY // 2**20
        return f"{free} MiB of memory are free, less than {least}" if free < least else ""
    except (OSError, QueenError, StopIteration, ValueError, IndexError):
        return ""  # A system that does not say so.


def _path_of(hive: Hive, name: str) -> str | None:
    """Returns the worktree that was made for a droid, or None. Raises `Conflict` for two."""
    notes = [(each, worktree_note(each)) for each in worktrees(hive.layout) if each.linked]
    own = [each.path for each, note in notes if note is not None and note.is_for(name, None)]
    if len(own) > 1:
        raise Conflict(f"{name} has two worktrees: {', '.join(own)}", hint="queen worktree list")
    return own[0] if own else broken_place(hive.layout, name)


def sentences(ended: Ended) -> list[str]:
    """Returns what was done, by whom and in what time, and what is left and why, a line each."""
    done = ", ".join(f"{key} ({ended.clients[key]}) {count}" for key, count in ended.landed.items())
    count = sum(ended.landed.values())
    found = [f"{count} issue{'s' * (count != 1)} in {format_duration(ended.seconds)}: {done}"]
    if ended.cost_usd:
        found.append(f"spent, as the clients report it: {ended.cost_usd:.2f} USD")
    found += [f"{issue_id}: {why}" for issue_id, why in ended.gave_back.items()]
    found += [f"{name} ended early: {why}" for name, why in ended.ended_early.items()]
    found += [
        f"{issue_id} is still {name}'s: {suggested('queen start', name, agent=agent)} goes on with "
        f"it, {suggested('queen release', issue_id, as_=name)} gives it back"
        for issue_id, name in ended.kept.items()
        for agent in (ended.clients[name] if ended.clients[name] in CLIENTS else "COMMAND",)
    ]
    found += [f"{issue_id} is on hold: {why}" for issue_id, why in ended.on_hold.items()]
    if ended.why:
        found.append(f"it ended before everything was done: {ended.why}")
    if ended.left:
        found.append(f"left: {some(ended.left, 20)}; see: queen issues")
    return found
