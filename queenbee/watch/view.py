"""The lists of the screen, computed from the facts and the time: no file, no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from queenbee.core.leases import as_of, is_live
from queenbee.core.names import EVERYONE, PERSON
from queenbee.core.readiness import Standing
from queenbee.core.records import Message, Reservation
from queenbee.core.text import some
from queenbee.core.timestamps import instant_ms
from queenbee.git.collisions.found import Collisions
from queenbee.services.waiting.landing_turn import Lander
from queenbee.services.work import Member
from queenbee.watch.cells import Cell, Column, Panel, Row, Target, age, bar, cell, left, marked
from queenbee.watch.facts import Facts

PANELS = ("droids", "issues", "leases", "mail", "waiting", "landings", "conflicts", "checks")
"""In the order of their number keys."""
_FILES = 8
"""Names in one cell: no terminal shows more."""
_LANDING = {"landing": "landing", "waiting": "waits", "resolving": "conflict"}
_NOT_DONE = ("active", "ready", "waits", "on_hold")

DROIDS = (
    Column("STATE"),
    Column("DROID"),
    Column("ISSUE"),
    Column("TITLE", wide=True),
    Column("FILES", wide=True, spare=2),
    Column("SINCE", spare=3),
    Column("SEEN", spare=1),
)
ISSUES = (
    Column("STATE"),
    Column("P", spare=1),
    Column("ISSUE"),
    Column("TITLE", wide=True),
    Column("WHO, OR WAITS FOR", spare=2),
)
LEASES = (
    Column("PATTERN", wide=True),
    Column("KIND", spare=2),
    Column("DROID"),
    Column("ISSUE", spare=1),
    Column("LEFT"),
)
MAIL = (
    Column(""),
    Column("AGE"),
    Column("FROM"),
    Column("TO"),
    Column("SUBJECT", wide=True),
    Column("ISSUE", spare=1),
)
WAITING = (
    Column("DROID"),
    Column("WANTS", wide=True),
    Column("SINCE"),
    Column("GIVES UP IN", spare=1),
)
LANDINGS = (Column("STATE"), Column("DROID"), Column("WHAT", wide=True), Column("SINCE"))
CONFLICTS = (Column(""), Column("ONE"), Column("OTHER"), Column("FILES", wide=True))
CHECKS = (Column("STATE"), Column("OF"), Column("SAYS", wide=True), Column("AGE", spare=1))


def headline(facts: Facts) -> str:
    """Returns the first line of the screen, without what is waiting for its reader."""
    counts = facts.status.counts
    parts = [f"{counts['done']} of {counts['total']} issues done"]
    parts += [f"{counts[state]} {state.replace('_', ' ')}" for state in _NOT_DONE if counts[state]]
    return ", ".join(parts)


def timeless_panels(facts: Facts) -> dict[str, Panel]:
    """Returns the lists that are the same as long as the facts are."""
    return {"issues": _issues(facts)}


def timely_panels(facts: Facts, now_ms: int) -> dict[str, Panel]:
    """Returns the lists that also say how long ago something was, or how much time is left."""
    found = (
        _droids(facts, now_ms),
        _leases(facts, now_ms),
        _mail(facts, now_ms),
        _waiting(facts, now_ms),
        _landings(facts, now_ms),
        _checks(facts, now_ms),
    )
    return {each.name: each for each in found}


def runs_out_within(facts: Facts, now_ms: int, within_ms: int) -> bool:
    """Returns whether a lease or somebody's patience ends so soon that each second counts."""
    ends = [lease.expires_ms for each in facts.members for lease in each.leases]
    ends += [each.until_ms for each in facts.status.queue]
    return any(now_ms <= end <= now_ms + within_ms for end in ends)


def _droids(facts: Facts, now_ms: int) -> Panel:
    members = facts.members
    rows = [row for each in members for row in _member(each, facts, now_ms)]
    shown = {each.droid for each in members}
    for waiter in facts.status.queue:
        if waiter.droid not in shown:
            shown.add(waiter.droid)
            about = cell(f"waits for {waiter.want.shown()}")
            rows.append(_without_issue(marked("waits"), waiter.droid, about, seen="now"))
    for started in facts.status.started:
        if started.name not in shown:
            shown.add(started.name)
            about, since = cell(started.sentence()), age(started.since_ms, now_ms)
            rows.append(_without_issue(marked("ready", "free"), started.name, about, seen=since))
    for droid, seen_ms in sorted(facts.seen.items()):
        if droid not in shown and now_ms - seen_ms < facts.quiet_after_ms:
            programs = facts.status.programs
            about = cell(" · ".join(["no issue, no lease", *filter(None, [programs.get(droid)])]))
            seen = age(seen_ms, now_ms)
            rows.append(_without_issue(marked("ready", "free"), droid, about, seen=seen))
    quiet = sum(row.cells[0].state == "quiet" for row in rows)
    note = f"{quiet} quiet" if quiet else ""
    return Panel("droids", "Droids", DROIDS, rows, "Nobody has an issue or a lease.", note)


