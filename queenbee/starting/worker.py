"""One agent of a team: takes an issue, runs on it, lands what is left, and begins again if it ends
too early. `docs/team.md`.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import CommandLine, command_line
from queenbee.core.text import mentioned, printable, quotation, shortened, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import Conflict, QueenError
from queenbee.git.run import line
from queenbee.git.touched import take_next
from queenbee.git.unfinished import WorktreeKeeper, open_operations
from queenbee.git.worktrees.worktree_making import add
from queenbee.git.worktrees.worktree_mending import WorktreeMender
from queenbee.services.work import Nothing
from queenbee.starting.child import Child
from queenbee.starting.clients import ALONE, LOOP, path_of
from queenbee.store import safe_open
from queenbee.store.droids import agent_sessions, presence, roster
from queenbee.store.droids.identity import VARIABLES
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.git_files.worktrees import target_branch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.core.records import Assignment
    from queenbee.git.unfinished import Unfinished
    from queenbee.git.worktrees.worktree_making import Made
    from queenbee.services.work import Begin
    from queenbee.starting.clients import Client
    from queenbee.store.layout import Layout
    from queenbee.workflows.hive import Hive

MOST_ENDS = 3
"""So many ends on one issue without a landing or a commit, and it goes back."""
_MOST_STARTS = 10
"""So many ends on one issue in any case."""
_MOST_TROUBLES = 3
"""So often something is in its way, with nothing landed or committed in between, and it ends."""
_TROUBLE_S = 5.0
_STOPS_MAIN = {"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"}
"""What in the main worktree is in the way of every landing."""
_REST_S, _MOST_REST_S = 0.5, 30.0
_LOOK_AGAIN_S = 1.0
_NO_ROOM = "waits for memory or load"
_TAIL_BYTES = 3_000
_DENIED = re.compile(rb'"permission_denials"\s*:\s*\[\s*\{')
_COST = re.compile(rb'"total_cost_usd"\s*:\s*([0-9]+(?:\.[0-9]+)?)')

_AGAIN = (
    "You ended with {issue} in hand, and it has not landed: {why}. Run `queen next` and `git "
    "status`, and go on: land it, or say with `{release}` why it cannot be done.{failures}"
)


@dataclass
class Worker:
    """One agent: its place, its process, and how it has fared."""

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
    no_room: Callable[[], str] = lambda: ""
    """Why the machine cannot bear one more process; empty if it can."""
    cost_usd: float = 0.0
    """What its client has reported."""
    ended_early: str = ""
    """Why it ended before the team did."""
    looks: int = 0
    """How often it has found nothing to do since anybody was at work."""
    failures: int = 0
    """How many of its processes have ended too early."""
    gave_back: dict[str, str] = field(default_factory=dict)
    """Why it gave issues back, by id."""
    _released: set[str] = field(default_factory=set)
    """The ids of its records of issues that were given back, as far as it has counted them."""
    _is_unclear: bool = False
    """Whether its worktree has still to be cleared for the issue that it has taken."""
    _troubles: int = 0
    """How often something was in its way since it landed or committed anything."""
    _child: Child | None = None
    _ends: int = 0
    """How many processes have ended too early on this issue, since the last commit."""
    _starts: int = 0
    _ahead: int = 0
    """How many commits of its branch had not landed when its process began."""
    _why: str = ""
    _rest_until_s: float = 0.0
    _output: bytes = b""
    """The end of what its last process printed."""
    _nudged_s: float | None = None
    _silent: str = ""
    """Why its process is being stopped."""
    _look_at_s: float = 0.0
    _began_with: int = 0
    _was_denied: bool = False
    """Whether its client says that it was refused something that nobody sits there to allow."""

    def __post_init__(self) -> None:
        self._began_with = len(self._completed()) - self.entry.landed
        self._released = {each.id for each in self._ended("released")}
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
                self._output, self._child = self._child.printed(), None
                self._settle(self._silent or ended)
            elif self._silent:
                self._child.stop()
            elif time.monotonic() >= self._look_at_s:
                self._look_at_s = time.monotonic() + _LOOK_AGAIN_S
                self._look_for_signs()
        elif not self.is_over and time.monotonic() >= self._rest_until_s:
            self._begin()

    def note_trouble(self, error: QueenError | OSError) -> None:
        """Has it try again later, or end: what is in the way now need not be for long."""
        self.failures += 1
        self._troubles += 1
        if self._troubles < _MOST_TROUBLES and not self.entry.is_ending:
            self.tell(f"{self.name}: {error}; tried again in {_TROUBLE_S:.0f} s")
            self._look_at_s = time.monotonic() + _TROUBLE_S
            self.rest("in trouble", _TROUBLE_S)
            return
        self._end_early(str(error))
        self.end()

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

    def _end_early(self, why: str) -> None:
        self.ended_early = why
        self.tell(f"{self.name} ends: {why}")
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

    def settle_up(self) -> str:
        """Counts what it landed, and takes it off the roster, unless its process still runs;
        returns the id of its unfinished issue, if any.
        """
        held = self._count_landed()
        if held and self._is_unclear:  # It has not begun with it.
            with suppress(QueenError):
                self.hive.assignments.release(held.issue_id, reason=self.ended_early)
                held = None
        if not self.entry.is_alive:
            if held is None:
                with suppress(QueenError, OSError):  # Else the next run does.
                    self._make_fit()
            roster.forget(self.hive.layout, self.name)
        return held.issue_id if held is not None else ""

    def leave_alone(self, issue_id: str) -> None:
        """Has it not take an issue."""
        if issue_id not in self.entry.without:
            self.entry.without.append(issue_id)
            self._note(self.entry.state)

    def held(self) -> Assignment | None:
        """Returns its unfinished issue, or None."""
        found = self.hive.assignments.find(droid=self.name)
        issues = self.hive.issues.some(each.issue_id for each in found)
        open_ = (
            one for one in found if one.issue_id not in issues or not issues[one.issue_id].done
        )
        return next(open_, None)

    def _begin(self) -> None:
        held = self.held()
        # Others may wait for an issue that it has.
        if held is None and (why := self.no_room()):
            if self.entry.state != _NO_ROOM:
                self.tell(f"{self.name} {_NO_ROOM} while others work: {why}")
            self.rest(_NO_ROOM, 5.0)
            return
        self._make_fit()
        taken = take_next(self.hive)
        if isinstance(taken, Nothing):
            if taken.is_end or not taken.counts["total"]:
                self._note("ended")
            else:
                self.looks += 1
                self.rest(f"waits: {taken.state.replace('_', ' ')}", _LOOK_AGAIN_S)
            return
        self._is_unclear = self._is_unclear or held is None
        self._run(taken)

    def _make_fit(self) -> None:
        """Puts its worktree right, whatever its last process did to it: the work is kept."""
        if self._mended(self._mender()):
            # The folder may be another one by now.
            self.hive = type(self.hive).open(self.made.path, droid=self.name, env=self.env)

    def _mender(self) -> WorktreeMender:
        path = self.made.path
        add_again = partial(add, self.home, self.name, path=path)
        return WorktreeMender(self.home, path, self.made.branch, add_again)

    def _clear(self) -> None:
        """Keeps what is in its worktree, of another issue or a person, before an issue begins."""
        for said in self._mender().clear(f"{self.entry.issue_id or 'work'}-{self.name}"):
            self.tell(f"{self.name}: {said}")
        self._is_unclear = False

    def _mended(self, mender: WorktreeMender) -> bool:
        """Has a worktree be put right, tells what was wrong, and returns whether anything was."""
        held = self.held()
        name = f"{held.issue_id if held is not None else self.entry.issue_id}-{self.name}"
        abort = partial(self._abort_landing, self.entry.issue_id)
        said = []
        for each in mender.mend(name, keeps_merge=held is not None, abort=abort):
            said.append(each)
            self.tell(f"{self.name}: {each}")
        if self._why and said:  # What its next process reads.
            self._why = "; ".join([self._why, *said])
        return bool(said)

    def _run(self, begin: Begin) -> None:
        """Starts the agent on its issue."""
        if self._is_unclear:
            self._clear()
        self._takes(begin)
        issue_id, self._ahead = self.entry.issue_id, self._unlanded()
        env = without_tokens(self._environment(issue_id), self.hive.layout.common_dir)
        self._start(self._command(issue_id), "working", env, said=self._briefing(env))

    def _takes(self, begin: Begin) -> None:
        issue_id = begin.assignment.issue_id
        if issue_id != self.entry.issue_id:
            self._starts, self._ends, self._why = 0, 0, ""
            title = begin.issue.title if begin.issue is not None else ""
            self.tell(f"{self.name} takes {issue_id}: {shortened(title, 60)}")
        self.entry.issue_id = issue_id

    def _command(self, issue_id: str) -> CommandLine:
        if not self._ends:
            return self.client.command(
                LOOP.format(name=self.name, alone=ALONE), options=self.options
            )
        failures = self._tail()
        text = _AGAIN.format(
            issue=issue_id,
            release=suggested("queen release", issue_id, reason="TEXT"),
            why=self._why,
            failures=f"\n\nThe end of the last output:\n{failures}" if failures else "",
        )
        # A session that cannot be resumed must not stand in the way for ever.
        session = self.entry.session if self._ends == 1 else ""
        return self.client.command(text, session=session, options=self.options)

    def _start(
        self, argv: CommandLine, state: str, env: Mapping[str, str], *, said: str = ""
    ) -> None:
        log = roster.log_path(self.hive.layout, self.name)
        self._note(state)  # First: the process must not act before its state is known.
        try:
            self._child = Child.start(argv, cwd=self.entry.path, env=env, log=log, said=said)
        except OSError as error:
            self._fail(f"{argv[0]} cannot be started: {error.strerror}", self.held())
            return
        self._nudged_s, self._silent = None, ""
        self.entry.process = self._child.process
        self._note(state)

    def _environment(self, issue_id: str) -> dict[str, str]:
        """Returns what the agent gets, as `queen bead run` gives it."""
        text = self._tail() if self._ends else ""
        failures = self._written("failures", text)
        named = {
            "QUEEN_ISSUE": issue_id, "QUEEN_BEAD": issue_id,
            "QUEEN_ATTEMPT": str(self._ends + 1), "QUEEN_MAX_ATTEMPTS": str(MOST_ENDS),
            "QUEEN_FAILURES": text, "QUEEN_FAILURES_FILE": failures, "PATH": path_of(self.env),
        }  # fmt: skip
        others = {key: value for key, value in self.env.items() if key not in VARIABLES}
        # A client acts under the name of its worktree, as a session that can be resumed.
        own = {} if self.client.loops else {"QUEEN_DROID": self.name}
        return {**others, **named, **own}

    def _written(self, name: str, text: str) -> str:
        """Returns a new file for its process."""
        path = os.path.join(roster.folder(self.hive.layout), f"{self.name}.{name}")
        with suppress(FileNotFoundError):  # It may be a link by now.
            safe_open.unlink(path)
        safe_open.write(path, text.encode())
        return path

    def _briefing(self, env: Mapping[str, str]) -> str:
        """Returns a file with what `queen next` prints, for a program that reads no prompt."""
        if self.client.loops:
            return ""
        path = self._written("briefing", "")
        Child.start(command_line("queen", "next"), cwd=self.entry.path, env=env, log=path).wait()
        return path

    def _settle(self, ended: str) -> None:
        """Decides what follows the end of a process; `ended` is empty for one that succeeded."""
        was_landing, self.entry.process = self.entry.state == "landing", ""
        self.cost_usd += self._reported_cost()
        if not was_landing:
            self._was_denied = _DENIED.search(self._output) is not None
        held = self._count_landed()
        if held is None:
            self._note("between")
        elif not ended and not was_landing and held.issue_id == self.entry.issue_id:
            # A program need not know how to land; a client may have forgotten it.
            self._land(held.issue_id)
        else:
            if was_landing:
                self._refuse_open_main()
            refusal = self._refusal() if was_landing else ""
            made_nothing = "nothing to land" in refusal
            why = f"what it made did not land{refusal}" if was_landing else ended
            why = "it made nothing" if made_nothing else why
            if ended and not was_landing and (said := self._tail().splitlines()):
                why += f", after {quotation(said[-1], 160)}"
            why = why or "it ended without landing it"
            if self._was_denied:
                why += (
                    "; it was refused a permission: queen start --yolo, or allow it in its settings"
                )
            if self._was_denied and made_nothing and not self.entry.landed:
                # The next attempt would fare no better, and neither would the next issue.
                self.failures += 1
                self._give_back(held, f"{self.name} stops: {why}")
                self.ended_early = why
                self._note("ended")
            else:
                self._fail(why, held, is_landing=was_landing)

    def _refuse_open_main(self) -> None:
        """Raises `Conflict` if a person has something open in the main worktree with which git does
        not move it: no issue can land.
        """
        layout = self.home.layout
        opened = _STOPS_MAIN.intersection(open_operations(layout.common_dir or ""))
        if opened and layout.common_dir is not None:
            main = os.path.dirname(layout.common_dir)
            raise Conflict(
                f"nothing can land: {', '.join(opened)} is open in {mentioned(main)}",
                hint=suggested("git -C", main, "status"),
            )

    def _count_landed(self) -> Assignment | None:
        """Tells what it has landed since it was asked last; returns its unfinished issue, or None.

        A client may land one issue after the other.
        """
        done, before = self._completed(), self.entry.landed
        self.entry.landed = len(done) - self._began_with
        held = self.held()
        if self.entry.landed > before:
            self._starts, self._ends, self._why, self._troubles = 0, 0, "", 0
            landed = ", ".join(done[before - self.entry.landed :])
            self.tell(f"{self.name} landed {landed}; issues so far: {self.entry.landed}")
            if held is not None and self.is_running:
                self.entry.issue_id = held.issue_id
                self._note(self.entry.state)
        self._count_given_back()
        return held

    def _count_given_back(self) -> None:
        """Counts the issues that its process gave back, and has it not take them again."""
        for each in self._ended("released"):
            if each.id in self._released:
                continue
            self._released.add(each.id)
            if each.issue_id not in self.entry.without:  # Else it was given back for it.
                self.failures += 1
                why = f"{self.name} gave it back: {each.reason or 'without a reason'}"
                self.gave_back[each.issue_id] = why
                self.leave_alone(each.issue_id)
                self.tell(f"{each.issue_id}: {why}")

    def _land(self, issue_id: str) -> None:
        self._make_fit()
        issue = self.hive.issues.get_or_none(issue_id)
        message = message_of(issue_id, issue.title if issue is not None else "")
        argv = command_line("queen", "land", values=[issue_id], message=message)
        self._start(argv, "landing", self._environment(issue_id))

    def _fail(self, why: str, held: Assignment | None = None, *, is_landing: bool = False) -> None:
        has_committed = self._unlanded() > self._ahead and not is_landing  # Landing commits, too.
        self._ends = 1 if has_committed else self._ends + 1
        self._troubles = 0 if has_committed else self._troubles
        is_enough = self._ends >= MOST_ENDS or self._starts + 1 >= _MOST_STARTS
        self._again(why, held if is_enough or self.entry.is_ending else None)

    def _again(self, why: str, gives_back: Assignment | None = None) -> None:
        """Begins again after a rest, unless it gives its issue back."""
        self.failures += 1
        self._starts += 1
        self._why = why
        if gives_back is not None:
            self._give_back(gives_back)
            return
        self.tell(f"{self.name}: {why}; it begins {self.entry.issue_id} again")
        self.rest("rests", min(_REST_S * 2.0**self._starts, _MOST_REST_S))

    def _abort_landing(self, issue_id: str) -> None:
        with suppress(OSError, QueenError):
            env, log = self._environment(issue_id), roster.log_path(self.hive.layout, self.name)
            abort_landing(self.entry.path, env, log)

    def _put_away(self, held: Assignment) -> Unfinished | None:
        return WorktreeKeeper(self.home).set_aside(held)

    def _give_back(self, held: Assignment, why: str = "") -> None:
        """Gives an issue back for others, with its work on a branch of its own."""
        ends = f"{self._starts} end{'s' * (self._starts > 1)}"
        why = why or f"{self.name} gave it back after {ends} without a landing: {self._why}"
        self._abort_landing(held.issue_id)
        try:
            self._make_fit()
            unfinished = self._put_away(held)
        except (QueenError, OSError) as error:
            self.gave_back[held.issue_id] = why
            self.tell(why)
            self._end_early(f"its worktree could not be cleared: {error}")
            return
        sentence = unfinished.sentence() if unfinished is not None else ""
        reason = "; ".join(filter(None, (why, sentence)))
        self.entry.without.append(held.issue_id)
        self._note("between")
        with suppress(QueenError):
            self.hive.assignments.release(held.issue_id, reason=reason)
        self.gave_back[held.issue_id] = reason
        self.tell(reason)

    def _look_for_signs(self) -> None:
        """Notes signs of life; asks an agent that is silent for long, and ends it later."""
        if self.client.loops:
            self._count_landed()
        layout, now_ms = self.hive.layout, self.hive.now_ms()
        log = roster.log_path(layout, self.name)
        with suppress(OSError):
            written_ms = min(os.stat(log).st_mtime_ns // 1_000_000, now_ms)
            if written_ms > (presence.last_ms(layout, self.name) or 0):
                presence.note(layout, self.name, written_ms)
        session = agent_sessions.newest(self._sessions()) or self.entry.session
        if session != self.entry.session:
            self.entry.session = session
            self._note(self.entry.state)
        settings = layout.settings
        last_ms = max(presence.last_ms(layout, self.name) or 0, self.entry.since_ms)
        if now_ms - last_ms < settings.quiet_after_s * 1000:
            self._nudged_s = None
        elif self._nudged_s is None:
            self._nudged_s = time.monotonic()
            if not WorktreeKeeper(self.home).note_signs(self.name):
                with suppress(QueenError):
                    self.home.nudges.nudge(self.name)
        elif time.monotonic() <= self._nudged_s + settings.answer_within_s:
            return
        elif WorktreeKeeper(self.home).note_signs(self.name):
            self._nudged_s = None
        else:
            silent = format_duration((now_ms - last_ms) / 1000)
            self._silent = f"it was silent for {silent}, and was stopped"

    def _sessions(self) -> Layout:
        """Returns where its sessions are noted."""
        return self.hive.layout

    def avoid(self, teams: set[str]) -> None:
        """Has it take no sprint beads of some teams."""
        if teams != set(self.entry.avoids):
            self.entry.avoids = sorted(teams)
            self._note(self.entry.state)

    def _completed(self) -> list[str]:
        return [each.issue_id for each in self._ended("completed")]

    def _ended(self, status: str) -> Sequence[Assignment]:
        return self.hive.assignments.find(droid=self.name, status=status)

    def _unlanded(self) -> int:
        """Returns how many commits of its branch are not on the main branch."""
        commits = f"refs/heads/{target_branch(self.home.layout)}..HEAD"
        count = line("rev-list", "--count", commits, "--", cwd=self.entry.path, repository={})
        return int(count or 0)

    def _tail(self) -> str:
        """Returns the end of what its last process printed, fit for a prompt and a variable."""
        return printable(self._output[-_TAIL_BYTES:].decode(errors="replace"), keep_newlines=True)

    def _refusal(self) -> str:
        """Returns why a landing failed, in the last words of `queen`."""
        said = [each for each in self._tail().splitlines() if "check passed in" not in each]
        lines = [each for each in said if each.startswith("queen: ")] or said
        return f": {lines[-1].removeprefix('queen: ')}" if lines else ""

    def _reported_cost(self) -> float:
        found = _COST.findall(self._output)
        return float(found[-1]) if found else 0.0

    def _note(self, state: str) -> None:
        if state != self.entry.state:
            self.entry.state, self.entry.since_ms = state, self.hive.now_ms()
        roster.write(self.hive.layout, self.entry)


def abort_landing(path: str, env: Mapping[str, str], log: str) -> None:
    """Takes back a landing that was killed in a worktree, if there is one; never fails, since an
    issue can be given back without it.
    """
    with suppress(OSError, QueenError):
        Child.start(command_line("queen", "land", "--abort"), cwd=path, env=env, log=log).wait()


def message_of(issue_id: str, title: str) -> str:
    """Returns what the commit of an issue says: its title on one line, or its id without one."""
    return printable(shortened(title.strip() or issue_id, 72))
