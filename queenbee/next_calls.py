"""The calls of a `Hive` that do what commands do: for programs that read the hint of an error."""

from __future__ import annotations

import re

CALLS = {
    "init": "init",
    "next": "next",
    "complete": "complete",
    "land": "land",
    "claim": "assignments.claim",
    "release": "assignments.release",
    "note": "assignments.note",
    "answer": "messages.answer",
    "status": "status",
    "show": "show",
    "log": "log",
    "undo": "undo",
    "start": "team",
    "issues": "issues.find",
    "issue list": "issues.find",
    "issue ready": "issues.ready",
    "issue wait": "wait",
    "issue new": "issues.new",
    "issue edit": "issues.edit",
    "issue close": "issues.close",
    "issue reopen": "issues.reopen",
    "issue delete": "issues.delete",
    "issue dep": "issues.depend",
    "issue import": "issues.import_",
    "issue pull": "issues.pull",
    "issue push": "issues.push",
    "issue assign": "assignments.assign",
    "issue assignments": "assignments.find",
    "msg send": "messages.send",
    "msg reply": "messages.reply",
    "msg inbox": "messages.inbox",
    "msg read": "messages.read_unread",
    "msg ack": "messages.acknowledge",
    "msg thread": "messages.thread",
    "msg search": "messages.search",
    "msg nudge": "nudges.nudge",
    "reserve": "reservations.reserve",
    "reserve list": "reservations.find",
    "reserve release": "reservations.release",
    "reserve renew": "reservations.renew",
    "reserve check": "reservations.check",
    "reserve overlap": "reservations.overlap",
    "reserve conflicts": "reservations.conflicts",
    "review reply": "answer_review",
    "review withdraw": "withdraw",
    "worktree add": "worktrees.add",
    "worktree list": "worktrees.list",
    "worktree setup": "worktrees.setup",
    "worktree prune": "worktrees.prune",
    "worktree remove": "worktrees.remove",
    "plan check": "plans.check",
    "plan annotate": "plans.annotate",
    "plan import": "plans.import_",
    "plan graph": "plans.graph",
    "plan convert": "plans.convert",
    "hive history": "history",
    "hive rotate": "rotate",
}
"""The call of each command that has one."""
_COMMAND = re.compile(
    r"'(?:[^']|'\\'')*'|“[^”]*”"  # Text of others, and no command.
    rf"|\bqueen ({'|'.join(sorted(CALLS, key=len, reverse=True))})(?=[\s;:,.]|$)"
)


def calls_in(hint: str) -> tuple[str, ...]:
    """Returns the calls that do what the commands of a hint do, each once, in their order."""
    found = (CALLS[each[1]] for each in _COMMAND.finditer(hint) if each[1])
    return tuple(dict.fromkeys(found))
