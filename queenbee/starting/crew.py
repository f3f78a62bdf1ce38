"""Who is in a team: the agents, what runs each of them, and their worktrees."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

from queenbee.agents.client_settings import unseen_settings
from queenbee.checks.consent import untrusted
from queenbee.core.names import checked_agent
from queenbee.core.text import named, suggested
from queenbee.core.timestamps import format_ms
from queenbee.errors import Conflict, InvalidInput, QueenError, Untrusted
from queenbee.git.ownership import is_foreign, worktree_note
from queenbee.git.worktrees.branch_names import agent_branch, agent_place
from queenbee.git.worktrees.preparing import SetupFailed, prepare
from queenbee.git.worktrees.slots import variables
from queenbee.git.worktrees.worktree_care import remove
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.starting.bead_worker import BeadWorker
from queenbee.starting.clients import (
    CLIENTS,
    LOOP,
    client_of,
    installed,
    path_of,
    refuse_missing,
    shell_options,
)
from queenbee.starting.ending import Reason
from queenbee.starting.interactive import open_clients
from queenbee.starting.landing_result import abort_landing
from queenbee.starting.limits import Limits, no_room
from queenbee.starting.processes.child import Child
from queenbee.starting.stoppages import Pause
from queenbee.store.droids import presence, roster
from queenbee.store.droids.liveness import described
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.git_files.worktrees import worktrees

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.processes import Interrupts
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.starting.clients import Client
    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal
    from queenbee.workflows.complete_hive import Hive

_FIRST_NAMES = ("amber", "birch", "cedar", "dahlia", "elm", "fern", "ginger", "hazel")
_NAMES = (*_FIRST_NAMES, *(f"{each}-{n}" for n in range(2, 20) for each in _FIRST_NAMES))


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
    until_proposed: bool = False
    """Whether to end without what people have still to merge."""
    args: Sequence[str] = ()
    """Options for the clients."""
    yolo: bool = False
    is_tried: bool = True
    """Whether it is tried first that work can land."""
    limits: Limits = field(default_factory=Limits)


class Crew:
    """The agents of a team, before they begin."""

    def __init__(
        self,
        hive: Hive,
        wanted: Wanted,
        *,
        env: Mapping[str, str],
        tell: Callable[[str], None],
        ask: Callable[[Sequence[Proposal]], bool] | None = None,
    ) -> None:
        """`ask` is that of `Team`."""
        self._hive = hive
        self._wanted = wanted
        self._env = env
        self._tell = tell
        self._ask = ask
        self.not_begun: list[Reason] = []
        """Why agents did not begin."""
        self._workers: list[BeadWorker] = []
        self._pauses: dict[str, Pause] = {}
        self._interrupts: Interrupts | None = None

    def assemble(self, interrupts: Interrupts) -> Sequence[BeadWorker]:
        """Returns the agents. Raises what making a worktree raises if there would be none; and
        `SetupFailed` if one cannot be set up: the others need the same.
        """
        self._interrupts = interrupts
        errors = list[Exception]()
        for name, client in self.clients().items():
            try:
                self._workers.append(self._worker(name, client))
            except (InvalidInput, SetupFailed, Untrusted):  # It is so for all of them.
                raise
            except (QueenError, OSError) as error:
                errors.append(error)
                hint = error.hint if isinstance(error, QueenError) else ""
                text = f"{name} does not begin: {error}" + (f"; try: {hint}" if hint else "")
                self.not_begun.append(Reason("not_begun", text, agent=name))
                self._tell(text)
        if not self._workers:
            raise errors[0]
        return self._workers

    def open(self) -> None:
        """Opens the clients for a person: in this terminal, or in windows of tmux."""
        most = None if self._wanted.names or self._wanted.size else 1
        opened = {}
        for name, client in list(self.clients().items())[:most]:
            made = self._made(name, client)
            prompt = LOOP.format(name=name, alone="")
            own = variables(self._hive.layout, made.path)
            opened[name] = (made.path, client.opened(prompt, self._options(client)), own)
        env = without_tokens(self._env, self._hive.layout.common_dir)
        open_clients(opened, env, path_of(env))

    def clients(self) -> dict[str, Client]:
        """Returns what runs each agent: those that are given take turns. Raises `InvalidInput`."""
        given = [self._wanted.agent]
        if set(self._wanted.agent.split(",")) <= set(CLIENTS):
            given = self._wanted.agent.split(",")
        turns = zip(self.names(), cycle(given), strict=False)
        agents = {name: agent_of(self._hive.layout, name, each, self._env) for name, each in turns}
        return {name: client_of(each, self._env) for name, each in agents.items()}

    def _options(self, client: Client) -> list[str]:
        yolo = client.yolo if self._wanted.yolo else ()
        return [*self._wanted.args, *yolo, *shell_options(client, self._env)]

    def names(self) -> list[str]:
        """Returns the agents: those named, or what a killed run left and as many as wanted."""
        if self._wanted.names:
            self._refuse_issues()
            return list(dict.fromkeys(map(_checked, self._wanted.names)))
        settings = self._hive.layout.settings
        layout = self._hive.layout
        left = [each.name for each in roster.everybody(layout)]
        notes = [note for each in worktrees(layout) if (note := worktree_note(each))]
        adopted = [each.droid for each in notes if each.keeps_work and each.droid in _NAMES]
        own = {each.droid for each in notes}
        # Those that it made before, then new ones, of which only as many as needed are asked about.
        ordered = sorted(_NAMES, key=lambda each: each not in own)
        free = (
            each
            for each in ordered
            if each in left or not is_foreign(layout, each, agent_branch(layout, each))
        )
        most = self._wanted.size or len(left) or settings.team_size
        names = dict.fromkeys([*adopted, *left][:most])
        while len(names) < most and (name := next(free, None)) is not None:
            names[name] = None
        return [*names]

    def _refuse_issues(self) -> None:
        """Raises `InvalidInput` for issues in place of names."""
        issues = [each for each in self._wanted.names if self._hive.issues.get_or_none(each)]
        if issues:
            listed = " ".join(suggested("", issues=each).strip() for each in issues)
            are = "is an issue" if len(issues) == 1 else "are issues"
            raise InvalidInput(f"{named(issues)} {are}", hint=f"queen start {listed}")

    def _made(self, name: str, client: Client) -> Made:
        """Returns an agent's worktree, put right and set up. Raises `InvalidInput`, and makes none,
        if its program would not be there.
        """
        known = _path_of(self._hive, name)
        entry = roster.read(self._hive.layout, name)
        if known is not None and (entry is None or not entry.is_alive):
            log = roster.log_path(self._hive.layout, name)
            abort = partial(abort_landing, known, self._env, log)
            add_again = partial(add, self._hive, name, path=known)
            mender = WorktreeMender(
                self._hive, known, agent_branch(self._hive.layout, name), add_again
            )
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
        if entry is None or not entry.is_alive:
            prepare(
                self._hive.layout,
                made.path,
                env=self._env,
                tell=lambda said: self._tell(f"{name}: {said}"),
                interrupts=self._interrupts,
            )
        self._require_settings(made.path, client)  # The set-up may have made some.
        return made

    def _require_settings(self, tree: str, client: Client) -> None:
        """Asks for the settings with which a client would begin, and again for what was swapped
        while the question waited. Raises `Untrusted`.
        """
        layout, ask = self._hive.layout, self._ask
        while unseen := unseen_settings(layout, tree, self._env, [client.name]):
            if ask is None or not ask(unseen):
                roster.note_unseen(layout, [each.to_dict() for each in unseen])
                raise untrusted(unseen, is_answer=ask is not None)
        roster.note_unseen(layout, [])

    def _worker(self, name: str, client: Client) -> BeadWorker:
        layout = self._hive.layout
        made = self._made(name, client)
        before = roster.read(layout, name)
        left = Child(before.process if before else "", log=roster.log_path(layout, name))
        if left.is_stranger:
            before = None
        goes_on = before is not None and (before.is_alive or before.state == "working")
        if not goes_on:  # What a run that was killed left ends, even what it had not noted.
            left.end()
            roster.mark_run(layout, name, format_ms(self._hive.now_ms()))
        entry = roster.Entry(name, before.to_dict() if before and goes_on else None)
        entry.client, entry.is_ending = client.name, False
        entry.path = entry.path if entry.is_alive else made.path
        entry.supervisor = described(os.getpid())
        entry.only = list(self._wanted.only) if self._wanted.only is not None else None
        roster.write(layout, entry)
        presence.note(layout, name, self._hive.now_ms())
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
            pause=self._pauses.setdefault(
                client.name, Pause(client.name, is_patient=self._wanted.until_done)
            ),
            no_room=lambda: no_room() if any(each.is_running for each in self._workers) else "",
        )


def _checked(name: str) -> str:
    """Returns the name of an agent unchanged. Raises `InvalidInput`, also for what is a size."""
    if name.isdecimal():
        raise InvalidInput(
            f"{name} would be the name of an agent", hint=suggested("queen start", size=name)
        )
    return checked_agent(name)


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
            hint=f"the clients are {', '.join(CLIENTS)}; a program of your own with --agent",
        )
    if found:
        return found
    here = installed(env)
    if len(here) != 1:
        raise InvalidInput(
            f"which client is to run is not set; installed are: {', '.join(here) or 'none'}",
            hint=f"{suggested('queen start', agent=','.join(here))}; for everybody: "
            f"{suggested('queen config set team.agent', here[0])}"
            if here
            else "name a program of your own with --agent",
        )
    return here[0]


def _path_of(hive: Hive, name: str) -> str | None:
    """Returns the worktree that was made for a droid, or None. Raises `Conflict` for two."""
    notes = [(each, worktree_note(each)) for each in worktrees(hive.layout) if each.linked]
    own = [each.path for each, note in notes if note is not None and note.is_for(name, None)]
    if len(own) > 1:
        raise Conflict(f"{name} has two worktrees: {', '.join(own)}", hint="queen worktree list")
    place = agent_place(hive.layout, name)  # Its folder may be gone, or its `.git`.
    return own[0] if own else place[0] if place is not None else None
