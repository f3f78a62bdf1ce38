"""Issues: Beads' `issues.jsonl`, the documents that add issues to it, and what is ready."""

from __future__ import annotations

import os
from itertools import chain, islice

from queenbee.core import beads, readiness
from queenbee.core.beads import Issue
from queenbee.core.names import checked_issue_id, checked_new_id, nearest
from queenbee.core.readiness import Standing, by_urgency, missing_blockers
from queenbee.core.row_edits import STAMP, later_than, with_changes
from queenbee.core.text import bracketed, mentioned, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.errors import IssueClosed, NotFound, NotReady, Taken, Untrusted
from queenbee.store.droids import roster
from queenbee.store.issues_file import unreadable_row

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypedDict, TypeVar

    from queenbee.core.fold import Fields
    from queenbee.core.readiness import Occupied
    from queenbee.core.records import Assignment
    from queenbee.core.reviews.review import Review
    from queenbee.services.assignments import Assignments
    from queenbee.services.board import Board
    from queenbee.services.document_questions import Documents
    from queenbee.services.open_store import Store
    from queenbee.services.writing.transaction import Transaction
    from queenbee.store.memory.recorded import Cursor

    Found = TypeVar("Found")

    class Circumstances(TypedDict):
        """What decides where issues stand, besides their rows: see `readiness.open_standings`."""

        holders: Mapping[str, str]
        now_ms: int
        held_back: Mapping[str, str]
        reviews: Mapping[str, Review]


_UNFIT = "its id seems to hold a secret"
_REF = "external_ref"
_MANY = 100
"""From so many issues on, one question about all completions takes less than one about each."""


