"""What a droid is told of an issue that it begins with, as `queen next` prints it and `queen start`
hands it to a program: lines, of which a terminal shows some bold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.core.text import printable, quotation, shortened, some, suggested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from queenbee.core.beads import Issue
    from queenbee.core.records import Assignment, Message, Reservation
    from queenbee.services.hive import Services
    from queenbee.services.work import Begin, Member

_SHOWN = 8
_SAME = 3
"""So many droids that are in the same files fill two lines."""
_TITLE = 60
_LINE_CHARS = 400
"""The length at which a line is cut when it shares a screen with others."""
_LONG = 40
"""So many characters of a sentence are a text that issues share, and no turn of phrase."""
_AS_ABOVE = "(the rest as above)"


class Heading(str):
    """A line that stands out."""

    __slots__ = ()


def of_begin(hive: Services, begin: Begin, *, landed: bool = False) -> Iterator[str]:
    """Yields all that is needed to begin with an issue; after a landing, not how to land."""
    issue_id, issue = begin.assignment.issue_id, begin.issue
    title = f": {printable(issue.title)}" if issue is not None else ""
    yours = f"{'still ' if begin.again else ''}yours{sign(begin.assignment)}"
    yield Heading(f"{printable(issue_id)} is {yours}{title}")
    told: set[str] = set()
    if issue is not None and begin.again and begin.with_it:  # `queen next` has told it.
        yield printable(f"    its text: {suggested('queen show', issue_id)}")
    elif issue is not None:
        yield f"P{issue.priority} {printable(issue.issue_type)}"
        yield from of_issue(issue.fields, told)
    if begin.relief is not None:
        yield f"taken over from {printable(begin.relief.droid)}: {begin.assignment.reason}"
    else:
        yield from of_reason(begin.assignment)
    if begin.given_back is not None:
        yield of_given_back(begin.given_back)
    for each in begin.builds_on:
        yield f"builds on {printable(each.id)}: {printable(each.title)}{_how_done(each)}"
    for lease in begin.leases:
        yield f"reserved {printable(lease.pattern)}{sign(lease)}"
    yield from _of_members(begin)
    said = {(each.droid, path) for each in begin.others for path in _shared(begin, each)[:_SHOWN]}
    untold = [each for each in begin.touched_by if (each.droid, each.path) not in said]
    for touch in untold[:_SHOWN]:
        yield f"not merged yet: {touch.sentence()}"
    if len(untold) > _SHOWN:
        yield f"… {len(untold) - _SHOWN} more not merged yet: queen worktree collisions"
    yield from of_mail(hive, begin.mail, begin.unread)
    yield from _of_branch(hive, begin)
    yield from _of_end(begin, told, landed=landed)


def _of_end(begin: Begin, told: set[str], *, landed: bool) -> Iterator[str]:
    """Yields what is to be done with it, and what to type when it is done."""
    for each in begin.with_it:
        yield Heading(printable(f"{each.id} is yours with it: {each.title}"))
        yield from of_issue(each.fields, told)
    if begin.share:
        more = [f"{each.id} ({shortened(each.title, _TITLE)})" for each in begin.share]
        yield printable(f"held for you for two minutes: {'; '.join(more)}")
        yield "    to do them with it: queen next --take, or queen claim ISSUE…"
    if begin.lands:
        if not landed or begin.mine[1:]:
            yield when_done(begin.mine)
    else:
        done = suggested("queen complete", begin.assignment.issue_id, next=True)
        yield printable(f"when it is done: {done}")


def _of_branch(hive: Services, begin: Begin) -> Iterator[str]:
    """Yields how the branch stands to the main branch, and if nothing tests what lands."""
    if begin.elsewhere:
        yield printable(begin.elsewhere)
    if begin.in_conflict is not None:
        files = printable(some(begin.in_conflict, _SHOWN))
        open_ = f"in conflict: {files}; resolve, git add, then" if files else "a merge is open:"
        yield f"{open_} queen land --continue"
    if begin.caught_up:
        yield f"your branch is at the main branch now: commits that came in: {begin.caught_up}"
    if begin.behind:
        from queenbee.store.git_files.worktrees import target_branch  # noqa: PLC0415 - start-up

        target = target_branch(hive.layout) or "HEAD"
        lacks = f"{begin.behind} commit{'s' * (begin.behind > 1)} of {target}"
        way = suggested("git merge", target)
        yield printable(f"your branch lacks {lacks}; before you begin: {way}")
    if begin.needs_setup:
        yield "the set-up has not run for the lock files that are here: queen worktree setup"
    if begin.lacks_check:
        from queenbee.checks import finding  # noqa: PLC0415 - start-up

        setting = finding.check_setting(finding.found_checks(hive.layout.tree))
        yield f"no check is set yet; whoever knows it sets it for all: {setting}"


def _of_members(begin: Begin) -> Iterator[str]:
    same = []
    for member in begin.others[:_SHOWN]:
        silent = f", {member.silence()}" if member.silent_s is not None else ""
        yield f"{printable(member.droid)}: {printable(doing(member, most=1))}{silent}"
        if files := _shared(begin, member):
            shared = [f"{path}{_doing_in(begin, member, path)}" for path in files]
            same.append(f"{member.droid} in {some(shared, _SHOWN)}")
        changes = [each for each in begin.changing if each.droid == member.droid]
        if paths := [each.path for each in changes if each.path not in begin.files]:
            yield f"    works in {printable(', '.join(paths))}"
    if len(begin.others) > _SHOWN:
        yield f"… {len(begin.others) - _SHOWN} more droids: queen status --json"
    if same:
        yield printable(f"the same files as you: {some(same, _SAME, '; ')}")


def _shared(begin: Begin, member: Member) -> Sequence[str]:
    """Returns the files of the issue that an issue of another droid names too, as far as they are
    shown.
    """
    shown = member in begin.others[:_SHOWN]
    return begin.shared_files.get(member.droid, []) if shown else []


def _doing_in(begin: Begin, member: Member, path: str) -> str:
    """Returns what another droid has really changed in a file, in brackets."""
    found = [each for each in begin.touched_by if (each.droid, each.path) == (member.droid, path)]
    return f" ({'; '.join(each.what() for each in found)})" if found else ""


def of_review(assignment: Assignment) -> str:
    """Returns by which pull request the work on an issue is proposed, to print behind it; empty if
    by none.
    """
    review = assignment.review
    return printable(f", in review: {review}") if review is not None else ""


def doing(
    member: Member, *, most: int = _SHOWN, review: Callable[[Assignment], str] = of_review
) -> str:
    """Returns what a droid has: its issues, and what it has reserved."""
    has = [
        f"{each.issue_id}{sign(each)} {_title_of(member, each)}".strip()
        + review(each)
        + note_of(member, each)
        for each in member.assignments
    ]
    parts = [some(has, most, "; ")] if has else []
    if patterns := [each.pattern + sign(each) for each in member.leases]:
        parts.append(f"holds {some(patterns, _SHOWN)}")
    return "; ".join(parts)


def _title_of(member: Member, assignment: Assignment) -> str:
    return shortened(member.titles.get(assignment.issue_id, ""), _TITLE)


def note_of(member: Member, assignment: Assignment) -> str:
    """Returns what a droid does beside an issue, in its own words."""
    note = member.notes.get(assignment.issue_id)
    return f", and {quotation(note)}" if note else ""


def sign(grant: Assignment | Reservation) -> str:
    """Returns what everybody has to know of a grant that no remote has confirmed yet."""
    return ", unconfirmed" if grant.unconfirmed else ""


def _how_done(issue: Issue) -> str:
    if issue.completion is None:
        return " (closed)"
    reason = f": {printable(shortened(issue.completion.reason))}" if issue.completion.reason else ""
    return f" (by {printable(issue.completion.droid)}{reason})"


def of_given_back(assignment: Assignment) -> str:
    """Returns the whole reason for which an issue was given back."""
    by, whose = assignment.get("updated_by"), printable(assignment.droid)
    how = f"taken back from {whose} by {printable(str(by))}" if by else f"given back by {whose}"
    return f"{how}: {printable(str(assignment.reason))}"


def of_reason(assignment: Assignment) -> Iterator[str]:
    """Yields the whole reason of an assignment, and what is noted there of work that was kept."""
    if assignment.reason:
        yield f"noted of this assignment: {printable(assignment.reason)}"


def of_mail(hive: Services, mail: Sequence[Message], unread: int) -> Iterator[str]:
    """Yields messages, and that there are more."""
    yield from of_messages(hive, mail)
    if unread:
        yield f"{unread} more unread messages: queen msg read"


def of_messages(
    hive: Services, messages: Sequence[Message], most: int | None = None
) -> Iterator[str]:
    """Yields messages with their bodies, no more than `most` lines of each."""
    short = hive.short_ids("messages", [each.id for each in messages]) if messages else {}
    for message in messages:
        issue = f" [{printable(message.issue_id)}]" if message.issue_id else ""
        head = f"{printable(message.from_)} → {printable(message.to)}{issue}"
        subject = message.subject if most is None else shortened(message.subject, 100)
        # A subject that was taken from the body says nothing more.
        said = message.body.lstrip().startswith(message.subject.removesuffix("…"))
        yield Heading(head if said else f"{head}  {printable(subject)}")
        yield f"  {printable(short[message.id])}  {printable(message.created_at)}"
        yield from block(message.body, most=most)


def block(text: str, *, most: int | None = None) -> Iterator[str]:
    """Yields a text of several lines, indented; no more than `most` of them."""
    indent = "    "
    lines = printable(text, keep_newlines=True).split("\n")
    for line in lines[:most]:
        yield f"{indent}{line if most is None else shortened(line, _LINE_CHARS)}".rstrip()
    if most is not None and len(lines) > most:
        yield f"{indent}… {len(lines) - most} more lines"


def of_issue(fields: Mapping[str, object], told: set[str] | None = None) -> Iterator[str]:
    """Yields the description and the acceptance criteria of an issue. What several issues say alike
    is told once: `told` has the sentences that were.
    """
    for name, heading in (("description", ""), ("acceptance_criteria", "Acceptance criteria:\n")):
        text = fields.get(name)
        if isinstance(text, str) and text:
            yield from block(f"{heading}{text if told is None else _untold(text, told)}")


def _untold(text: str, told: set[str]) -> str:
    """Returns a text without the long sentences that were told, and remembers its own."""
    lines, said = [], set[str]()
    for line in text.split("\n"):
        sentences = line.replace(". ", ".\0").split("\0")
        new = [each for each in sentences if each not in told]
        said.update(each for each in sentences if len(each) >= _LONG)
        if new:
            lines.append(" ".join(new))
    shown = "\n".join(lines)
    if not said.isdisjoint(told):
        shown = f"{shown}\n{_AS_ABOVE}".lstrip("\n")
    told |= said
    return shown


def when_done(issues: Sequence[str]) -> str:
    """Returns what to type when these issues are done, which are all that the droid has."""
    when = "when all of it is done" if issues[1:] else "when it is done"
    which = landing_of(issues if issues[1:] else (), "-m 'WHAT YOU DID' --next")
    return printable(f"{when}: {which}")


def landing_of(issues: Sequence[str], options: str) -> str:
    """Returns the command that lands these issues, none of which is read as an option."""
    if any(each.startswith("-") for each in issues):
        return suggested(f"queen land {options}", *issues)
    return f"{suggested('queen land', *issues)} {options}"
