"""A team: its agents, one after the other, again and again, until all is done or a limit is met."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING

from queenbee.checks.processes import Interrupts
from queenbee.core.names import PERSON
from queenbee.core.reviews.review import PERSON as ASKS_PERSON
from queenbee.core.text import named, suggested
from queenbee.errors import Busy, QueenError
from queenbee.git.beforehand.rehearsal import clear_up, rehearse
from queenbee.git.hosts.issue_exchange import exchange
from queenbee.git.landed import commit_records
from queenbee.git.worktrees.pruning import prune
from queenbee.services.telling.people import of_message, way_to_answer
from queenbee.starting.crew import Crew
from queenbee.starting.ending import Ended, Reason
from queenbee.starting.tally import left_alone
from queenbee.store import safe_open
from queenbee.store.droids import roster, spending
from queenbee.store.droids.agent_callers import forget_team, note_team
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.store.host_note import HostNote
from queenbee.store.lock import LongLock
from queenbee.store.trust import PRUNING, Trust, of_setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.core.records import Message
    from queenbee.core.reviews.review import Review
    from queenbee.starting.bead_worker import BeadWorker
    from queenbee.starting.crew import Wanted
    from queenbee.store.trust import Proposal
    from queenbee.workflows.complete_hive import Hive

_TICK_S = 0.2
_STOP_S = 9.0
_LOOKS = 3
"""So often everybody finds nothing to do, one after the other, before that counts."""
_MOST_MAIL = 50
_MOST_TRIED = 2
"""So many agents try an issue before it is left to people."""
_DONE = Reason("done", "")
_STUCK = Reason("stuck", "what is left waits for something that this team does not do")
_ENDS = (
    Reason("waits", "what was made waits to land"),
    Reason("unseen", "settings of clients wait for a person"),
    Reason("limit", "issues have cost as much as --max-issue-cost allows"),
    Reason("gave_back", "issues were given back"),
    Reason("ended_early", "agents ended early"),
    Reason("proposed", "what was proposed is not merged yet"),
)
"""Why a team ended, if nothing stopped it: the first that is true of an issue or an agent."""


class Team:
    """The agents that one `queen start` looks after."""

    def __init__(
        self,
        hive: Hive,
        wanted: Wanted,
        env: Mapping[str, str],
        tell: Callable[[str], None],
        ask: Callable[[Sequence[Proposal]], bool] | None = None,
        requests: Callable[[], int] = lambda: 0,
    ) -> None:
        """`ask` shows commands that nobody has seen to a person, and returns whether they may run;
        None if nobody sits here. `requests` says how often it was asked to end in another way than
        by a signal.
        """
        self._ask = ask
        self._requests = requests
        self._asked: set[str] = set()
        self._hive = hive
        self._wanted = wanted
        self._env = env
        self._tell = tell
        self._begun_s = time.monotonic()
        self._crew = Crew(hive, wanted, env=env, tell=tell, ask=ask)
        self.workers: Sequence[BeadWorker] = ()
        self._known_usd = -1.0
        self._too_dear: dict[str, str] = {}
        self._left: dict[str, Reason] = {}
        """What earlier runs gave back, and this one leaves alone."""
        self._mail_stamp: object = None
        self._passed_on: set[str] = set()

    def run(self, on_tick: Callable[[Team], None] = lambda _: None) -> Ended:
        """Starts the agents and looks after them; returns when none is at work any more.

        Raises `Busy` while another `queen start` runs here, `TargetFails` if nothing could land,
        and what making a worktree raises.
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
            interrupts = stack.enter_context(Interrupts(self._requests))
            got = without_tokens(self._env, self._hive.layout.common_dir)
            if kept_back := sorted(self._env.keys() - got.keys()):
                names = ", ".join(kept_back)
                self._tell(f"agents do not get {names}; to give it: git config queenbee.env NAME")
            if why := note_team(self._hive.layout):
                self._tell(f"agents are known as such in no other repository: {why}")
            stack.callback(forget_team, self._hive.layout)
            tries = rehearse if self._wanted.is_tried else clear_up
            tries(self._hive, self._crew.names(), tell=self._tell, interrupts=interrupts)
            exchange(self._hive, self._tell)
            self.workers = self._crew.assemble(interrupts)
            self._left = {
                key: _left_alone(key, droid, self._wanted.agent)
                for key, droid in left_alone(self._hive).items()
                if key not in (self._wanted.only or ())
            }
            for each in self.workers:
                each.too_dear = self._too_dear
            for said in self._left.values():
                self._tell(said.text)
            ended = self._ended(self._look_after(interrupts, on_tick))
            exchange(self._hive, self._tell)
            return ended

    def _look_after(self, interrupts: Interrupts, on_tick: Callable[[Team], None]) -> Reason:
        why: Reason | None = None
        self._leave_alone()  # What waited when the last run ended.
        while not all(each.is_over for each in self.workers):
            if interrupts.count > 1:
                self._stop()
                return Reason("stopped", "stopped")
            reason = self._reason_to_end(interrupts) or self._ask_for_unseen()
            if reason and not why:
                why = reason
                ends = "the agents finish what they have; Ctrl-C again stops them now"
                self._tell(f"{reason.text}: {ends}")
            for each in self.workers:
                if interrupts.count > 1:
                    break  # A tick may take a second, on a machine at its limits.
                if why:
                    each.let_end()
                self._tick(each)
                self._leave_alone()  # Before the next one looks for an issue.
            if not self._wanted.until_done and self._is_stuck():
                why = why or _STUCK
            self._pass_on()
            on_tick(self)
            if interrupts.count < 2:
                time.sleep(_TICK_S)
        return why or _DONE

    def _reason_to_end(self, interrupts: Interrupts) -> Reason | None:
        """Returns why nobody is to take a further issue, or None."""
        if interrupts.count:
            return Reason("interrupted", "ended by Ctrl-C")
        if fatal := next((each.fatal for each in self.workers if each.fatal), ""):
            return Reason("fatal", fatal)
        if fails := self._target_fails():
            return Reason("target_fails", fails)
        reached = self._wanted.limits.reached(
            spent_s=time.monotonic() - self._begun_s,
            landed=sum(each.entry.landed for each in self.workers),
            failures=sum(each.failures for each in self.workers),
            cost_usd=self._cost_usd,
        )
        return Reason("limit", reached) if reached else None

    def _target_fails(self) -> str:
        """Returns why nobody's work can land, if the target fails itself: more would fail alike."""
        if self._wanted.until_done:
            return ""
        met = [one for each in self.workers for one in each.obstacles.values()]
        found = (one.why for one in met if one.is_of_target(self._hive.layout))
        return next(found, "")

    def _ask_for_unseen(self) -> Reason | None:
        """Asks a person for a check, and for settings of clients, that nobody has seen, once for
        each text: nothing lands, or begins, meanwhile. Returns why nobody is to take a further
        issue after a no, or None.
        """
        if self._ask is None:
            return None
        met = [one.result for each in self.workers for one in each.obstacles.values()]
        unseen = {one.key: one for each in met if each.of_settings for one in each.commands}
        unseen |= {one.key: one for each in self.workers for one in each.unseen}
        if unseen.keys() <= self._asked:
            return None
        self._asked |= unseen.keys()
        if not self._ask([*unseen.values()]):
            what = ", ".join(sorted({each.kind for each in unseen.values()}))
            return Reason("waits", f"you did not agree to the {what}: queen config trust")
        for each in self.workers:
            each.try_now()
        return None

    def _pass_on(self) -> None:
        """Tells what the agents write to a person, each once."""
        stamp = self._hive.stamp("messages")
        if stamp == self._mail_stamp:
            return
        self._mail_stamp = stamp
        for each, text in self._asked_of_a_person():
            if each.id not in self._passed_on:
                self._passed_on.add(each.id)
                self._tell(text)

    def _asked_of_a_person(self) -> Iterator[tuple[Message, str]]:
        """Yields what the agents wrote to a person that nobody has answered, and how to answer."""
        own = {each.name for each in self.workers}
        for each in self._hive.messages.unanswered(PERSON, limit=_MOST_MAIL):
            if each.from_ in own and not each.by_hive:
                short = self._hive.short_ids("messages", [each.id])[each.id]
                yield each, f"{of_message(each).text}: {way_to_answer(short)}"

    def _tick(self, worker: BeadWorker) -> None:
        others = (each for each in self.workers if each is not worker and not each.is_over)
        worker.avoid({each.entry.team for each in others if each.entry.team})
        try:
            worker.tick()
        except (QueenError, OSError) as error:
            worker.note_trouble(error)

    def _leave_alone(self) -> None:
        """Has nobody take an issue that several agents gave back, that waits to land, or that has
        cost too much.
        """
        most, now_usd = self._wanted.limits.issue_cost_usd, self._cost_usd
        if most and now_usd != self._known_usd:
            self._known_usd = now_usd
            for key, usd in spending.by_issue(self._hive.layout).items():
                if usd >= most:
                    self._too_dear[key] = (
                        f"it has cost {usd:.2f} USD: --max-issue-cost {most:g} is reached"
                    )
        back = [key for each in self.workers for key in each.gave_back]
        found = {key for key in back if back.count(key) >= _MOST_TRIED}
        found |= self._too_dear.keys() | self._left.keys()
        for each in self.workers:
            found |= {*each.given_up, *each.obstacles}
        for issue_id in found:
            for each in self.workers:
                each.leave_alone(issue_id)

    @property
    def _cost_usd(self) -> float:
        return sum(each.cost_usd for each in self.workers)

    def _is_stuck(self) -> bool:
        """Returns whether everybody waits, and for nobody of this team, nor for a host that has
        work of theirs.
        """
        if any(each.is_running for each in self.workers):
            for each in self.workers:
                each.looks = 0
        waits = [each for each in self.workers if not each.is_over]
        if not waits or any(each.looks < _LOOKS for each in waits):
            return False
        proposed = [] if self._wanted.until_proposed else [*self._in_review()]
        return all(review.asks == ASKS_PERSON for _, review in proposed)

    def _in_review(self) -> Iterator[tuple[str, Review]]:
        """Yields the issues of this team that are in review, with their pull requests."""
        own = {each.name for each in self.workers}
        for each in self._hive.assignments.find():
            if each.review is not None and each.droid in own:
                yield each.issue_id, each.review

    def _stop(self) -> None:
        until_s = time.monotonic() + _STOP_S
        while any(each.is_running for each in self.workers) and time.monotonic() < until_s:
            for each in self.workers:
                each.stop()
            time.sleep(0.05)

    def _ended(self, why: Reason) -> Ended:
        is_urgent = why.code == "stopped"
        held = [(each, each.settle_up(is_urgent=is_urgent)) for each in self.workers]
        left = [*self._hive.issues.open()]
        reasons = [*self._crew.not_begun, *self._reasons(left, held)]
        if not left:
            why = _DONE
        elif why.code in ("done", "stuck"):
            codes = {each.code for each in reasons}
            why = next((each for each in _ENDS if each.code in codes), why)
        ended = Ended(
            why,
            time.monotonic() - self._begun_s,
            {each.name: each.entry.landed for each in self.workers},
            {each.name: each.entry.program for each in self.workers},
            reasons,
            [each for each in left if self._wanted.only is None or each in self._wanted.only],
            self._cost_usd,
        )
        said = ended.sentences()
        back = self._given_back(reasons)
        ran = dict(ended.clients)
        roster.note_end(self._hive.layout, self._hive.now_ms(), said, ran, back)
        try:
            if left_out := commit_records(self._hive, is_end=True):
                self._tell(left_out)
        except (QueenError, OSError):  # Such as a full disk.
            for each in said:
                self._tell(each)
            raise
        self._prune()
        asked = self._asked_of_a_person()
        return replace(ended, reasons=[*reasons, *starmap(_asks, asked)])

    def _prune(self) -> None:
        layout = self._hive.layout
        wanted = of_setting(PRUNING, layout.settings.team_prune)
        if Trust(layout).unseen(wanted):
            self._tell(f"the worktrees stay: nobody here has seen {PRUNING}: queen config trust")
        elif wanted:
            names = [each.name for each in self.workers]
            for gone in prune(self._hive, droids=names).removed:
                also = f"; gone with it, ignored by git: {named(gone.ignored)}" * bool(gone.ignored)
                self._tell(f"removed {gone.place.path}: all of it has landed{also}")

    def _given_back(self, reasons: Sequence[Reason]) -> dict[str, bool]:
        """Returns the issues that were given back, and whether that is their own fault, as others
        landed.
        """
        before = roster.given_back(self._hive.layout)
        has_landed = any(each.entry.landed for each in self.workers)
        others = {each.name for each in self.workers if each.ended_early}
        return {
            key: (has_landed or before.get(key, False))
            and not (key in self._too_dear or each.agent in others)
            for each in reasons
            if each.code == "gave_back" and (key := each.issue_id)
        }

    def _reasons(
        self, left: Sequence[str], held: Sequence[tuple[BeadWorker, str]]
    ) -> Iterator[Reason]:
        """Yields why issues are left that somebody had in hand or that are on hold, and why agents
        ended early.
        """
        # Several agents may have given an issue back, one after the other: the last one tells.
        own = (one for each in self.workers for one in each.reasons())
        found = self._left | {one.issue_id or str(one.agent): one for one in own}
        yield from (each for each in found.values() if each.issue_id in (None, *left))
        for key in sorted(self._too_dear.keys() & {*left} - found.keys()):
            yield Reason("limit", f"{key} is left: {self._too_dear[key]}", key)
        for worker, issue_id in held:
            if issue_id:
                yield _kept(worker, issue_id)
        note = HostNote(self._hive.layout)
        for key, review in self._in_review():
            state = note.seen(review.number)[0] or "is not merged yet"
            what = "waits for a person" if review.asks == ASKS_PERSON else state
            text = f"{key} is proposed by {review}, which {what}: {review.url}"
            yield Reason("proposed", text, key)
        names = {each.name for each in self.workers}
        for key, standing in self._hive.issues.standings_of(left).items():
            because, holder = standing.because, standing.holder
            if holder is not None and holder not in names and standing.review is None:
                back = suggested("queen release", key, as_=holder)
                text = f"{key} is left: {holder} has it; if {holder} is gone: {back}"
                yield Reason("held", text, key, holder)
            if standing.state == "on_hold" and because and key not in found:
                yield Reason("on_hold", f"{key} is on hold: {because}", key, why=because)


def _asks(message: Message, text: str) -> Reason:
    return Reason("asks", f"not answered yet: {text}", message.issue_id, message.from_)


def _left_alone(issue_id: str, droid: str, agent: str) -> Reason:
    again = suggested("queen start", issues=issue_id, agent=agent or None)
    text = (
        f"{issue_id} is left alone: {droid} gave it back, and nobody has changed it since; {again}"
    )
    return Reason("gave_back", f"{text} tries it again", issue_id, droid)


def _kept(worker: BeadWorker, issue_id: str) -> Reason:
    goes_on = suggested("queen start", worker.name, agent=worker.client.name)
    back = suggested("queen release", issue_id, as_=worker.name)
    obstacle = worker.obstacles.get(issue_id)
    waits = obstacle is not None and obstacle.is_kept
    goes_on = (
        f"after queen config trust, {goes_on} lands it" if waits else f"{goes_on} goes on with it"
    )
    text = f"{issue_id} is still {worker.name}'s: {goes_on}, {back} gives it back"
    return Reason("kept", text, issue_id, worker.name)