class Issues:
    """The issues of the tracker, and the beads that count as issues.

    If both have an id, the tracker's row wins.
    """

    def __init__(
        self, store: Store, documents: Documents, *, assignments: Callable[[], Assignments]
    ) -> None:
        self._store = store
        self._documents = documents
        self._assignments = assignments
        self._stored_board: Board | None = None
        self._version: object = None
        self._tracked: dict[str, Issue] = {}
        self._cursor: Cursor | None = None
        self._seen: tuple[Mapping[str, Issue], Mapping[str, Issue]] = ({}, {})
        """The rows and the documents that `_issues` was made of."""
        self._issues: dict[str, Issue] = {}
        self._exact: Mapping[str, Mapping[str, object]] = {}
        """The rows that were read last for writing back."""
        self._refs: set[object] | None = None
        """What they have in `external_ref`, once it was asked for."""

    @property
    def unusable_lines(self) -> list[int]:
        """The numbers of the lines of the file that are neither an issue nor known bookkeeping."""
        return self._store.tracker().unusable_lines

    def all(self) -> dict[str, Issue]:
        """Returns every issue by id, without tombstones. Raises `Unreadable`."""
        found = self._completed(self._read())
        return {key: issue for key, issue in found.items() if issue.status != "tombstone"}

    def undone(self) -> dict[str, Issue]:
        """Returns every issue that is not done, by id. Raises `Unreadable`."""
        return {key: each for key, each in self._read().items() if not each.done}

    def tracked(self) -> dict[str, Issue]:
        """Returns the tracker's own issues by id, tombstones included. Raises `Unreadable`."""
        tracker = self._store.tracker()
        if tracker.version == self._version:
            return self._tracked
        self._tracked = {key: Issue(row) for key, row in tracker.everything().items()}
        if tracker.is_anonymous:
            # The row of a blocker that is not there may be one of those.
            known = {**self._documents.issues(), **self._tracked}
            gone = [unreadable_row(each) for _, each in missing_blockers(known)]
            self._tracked.update(beads.read_rows(gone))
        self._version = tracker.version
        return self._tracked

    def rows(self) -> dict[str, Fields]:
        """Returns the tracker's rows by id for writing back; what was completed here is closed: a
        newer row that said `open` would open it again. Raises `Unreadable`.
        """
        self._refs = None
        self._exact = self._store.tracker().everything(exact=True)
        tracked = self.tracked()
        closed = {
            key: one.ending()
            for key, one in self._completed(self._read()).items()
            if one.completion is not None and not tracked[key].done
        }
        return {key: {**row, **closed.get(key, {})} for key, row in self._exact.items()}

    def put(self, tx: Transaction, row: Fields) -> None:
        """Writes a row that was made from one of `rows` or `exact_row`, or a new one, at the end of
        the transaction.

        An `external_ref` that another row has already is left out: Beads refuses a file with two.
        """
        was = self._exact.get(str(row["id"]), {})
        ref, before = row.get(_REF), was.get(_REF)
        if ref and row.get("status") == "tombstone":
            same = [each for each in self.tracked().values() if each.get(_REF) == ref]
            row = with_changes(row, {_REF: None}) if len(same) > 1 else row
        elif ref and ref != before:
            if self._refs is None:
                rows = (each.fields for each in self.tracked().values())
                self._refs = {row.get(_REF) for row in rows}
            if ref in self._refs:
                row = with_changes(row, {_REF: before})
            self._refs.add(ref)
        tx.put_issue(row, was)

    def change(self, tx: Transaction, issue_id: str, row: Fields, changed: Fields) -> None:
        """Writes a row that was changed, as `put` does: later than the row that it was, and than
        a completion here, even if the clock was set back. Else that would still count.
        """
        done = self.completion(issue_id)
        ended_ms = instant_ms(done.updated_at) if done is not None else None
        at = later_than(row, max(tx.now_ms, (ended_ms or 0) + 1))
        self.put(tx, {**changed, STAMP: at})

    def ids(self) -> Collection[str]:
        """Returns the ids of all issues, without tombstones. Raises `Unreadable`."""
        return [key for key, issue in self._read().items() if issue.status != "tombstone"]

    def referred(self, text: str) -> list[str]:
        """Returns the ids of the issues whose `external_ref` is this, or this after its source, or
        ends in this number: `5` and `#5` are `…/issues/5`.
        """
        number = text.removeprefix("#")
        ends = [f"{mark}{number}" for mark in "/:#-"] if number.isdecimal() else [f":{text}"]
        return [
            key
            for key, each in self._read().items()
            if text and isinstance(ref := each.get(_REF), str) and each.status != "tombstone"
            if ref == text or ref.endswith(tuple(ends))
        ]

    def taken_ids(self) -> Collection[str]:
        """Returns the ids that no new issue can have: those of tombstones, too."""
        return {*self._store.tracker().ids(), *self._documents.issues()}

    def get(self, issue_id: str) -> Issue:
        """Returns one issue. Raises `NotFound`, which suggests a similar id."""
        issue = self.get_or_none(issue_id)
        if issue is None:
            raise self._unknown(issue_id)
        return issue

    def get_or_none(self, issue_id: str) -> Issue | None:
        """Returns one issue, or None if the tracker does not have it."""
        return self.some([issue_id]).get(issue_id)

    def some(self, ids: Iterable[str]) -> dict[str, Issue]:
        """Returns those of these issues that the tracker has, without tombstones, by id."""
        found = self._few(ids)
        return self._completed(
            {key: issue for key, issue in found.items() if issue.status != "tombstone"}
        )

    def row(self, issue_id: str) -> Issue | None:
        """Returns an issue as the tracker's own row says, a tombstone included, or None."""
        tracker = self._store.tracker()
        if tracker.is_anonymous:
            return self.tracked().get(issue_id)
        return beads.read_rows(tracker.rows([issue_id]).values()).get(issue_id)

    def exact_row(self, issue_id: str, *, ended: bool = False) -> Fields | None:
        """Returns the tracker's own row of an issue for writing back, or None: long integers keep
        every digit. If it `ended` by a completion here, it is closed. Raises `Unreadable`.
        """
        self._refs = None
        self._exact = self._store.tracker().rows([issue_id], exact=True)
        row = self._exact.get(issue_id)
        issue = self.get_or_none(issue_id) if ended else None
        is_closed = issue is not None and issue.completion is not None
        ending = issue.ending() if issue is not None and is_closed else {}
        return {**row, **ending} if row is not None else None

    def tombstone(self, issue_id: str) -> Issue | None:
        """Returns an issue that the tracker has deleted, or None."""
        issue = self.row(issue_id)
        return issue if issue is not None and issue.status == "tombstone" else None

    def for_a_person(self) -> list[Issue]:
        """Returns the open issues that a person is to decide, most urgent first: see
        `beads.asks_person`.
        """
        found = self._few(self._store.tracker().like(*beads.ASKING))
        return by_urgency(
            each for each in found.values() if not each.done and beads.asks_person(each)
        )

    def given_back(self) -> list[tuple[Issue, Assignment]]:
        """Returns the issues that the last `queen start` gave back and nobody has taken since, each
        with the assignment that ended last.
        """
        ids = roster.given_back(self._store.layout)
        if not ids:  # Each look at the screen asks.
            return []
        ready = [key for key, each in self.standings_of(ids).items() if each.state == "ready"]
        ended = (
            (one, self._assignments().find(issue_id=key, status="released"))
            for key, one in self.some(ready).items()
        )
        return [(issue, found[-1]) for issue, found in ended if found]

    def deleted(self) -> list[Issue]:
        """Returns the issues that the tracker has deleted, the last one first."""
        gone = [each for each in self.tracked().values() if each.status == "tombstone"]
        return sorted(gone, key=lambda each: str(each.get("deleted_at") or ""), reverse=True)

    def find(self, *, status: str | None = None, text: str | None = None) -> list[Issue]:
        """Returns the issues, or those of one status, or that have all words of a text, in any
        case: most urgent first, then oldest.
        """
        words = (text or "").casefold().split()
        found = (each for each in self.all().values() if status in (None, each.status))
        return by_urgency(each for each in found if _has(each, words))

    def standings(self, *, everything: bool = False) -> dict[str, Standing]:
        """Returns where each issue stands that is work for droids, by id; with `everything`, also
        the tracker's own bookkeeping.
        """
        issues = self._completed(self._read()) if everything else self._read()
        return readiness.standings(issues, **self._circumstances(issues), everything=everything)

    def open(self) -> dict[str, Standing]:
        """Returns where each issue stands that is work for droids and not done, by id."""
        return self.open_and_counts()[0]

    def standing(self, issue_id: str) -> Standing | None:
        """Returns where an issue stands, or None if there is none, or it is no work for droids."""
        return self.standings_of([issue_id]).get(issue_id)

    def standings_of(self, ids: Iterable[str]) -> dict[str, Standing]:
        """Returns where those of these issues stand that are work for droids, by id."""
        wanted = list(ids)
        needed = readiness.needed_for(wanted, self._few)
        issues = self._read() if needed is None else needed
        found = readiness.standings(issues, **self._circumstances(issues))
        return {each: found[each] for each in wanted if each in found}

    def in_order(
        self, actor: str | None, occupied: Callable[[list[Issue]], Occupied]
    ) -> Iterator[Issue]:
        """Yields what is nobody's, or the actor's, and could be started now, in the order in which
        `queen next` takes it: see `readiness.in_order`.
        """

        def of_board(board: Board) -> tuple[list[Issue], Iterator[Issue]]:
            rest = board.in_order(actor, *self._claims(board), look=self._few, occupied=occupied)
            return list(islice(rest, 1)), rest

        def of_all() -> tuple[list[Issue], Iterator[Issue]]:
            return [], readiness.in_order_to_take(self.open(), actor=actor, occupied=occupied)

        return chain(*self._answer(of_board, of_all))

    def at_work(self, *, without: str | None) -> list[Standing]:
        """Returns where the open issues stand that somebody has, other than this droid."""
        found = self._answer(
            lambda board: self.standings_of([*self._holders(), *board.named()]), self.open
        )
        return [
            each
            for each in found.values()
            if each.holder not in (None, without) and each.state == "active"
        ]

    def ready_count(self) -> int:
        """Returns how many issues anybody could take."""

        def of_all() -> int:
            found = self.open().values()
            return sum(each.state == "ready" and not each.has_open_children for each in found)

        return self._answer(lambda board: board.ready_count(*self._claims(board)), of_all)

    def of_documents(self) -> Mapping[str, Issue]:
        """Returns the issues of the tracker of which documents may have more to say, and perhaps
        others.
        """
        return self._answer(lambda board: self._few(board.special()), self.tracked)

    def _answer(self, of_board: Callable[[Board], Found], of_all: Callable[[], Found]) -> Found:
        """Returns what the standings that are kept say, or where there are none, all issues."""
        board = self._board()
        if board is not None:
            found = of_board(board)
            if not board.has_gone:
                return found
        return of_all()

    def _board(self) -> Board | None:
        """Returns the standings that are kept; None if all issues have to be looked at."""
        tracker, assignments = self._store.tracker(), self._store.state("assignments")
        if tracker.is_anonymous or self._documents.issues():
            return None
        from queenbee.services.board import Board  # noqa: PLC0415 - start-up

        if self._stored_board is None:
            self._stored_board = Board(self._store.engine.memory)
        is_stored = self._stored_board.refresh(
            tracker, assignments, self._store.now_ms(), look=self._few, everything=self._read
        )
        return self._stored_board if is_stored else None

    def _holders(self) -> dict[str, str]:
        return {each.issue_id: each.droid for each in self._assignments().find()}

    def _claims(self, board: Board) -> tuple[dict[str, str], Mapping[str, str]]:
        """Returns who has which issue, and what documents hold back, with the reason."""
        return self._holders(), self._held_back(self._few(board.special()))

    def _held_back(self, issues: Mapping[str, Issue]) -> Mapping[str, str]:
        """Returns what is held back, with the reason: by documents, because nobody could record
        its id, or because it is done already, and only its landing waits.
        """
        waiting = roster.waiting(self._store.layout, without=self._store.actor_or_none)
        return {**_unfit(issues), **waiting, **self._documents.held_back(issues)}

    def open_and_counts(self) -> tuple[dict[str, Standing], dict[str, int]]:
        """Returns where the issues stand that are work for droids and not done, by id; and how many
        there are in each state, those that are done included.
        """
        issues = self._read()
        found = readiness.open_standings(issues, **self._circumstances(issues))
        done = sum(1 for each in issues.values() if each.done and readiness.is_work(each))
        return found, readiness.counts(found.values(), done=done)

    def behind(self, issue_id: str) -> list[Standing]:
        """Returns where the issues stand that wait for this one."""
        near = self._answer(lambda board: board.near(issue_id, self._few), lambda: None)
        found = self.open() if near is None else self.standings_of(near)
        return [each for each in found.values() if issue_id in each.waits_for]

    def counts(self) -> dict[str, int]:
        """Returns how many issues that are work for droids are in each state, and `total`."""
        return self._answer(
            lambda board: board.counts(*self._claims(board)), lambda: self.open_and_counts()[1]
        )

    def listed(self, *, status: str | None = None, everything: bool = False) -> list[Standing]:
        """Returns where the issues stand that are not done; or all, or those of one status. Most
        urgent first, then oldest.
        """
        if not everything and status is None:
            chosen = list(self.open().values())
        else:
            found = self.standings(everything=True).values()
            chosen = [each for each in found if everything or each.issue.status == status]
        return sorted(chosen, key=lambda each: readiness.urgency(each.issue))

    def ready(self, *, actor: str | None = None, limit: int | None = None) -> list[Issue]:
        """Returns the issues that `actor` could start now, or the first ones: most urgent first,
        then oldest.

        `docs/format.md`, section "Issues", lists what keeps an issue out.
        """

        def of_board(board: Board) -> list[Issue]:
            ids = islice(board.startable(actor, *self._claims(board)), limit)
            return readiness.by_urgency(self._few(ids).values())

        return self._answer(
            of_board, lambda: readiness.startable(self.open().values(), actor)[:limit]
        )

    def startable_count(self, actor: str | None) -> int:
        """Returns how many issues `ready` returns."""
        return self._answer(
            lambda board: sum(1 for _ in board.startable(actor, *self._claims(board))),
            lambda: len(readiness.startable(self.open().values(), actor)),
        )

    def blockers(self, issue: Issue) -> list[str]:
        """Returns the ids of the issues that this one waits for."""
        needs = issue.dependencies
        is_plain = all(kind != "waits-for" for _, kind in needs)
        issues = self._few(target for target, _ in needs) if is_plain else self._read()
        return readiness.blockers_of(issue, issues)

    @property
    def is_described(self) -> bool:
        """Whether there is a tracker: its file, or an issue that is not written there yet."""
        return os.path.exists(self._store.layout.issues_path) or not self._store.tracker().is_empty

    def check_known(self, issue_id: str) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed. Raises `NotFound`.

        An id must be in the file if the setting `issues` is `strict`, or if it is `auto` (the
        default) and there is a tracker.
        """
        checked_issue_id(issue_id)
        setting = self._store.layout.settings.issues
        issue = self.get_or_none(issue_id)
        exists = issue is not None or self.is_described
        if issue is None and (setting == "strict" or (setting == "auto" and exists)):
            raise self._unknown(issue_id)
        if issue is None:
            checked_new_id(issue_id)
        return issue

    def check_described(self, issue_id: str) -> None:
        """Raises `NotFound` for an id that is in no tracker and that nobody had, although any id is
        allowed here: it is more often a slip than the start of something.
        """
        if self.check_known(issue_id) is not None or self._store.layout.settings.issues == "off":
            return
        if not self._store.state("assignments").select({"issue_id": issue_id}, limit=1):
            raise NotFound(
                f"nobody has described an issue {issue_id!r}",
                hint=f"{suggested('queen issue new', 'TITLE', id=issue_id)}; or to take it "
                "undescribed, add --new; or for all: queen config set issues off",
                issue_id=issue_id,
            )

    def check_claimable(self, issue_id: str, droid: str, *, anyway: bool = False) -> Issue | None:
        """Returns the issue, or None if it is unknown and any id is allowed.

        Raises `NotFound`, `IssueClosed` if it is done, `NotReady` if it waits for issues that the
        droid does not have or is set aside, `Untrusted` if nobody here has seen what its checks
        run, and `Taken` if the tracker gives it to somebody else; `anyway` allows the last three,
        but no agent of `queen start` the second of them.
        """
        issue = self.check_known(issue_id)
        self._check_not_done(issue_id, issue, anyway=anyway)
        if anyway and issue is not None and self._is_new_to_team(issue_id, droid):
            self._refuse_unseen(issue)
        if not anyway and issue is not None:
            standing = self.standing(issue_id)
            if standing is not None and not standing.startable(droid):
                blockers = self.standings_of(standing.waits_for)
                if not standing.follows(
                    {each for each in blockers if blockers[each].holder == droid}
                ):
                    self._refuse_unseen(issue)
                    self._refuse(standing, blockers, droid)
        return issue

    def completion(self, issue_id: str) -> Assignment | None:
        """Returns the assignment by which an issue was completed here and has not been reopened
        since, or None.
        """
        issue = self._few([issue_id]).get(issue_id)
        if issue is not None and (not issue.done or issue.status == "tombstone"):
            return None
        return self._completions([issue_id]).get(issue_id)

    def _check_not_done(self, issue_id: str, issue: Issue | None, *, anyway: bool) -> None:
        if issue is not None and not issue.done:
            return
        done = self.completion(issue_id)
        if issue is None and (done is None or anyway):
            return
        title = f" ({issue.title})" if issue is not None and issue.title else ""
        how = f"was completed by {done.droid} at {done.updated_at}" if done else "is closed"
        again = "queen issue reopen" if issue is not None else "queen claim --force"
        raise IssueClosed(
            f"issue {issue_id} {how}{title}",
            hint=f"queen next; to work on it again: {suggested(again, issue_id)}",
            issue_id=issue_id,
        )

    def _is_new_to_team(self, issue_id: str, droid: str) -> bool:
        """Returns whether `queen start` looks after a droid, and nobody has the issue yet."""
        is_free = self._assignments().active(issue_id) is None
        return is_free and roster.looked_after(self._store.layout, droid) is not None

    def _refuse_unseen(self, issue: Issue) -> None:
        """Raises `Untrusted` for an issue whose checks nobody here has seen: whoever took it could
        not land it.
        """
        unseen = self._documents.unseen_in(issue)
        if unseen:
            raise Untrusted(
                f"{mentioned(issue.id)} cannot be started: nobody on this machine has seen what "
                "its checks run",
                hint="a person looks at it: queen config trust; until then, go on with something "
                "else: queen next",
                issue_id=issue.id,
                commands=[each.to_dict() for each in unseen],
            )

    def _refuse(self, standing: Standing, found: Mapping[str, Standing], droid: str) -> None:
        issue_id = standing.issue.id
        if droid == self._store.actor_or_none:
            claim = suggested("queen claim", issue_id, force=True)
            anyway = f"queen next, or to take it anyway: {claim}"
        else:
            assign = suggested("queen issue assign", issue_id, droid, force=True)
            anyway = f"queen issue ready, or to assign it anyway: {assign}"
        if standing.waits_for:
            who = [_blocker(found.get(each), each) for each in standing.waits_for]
            raise NotReady(
                f"{mentioned(issue_id)} waits for {', '.join(who)}",
                hint=anyway,
                issue_id=issue_id,
                waits_for=standing.waits_for,
            )
        if standing.because and not standing.own_status:
            raise NotReady(
                f"{mentioned(issue_id)} cannot be started: {standing.because}",
                hint=anyway,
                issue_id=issue_id,
                waits_for=[],
            )
        holder = standing.holder
        if holder not in (None, droid) and self._assignments().active(issue_id) is None:
            raise Taken(
                f"the tracker gives {mentioned(issue_id)} to {mentioned(str(holder))}, who has "
                "begun it",
                hint=anyway,
                holder=holder,
                issue_id=issue_id,
            )

    def _unknown(self, issue_id: str) -> NotFound:
        if self.tombstone(issue_id) is not None:
            again = suggested("queen issue reopen", issue_id)
            return NotFound(
                f"the tracker has deleted {issue_id}",
                hint=f"{suggested('queen show', issue_id)}; to have it again: {again}",
                issue_id=issue_id,
            )
        close = nearest(issue_id, self.ids())
        return NotFound(
            f"there is no issue {issue_id!r} in {self._store.layout.issues_path}",
            hint=f"did you mean {close!r}? {suggested('queen show', close)}"
            if close
            else "queen issues",
            issue_id=issue_id,
        )

    def _circumstances(self, issues: Mapping[str, Issue]) -> Circumstances:
        """Returns what decides where issues stand, besides their rows."""
        few = len(issues) < _MANY
        asked = self._assignments()
        found = map(asked.active, issues) if few else asked.find()
        active = [each for each in found if each is not None]
        reviews = ((each.issue_id, each.review) for each in active)
        return {
            "holders": {each.issue_id: each.droid for each in active},
            "reviews": {issue_id: each for issue_id, each in reviews if each is not None},
            "now_ms": self._store.now_ms(),
            "held_back": self._held_back(issues),
        }

    def _read(self) -> dict[str, Issue]:
        """Returns the rows and the documents beside them; done in the hive is done. Which droid
        completed an issue that its row closes, `_completed` adds: few questions need it.
        """
        beside = self._documents.issues()
        assignments = self._store.state("assignments")
        tracked = self.tracked()
        changed, self._cursor = assignments.changes(self._cursor)
        if changed == [] and self._seen[0] is tracked and self._seen[1] == beside:
            return self._issues
        issues = {**beside, **tracked}
        if tracked:
            completed = assignments.project(("issue_id",), {"status": "completed"})
            done_here = {each for (each,) in completed if isinstance(each, str)}
            # A document says itself whether it is done.
            still_open = [key for key in done_here & tracked.keys() if not tracked[key].done]
            for issue_id, one in self._completions(still_open).items():
                issues[issue_id] = beads.as_completed(tracked[issue_id], one)
        self._seen, self._issues = (tracked, beside), issues
        return issues

    def _few(self, ids: Iterable[str]) -> dict[str, Issue]:
        """Returns those of these issues that there are, as `_read` does."""
        wanted = dict.fromkeys(ids)
        tracker = self._store.tracker()
        if tracker.is_anonymous or tracker.version == self._version:
            issues = self._read()
            return {each: issues[each] for each in wanted if each in issues}
        beside = self._documents.issues()
        rows = beads.read_rows(tracker.rows(wanted).values())
        completions = self._completions([key for key, each in rows.items() if not each.done])
        for key, completed in completions.items():
            rows[key] = beads.as_completed(rows[key], completed)
        found = {**beside, **rows} if beside else rows
        return {each: found[each] for each in wanted if each in found}

    def _completed(self, issues: Mapping[str, Issue]) -> dict[str, Issue]:
        """Returns these issues; those of the tracker that are done and were completed here say by
        whom.
        """
        beside = self._documents.issues()
        closed = [key for key, each in issues.items() if each.done and each is not beside.get(key)]
        completions = self._completions(closed)
        return {
            key: beads.as_completed(issue, completions[key]) if key in completions else issue
            for key, issue in issues.items()
        }

    def _completions(self, issue_ids: Collection[str]) -> dict[str, Assignment]:
        """Returns the assignments by which these issues were last completed."""
        state, equals = self._store.state("assignments"), {"status": "completed"}
        if len(issue_ids) < _MANY:
            found = (state.select({**equals, "issue_id": each}) for each in issue_ids)
            return beads.last_completions(row for rows in found for row in rows)
        wanted = frozenset(issue_ids)
        last = beads.last_completions(state.select(equals))
        return {key: one for key, one in last.items() if key in wanted}


def _unfit(issues: Collection[str]) -> dict[str, str]:
    """Returns those whose id nobody could record, with the reason."""
    if not issues:
        return {}
    from queenbee.services.writing.secrets import is_like_secret  # noqa: PLC0415 - start-up

    return {each: _UNFIT for each in issues if is_like_secret(each)}


def _blocker(standing: Standing | None, issue_id: str) -> str:
    """Returns an issue's id, and who has it."""
    if standing is None:
        return mentioned(issue_id)
    return f"{mentioned(issue_id)} {bracketed(standing.holder or 'nobody has it')}"


def _has(issue: Issue, words: Sequence[str]) -> bool:
    if not words:
        return True
    said = " ".join((issue.id, issue.title, str(issue.get("description") or ""))).casefold()
    return all(each in said for each in words)
