"""What a droid says itself about a pull request that proposes its work: an answer in a thread, or
that it is withdrawn. Each only of what was pushed from here: a record may name any. ADR 0050.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.checks.consent import Consent
from queenbee.core.reviews import pull_requests as states
from queenbee.core.text import mentioned
from queenbee.errors import Conflict, InvalidInput, NotFound
from queenbee.git.hosts.client import refuse_early
from queenbee.git.proposing.feedback import closed_key
from queenbee.git.proposing.proposing import host_of, upstream_of
from queenbee.git.proposing.pushed import Pushed
from queenbee.git.upstream import pushing
from queenbee.store.host_note import HostNote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.core.reviews.pull_requests import PullRequest
    from queenbee.core.reviews.review import Review
    from queenbee.git.proposing.host import Host
    from queenbee.workflows.complete_hive import Hive


def reply(hive: Hive, thread: str, text: str) -> Review:
    """Answers in a thread of a pull request that proposes an issue of the actor; returns that.
    Raises `NotFound` where none of them has such an open thread, and as `Host` does.
    """
    hive.look({"body": text})
    reviews = hive.assignments.in_review(hive.own_actor)
    host, seen = _seen(hive, reviews)
    for issue_id, each in seen.items():
        if any(one.thread == thread for one in each.threads):
            host.reply(each, thread, text)
            return reviews[issue_id]
    raise NotFound(
        f"no pull request of {hive.actor} has an open thread {mentioned(thread)}",
        hint="queen msg inbox has the threads that you were told of",
    )


def withdraw(hive: Hive, issue_id: str) -> list[str]:
    """Closes the pull request that proposes an issue, which stays its droid's; returns all issues
    that it proposed. Raises `NotYours`, `InvalidInput` if there is none to close, and as `Host`.
    """
    hive.assignments.check_ending(issue_id)
    reviews = hive.assignments.in_review()
    review = reviews.get(issue_id)
    if review is None:
        raise InvalidInput(f"no pull request proposes {issue_id}", hint="queen status")
    same = {name: each for name, each in reviews.items() if each.number == review.number}
    host, found = _seen(hive, same)
    seen = found.get(issue_id)
    if seen is None:
        what = f"{review} was not opened by a landing in this clone"
        raise InvalidInput(what, hint=f"close it at its host: {review.url}")
    if seen.state == states.MERGED_THERE:
        raise Conflict(f"{review} is merged", hint="queen next completes it")
    if seen.state == states.OPEN:
        host.close(seen)
    for name, each in same.items():
        closed = each.copy()
        closed.asks, closed.told = states.CLOSED, (*each.told, closed_key(seen))
        hive.assignments.put_in_review(name, closed)
    note = HostNote(hive.layout)
    note.states[str(review.number)] = {"state": states.CLOSED, "at_ms": hive.now_ms()}
    note.note()
    return [*same]


def _seen(hive: Hive, reviews: Mapping[str, Review]) -> tuple[Host, dict[str, PullRequest]]:
    """Returns what the host says of those pull requests whose commits were pushed from here."""
    Consent.of(hive).require(pushing(hive.layout))
    refuse_early(HostNote(hive.layout), hive.now_ms(), "queen review")
    tree, host = upstream_of(hive.layout).tree, host_of(hive.layout)
    own = Pushed(tree).reviews(reviews)
    numbers = sorted({each.number for each in own.values()})
    answer = host.look(numbers).by_number if numbers else {}
    return host, {
        issue_id: answer[each.number]
        for issue_id, each in own.items()
        if each.number in answer and each.is_of(answer[each.number])
    }
