"""Exchanging the records of a hive with a branch of a git remote.

A ledger is a set of lines, so an exchange is a union: lines of the remote that are not here are
appended here, and lines from here that are not there are committed on top of what is there. The
push is refused if somebody else was faster; then everything is done again on top of theirs. One
process of a machine pushes at a time, for all who wait. ADR 0029.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections import deque
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from queenbee.core.kinds import ISSUES
from queenbee.errors import Busy, QueenError
from queenbee.git import run
from queenbee.git.remote.branch import Branch, is_kind
from queenbee.git.remote.branch_carrier import BranchCarrier
from queenbee.git.remote.branch_of_code import why_code
from queenbee.git.remote.deciding import Decisions, decide
from queenbee.git.remote.sync_state import Known, Notes
from queenbee.git.remote.withheld import numbered, placed, why_withheld
from queenbee.services import unasked
from queenbee.services.archiving import rotate_what_is_due
from queenbee.services.care.exporting import export_issues
from queenbee.store.codec import decode_records
from queenbee.store.files import Appender
from queenbee.store.lock import LongLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from queenbee.services.diagnosis import Diagnosis
    from queenbee.services.hive import Services
    from queenbee.store.memory.recorded import Recorded

_PAUSES_S = 0.01, 0.04
"""How long one who waits for the lock sleeps, between looks whether another has done it."""
_SOME_BYTES = 4 * 2**20
"""So much that comes is looked at before others have to wait for the turn at writing."""
_ATTEMPTS = 40
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0


@dataclass
class Synced:
    """What one exchange did."""

    remote: str
    branch: str
    taken: int = 0
    """How many lines came from the remote."""
    sent: int = 0
    """How many lines went there."""
    only_there: int = 0
    """How many new lines there were not taken in, because this is a copy."""
    issues_taken: int = 0
    """How many issues the lines that came are about."""
    issues_sent: int = 0
    confirmed: int = 0
    refused: int = 0
    made_twice: list[str] = field(default_factory=list)
    """The issues that came, and were made here too, under the same id: the two mix."""
    number: int = 0
    """The number of the newest commit on the branch; 0 if there is no such branch."""
    withheld: list[Diagnosis] = field(default_factory=list)
    """The lines that were not sent, since they look like secrets."""


def sync(
    hive: Services,
    *,
    fetch: bool = True,
    request: str | None = None,
    branch: Branch | None = None,
    at_first: bool = False,
) -> Synced:
    """Exchanges all lines with the remote, and confirms or ends the grants that wait for it.

    Without `fetch`, begins with what was fetched last. A `request` that another process has
    confirmed or ended meanwhile needs no exchange of its own. Raises `Untrusted` as
    `unasked.require` does, `Unreachable`, and `Busy` if another process, or others' pushes, take
    too long.
    """
    unasked.require(hive.layout, at_first=at_first)
    with Branch(hive) if branch is None else nullcontext(branch) as there:
        exchange = _Exchange if hive.engine.carrier is None else _Copy
        notes = Notes(hive, there.ref)
        asked = notes.round()

        def is_served() -> bool:
            return request is not None and not notes.is_pending(request)

        with _turn(hive, notes, is_served, there.left_s()) as is_needed:
            if not is_needed:
                return Synced(there.remote, there.name)
            round_ = exchange(hive, there, notes)
            done = round_.run(asked, fetch=fetch)
            done.withheld = round_.withheld()
    _export(hive)
    return done


def _export(hive: Services) -> None:
    """Gives the tracker's file what came, where git ignores it: elsewhere, landing commits it."""
    layout = hive.layout
    if layout.settings.sync_ledgers != "branch" or not hive.tracker().has_unfiled:
        return
    with suppress(QueenError):  # The ledger has all of it: the next exchange tries again.
        asked = ("check-ignore", "--", os.path.relpath(layout.issues_path, layout.root))
        if run.line(*asked, cwd=layout.root, repository={}) is not None:
            export_issues(hive)


def take_in(
    hive: Services,
    branch: Branch | None = None,
    *,
    older_than_s: float = 0,
    most_s: float = math.inf,
    at_first: bool = False,
) -> Synced:
    """Fetches, and appends the lines of the remote that are not here. Raises `Untrusted` as
    `unasked.require` does, `Unreachable`, also if it does not answer within `most_s`, and `Busy` if
    another process takes longer than that.

    Another process's fetch serves as well, if it began after this was called, or ended less than
    `older_than_s` ago.
    """
    unasked.require(hive.layout, at_first=at_first)
    with Branch(hive, most_s=most_s) if branch is None else nullcontext(branch) as there:
        if hive.engine.carrier is not None:  # None comes from a copy.
            return Synced(there.remote, there.name)
        notes = Notes(hive, there.ref)
        asked = notes.round()

        def is_served() -> bool:
            # A round that began after we asked has brought whatever was there then.
            return notes.fetched() > asked or unasked.fetched_s(hive.layout) < older_than_s

        with _turn(hive, notes, is_served, there.left_s()) as is_needed:
            if not is_needed:
                return Synced(there.remote, there.name)
            # With a branch, a grant follows, and what it notes is more.
            return _Exchange(hive, there, notes).fetch_only(keep=branch is None)


