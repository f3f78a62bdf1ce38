"""What comes back of a pull request, as mail to the droid whose work it proposes: the words of
others, with their content from the first time, each once. ADR 0050.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.core.ids import MAX_MS, RANDOM_BYTES, ulid
from queenbee.core.kinds import KINDS
from queenbee.core.names import PERSON
from queenbee.core.reviews import pull_requests as states
from queenbee.core.reviews import review as reviews
from queenbee.core.text import is_plain, mentioned, printable, suggested
from queenbee.services.messages import BY_HIVE, KIND, stage
from queenbee.services.writing.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.core.records import Assignment
    from queenbee.core.reviews.pull_requests import PullRequest, Remark
    from queenbee.core.reviews.review import Review
    from queenbee.git.proposing.host import Host
    from queenbee.workflows.complete_hive import Hive

_LOG_LINES = 40
_MOST_CHARS = 20_000
_REMARK_CHARS = 4_000
_MOST_CLOSED = 2
_CLOSED = "closed:"
_WAYS = {
    states.CONFLICT: "queen land merges the target, and leaves you what conflicts",
    states.FAILING: "mend it, then queen land -m TEXT",
    states.CHANGES: "answer it with a change, then queen land -m TEXT; or in words, in its thread",
    states.BEHIND: "queen land merges the target, checks and pushes",
    states.FOREIGN: "merge what was pushed there, then queen land",
    states.PARTLY: "queen land proposes the rest",
    states.CLOSED: "queen land proposes it anew; if it is not wanted, queen release it",
}


@dataclass(frozen=True, slots=True)
class Feedback:
    """What is new about a pull request that its droid has to do something about."""

    review: Review
    """The pull request, as the record is to say once this was told."""
    state: str
    said: str
    keys: Sequence[str]
    """What is told, each thing of the host by its key."""

    @classmethod
    def of(
        cls, hive: Hive, host: Host, review: Review, seen: PullRequest, state: str
    ) -> Feedback | None:
        """Returns what was not told before, or None."""
        parts = [part for part in _parts(host, seen, state) if part[0] not in review.told]
        if not parts:
            return None
        keys = [key for key, _ in parts]
        review.told = (*review.told, *keys)
        review.rounds += 1
        review.asks = state
        closed = sum(each.startswith(_CLOSED) for each in review.told)
        if review.rounds > hive.layout.settings.land_rounds or closed >= _MOST_CLOSED:
            review.asks = reviews.PERSON
        text = "\n\n".join(text for _, text in parts)[:_MOST_CHARS]
        return cls(review, state, redacted(text), keys)

    def tell(self, hive: Hive, issues: Sequence[str]) -> None:
        """Sends it to the droids that have these issues, or to the person, and notes that in the
        same step: of several processes that ask the host, one tells.
        """
        what = f"{self.review} {states.STATES[self.state]}"
        where = mentioned(self.review.url, 300)
        for issue_id in issues:
            held = hive.assignments.active(issue_id)
            if held is None:
                continue
            is_for_person = self.review.asks == reviews.PERSON
            again = f"after {self.review.rounds - 1} rounds: "
            fields = {
                "subject": f"{again if is_for_person else ''}{issue_id}: {what}",
                "body": f"{what} ({where}). What follows are others' words.\n\n"
                f"{self.said}\n\nTo do: {_WAYS[self.state]}",
                "issue_id": issue_id,
                "importance": "urgent",
                BY_HIVE: True,
            }
            to = PERSON if is_for_person else held.droid
            fields["id"] = self._message_id(held, to)
            send = partial(stage, sender=PERSON, recipients=[to], fields=fields)
            hive.assignments.put_in_review(issue_id, self.review, also=send)

    def _message_id(self, held: Assignment, to: str) -> str:
        """Returns the id of a message: in all clones that tell the same, it is one."""
        told = repr((held.id, to, self.review.number, self.keys)).encode(errors="replace")
        began_ms = min(max(held.created_ms, 0), MAX_MS)
        return f"{KINDS[KIND].prefix}-{ulid(began_ms, sha256(told).digest()[:RANDOM_BYTES])}"


def _parts(host: Host, seen: PullRequest, state: str) -> Iterator[tuple[str, str]]:
    """Yields what there is to say, each with the key by which it is told once."""
    if state == states.FAILING:
        for each in seen.checks or ():
            if each.is_required and each.state == states.FAILED:
                log = host.log(each).splitlines()[-_LOG_LINES:]
                end = "\n".join(f"| {printable(line)}" for line in log) or "(it has no log)"
                name = mentioned(each.name, 200)
                yield (
                    f"check:{seen.head}:{each.name}",
                    f"{name} failed: {mentioned(each.url, 300)}\n{end}",
                )
    elif state == states.CHANGES:
        asked = [one for one in seen.reviews if one.state == "CHANGES_REQUESTED"]
        for remark in (*asked, *seen.threads):
            if remark.counts:
                yield remark.id, _remark(remark)
    elif state == states.CLOSED:
        said = [_remark(each) for each in seen.comments if each.counts]
        yield closed_key(seen), "\n\n".join(said) or "No reason was given."
    else:
        yield f"{state}:{seen.head}", f"It {states.STATES[state]}."


def closed_key(seen: PullRequest) -> str:
    """Returns the key by which its droid is told once that it was closed."""
    return f"{_CLOSED}{seen.number}:{seen.head}"


def _remark(said: Remark) -> str:
    where = f" at {mentioned(said.path, 200)}:{said.line}" if said.path else ""
    body = "\n".join(f"> {printable(line)}" for line in said.body[:_REMARK_CHARS].splitlines())
    is_word = said.thread and is_plain(said.thread)
    way = suggested("queen review reply", said.thread, "TEXT") if is_word else ""
    return f"{mentioned(said.by, 80)}{where}:\n{body}" + (f"\nto answer: {way}" if way else "")
