"""Landing the work on an issue: its checks before, its completion after, and who is told."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from queenbee.checks.consent import Consent
from queenbee.core.conflicts.appended import everybody_appends_to
from queenbee.core.names import EVERYONE, PERSON, nearest
from queenbee.core.text import mentioned, named, quotation, shell_word, some, suggested
from queenbee.errors import Conflict, InvalidInput, NotYours, QueenError
from queenbee.git import let_ask
from queenbee.git.contents.judging_bead import judging_bead
from queenbee.git.contents.landing_messages import Messages
from queenbee.git.landed import commit_records, end_landed
from queenbee.git.landing.committing import commit_all, refuse_resolved
from queenbee.git.landing.judged.open_verdicts import (
    refuse_ended_rows,
    refuse_unjudged,
    refuse_unjudged_work,
)
from queenbee.git.landing.landing import land
from queenbee.git.landing.place import landing_branch
from queenbee.git.landing.refusals import SHOWN, CommitRefused, NotLanded
from queenbee.git.landing.requests import forget, kept_issues, no_check, refuse_unchecked
from queenbee.git.landing.work import PROPOSED, Rules, Work
from queenbee.git.ownership import refuse_stranger
from queenbee.git.proposing.standing import refuse_standing, stands_on
from queenbee.git.remote.terms import Terms
from queenbee.git.touched import Owner
from queenbee.git.trees.concerned import concerned
from queenbee.git.upstream import look_for_news, pushing
from queenbee.git.worktrees.preparing import seen_setup
from queenbee.services.assignments import SUPERVISORS, taken
from queenbee.services.leases.edits import is_exempt
from queenbee.services.messages import (
    BY_HIVE,
    CHECK_FILES,
    LANDED,
    TARGET_FAILS,
    stage,
    thread_of,
    withdraw,
)
from queenbee.services.telling.notices import ended_by
from queenbee.services.waiting.landing_record import issues_landing
from queenbee.services.work.members import to_land
from queenbee.services.writing.secrets import redacted
from queenbee.store import giving_up
from queenbee.store.droids import roster
from queenbee.store.git_files.tree_id import is_of_tree, read_tree_id
from queenbee.store.git_files.worktrees import commit_at, worktrees
from queenbee.store.trust import of_setting
from queenbee.workflows.completing import GOOD, Completion, check, complete

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from queenbee.checks.executing import Progress
    from queenbee.checks.verification import VerificationRecord
    from queenbee.core.records import Assignment, Message
    from queenbee.core.reviews.review import Review
    from queenbee.git.landing.commands import Changed
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.refusals import TargetFails
    from queenbee.git.landing.requests import Request
    from queenbee.git.landing.work import Landing, Offer
    from queenbee.workflows.complete_hive import Hive

_SHORT = 10
"""So many characters of a commit are in the reason of a completion."""
_OLD_REASON = re.compile(r"(?:^landed as |\()([0-9a-f]{10})\)?$")
"""How the reason of a completion ends that does not name its commit in a field."""
_MAIL_CHARS = 1_000
_PATIENCE_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Landed:
    """What landing an issue did: the landing, the checks of the issue, and its completion.

    `told` are the droids that got a message, because they have a lease on a file that changed, or
    unmerged work in it.
    """

    landing: Landing
    asked: Request
    """What was asked for, with what an unfinished landing was asked for before."""
    issue_id: str | None = None
    verification: VerificationRecord | None = None
    completion: Completion | None = None
    also: Sequence[Completion] = ()
    """Those of the further issues that are done with it."""
    told: Sequence[str] = ()
    review: Review | None = None
    """The pull request by which the work is proposed, which has not landed then."""

    @property
    def done(self) -> bool:
        """Whether the work is on the target, and the issue completed if there is one."""
        completions = [self.completion, *self.also]
        return self.landing.landed and all(each is None or each.completed for each in completions)


def land_issue(
    hive: Hive,
    asked: Request,
    *,
    env: Mapping[str, str],
    tell: Callable[[str], None] = lambda _: None,
    on_progress: Callable[[Progress], None] | None = None,
    leave: Callable[[list[str]], Callable[[], bool] | None] = lambda _: None,
) -> Landed:
    """Lands the branch of this worktree, and completes the issue with the commit as its reason.

    `leave` is called with the issues once all is asked and committed, and may return what says
    whether the caller still waits: a conflict is left to nobody else. Their own checks run before
    anything lands. Raises as `land` and `complete` do; `InvalidInput` if the actor has several
    issues, or there is no check; `Taken` and `Unreachable` as `Terms` does; and `Conflict` for what
    an agent of a team may not land.
    """
    refuse_stranger(hive.layout)
    let_ask(hive)
    rules = Rules.of(hive, asked.check)
    refuse_unchecked(rules.check, asked)
    if hive.layout.worktree is None:
        landing_branch(hive.layout, hive.actor_or_none)
    terms = Terms(hive, confirm=asked.confirm, tell=tell)
    found = dict.fromkeys(_issue(hive, each, asked) for each in (asked.issue_id, *asked.also))
    issues = [*filter(None, found)]
    if issues[1:]:
        asked = asked._replace(issue_id=issues[0], also=issues[1:])
    how: Any = {"env": env, "on_progress": on_progress, "tell": tell}
    how["is_unchecked"] = rules.check is None and not asked.unchecked
    work = _IssueWork(hive=hive, asked=asked, issues=issues, is_confirmed=terms.confirm, **how)
    refuse_unjudged(hive, [*issues, *issues_landing(hive.layout, hive.actor)])
    _confirm(terms, issues)
    work.begin(rules)
    work.waits = leave(issues) or work.waits
    how = {"rules": rules, "work": work, "tell": tell, "go_on": asked.go_on}
    with hive.patient(asked.wait_s):
        landing = land(hive, check=None, wait_s=asked.turn_s, **how)
    if landing.commit is not None:
        forget(hive.layout)
        _send(terms)
    return work.result(landing)


def _refuse_unseen(hive: Hive, rules: Rules, issues: Sequence[str]) -> None:
    """Asks for what the landing is going to run, or raises `Untrusted`. Later nobody is asked:
    others wait for their turn. What the branch makes of the check is known once it is merged.
    """
    if not rules.machine_check:
        check = of_setting("land.check", hive.layout.settings.land_check)
        Consent.of(hive).require(check)
    Consent.of(hive).require(pushing(hive.layout))
    seen_setup(hive.layout, hive.asks_person)
    for bead in (judging_bead(hive, each)[0] for each in issues):
        if bead is not None:
            from queenbee.documents.ralph.verify import seen_checks  # noqa: PLC0415 - start-up

            seen_checks(bead, Consent.of(hive))
    hive.asks_person = None


def _send(terms: Terms) -> None:
    """Sends the records of a landing to the remote, if that confirms grants."""
    terms.hive.messages.drop_merged()
    try:
        if terms.confirm:
            from queenbee.git.remote.syncing import sync  # noqa: PLC0415 - start-up

            sync(terms.hive)
    except QueenError as error:  # It has landed: that must be said, whatever fails.
        terms.tell(f"what was landed is recorded here alone: {error.message}; try: queen sync")


def _confirm(terms: Terms, issues: Sequence[str]) -> None:
    """Has the remote confirm that the actor has the issues, if that is asked for. Raises `Taken`
    and `Unreachable`.
    """
    if not terms.confirm:
        return
    from queenbee.git.remote.syncing import take_in  # noqa: PLC0415 - start-up

    hive = terms.hive
    before = [hive.assignments.active(each) for each in issues]
    take_in(hive)
    # Whoever assigned it may end it too, and has no grant of its own to confirm.
    own = [each.issue_id for each in before if each is not None and each.droid == hive.actor]

    def mine() -> list[Assignment]:
        held = [each for issue_id in own if (each := hive.assignments.active(issue_id))]
        for each in held:
            if each.droid != hive.actor:
                raise taken(each, hive.now_ms())
        for issue_id in own:
            hive.assignments.check_ending(issue_id)
        return held

    if own:
        terms.granted(lambda _: mine())


@dataclass(kw_only=True)
class _IssueWork(Work):
    """The work on an issue: its checks before, its completion after."""

    hive: Hive
    issues: Sequence[str]
    """All issues that the work is for; none if it is for nothing known."""
    env: Mapping[str, str]
    on_progress: Callable[[Progress], None] | None
    tell: Callable[[str], None]
    is_confirmed: bool
    is_unchecked: bool
    """Whether no check is set or given, and nobody said that none is needed."""
    asked: Request
    completion: Completion | None = None
    completed_too: list[Completion] = field(default_factory=list)
    told: Sequence[str] = ()
    review: Review | None = None
    _records: dict[str, VerificationRecord | None] = field(default_factory=dict)
    """Of the issues of those who land with this one, by their places in the line."""
    _further: dict[str, VerificationRecord | None] = field(default_factory=dict)
    """Of the further issues."""

    @property
    def issue_id(self) -> str | None:  # type: ignore[override]
        """The first one."""
        return next(iter(self.issues), None)

    @property
    def also(self) -> Sequence[str]:
        """The further ones."""
        return self.issues[1:]

    def begin(self, rules: Rules) -> None:
        """Does what comes before the turn is waited for: refuses what must not land, asks for what
        nobody has seen, and commits.
        """
        if rules.strategy == PROPOSED:
            from queenbee.git.proposing.following import follow  # noqa: PLC0415 - start-up

            follow(self.hive, tell=self.tell, sure=True)  # Before anything is committed.
        self.hive.look({"reason": self.asked.reason})
        if news := look_for_news(self.hive.layout, fetches=False):
            self.tell(news)
        _refuse_unseen(self.hive, rules, self.issues)
        self.commit()
        reviews = self.hive.assignments.in_review()
        mine = {each: reviews.get(each) for each in self.issues}
        refuse_standing(self.hive.layout, reviews, mine)

    def ready(self) -> None:
        """Keeps what is asked, for going on. Raises `InvalidInput` if nothing would be checked."""
        self.refuse_unchecked()
        self.asked.keep(self.hive.layout)

    def result(self, landing: Landing) -> Landed:
        """Returns what became of it."""
        done = (self.completion, self.completed_too, self.told, self.review)
        return Landed(landing, self.asked, self.issue_id, self.record, *done)

    def commit(self) -> None:
        """Commits all changes of the worktree, if that is asked for; looks at what was resolved, if
        that goes on. Raises `Conflict` for mail to read first, and as `landing_branch` does.
        """
        layout = self.hive.layout
        message, allowed = self.asked.message, self.hive.allow_secrets
        if message is not None:  # Else it is asked when nothing comes before it any more.
            landing_branch(layout)
        self.look_again()
        if layout.worktree is None or (message is None and (allowed or not self.asked.go_on)):
            return
        if message is None:
            refuse_resolved(layout.tree)
            return
        self.refuse_unchecked()
        try:
            messages = Messages.of(layout.settings, layout.tree)
            message = messages.signed_off(message)
            before = commit_at(layout.tree)
            said = commit_all(layout, message, allow_secrets=allowed, tell=self.tell)
            if commit_at(layout.tree) == before:
                self.tell("nothing is left to commit: the text of -m is not used")
        except CommitRefused as error:
            raise self._kept_out(error) from None
        for each in said:
            self.tell(each)

    def _kept_out(self, error: CommitRefused) -> NotLanded:
        """Returns why git's hook refused a commit: who holds which files until when, if somebody
        does; else what the hook said.
        """
        from queenbee.git.guard import refusals  # noqa: PLC0415 - start-up

        held = refusals(self.hive, error.files, self.env)
        if not held:
            return error
        who = [
            f"{mentioned(each.path)} by {mentioned(each.lease.droid)}, {each.left} left (until "
            f"{each.lease.expires_at})"
            for each in held
        ]
        ask = suggested("queen msg send", held[0].lease.droid, "BODY")
        return NotLanded(
            f"others hold files that this changes, so nothing was committed or landed: "
            f"{some(who, SHOWN, '; ')}",
            hint=f"{ask}; then the same queen land once it is released",
            files=[each.path for each in held],
        )

    def refuse_unchecked(self) -> None:
        """Raises `InvalidInput` if no check would run."""
        bead = self.hive.documents.find_bead(self.issue_id) if self.issue_id is not None else None
        if self.is_unchecked and bead is None:
            raise no_check(self.hive.layout)

    def judged_by(self, check: str | None) -> None:
        """Raises `InvalidInput` if nothing would check the commit that is to land."""
        self.is_unchecked = check is None and not self.asked.unchecked
        self.refuse_unchecked()

    @property
    def accepts_check(self) -> str | None:  # type: ignore[override]
        """The key of the change of the check that a person accepts."""
        return self.asked.accept_check

    def check_waits(self, files: Sequence[str], way: str) -> None:
        """Tells the person that a change of the check waits in this worktree."""
        with suppress(QueenError):
            self._tell_person("waits for you", files, f"Accept it so: {way}")

    def target_fails(self, error: TargetFails) -> None:
        """Tells everybody, in one message."""
        said = f"{str(error.message).removesuffix('; nothing was landed')}."
        target = error.details["target"]
        fields = {"subject": f"{target} itself fails its check", "body": f"{said} {error.hint}."}
        more = {"importance": "normal", BY_HIVE: True, TARGET_FAILS: target}
        with suppress(QueenError):
            self.hive.look(fields)
            with self.hive.transaction() as tx:
                thread = thread_of(TARGET_FAILS, str(target))
                stage(tx, self.hive.actor, [EVERYONE], {**fields, **more}, thread)

    def target_passes(self, target: str) -> None:
        """Takes that message back."""
        with suppress(QueenError):
            withdraw(self.hive, TARGET_FAILS, target)

    def _tell_person(self, what: str, files: Sequence[str], more: str) -> None:
        """Sends one message to the person about a change of the check."""
        if self.hive.actor == PERSON:
            return
        said = f"{self.hive.actor} changes what checks the main branch: {named(files, SHOWN)}."
        fields = {
            "subject": f"A change of the check {what}: {named(files, SHOWN)}",
            "body": f"{said} {more}",
            "issue_id": self.issue_id,
            "importance": "normal",
            BY_HIVE: True,
            CHECK_FILES: [*files],
        }
        with self.hive.transaction() as tx:
            stage(tx, self.hive.actor, [PERSON], fields)

    def subject(self) -> str | None:
        """Returns the issue with its title, for the commits that landing makes."""
        if self.issue_id is None:
            return None
        issue = self.hive.issues.row(self.issue_id)
        title = " ".join(issue.title.splitlines()).strip() if issue is not None else ""
        title = title if self.hive.allow_secrets else redacted(title)
        more = f" (and {some(self.also, SHOWN)})" if self.also else ""
        return f"{self.issue_id}: {title}{more}" if title else None

    def look_again(self) -> None:
        """Raises `Conflict` for mail that came while the turn was waited for."""
        read_first(self.hive, self.issues)

    def held(self, paths: Sequence[str]) -> list[str]:
        """Returns those of the files that others hold exclusively, with their holders; also on
        other machines, if the remote is to confirm it.
        """
        if self.is_confirmed:
            from queenbee.git.remote.syncing import take_in  # noqa: PLC0415 - start-up

            take_in(self.hive)
        return [
            f"{named([each.path])} ({lease.droid})"
            for each in self.hive.reservations.check_tracked(paths)
            if each.status == "held"
            for lease in each.leases[:1]
            if lease.exclusive
        ]

    def refuse_unjudged(self, contents: Changed, head: str) -> None:
        """Raises `Conflict` for work on another issue that has not been judged."""
        tree = self.hive.layout.tree
        refuse_unjudged_work(self.hive, self.issues, tree=tree, head=head)
        refuse_ended_rows(self.hive, self.issues, contents, tree)

    def keeps_out(self, offer: Offer, contents: Changed) -> bool:
        """Returns whether another droid does not name an issue that it has, has mail to read first
        or work that has not been judged, or somebody else holds files that it changed.
        """
        unread = self.hive.messages.inbox(unread=True, droid=offer.droid)
        # An offer names one issue. Mail about another of the droid's is looked at in its own turn.
        has: list[str | None] = [*_issues_of(self.hive, offer)]
        if offer.issue_id not in (has or [None]):
            return True
        if any(stops_landing(each, [offer.issue_id, *has]) for each in unread):
            return True
        leases = self.hive.reservations.covering([*contents])
        if any(
            each.exclusive and each.droid != offer.droid for of in leases.values() for each in of
        ):
            return True
        own = [offer.issue_id, *self.issues]  # Those are judged in this very step.
        try:
            refuse_unjudged_work(self.hive, own, tree=offer.tree, head=offer.head)
            refuse_ended_rows(self.hive, own, contents, offer.tree)
        except QueenError:
            return True
        return False

    @property
    def is_alone(self) -> bool:  # type: ignore[override]
        """Whether it has to land in a step of its own."""
        # Another droid runs the checks of one issue only.
        beads = any(self.hive.documents.find_bead(each) is not None for each in self.also)
        return self.asked.alone or self.is_confirmed or beads

    def verify(self, tree: str, ready: Callable[[], None]) -> str | None:
        """Runs the checks of the issue; returns what failed, or None."""
        if self.issue_id is None:
            return None
        self.record, failed = self._checked(self.issue_id, tree, ready)
        if self.is_unchecked and (self.record is None or _is_unverified(self.record)):
            raise no_check(self.hive.layout)
        for each in () if failed else self.also:
            self._further[each], failed = self._checked(each, tree, ready)
            if failed:
                break
        return failed

    def verify_for(self, offer: Offer, tree: str, ready: Callable[[], None]) -> str | None:
        """Runs the checks of another droid's issue; returns what failed, or None."""
        if offer.issue_id is None:
            return None
        try:
            record, failed = self._checked(offer.issue_id, tree, ready, offer.droid)
        except QueenError as error:  # It is told in its own turn.
            return error.message
        if offer.check is None and record is not None and _is_unverified(record):
            return "not verified"
        self._records[offer.entry] = record
        return failed

    def _checked(
        self, issue_id: str, tree: str, ready: Callable[[], None], droid: str | None = None
    ) -> tuple[VerificationRecord | None, str | None]:
        bead, differs = judging_bead(self.hive, issue_id)
        if differs:
            self.tell(
                f"the checks of {issue_id} that are on the main branch count: its file differs"
            )
        if bead is not None:
            ready()
        checked = partial(check, self.hive, issue_id, env=self.env, on_progress=self.on_progress)
        record = checked(of=droid, bead=bead, tree=tree)
        if record is None or record["verdict"] in GOOD:
            return record, None
        failed = [each for each in record["results"] if each["status"] != "passed"]
        lines = [f"{each['name']}: {each['reason']}" for each in failed]
        return record, "\n".join([f"the checks of {issue_id} {record['verdict']}", *lines])

    def record_of(self, offer: Offer) -> object:
        """Returns what `verify_for` found."""
        return self._records.get(offer.entry)

    def whose(self, commits: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Returns the issues and their droids of the commits that completions name."""
        known = {name: each for each in commits for name in (each, each[:_SHORT])}
        found: dict[str, list[tuple[str, str]]] = {}
        for each in self.hive.assignments.find(status="completed") if known else ():
            commit = known.get(each.landed or _commit_in(each.reason or ""))
            if commit is not None:
                found.setdefault(commit, []).append((each.issue_id, each.droid))
        return found

    def landed(self, landing: Landing, issue_id: str | None) -> None:
        """Completes the issue, and tells those who work on files that changed. It has landed, so
        nothing else is to be waited for, however long the turn at writing takes.
        """
        with self.hive.patient(_PATIENCE_S), giving_up.not_now():
            if landing.is_proposed:
                self._propose(landing)
            else:
                self._complete(landing, issue_id)

    def push(self, place: Place, tree: str, commit: str) -> None:
        """Pushes what passed to the branch of its issue."""
        from queenbee.git.proposing.work import proposing_of  # noqa: PLC0415 - start-up

        proposing = proposing_of(self.hive, place.branch, self.issues)
        if kept := proposing.push(place.commands, tree, commit):
            self.tell(f"what this lacks of the last push is kept on {mentioned(kept)}")

    def _propose(self, landing: Landing) -> None:
        from queenbee.git.proposing.work import propose  # noqa: PLC0415 - start-up

        self.review = propose(
            self.hive,
            landing_branch(self.hive.layout)[1],
            (str(landing.commit), landing.target),
            self.issues,
            title=self.subject(),
            reason=self.asked.reason,
            tell=self.tell,
        )

    def _complete(self, landing: Landing, issue_id: str | None) -> None:
        assert landing.commit is not None
        short = landing.commit[:_SHORT]
        active = self.hive.assignments.active(issue_id) if issue_id is not None else None
        mine = active is not None and (active.droid == self.hive.actor or issue_id == self.issue_id)
        reason = self.asked.reason
        why = f"{reason} ({short})" if reason else f"landed as {short}"
        done = partial(complete, self.hive, env=self.env, reason=why, landed=landing.commit)
        if issue_id is not None and mine:
            self.completion = done(issue_id, checked=self.record)
        # After a kill, whoever goes on may have named only what was left, or nothing.
        kept = self.also if issue_id == self.issue_id else kept_issues(self.hive.layout)[1:]
        for each in kept if issue_id is not None else ():
            held = self.hive.assignments.active(each)
            if held is not None and self.hive.actor in (held.droid, *SUPERVISORS):
                self.completed_too.append(done(each, checked=self._further.get(each)))
        try:
            if landing.check_files:
                more = f"It is on {landing.target}: git show {short}"
                self._tell_person("has landed", landing.check_files, more)
            end_landed(self.hive)
            self.told = self._tell_others(landing, short, issue_id)
        except QueenError as error:
            if self.completion is not None:
                self.completion = self.completion.with_note(f"nobody was told: {error.message}")
        if self.asked.take_next:  # They go along with the next issue, or with the last.
            return
        if why := commit_records(self.hive, is_end=False):
            self.tell(why)

    def _tell_others(self, landing: Landing, short: str, issue_id: str | None) -> list[str]:
        """Sends one message to each droid that has a lease on a file that changed, unmerged work in
        it, or an issue about files everywhere.
        """
        said = self.hive.layout.settings
        changed = [
            each
            for each in landing.changed
            if not everybody_appends_to(each, said.land_join, said.land_union)
        ]
        files: dict[str, list[str]] = {}
        for path, droid in sorted(self._concerned(changed, str(landing.commit))):
            files.setdefault(droid, []).append(path)
        if not files:
            return []
        with self.hive.transaction() as tx:
            for droid, paths in sorted(files.items()):
                listed = named(paths, SHOWN)
                fields = {
                    "subject": f"{landing.target} has changed files that you work on",
                    "body": f"{self.hive.actor} landed {short} on {landing.target}, which changes "
                    f"{listed}. To see conflicts now, merge {landing.target}.",
                    "issue_id": issue_id,
                    "importance": "normal",
                    LANDED: landing.commit,
                }
                stage(tx, self.hive.actor, [droid], fields)
        return sorted(files)

    def _concerned(self, changed: Sequence[str], commit: str) -> set[tuple[str, str]]:
        """Returns the files whose change concerns another droid, each with that."""
        actor, layout = self.hive.actor, self.hive.layout
        mine = [each for each in changed if not is_exempt(layout, each)]
        found: set[tuple[str, str | None]] = set()
        # Git would not have moved the main worktree over changes of these files.
        for place, paths in concerned(layout, commit, mine):
            droid = Owner(self.hive, place).droid
            found |= {(path, droid) for path in paths}
        for path, leases in self.hive.reservations.covering(changed).items():
            found |= {(path, lease.droid) for lease in leases}
        for each in self.hive.issues.at_work(without=actor):
            if each.issue.is_across:
                found |= {(path, str(each.holder)) for path in changed}
        return {(path, droid) for path, droid in found if droid not in (None, actor)}


def _commit_in(reason: str) -> str:
    """Returns the short commit that the reason of an old completion names, or ""."""
    found = _OLD_REASON.search(reason)
    return found[1] if found is not None else ""


def _is_unverified(record: VerificationRecord) -> bool:
    return record["verdict"] == "not_verified"


def _issue(hive: Hive, issue_id: str | None, asked: Request) -> str | None:
    """Returns the issue to complete, which the actor may end; None if it has none."""
    if issue_id is not None:
        _refuse_text(hive, issue_id, asked)
        issue_id = hive.issue_id(issue_id)
        done = hive.issues.completion(issue_id)
        was_done_here = done is not None and done.droid == hive.actor
        if not (was_done_here and issue_id in kept_issues(hive.layout)):  # Before a kill.
            hive.assignments.check_ending(issue_id)
        return issue_id
    # Where it stands on what was proposed, that is what goes on.
    mine = stands_on(hive.layout, hive.assignments.in_review(hive.own_actor))
    mine = mine or to_land(hive, hive.own_actor)
    if len(mine) > 1:
        raise InvalidInput(
            f"{hive.actor} has several issues: {', '.join(mine)}",
            hint=f"say which are done: {suggested('queen land', *mine)}{_kept_options(asked)}",
        )
    if not mine:
        _refuse_lost(hive)
    return mine[0] if mine else None


def _refuse_text(hive: Hive, issue_id: str, asked: Request) -> None:
    """Raises `InvalidInput` for a text in place of an issue, also one without its quotes."""
    words = [each for each in (asked.message, asked.issue_id, *asked.also) if each is not None]
    if " " not in issue_id:
        known = {*hive.issues.ids(), *(each.issue_id for each in hive.assignments.find())}
        if len(words) < 2 or any(nearest(each, known) or each in known for each in words):
            return
    text = shell_word(issue_id if " " in issue_id else " ".join(words))
    more = " --next" * asked.take_next
    raise InvalidInput(f"{mentioned(issue_id)} is no issue", hint=f"queen land -m {text}{more}")


def _kept_options(asked: Request) -> str:
    """Returns the options that whoever asks again needs once more."""
    message = " -m 'WHAT YOU DID'" if asked.message is not None else ""
    return message + " --next" * asked.take_next


def _issues_of(hive: Hive, offer: Offer) -> list[str]:
    """Returns the issues of the droid that offers a branch, and of those whose worktree that is: an
    offer may name anybody.
    """
    layout, entry = hive.layout, roster.at(hive.layout, offer.tree)
    trees = [each for each in worktrees(layout) if each.path == offer.tree]
    ids = [read_tree_id(layout, each) for each in trees]
    whose = {offer.droid, entry and entry.name, *(each.droid for each in trees)}
    return [
        each.issue_id
        for each in hive.assignments.find()
        if each.droid in whose or any(is_of_tree(each, tree_id) for tree_id in ids)
    ]


def _refuse_lost(hive: Hive) -> None:
    """Raises `NotYours` if the last issue that the actor had in this worktree was taken from it,
    and another has it or has completed it.
    """
    here, tree_id = hive.layout.worktree, read_tree_id(hive.layout)
    had = [
        each
        for each in hive.assignments.find(droid=hive.actor, status="all")
        if each.worktree == here and is_of_tree(each, tree_id, droid=each.droid, folder=here)
    ]
    if not had or ended_by(had[-1]) is None or had[-1].status == "completed":
        return
    *_, holder = hive.assignments.find(issue_id=had[-1].issue_id, status="all")
    how = {"active": "has it now", "completed": "has completed it"}.get(holder.status)
    if how is not None:
        issue_id, ask = holder.issue_id, f"what I have of {holder.issue_id}"
        tell = suggested("queen msg send", holder.droid, ask, issue=issue_id)
        raise NotYours(
            f"{issue_id} is no longer yours: {holder.droid} {how}",
            hint=f"{tell}, or go on with another issue: queen next",
            owner=holder.droid,
            assignment=holder.to_dict(),
        )


def read_first(hive: Hive, issues: Sequence[str]) -> None:
    """Raises `Conflict` with the text if there is unread mail about the issues, or urgent mail.

    It is read by that: a message stops one landing.
    """
    hive.messages.drop_merged()
    mail = hive.messages.read_unread(wanted=lambda each: stops_landing(each, issues))
    if not mail:
        return
    text = "; ".join(
        f"{mentioned(each.from_)}: {quotation(each.body, _MAIL_CHARS)}" for each in mail
    )
    count = "a message" if len(mail) == 1 else f"{len(mail)} messages"
    raise Conflict(
        f"nothing was landed: {count} came before, read now: {text}",
        hint=f"answer ({suggested('queen msg reply', mail[0].id, 'TEXT')}), or land again",
        messages=[each.to_dict() for each in mail],
    )


def stops_landing(message: Message, issues: Sequence[str | None]) -> bool:
    """Returns whether a message has to be read before work on these issues lands."""
    is_about = message.issue_id is not None and message.issue_id in issues
    return message.importance == "urgent" or (is_about and not message.by_hive)
