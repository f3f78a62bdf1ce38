"""What a droid would leave behind if it stopped now: an issue, or somebody without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import is_plain, mentioned, quotation, some, suggested
from queenbee.services.telling.news import MOST_UNREAD, head

if TYPE_CHECKING:
    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment, Message, Reservation
    from queenbee.services.hive import Services

_SHOWN = 3
_TITLE_CHARS = 44
_ID_CHARS = 40
_HEADER = (
    "Before you stop: others count on you. If it is right to stop, such as to ask your user "
    "something, stop again."
)


def leaves(hive: Services, *, pass_as: bool = False) -> str:
    """Returns what the actor would leave behind, with what to do about it, or "" for nothing.

    `pass_as` says that the droid's commands have to name it.
    """
    as_ = hive.actor if pass_as else None
    claims = []
    for each in hive.assignments.find(droid=hive.actor):
        issue = hive.issues.get_or_none(each.issue_id)
        if each.review is not None and not each.review.asks_droid:
            continue  # It waits for others.
        if issue is None or not issue.done:
            claims.append(_claim(hive, each, issue, as_))
    mail = [f"- {head(hive, each)}" for each in mail_of(hive)]
    if mail:
        mail.append(f"To read your mail: {suggested('queen msg read', as_=as_)}")
    more = [f"- and {len(claims) - _SHOWN} more: queen status"] if len(claims) > _SHOWN else []
    held = [
        mentioned(each.pattern, _TITLE_CHARS) for each in still_reserved(hive) if each.exclusive
    ]
    if held:
        back = suggested("queen reserve release", all=True, as_=as_)
        more.append(f"- Nobody else may edit {some(held, _SHOWN)} because of you: {back}")
    return "\n".join([_HEADER, *claims[:_SHOWN], *more, *mail]) if claims or more or mail else ""


def still_reserved(hive: Services) -> list[Reservation]:
    """Returns what the actor has reserved by name and for no issue that it still has."""
    mine = {each.issue_id for each in hive.assignments.find(droid=hive.author)}
    live = hive.reservations.find(droid=hive.author)
    return [each for each in live if not each.session and each.issue_id not in mine]


def mail_of(hive: Services) -> list[Message]:
    """Returns the messages that `leaves` names."""
    return _unanswered(hive)[:_SHOWN]


def _claim(hive: Services, claim: Assignment, issue: Issue | None, as_: str | None) -> str:
    title = f" {quotation(issue.title, _TITLE_CHARS)}" if issue and issue.title else ""
    plain = is_plain(claim.issue_id) and len(claim.issue_id) <= _ID_CHARS
    word = claim.issue_id if plain else "ISSUE"
    done = suggested("queen complete", word, as_=as_)
    if claim.worktree is not None:
        done = suggested("queen land", as_=as_)
    back = suggested("queen release", word, reason="WHY", as_=as_)
    name = mentioned(claim.issue_id, _ID_CHARS)
    return f"- {name}{title} is yours. When it is done: {done}. To give it back: {back}"


def _unanswered(hive: Services) -> list[Message]:
    """Returns the messages to the actor that want an answer and have none, and the urgent ones
    that are not read, newest first.
    """
    mail = hive.messages.inbox(limit=MOST_UNREAD)
    urgent = [each for each in mail if each.importance in ("urgent", "high") and not each.read]
    asking = [each for each in mail if each.wants_answer]
    if asking:
        answered = {each.reply_to for each in hive.messages.sent(limit=MOST_UNREAD)}
        asking = [each for each in asking if each.id not in answered]
    wanted = {each.id for each in [*urgent, *asking]}
    return [each for each in mail if each.id in wanted and each.from_ != hive.actor]