def _member(member: Member, facts: Facts, now_ms: int) -> Iterator[Row]:
    """Yields a row for each issue of a droid, or one if it has none."""
    seen_ms = max(member.last_seen_ms, facts.seen.get(member.droid, 0))
    quiet = not seen_ms or now_ms - seen_ms >= facts.quiet_after_ms
    waits = any(each.droid == member.droid for each in facts.status.queue)
    program = facts.status.programs.get(member.droid)
    run = next((f" · {e.sentence()}" for e in facts.status.started if e.name == member.droid), "")
    run = run or (f" · {program}" if program else "")
    state = "waits" if waits else "quiet" if quiet else "active"
    since = age(seen_ms, now_ms) if member.silent_s is None else member.silence()
    seen = Cell("now" if waits else since, "quiet" if state == "quiet" else "")
    for number, each in enumerate(member.assignments):
        of_issue = [lease for lease in member.leases if lease.issue_id == each.issue_id]
        others = [lease for lease in member.leases if lease.issue_id != each.issue_id]
        proposed = f" · in review: {each.review}" if each.review is not None else ""
        cells = (
            marked(state),
            cell(member.droid),
            cell(each.issue_id),
            cell(member.titles.get(each.issue_id, "") + proposed + run),
            # Leases for no issue of its own are shown with the first.
            _files([*of_issue, *(others if number == 0 else ())]),
            Cell(age(each.created_ms, now_ms)),
            seen,
        )
        target = Target(issue_id=each.issue_id, droid=member.droid, assigned=True)
        yield Row(f"{member.droid} {each.issue_id}", cells, target)
    if not member.assignments:
        since_ms = min((lease.created_ms for lease in member.leases), default=0)
        first = (marked(state), cell(member.droid), Cell("-"), Cell("leases without an issue"))
        last = (_files(member.leases), Cell(age(since_ms, now_ms)), seen)
        yield Row(member.droid, (*first, *last), Target(droid=member.droid))


def _without_issue(state: Cell, droid: str, about: Cell, *, seen: str) -> Row:
    cells = (state, cell(droid), Cell("-"), about, Cell(""), Cell(""), Cell(seen))
    return Row(droid, cells, Target(droid=droid))


def _files(leases: Sequence[Reservation]) -> Cell:
    return cell(some([each.pattern for each in leases], _FILES))


def _issues(facts: Facts) -> Panel:
    by_state: dict[str, list[Standing]] = {state: [] for state in _NOT_DONE}
    for each in facts.status.open.values():
        if each.state in by_state:
            by_state[each.state].append(each)
    place = {issue.id: number for number, issue in enumerate(facts.status.ready)}
    by_state["ready"].sort(key=lambda each: place.get(each.issue.id, len(place)))
    rows = [_issue(each) for state in _NOT_DONE for each in by_state[state]]
    return Panel("issues", "Issues", ISSUES, rows, "No issue is left to do.")


def _issue(standing: Standing) -> Row:
    issue = standing.issue
    about = standing.holder or ", ".join(standing.waits_for) or standing.because or ""
    about += f", in review: {standing.review}" if standing.review is not None else ""
    cells = (
        marked(standing.state.replace("_", " ")),
        Cell(f"P{issue.priority}"),
        cell(issue.id),
        cell(issue.title),
        cell(about),
    )
    held = standing.state == "active"
    return Row(issue.id, cells, Target(issue.id, droid=standing.holder, assigned=held))


def _leases(facts: Facts, now_ms: int) -> Panel:
    held = [as_of(lease.fields, now_ms) for each in facts.members for lease in each.leases]
    live = [lease for lease in held if is_live(lease)]
    rows = [
        Row(
            lease.id,
            (
                cell(lease.pattern),
                marked("held", "exclusive") if lease.exclusive else marked("shared", "announced"),
                cell(lease.droid),
                cell(lease.issue_id or "-"),
                _left(lease, now_ms),
            ),
            Target(lease.issue_id, droid=lease.droid, lease_id=lease.id, pattern=lease.pattern),
        )
        for lease in sorted(live, key=lambda lease: (lease.expires_ms, lease.id))
    ]
    return Panel("leases", "Leases", LEASES, rows, "Nobody holds a file.")


def _left(lease: Reservation, now_ms: int) -> Cell:
    begun_ms = instant_ms(lease.get("updated_at")) or lease.created_ms
    text = left(lease.expires_ms, now_ms)
    return Cell(
        f"{bar(begun_ms, lease.expires_ms, now_ms)} {text}", "urgent" if text[-1] == "s" else ""
    )


def _mail(facts: Facts, now_ms: int) -> Panel:
    rows = [_message(each, facts.status.actor or PERSON, now_ms) for each in facts.mail]
    unread = facts.status.unread
    note = f"{unread} unread for you" if unread else ""
    return Panel("mail", "Mail", MAIL, rows, "Nobody has written anything.", note)