@contextmanager
def _turn(
    hive: Services, notes: Notes, is_served: Callable[[], bool], most_s: float
) -> Iterator[bool]:
    """Waits for the lock of the branch, or until another process has done what is asked for.

    Yields whether there is something left to do. Whoever was served does not wait for the lock:
    many who took it in turn, only to see that, would keep those waiting who push.
    """
    settings = hive.layout.settings
    timeout_s = min(most_s, 3 * settings.sync_timeout_s + settings.lock_timeout_s)
    until_s = time.monotonic() + timeout_s
    lock = LongLock(notes.lock_path, holder=hive.actor_or_none or "somebody", timeout_s=0)
    while not is_served():
        with ExitStack() as held:
            try:
                held.enter_context(lock)
            except Busy as error:
                if time.monotonic() < until_s:
                    time.sleep(random.uniform(*_PAUSES_S))  # noqa: S311 - jitter, not a secret
                    continue
                raise Busy(
                    f"timed out after {timeout_s:g} s: another process exchanges with the remote",
                    hint="try again; nothing was granted",
                    **error.details,
                ) from error
            yield not is_served()
            return
    yield False


class _Exchange:
    """One round, under the lock of the branch."""

    def __init__(self, hive: Services, branch: Branch, notes: Notes) -> None:
        self._hive = hive
        self._branch = branch
        self._carrier = BranchCarrier(branch)
        self._notes = notes
        self._memory = hive.engine.memory.identity()
        self._known = notes.known()
        self._is_first = self._known.sent is None
        self._there: dict[str, set[int]] = {}
        """The digests of the lines on the branch that `known.taken` does not have, by kind."""
        self._held: dict[str, dict[int, tuple[bytes, str]]] = {}
        """By kind and number, the lines that are not sent, and why."""
        self._issues_taken = set[object]()
        self._done = Synced(branch.remote, branch.name)
        # Under the lock, so that no two processes make one.
        notes.clone()

    def run(self, asked: int, *, fetch: bool) -> Synced:
        self._record_gained()
        if self._known.done > asked and not self._notes.pending() and not self._outgoing()[0]:
            # Another process exchanged everything in a round that began after we asked.
            self._done.number = self._branch.number(self._branch.head())
            return self._done
        number = self._notes.begin_round()
        unasked.begin_serving(self._hive.layout)
        for attempt in range(_ATTEMPTS):
            head = self._fetch() if fetch or attempt else self._carrier.fetched()
            # 1. First take in, then judge: a grant is confirmed only on top of what is there.
            self._take_in(head)
            token = self._carrier.number() + 1
            decisions = self._decided(token)
            self._done.refused += decisions.refused
            # 2. Read after the decisions: what they ended goes out with the rest.
            outgoing, ends = self._outgoing()
            known = replace(self._known, taken=head, ends=ends, held=self._numbers_held())
            if not outgoing and not decisions.lines:
                # Without a fetch, nobody else may rely on this round.
                done = number if fetch or attempt else self._known.done
                self._note(replace(known, sent=head, done=done))
                unasked.served(self._hive.layout)
                self._done.number = token - 1
                return self._done
            if why := self._why_code():
                raise self._branch.not_for_records(why)
            # 3. Refused unless `head` is still the newest commit there.
            commit = self._carrier.add(_joined(outgoing, decisions.lines), head)
            if commit is not None:
                self._finish(decisions, commit, replace(known, sent=commit, done=number))
                self._count(outgoing)
                self._done.number = token
                return self._done
            if not self._branch.left_s():
                break
            longest_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt)
            time.sleep(random.uniform(0, longest_s))  # noqa: S311 - jitter, not a secret
        often = f"others pushed to {self._branch.name} {attempt + 1} times meanwhile"
        raise Busy(often, hint="try again; nothing was granted")

    def withheld(self) -> list[Diagnosis]:
        """Returns the lines that were not sent."""
        layout = self._hive.layout
        found = [
            placed(layout, kind, held.values(), "queen sync")
            for kind, held in self._held.items()
            if held
        ]
        return [*chain.from_iterable(found)]

    def fetch_only(self, *, keep: bool) -> Synced:
        number = self._notes.begin_round()
        head = self._fetch()
        if head != self._known.taken:
            self._take_in(head)
            if keep:
                self._keep(head)
        self._notes.note_fetched(number)
        return self._done

    def _keep(self, head: str | None) -> None:
        """Notes what was taken in, if there is nothing to send: the next look begins here."""
        outgoing, ends = self._outgoing()
        if not outgoing:
            held = self._numbers_held()
            self._note(Known(head, head, ends, self._known.done, held))

    def _note(self, known: Known) -> None:
        """Notes what was read, unless it is a branch of code: that is to be refused later too."""
        if not self._why_code():
            self._notes.write(known)

    def _why_code(self) -> str:
        return why_code(self._hive.layout, self._carrier) if self._is_first else ""

    def _fetch(self) -> str | None:
        head = self._carrier.news()
        unasked.note_fetch(self._hive.layout)
        return head

    def _finish(self, decisions: Decisions, commit: str, known: Known) -> None:
        unasked.note_fetch(self._hive.layout)
        # The remote has the confirmations: from here on a crash loses nothing, since the next
        # round takes them in like others' lines.
        if decisions.lines:
            self._append(decisions.lines.items())
        for name in decisions.confirmed:
            self._notes.remove_pending(name)
        self._done.confirmed += len(decisions.confirmed)
        if self._passes(decisions.lines, known):
            known.taken = commit
        self._notes.write(known)
        unasked.served(self._hive.layout)

    def _count(self, sent: Mapping[str, Sequence[bytes]]) -> None:
        self._done.sent += sum(map(len, sent.values()))
        rows = sent.get(ISSUES, ())
        ids = {row["id"] for _, row in decode_records(rows, sum(map(len, rows)), [])}
        self._done.issues_sent += len(ids)

    def _passes(self, lines: Mapping[str, Sequence[bytes]], known: Known) -> bool:
        """Moves the marks behind lines that were just appended, if nothing else is there; returns
        whether it did: the next exchange then neither reads nor sends them again.
        """
        passed = {}
        for kind, own in lines.items():
            after = [*self._hive.state(kind).lines_after(known.ends.get(kind, 0))]
            if not set(own).issuperset(line for _, line in after):
                return False
            passed[kind] = after[-1][0] if after else known.ends.get(kind, 0)
        known.ends = {**known.ends, **passed}
        return True

    def _take_in(self, head: str | None) -> None:
        """Appends the lines of a commit that are not here."""
        known = self._known
        if known.sent is not None and (head is None or not self._branch.follows(known.sent, head)):
            # Somebody rewrote the branch: compare everything, and bring back what it lost.
            known = self._known = Known(None, None, {}, known.done)
        self._import(self._read(known.taken))

    def _read(self, taken: str | None) -> Iterator[tuple[str, list[bytes]]]:
        """Yields the lines that a commit of the branch does not have, piecemeal, each once."""
        self._there.clear()
        for kind, lines in self._carrier.after(taken):
            there, new = self._there.setdefault(kind, set()), list[bytes]()
            for line in lines:
                if (digest := _digest(line)) not in there:
                    there.add(digest)
                    new.append(line)
            yield kind, new

    def _decided(self, token: int) -> Decisions:
        """Confirms or ends the grants that wait for the remote."""
        return decide(self._hive, self._notes, token)

    def _import(self, pieces: Iterator[tuple[str, list[bytes]]]) -> None:
        """Takes in the lines that are not here. A long history is not held in memory as a whole."""
        lacking = self._lacking(pieces)
        first, size_bytes = list[tuple[str, list[bytes]]](), 0
        for kind, lines in lacking:
            first.append((kind, lines))
            size_bytes += sum(map(len, lines))
            if size_bytes > _SOME_BYTES:
                break
        if size_bytes > _SOME_BYTES or any(kind == ISSUES for kind, _ in first):
            # What other programs wrote to the tracker's file is compared with what is known here.
            # Compared with the new lines, it would look like a change of them.
            with self._hive.transaction() as tx:
                tx.keep_issues("changed")
        kinds = self._append(chain(first, lacking)) if first else set()
        self._done.issues_taken = len(self._issues_taken)
        if self._known.taken is None:
            # Of a long history that has just come, no host of git would take the one file.
            rotate_what_is_due(self._hive, sorted(kinds), whatever_size=True)

    def _lacking(
        self, pieces: Iterator[tuple[str, list[bytes]]]
    ) -> Iterator[tuple[str, list[bytes]]]:
        """Yields those of some lines that are usable and not here, and counts them."""
        states: dict[str, Recorded] = {}
        for kind, lines in pieces:
            if kind not in states:  # Asked anew, it would take in what was appended meanwhile.
                states[kind] = self._hive.state(kind)
            new = states[kind].lacking(lines)
            if kind == ISSUES and new:
                rows = [row for _, row in decode_records(new, sum(map(len, new)), [])]
                self._issues_taken.update(row["id"] for row in rows)
                self._done.made_twice += _made_twice(states[kind], rows)
            self._done.taken += len(new)
            if new:
                yield kind, new

    def _append(self, pieces: Iterable[tuple[str, Sequence[bytes]]]) -> set[str]:
        """Appends lines from elsewhere to the ledgers, as a merge would; the same transaction
        records them. Returns their kinds.
        """
        ledgers: dict[str, Appender] = {}
        with self._hive.transaction() as tx:
            try:
                for kind, new in pieces:
                    if (ledger := ledgers.get(kind)) is None:
                        ledger = ledgers[kind] = Appender(self._hive.layout.ledger_path(kind))
                        tx.touch(kind)
                        if not ledger.ends_with_newline():
                            ledger.append(b"\n")
                    ledger.append(b"".join([line + b"\n" for line in new]))
            except BaseException:
                for ledger in ledgers.values():
                    ledger.take_back()
                raise
            finally:
                for ledger in ledgers.values():
                    ledger.close()
        return {*ledgers}

    def _record_gained(self) -> None:
        """Records lines that another program or a merge wrote to the ledgers, and the rows of the
        tracker.
        """
        hive = self._hive
        gained = [kind for kind in hive.kinds() if hive.state(kind).is_unrecorded]
        tracker = hive.tracker()
        lacks_issues = not tracker.is_owned() and bool(tracker.theirs() or tracker.unkept())
        if gained or lacks_issues:
            with hive.transaction() as tx:
                for kind in gained:
                    tx.touch(kind)
                if lacks_issues:
                    tx.keep_issues("all")

    def _outgoing(self) -> tuple[dict[str, list[bytes]], dict[str, int]]:
        """Returns the lines that the branch lacks, by kind, and the numbers of the last ones."""
        if self._memory != (memory := self._hive.engine.memory.identity()):
            # Another one took its place, and numbers them otherwise: everything is compared.
            if self._known.sent is not None:
                deque(self._read(None), maxlen=0)
            self._memory, self._known = memory, Known(None, None, {}, self._known.done)
        outgoing, ends = dict[str, list[bytes]](), dict[str, int]()
        for kind in filter(is_kind, self._hive.kinds()):
            ends[kind] = self._known.ends.get(kind, 0)
            there, lines, state = self._there.get(kind, ()), list[bytes](), self._hive.state(kind)
            held, self._held[kind] = self._known.held.get(kind, ()), {}
            for number, line in chain(numbered(state, held), state.lines_after(ends[kind])):
                ends[kind] = max(number, ends[kind])
                if _digest(line) not in there:
                    if not self._hive.allow_secrets and (why := why_withheld(line)):
                        self._held[kind][number] = line, why
                    else:
                        lines.append(line)
            if lines:
                outgoing[kind] = lines
        return outgoing, ends

    def _numbers_held(self) -> dict[str, list[int]]:
        return {kind: [*lines] for kind, lines in self._held.items() if lines}


