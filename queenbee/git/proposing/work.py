"""Work on issues that lands by a pull request: its branch, and what the records say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.reviews.review import PERSON, Review, proposed_branch
from queenbee.errors import QueenError
from queenbee.git.proposing.proposing import (
    Proposing,
    body_of,
    host_of,
    subject_of,
    upstream_of,
)
from queenbee.git.proposing.pushed import Pushed
from queenbee.git.proposing.standing import keep_proposed
from queenbee.git.proposing.template import template_at
from queenbee.services.writing.secrets import redacted
from queenbee.store.host_note import HostNote
from queenbee.workflows.beads import name_pull_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.workflows.complete_hive import Hive


def proposing_of(hive: Hive, branch: str, issues: Sequence[str | None]) -> Proposing:
    """Returns what proposes the work of a branch on these issues, also once more."""
    reviews = hive.assignments.in_review()
    mine = Pushed(hive.layout.tree).reviews({x: reviews[x] for x in issues if x in reviews})
    review = next(iter(mine.values()), None)
    first = next(iter(issues), None)
    name = review.branch if review is not None else proposed_branch(branch, first)
    taken = {each.branch for about, each in reviews.items() if about not in issues}
    while name in taken:
        name += "-2"
    return Proposing(upstream_of(hive.layout), name, issues, review)


def propose(  # noqa: PLR0913 - by name
    hive: Hive,
    branch: str,
    move: tuple[str, str],
    issues: Sequence[str | None],
    *,
    title: str | None,
    reason: str | None,
    tell: Callable[[str], None],
) -> Review:
    """Has a pull request for what was pushed, and says so in the records; returns it. `move` is the
    commit, and the branch on which it is to land.
    """
    (commit, target), layout, shown = move, hive.layout, str if hive.allow_secrets else redacted
    proposing = proposing_of(hive, branch, issues)
    keep_proposed(layout, proposing.branch, commit)
    known, host = [each for each in issues if each is not None], host_of(layout)
    made = proposing.open(
        host,
        commit,
        title=shown(title or subject_of(layout.tree, commit)),
        body=shown(body_of(known, reason, template_at(layout.tree, commit))),
        is_draft=layout.settings.land_draft,
    )
    if proposing.review is None or proposing.review.number != made.number:
        asked = layout.settings.land_reviewers, layout.settings.land_labels
        for wrong in host.ask_review(made.number, *asked):
            tell(wrong)
    texts = {"url": made.url, "branch": proposing.branch, "target": target}
    review = Review(made.number, head=commit, fork=made.fork, **texts)
    if (before := proposing.review) is not None:  # Also of one that was closed.
        review.rounds, review.told = before.rounds, before.told
        if before.asks and (before.number, before.head) == (made.number, commit):
            review.asks = PERSON  # Its droid was told, and leaves it as it is.
    for each in known:
        hive.assignments.put_in_review(each, review)
        try:
            name_pull_request(hive, each, review.url, review.number)
        except QueenError as error:  # It is proposed all the same.
            tell(f"the row of {each} does not name {review}: {error.message}")
    if proposing.review is None or proposing.review.head != commit:
        HostNote(layout).forget(made.number)
    return review