def _message(message: Message, actor: str, now_ms: int) -> Row:
    urgent = message.importance in ("high", "urgent")
    mine = message.to in (actor, EVERYONE) and message.from_ != actor
    unread = mine and not message.read
    cells = (
        marked("urgent", "") if urgent else marked("unread", "") if unread else Cell(""),
        Cell(age(message.created_ms, now_ms)),
        cell(message.from_),
        cell(message.to),
        cell(message.subject, "unread" if unread else ""),
        cell(message.issue_id or ""),
    )
    other = message.to if message.from_ == actor else message.from_
    target = Target(message.issue_id, droid=other, message_id=message.id)
    return Row(message.id, cells, target)


def _waiting(facts: Facts, now_ms: int) -> Panel:
    rows = [
        Row(
            each.name,
            (
                cell(each.droid),
                cell(each.want.shown()),
                Cell(age(each.since_ms, now_ms)),
                Cell(left(each.until_ms, now_ms)),
            ),
            Target(each.want.issue_id, droid=each.droid),
        )
        for each in facts.status.queue
    ]
    return Panel("waiting", "Waiting", WAITING, rows, "Nobody waits.")


def _landings(facts: Facts, now_ms: int) -> Panel:
    rows = [
        Row(
            f"{each.droid} {each.target}",
            (
                marked(_LANDING[each.state], each.state),
                cell(each.droid),
                cell(_of_landing(each)),
                Cell(age(instant_ms(each.since) or 0, now_ms)),
            ),
            Target(droid=each.droid),
        )
        for each in facts.status.landing
    ]
    for done in facts.status.done:
        title = facts.status.titles.get(done.issue_id, "")
        cells = (
            marked("done"),
            cell(done.droid),
            cell(f"{done.issue_id}  {title}"),
            Cell(age(instant_ms(done.updated_at) or 0, now_ms)),
        )
        rows.append(Row(done.id, cells, Target(done.issue_id, droid=done.droid)))
    return Panel("landings", "Landings and completions", LANDINGS, rows, "Nothing was done yet.")


def _of_landing(lander: Lander) -> str:
    took = f", last check {lander.check_s:.0f} s" if lander.check_s else ""
    return f"on {lander.target}{took}{f': {lander.doing}' if lander.doing else ''}"


def _checks(facts: Facts, now_ms: int) -> Panel:
    rows = []
    for gate in facts.gates:
        found = gate.to_dict()
        state = {"passed": "passed", "failed": "failed"}.get(str(found["status"]), "waits")
        blocking = found.get("blocking")
        said = str(blocking[0]) if isinstance(blocking, list) and blocking else ""
        word = str(found["status"]).replace("_", " ")
        of = f"gate {found['workflow_id'] or '?'}/{found['phase_id'] or '?'}"
        cells = (marked(state, word), cell(of), cell(said), Cell(""))
        rows.append(Row(f"gate {gate.path}", cells))
    rows += [_run(each, now_ms) for each in facts.runs]
    empty = "No gate, and no checks of a bead have run."
    return Panel("checks", "Checks and gates", CHECKS, rows, empty)


def _run(record: Mapping[str, object], now_ms: int) -> Row:
    verdict = str(record.get("verdict"))
    subject = str(record.get("subject_id"))
    results = record.get("results")
    found = results if isinstance(results, list) else []
    checks = [each for each in found if isinstance(each, dict)]
    failed = [str(each.get("name")) for each in checks if each.get("status") == "failed"]
    passed = sum(each.get("status") == "passed" for each in checks)
    said = f"{passed} of {len(checks)} passed"
    if failed:
        said += f"; failed: {', '.join(failed)}"
    state = verdict if verdict in ("passed", "failed") else "waits"
    bead = record.get("subject_kind") == "bead"
    cells = (
        marked(state, cell(verdict.replace("_", " ")).text[:20]),
        cell(subject if bead else f"gate {subject}"),
        cell(said),
        Cell(age(instant_ms(record.get("finished_at")) or 0, now_ms)),
    )
    return Row(str(record.get("id")), cells, Target(subject if bead else None))


def conflicts_panel(found: Collisions | None, problem: str) -> Panel:
    """Returns the conflicts foreseen between worktrees; `found` is None before the first look."""
    if found is None:
        return Panel("conflicts", "Conflicts", CONFLICTS, (), problem or "Looking …")
    rows = [
        Row(
            f"{pair.a.name} {pair.b.name}",
            (
                marked("conflict", ""),
                cell(pair.a.droid or pair.a.name),
                cell(pair.b.droid or pair.b.name),
                cell(some([each.path for each in pair.files], _FILES)),
            ),
            Target(droid=pair.a.droid or pair.b.droid),
        )
        for pair in found.pairs
    ]
    count = sum(side.commit is not None for side in found.sides)
    empty = f"No conflicts among {count} {'worktree' if count == 1 else 'worktrees'}."
    return Panel("conflicts", "Conflicts", CONFLICTS, rows, empty)