class _Copy(_Exchange):
    """A round of a hive in a database, which decided everything: the branch is a copy for people to
    review. Lines go there, and none comes from there.
    """

    def _decided(self, token: int) -> Decisions:
        return Decisions()

    def _import(self, pieces: Iterator[tuple[str, list[bytes]]]) -> None:
        self._done.only_there += sum(len(lines) for _, lines in self._lacking(pieces))
        self._done.taken, self._done.made_twice = 0, []

    def _record_gained(self) -> None:
        """Does nothing: the files have no lines of their own."""


def _joined(*lines: Mapping[str, Sequence[bytes]]) -> dict[str, list[bytes]]:
    """Returns the lines of several, by kind."""
    kinds = dict.fromkeys(kind for each in lines for kind in each)
    return {kind: [line for each in lines for line in each.get(kind, ())] for kind in kinds}


def _made_twice(state: Recorded, rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Returns the ids of the issues that rows which are not here make, and that were made here."""
    found = []
    for row in rows:
        issue_id = str(row["id"])
        if (made := _making(row)) and state.get(issue_id) is not None:
            ours = {_making(each) for each in state.history(issue_id)}
            if ours - {None, made}:
                found.append(issue_id)
    return found


def _digest(line: bytes) -> int:
    """Returns what stands for a line where all lines of a long history are compared."""
    return int.from_bytes(blake2b(line, digest_size=12).digest(), "big")


def _making(row: Mapping[str, object]) -> tuple[object, ...] | None:
    """Returns when and by whom a line makes an issue; None if it changes one."""
    if row.get("rev") != 1 or "created_at" not in row:
        return None
    return str(row["created_at"]), str(row.get("created_by"))
