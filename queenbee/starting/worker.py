"""One agent of a team: takes an issue, runs on it, lands what is left, and begins again if it ends
too early. `docs/team.md`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queenbee.agents.client_settings import unseen_settings
from queenbee.checks.consent import untrusted
from queenbee.core.text import last_said, printable, quotation, shortened, suggested
from queenbee.errors import Conflict, NotFound, NotReady, QueenError, Untrusted
from queenbee.git.contents.landing_messages import Messages
from queenbee.git.landing.committing import commit_all
from queenbee.git.remote.terms import Terms
from queenbee.git.run import line
from queenbee.git.touched import following, take_next
from queenbee.git.unfinished import FOLDER
from queenbee.git.worktrees.preparing import SetupFailed
from queenbee.services.waiting.pauses import finish
from queenbee.services.work import Nothing
from queenbee.starting.clients import ALONE, LOOP, reported_cost, was_denied
from queenbee.starting.ending import Reason
from queenbee.starting.handover import MOST_ENDS, again
from queenbee.starting.landing_result import (
    NOTHING,
    LandingResult,
    land_line,
    message_of,
)
from queenbee.starting.obstacles import (
    UNTRUSTED,
    Obstacle,
    is_in_the_way,
    keep_obstacles,
    kept_obstacles,
)
from queenbee.starting.stoppages import USELESS, Pause, stoppage_in
from queenbee.starting.tally import Tally
from queenbee.starting.workplace import SETTING_UP, PlacedAgent
from queenbee.store.droids import presence, roster, spending
from queenbee.store.git_files.host_tokens import without_tokens
from queenbee.workflows import next_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from queenbee.core.command_lines import CommandLine
    from queenbee.core.records import Assignment
    from queenbee.git.unfinished import Unfinished
    from queenbee.services.work import Begin
    from queenbee.store.trust import Proposal

_MOST_STARTS = 10
"""So many ends on one issue in any case."""
_MOST_TROUBLES = 3
"""So often something is in its way, with nothing landed or committed in between, and it ends."""
_TROUBLE_S = 5.0
_REST_S, _MOST_REST_S = 0.5, 30.0
_LOOK_AGAIN_S = 1.0
_NO_ROOM = "waits for memory or load"
_WAITS = "waits to land"
_UNSEEN = "waits: a person has to see the settings of its client"
_TAIL_BYTES = 3_000
_AT_ONCE_MS = 5_000
"""A program that fails so early, with nothing made, has not begun with its issue."""


@dataclass
class Worker(PlacedAgent):
    """One agent: its issues, and how it has fared."""

    no_room: Callable[[], str] = lambda: ""
    """Why the machine cannot bear one more process; empty if it can."""
    cost_usd: float = 0.0
    """What its client has reported."""
    too_dear: Mapping[str, str] = field(default_factory=dict)
    """Why nobody goes on with issues that have cost too much, by id."""
    ended_early: str = ""
    """Why it ended before the team did."""
    looks: int = 0
    """How often it has found nothing to do since anybody was at work."""
    failures: int = 0
    """How many of its processes have ended too early."""
    gave_back: dict[str, str] = field(default_factory=dict)
    """Who gave issues of it back, and why, by id."""
    obstacles: dict[str, Obstacle] = field(default_factory=dict)
    """What is in the way of issues that wait to land, by id."""
    unseen: Sequence[Proposal] = ()
    """What its client would run, and nobody on this machine has seen."""
    _troubles: int = 0
    """How often something was in its way since it landed or committed anything."""
    _worked_on: set[str] = field(default_factory=set)
    """The issues that its present process has landed."""
    _taken: int = 0
    """How many issues it has taken, without those that it landed again: these follow one another in
    no circle.
    """
    _starts: int = 0
    _ahead: int = 0
    """How many commits of its branch had not landed when its process began."""
    pause: Pause = field(default_factory=lambda: Pause("", is_patient=False))
    """Of all who have the same client."""
    _is_resumed: bool = False
    """Whether its next process goes on where its client could not."""
    _mail: str = ""
    """What came before its work landed, for its next process."""
    _was_denied: bool = False
    """Whether its client says that it was refused something that nobody sits there to allow."""

    def __post_init__(self) -> None:
        self._tally = Tally(self.hive, self.name)
        super().__post_init__()
        self._take_up_obstacles()

    def try_now(self) -> None:
        """Has it land at once what waits to land."""
        for each in self.obstacles.values():
            each.try_now()
        self._rest_until_s = 0.0

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

    def _end_early(self, why: str) -> None:
        self.ended_early = why
        self.tell(f"{self.name} ends: {why}")
        self._note("ended")

    def settle_up(self, *, is_urgent: bool = False) -> str:
        """Counts what it landed, and takes it off the roster, unless its process still runs;
        returns the id of its unfinished issue, if any. Makes its worktree fit, unless that is left
        to the next run, because it `is_urgent`.
        """
        held = self._count_landed()
        keep_obstacles(self.home.layout, self.name, self.obstacles.values())
        if held and self._is_unclear:  # It has not begun with it.
            with suppress(QueenError):
                self.hive.assignments.release(held.issue_id, reason=self.ended_early)
                held = None
        if not self.entry.is_alive:
            if held is None and not is_urgent:
                with suppress(QueenError, OSError):  # Else the next run does.
                    self._make_fit()
            roster.forget(self.hive.layout, self.name)
        return held.issue_id if held is not None else ""

    def reasons(self) -> list[Reason]:
        """Returns why it did not land what it had, and why it ended before the team."""
        output = f"its output: {suggested('queen start', logs=self.name)}"
        found = [
            Reason("waits", each.sentence, each.issue_id, self.name, each.why)
            for each in self.obstacles.values()
        ]
        found += [
            Reason("gave_back", f"{key}: {said}; {output}", key, self.name)
            for key, said in self.gave_back.items()
        ]
        if self.unseen:
            text = f"{self.name} did not begin: {untrusted(self.unseen).message}"
            found.append(Reason("unseen", f"{text}: queen config trust", agent=self.name))
        if self.ended_early:
            text = f"{self.name} ended early: {self.ended_early}"
            found.append(Reason("ended_early", text, agent=self.name))
        return found

    def _begin(self) -> None:
        if self._pauses():
            return
        following(self.hive, None, self.tell)
        self._tell_left()
        held = self.held()
        # Others may wait for an issue that it has.
        if held is None and (why := self.no_room()):
            if self.entry.state != _NO_ROOM:
                self.tell(f"{self.name} {_NO_ROOM} while others work: {why}")
            self.rest(_NO_ROOM, 5.0)
            return
        if self._waits(held):
            return
        self._make_fit()
        if held is None and self._lands_what_waited():
            return
        taken = finish(take_next(self.hive))
        if isinstance(taken, Nothing):
            is_end = taken.is_end or not taken.counts["total"]
            if is_end and (self.entry.is_ending or not self.obstacles):
                self._note("ended")
            else:
                self.looks += 1
                state = _WAITS if is_end else f"waits: {taken.state.replace('_', ' ')}"
                self.rest(state, _LOOK_AGAIN_S)
            return
        is_others = held is None or self._others_work(taken.assignment) is not None
        self._is_unclear = self._is_unclear or is_others
        if dear := self.too_dear.get(taken.assignment.issue_id):
            self._give_back(taken.assignment, dear)
            return
        self._run(taken)

    def _pauses(self) -> bool:
        """Returns whether its client cannot work now; it shows that it is there meanwhile."""
        if self.pause.is_final:
            if not self.client.loops and (held := self.held()) is not None:
                self._give_back(held, USELESS)
            self._end_early(self.pause.why)
        elif not self.pause.holds(time.time()):
            return False
        elif self.entry.is_ending:
            self._note("ended")
        else:
            presence.note(self.home.layout, self.name, self.hive.now_ms())
            self.looks = 0
            self.rest(f"waits: {self.pause.why}", _LOOK_AGAIN_S)
        return True

    def _is_stopped(self, ended: str) -> bool:
        """Returns whether its client could not work, which is no fault of its issue's."""
        if not self.client.loops:
            return False
        now_s = time.time()
        stoppage = stoppage_in(self.client.name, self._output, now_s) if ended else None
        if stoppage is None:
            self.pause.end()
            return False
        if self.pause.begin(stoppage, now_s):
            self.tell(self.pause.why)
        self._is_resumed = True
        self._note("between")
        return True

    def _run(self, begin: Begin) -> None:
        """Starts the agent on its issue."""
        if self._is_unclear:
            self._clear()
        self._begins_here(begin.assignment)
        self._takes(begin)
        if self._sets_up() or self._waits_to_be_seen():
            return
        issue_id, self._ahead = self.entry.issue_id, self._unlanded()
        env = without_tokens(self._environment(issue_id), self.hive.layout.common_dir)
        if self.client.loops:
            argv, self._mail = self._command(issue_id), ""
            self._start(argv, "working", env)
        elif said := self._briefing(issue_id):
            self._start(self._command(issue_id), "working", env, said=said)

    def _briefing(self, issue_id: str) -> str:
        """Returns a file with what `queen next` prints, for a program that reads no prompt, and the
        mail that came before its work landed; none if its issue is another one's by now.
        """
        try:
            begin = finish(Terms(self.hive, tell=self.tell).take_next())
        except QueenError as error:  # A remote that is away: the landing waits for that.
            return self._told([f"queen: {error}"])
        if isinstance(begin, Nothing) or begin.assignment.issue_id != issue_id:
            mail = next_text.of_mail(self.hive, begin.mail, begin.unread)
            self._mail = "\n".join(filter(None, (self._mail, *mail)))
            self._note("between")
            return ""
        return self._told(next_text.of_begin(self.hive, begin))

    def _told(self, lines: Iterable[str]) -> str:
        before, self._mail = self._mail and f"\n{self._mail}\n", ""
        return self._handover.written("briefing", "".join(f"{each}\n" for each in lines) + before)

    def _waits_to_be_seen(self) -> bool:
        """Returns whether its client has settings there that nobody here has seen: what landed in
        the meantime may have brought them. It waits for a person with its issue.
        """
        before, layout = self.unseen, self.home.layout
        self.unseen = unseen_settings(layout, self.entry.path, self.env, [self.client.name])
        if not self.unseen:
            return False
        if self.unseen != before:
            roster.note_unseen(layout, [each.to_dict() for each in self.unseen])
            self.tell(f"{self.name}: {untrusted(self.unseen).message}: queen config trust")
        if self.entry.is_ending:
            self._note("ended")
        else:
            self.looks += 1
            self.rest(_UNSEEN, _LOOK_AGAIN_S)
        return True

    def _takes(self, begin: Begin) -> None:
        issue_id, self._worked_on = begin.assignment.issue_id, set()
        if issue_id != self.entry.issue_id:
            self._taken += 1
            self._begin_counting()
            title = begin.issue.title if begin.issue is not None else ""
            self.tell(f"{self.name} takes {issue_id}: {shortened(title, 60)}")
        self.entry.issue_id = issue_id

    def _begin_counting(self) -> None:
        self._starts, self._ends, self._why, self._failures = 0, 0, "", ""

    def _command(self, issue_id: str) -> CommandLine:
        is_resumed, self._is_resumed = self._is_resumed and bool(self.entry.session), False
        if not self._ends and not is_resumed and not self._mail:
            prompt = LOOP.format(name=self.name, alone=ALONE)
            return self.client.command(prompt, options=self.options)
        # A session that cannot be resumed must not stand in the way for ever.
        session = self.entry.session if self._ends <= 1 or is_resumed else ""
        failures = "" if is_resumed else self._failures
        prompt = again(issue_id, self._why or self.pause.why, failures)
        return self.client.command(prompt, session=session, options=self.options)

    def _set_up(self, ended: str, *, is_own: bool) -> None:
        """Goes on after a set-up, or tries again later if it failed."""
        self.entry.process = ""
        if ended and is_own:
            said = last_said(self._output.decode(errors="replace"))
            why = printable(shortened(said, 200)) or ended
            self.note_trouble(SetupFailed(f"its worktree cannot be set up: {why}"))
        else:
            self._note("between")

    def _settle(self, ended: str, *, is_own: bool) -> None:
        if self.entry.state == SETTING_UP:
            self._set_up(ended, is_own=is_own)
            return
        was_landing, self.entry.process = self.entry.state == "landing", ""
        held = self._still_held()
        if was_landing:
            # Of a process of another run, only the log is there, in which agents write, too.
            result = LandingResult.read(self._output if is_own else b"", ended)
            self._failures = printable(result.text[-_TAIL_BYTES:], keep_newlines=True)
        else:
            self._spend()
            tail = self._output[-_TAIL_BYTES:].decode(errors="replace")
            self._failures = printable(tail, keep_newlines=True)
            self._was_denied = was_denied(self._output)
            if ended and (said := self._failures.splitlines()):
                ended += f", after {quotation(said[-1], 160)}"
        if not was_landing and (self._is_stopped(ended) or self._fails_at_once(ended, held)):
            return
        if held is None:
            self._has_ended(was_landing=was_landing)
        elif was_landing and not is_own:
            self._land(held.issue_id)
        elif was_landing:
            self._has_not_landed(result, held)
        elif not ended and held.issue_id == self.entry.issue_id:
            # A program need not know how to land; a client may have forgotten it.
            self._land(held.issue_id)
        else:
            self._fail(self._with_denial(ended or "it ended without landing it"), held)

    def _still_held(self) -> Assignment | None:
        """Returns the issue that its process has left unfinished: the one that it was begun with,
        or that it has taken itself.
        """
        held = self._count_landed()
        if held is None or held.issue_id == self.entry.issue_id:
            return held
        begun = self._others_work()
        if begun is None or begun.issue_id != held.issue_id:
            return None  # That was taken from it, and what it has besides has not begun.
        self.entry.issue_id = held.issue_id
        return held

    def _fails_at_once(self, ended: str, held: Assignment | None) -> bool:
        """Returns whether its program is known to work on no issue, by this end, too; then it ends
        with its issue given back.
        """
        if self.client.loops:
            return False
        issue_id, is_early = "", self.hive.now_ms() - self.entry.since_ms < _AT_ONCE_MS
        if ended and held is not None and is_early:
            with suppress(QueenError):  # A worktree that it spoiled is a change.
                is_unchanged = self._unlanded() <= self._ahead and self._has_no_change()
                issue_id = held.issue_id if is_unchanged else ""
        output = f"its output: {suggested('queen start', logs=self.name)}"
        if not self.pause.fail_at_once(issue_id, f"{ended}; {output}"):
            return False
        self.failures += 1
        self.rest("between", 0.0)
        return True

    def _spend(self) -> None:
        """Notes what its process has cost, for the issues that it was about."""
        cost, about = reported_cost(self._output), self._worked_on | {self.entry.issue_id}
        self.cost_usd += cost.usd
        spending.add(self.home.layout, about, self.name, cost, self.hive.now_ms())

    def _has_not_landed(self, result: LandingResult, held: Assignment) -> None:
        """Decides what follows a landing that did not complete an issue, by its code."""
        if is_in_the_way(result):
            self._meet(Obstacle(held.issue_id, result, self.entry.path, self._taken), held)
            return
        self.obstacles.pop(held.issue_id, None)
        if result.has_mail and not self.entry.is_ending and self._starts + 1 < _MOST_STARTS:
            self._starts += 1
            self._why, self._mail = result.message, printable(result.message, keep_newlines=True)
            self.tell(f"{self.name}: {result.message}; it begins {held.issue_id} again")
            self.rest("rests", _REST_S)
            return
        why = f"what it made did not land: {result.message}"
        why = self._with_denial("it made nothing" if result.code == NOTHING else why)
        if self._was_denied and result.code == NOTHING and not self.entry.landed:
            # The next attempt would fare no better, and neither would the next issue.
            self.failures += 1
            self._give_back(held, why)
            self.ended_early = why
            self._note("ended")
        else:
            self._fail(why, held, is_landing=True)

    def _with_denial(self, why: str) -> str:
        """Returns why an agent failed, with the way to allow it what it was refused."""
        way = "it was refused a permission: queen start --yolo, or allow it in its settings"
        return f"{why}; {way}" if self._was_denied else why

    def _meet(self, obstacle: Obstacle, held: Assignment) -> None:
        """Puts off what cannot land now: another issue follows, if that one can land."""
        known = self.obstacles.get(obstacle.issue_id)
        is_news = known is None or known.result.code != obstacle.result.code
        self.obstacles[obstacle.issue_id] = obstacle
        obstacle.head = (known and known.head) or self._committed(obstacle)
        issue = self.hive.issues.get_or_none(obstacle.issue_id)
        now = str(issue.updated_at) if issue is not None else ""
        obstacle.updated_at = known.updated_at if known is not None else now
        if self._may_leave(obstacle):
            # What waits for a person need not be in the record, where it would be read for ever.
            recorded = f"{self.name} has worked on it" if obstacle.head else ""
            unfinished = self._give_back(held, obstacle.sentence, tells=False, recorded=recorded)
            obstacle.branch = (unfinished and unfinished.branch) or (known and known.branch) or ""
            if obstacle.head and obstacle.branch:
                tip = f"refs/heads/{obstacle.branch}"
                cwd = self.home.layout.tree
                obstacle.head = line("rev-parse", tip, cwd=cwd, repository={}) or ""
            self.gave_back.pop(obstacle.issue_id, None)
        else:
            self.rest(_WAITS, _LOOK_AGAIN_S)
        if is_news:
            self.tell(f"{self.name}: {obstacle.sentence}")
        keep_obstacles(self.home.layout, self.name, self.obstacles.values())

    def _committed(self, obstacle: Obstacle) -> str:
        """Commits what its agent made, if only a person keeps that from landing; returns the commit
        that can land without an agent, or "".
        """
        if not obstacle.can_be_kept or obstacle.path != self.made.path:
            return ""
        with suppress(QueenError, OSError):
            commit_all(self.hive.layout, self._message(obstacle.issue_id))
            return line("rev-parse", "HEAD", cwd=obstacle.path, repository={}) or ""
        return ""

    def _take_up_obstacles(self) -> None:
        """Takes up what waited for a person when an earlier run ended: that lands before an agent
        begins, if all is still as its agent left it, and nobody has changed the issue.
        """
        held = self.held()
        for each in kept_obstacles(self.home.layout, self.name):
            if each.branch:
                tip = f"refs/heads/{each.branch}"
                cwd = self.home.layout.tree
                is_left = line("rev-parse", tip, cwd=cwd, repository={}) == each.head
                is_left = (
                    is_left and self.entry.wants(each.issue_id) and each.branch.startswith(FOLDER)
                )
            else:
                is_own = held is not None and held.issue_id == each.issue_id
                is_left = is_own and each.path == self.made.path and self._is_as_left(each.head)
            if is_left and not self.entry.is_alive:
                self.entry.issue_id = self.entry.issue_id if each.branch else each.issue_id
                self.obstacles[each.issue_id] = each
        self._drop_changed()

    def _drop_changed(self) -> None:
        """Has agents begin again with what waits to land, if somebody has changed the issue since,
        or it cannot be taken now for another reason than what it waits for.
        """
        waiting = [each for each in self.obstacles.values() if each.is_kept]
        standings = self.hive.issues.standings_of(each.issue_id for each in waiting)
        changed = [
            each
            for each in waiting
            if (found := standings.get(each.issue_id)) is None
            or str(found.issue.updated_at) != each.updated_at
            or not (found.takeable(self.name) or each.result.code == UNTRUSTED)
        ]
        if not changed:
            return
        self._count_given_back()
        for each in changed:
            self._drop(each)
            if each.issue_id in self.entry.without:
                self.entry.without.remove(each.issue_id)
                self._note(self.entry.state)
        keep_obstacles(self.home.layout, self.name, self.obstacles.values())

    def _may_leave(self, obstacle: Obstacle) -> bool:
        """Returns whether it takes other issues while this one waits."""
        return obstacle.is_of_issue

    def _waits(self, held: Assignment | None) -> bool:
        """Returns whether its issue still waits to land; lands it if that may go now."""
        for each in [*self.obstacles.values()]:
            is_held = held is not None and each.issue_id == held.issue_id
            # A person may have landed it, or thrown the work away.
            if each.is_lost(self.home.layout) or not (is_held or each.branch):
                self._drop(each)
        self._drop_changed()
        obstacle = self.obstacles.get(held.issue_id) if held is not None else None
        if obstacle is None or held is None:
            return False
        if self.entry.is_ending:
            self._note("ended")
        elif obstacle.is_due(self._taken, self.home.layout):
            self._make_fit()
            self._land_again(obstacle)
        else:
            self.looks += not obstacle.is_outage(self.home.layout)
            self.rest(_WAITS, _LOOK_AGAIN_S)
        return True

    def _lands_what_waited(self) -> bool:
        """Returns whether it lands an issue now that it had put off."""
        for each in [*self.obstacles.values()]:
            if self.entry.is_ending or not each.is_due(self._taken, self.home.layout):
                continue
            try:
                self.hive.assignments.claim(each.issue_id)
            except (NotReady, Untrusted):
                continue
            except (Conflict, NotFound):  # Somebody else has it by now.
                self._drop(each)
                continue
            self._land_again(each)
            return True
        return False

    def _land_again(self, obstacle: Obstacle) -> None:
        if obstacle.branch:
            self._clear()
            self._take_up(obstacle.branch)
            self._begins_here(self.hive.assignments.active(obstacle.issue_id))
            self._begin_counting()
            self.entry.issue_id = obstacle.issue_id
        self._land(obstacle.issue_id)

    def _has_ended(self, *, was_landing: bool) -> None:
        """Goes on to what follows; also with what it had put off, and has proposed by now."""
        issue_id = self.entry.issue_id
        was_put_off = was_landing and self.obstacles.pop(issue_id, None) is not None
        if was_put_off and issue_id in self.entry.without:
            self.entry.without.remove(issue_id)
        self._note("between")

    def _drop(self, obstacle: Obstacle) -> None:
        """Forgets an issue that it had put off, and that others have seen to."""
        self.obstacles.pop(obstacle.issue_id)

    def _count_landed(self) -> Assignment | None:
        """Tells what it has landed since it was asked last; returns its unfinished issue, or None.

        A client may land one issue after the other.
        """
        new = self._tally.landed()
        self.entry.landed += len(new)
        held = self.held()
        if new:
            self._starts, self._ends, self._why, self._troubles = 0, 0, "", 0
            self._worked_on.update(new)
            for each in new:
                self.obstacles.pop(each, None)
            self.tell(f"{self.name} landed {', '.join(new)}; issues so far: {self.entry.landed}")
            if held is not None and self.is_running:
                self.entry.issue_id = held.issue_id
                self._begins_here(held)
                self._note(self.entry.state)
        self._count_given_back()
        return held

    def _count_given_back(self) -> None:
        """Counts the issues that its process gave back, and has it not take them again."""
        for each in self._tally.given_back():
            if each.issue_id not in self.entry.without:  # Else it was given back for it.
                self.failures += 1
                by = str(each.get("updated_by") or self.name)
                what = "gave {} back" if by == self.name else f"took {{}} from {self.name}"
                said = f"{printable(by)} {what}: {each.reason or 'without a reason'}"
                self.gave_back[each.issue_id] = said.replace("{}", "it", 1)
                self.leave_alone(each.issue_id)
                self.tell(said.replace("{}", each.issue_id, 1))

    def _land(self, issue_id: str) -> None:
        self._make_fit()
        argv = land_line(issue_id, self._message(issue_id))
        self._start(argv, "landing", self._environment(issue_id))

    def _message(self, issue_id: str) -> str:
        issue = self.hive.issues.get_or_none(issue_id)
        messages = Messages.of(self.hive.layout.settings, self.made.path)
        title = issue.title if issue is not None else ""
        return message_of(issue_id, title, self.name, messages)

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

    def _give_back(
        self, held: Assignment, why: str = "", *, tells: bool = True, recorded: str = ""
    ) -> Unfinished | None:
        """Gives an issue back for others; returns where its work is, on a branch of its own.
        `recorded` is what they read in place of `why`.
        """
        ends = f"{self._starts} end{'s' * (self._starts > 1)}"
        why = why or f"{ends} without a landing: {self._why}"
        said = f"{self.name} gives {held.issue_id} back: {why}"
        self._abort_landing(held.issue_id)
        try:
            self._make_fit()
            if self._others_work(held) is not None:
                self._clear()
            unfinished = self._put_away(held)
        except (QueenError, OSError) as error:
            self.gave_back[held.issue_id] = f"{self.name} gave it back: {why}"
            self.tell(said)
            self._end_early(f"its worktree could not be cleared: {error}")
            return None
        sentence = unfinished.sentence(held.issue_id) if unfinished is not None else ""
        reason = "; ".join(filter(None, (why, sentence)))
        kept = "; ".join(filter(None, (recorded or why, sentence)))
        self.entry.without.append(held.issue_id)
        self._note("between")
        with suppress(QueenError):
            self.hive.assignments.release(held.issue_id, reason=kept)
        self.gave_back[held.issue_id] = f"{self.name} gave it back: {reason}"
        if tells:
            self.tell(said)
        return unfinished

    def _look_for_signs(self) -> None:
        if self.client.loops:
            self._count_landed()
        super()._look_for_signs()

    def _cannot_start(self, why: str) -> None:
        self._fail(why, self.held())
