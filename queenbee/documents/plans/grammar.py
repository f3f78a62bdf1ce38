"""The grammar of a plan: how each thing is written, and how a line names one that is not read.

To read another form, extend its pattern in the first part; to tell another one (`unread`), extend
`NAMED` or `IN_SECTIONS`. `docs/plans.md`; after the document on sprint beads, "Plan
Back-Annotation".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from queenbee.documents.findings import Finding

# What is read.

PHASE_LEVEL = 2
SPRINT_LEVEL = 3
NUMBER = r"[0-9]+[a-z]*\.[0-9]+[a-z]*"
SPRINT = re.compile(rf"Sprint[ \t]+({NUMBER}):[ \t]*(\S.*)")
PHASE = re.compile(r"Phase[ \t]+([0-9]+[a-z]*)(?:[ \t]*:[ \t]*(.*))?")
FIELD = re.compile(
    r"[ \t]*\*\*[ \t]*([^*\n]{1,60}?)[ \t]*(?::[ \t]*\*\*|\*\*[ \t]*:)[ \t]*(.*)", re.S
)
AGENT = re.compile(
    r"(?:`([^\s`(),]+)`|([^\s`(),*/]+))"
    r"\s*(?:\(([^()]*)\)\s*)?(?:(?:(?<=[\s`)])-{1,2}|–|—|:)\s*(.*))?",
    re.S,
)
BEAD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_.]*[A-Za-z0-9_])+")
ANNOTATION = re.compile(r"[ \t]{0,3}<!--[ \t]*beads-ralph:[ \t]*([^\s<>]+?)[ \t]*-->[ \t]*")
FIELDS = {
    name: field
    for field, names in {
        "worktree": ("worktree",),
        "branch": ("branch",),
        "source_branch": ("source branch",),
        "team": ("team", "team name"),
        "priority": ("priority",),
        "agent_type": ("agent type",),
        "dev_model": ("dev model", "model"),
        "max_retry_attempts": ("max retry attempts", "max attempts"),
        "dev_agents": ("dev agents", "dev agent"),
        "qa_agents": ("qa agents", "qa agent"),
        "tasks": ("tasks", "task"),
        "acceptance": ("acceptance criteria",),
        "depends_on": ("depends on", "depends", "dependencies", "dependency", "requires",
                       "blocked by", "waits for"),
    }.items()
    for name in names
}  # fmt: skip
DONE = "done|completed?|finished|abgeschlossen|erledigt"
SKIPPED = "skipped|cancell?ed|dropped|abandoned|obsolete|removed"
STATE = f"{DONE}|{SKIPPED}"
OPEN = re.compile(
    r"[\W_]*(?:not|in[ -](?:progress|review)|open|pending|planned|to[ -]?do|wip|active|ready"
    r"|blocked|draft|next|upcoming|current|started|ongoing|waiting|new|tbd|queued|proposed|future|deferred)\b",
    re.IGNORECASE,
)
"""A status that leaves a sprint open; any other that is neither done nor skipped is told."""
CHECK = (
    "(?:[\u2705\u2611\u2714\u2713]\ufe0f?"
    "|:(?:white_check_mark|heavy_check_mark|ballot_box_with_check):)"
)

# What names something without being read.

FORMS = {
    "a sprint": "### Sprint 1.2: Title, at the start of a line, with an empty line above it",
    "a phase": "## Phase 1: Title, at the start of a line, with an empty line above it",
    "a field": "**Branch:** name, with an empty line above any line of dashes",
    "a dependency": "**Depends On:** 1.1, 1.2a; put other conditions in the text",
    "a status": "**Status:** Done, or Skipped",
    "an agent": "- `name` (sonnet) - what it should do",
    "a team": "**Team:** name",
    "a bead": "<!-- beads-ralph: bd-a1b2c3 --> on a line of its own, below the heading",
}
"""The kinds of things that a line can name, and how each is written."""

_ITS_NUMBER = (
    r"(?![^\W\d_])[\s#:*_.~\[(`-]{0,9}([0-9]+[A-Za-z]*(?:\.[0-9A-Za-z]+)*)"
    r"[*_~`\])]{0,6}(?:\([^()]{0,200}\))?\s{0,9}([:–—|-]|\Z)?"
)
NAMED = {
    "a sprint": re.compile(rf"(?<![^\W_])(sprints?|спринты?){_ITS_NUMBER}", re.IGNORECASE),
    "a phase": re.compile(rf"(?<![^\W_])(phase){_ITS_NUMBER}", re.IGNORECASE),
}
"""A sprint or a phase anywhere in a line: the word, the number, and what separates the title."""

BEFORE = re.compile(
    r"(?>:[a-z0-9_+-]+:|<[^<>]{0,200}>|[0-9]+[.)](?=\s)|\[x\]|phase\s{1,9}[0-9]+[a-z]*\b"
    r"|(?:wip|todo|doing|active|current|next|new|draft|planned|pending|blocked|done)\b|[\W_])*+",
    re.IGNORECASE,
)
"""What people put before the word: a list's number, an emoji, an anchor, a state."""
OTHER_WORD = re.compile(r"(?:[^\W\d_]+[ \t]+|S)?([0-9]+[a-z]*\.[0-9]+[a-z]*)[ \t]*(:|[-–—][ \t])")
"""A number where the heading of a sprint has its word: `Task 1.2: Title`, `S1.2: Title`."""

# Possessive, so that a line of a thousand stars costs no more than any other.
_LABEL = r"[\s>|*_`+-]*+(?:[0-9]{1,9}[.)]\s++)?(?:\[[ xX]\]\s++)?[*_`]*+"
_COLON = (
    r"(?:[ \t]*+\([^()\n]{0,30}\))?[*_`]*+"
    r"(?:[ \t]*+(?::|\|(?=[^|\n]*+\|?[ \t]*+\Z))|(?<=\*\*))"
)
"""A row of more than two cells names nothing: it is the head of a table."""
_STATUS = "(?:status|statut|estado|stato|статус|状态|状態)"
_REFERENCE = rf"(?:sprints?[ \t]+)?{NUMBER}"
IN_SECTIONS = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "a dependency": (
            rf"{_LABEL}(?:depends|depending|dependent|dependenc(?:y|ies)|requires?|needs|after"
            r"|prerequisites?|preconditions?|blocked|waits)(?:[ _-](?:on|upon|by|for))?\b"
            r"[^:|\n]{0,30}(?:[:|]|(?<=\w)(?:\*\*|__))[*_` \t|]*+"
            rf"(?P<word>sprints?[ \t]+)?[*_`]{{0,3}}(?P<number>{NUMBER})(?!\w)"
        ),
        "a status": (
            rf"{_LABEL}(?:{_STATUS}\b[*_`]*+[ \t]*+[:|].*?(?:{CHECK}|\b(?:{STATE})\b)"
            rf"|(?<=\*\*){_STATUS}[ \t]*+(?:[*_`]++[ \t]*+[:|]|:[*_`]++)(?!{OPEN.pattern})"
            r"[^\w\n]*+\w"
            rf"|(?-i:Status|STATUS):(?!{OPEN.pattern})[^\w\n]*+\w"
            rf"|(?:{DONE}){_COLON}"
            rf"|(?:{DONE})[*_]*+[ \t]++(?:on[ \t]++|in[ \t]++)?\(?[0-9]{{1,4}}[-./])"
            rf"|\((?-i:{STATE.upper()})\b[^()]*+\)\Z"
            rf"|[*_ \t(]*+(?:(?:{STATE})[*_ \t]*+(?:{CHECK})?|{CHECK}[*_ \t]*+[^\W_]+)"
            r"[*_ \t.!)]*+\Z"
        ),
        "an agent": rf"{_LABEL}(?:(?:dev|qa|lead|assigned)[ _-])?agents?{_COLON}",
        "a team": rf"{_LABEL}team(?:[ _-]name)?{_COLON}",
        "a field": (
            rf"[ \t]*+>[\s>]*+\*\*(?:{'|'.join(FIELDS)})\b[*: \t]*:"
            rf"|{_LABEL}(?-i:(?:Source )?Branch|Worktree){_COLON}[*_` \t]*+[^\s*_`]"
        ),
    }.items()
}
"""How a line under the heading of a sprint or a phase names something that is no field of it."""
RELATION = re.compile(
    rf"{_LABEL}[^\W\d_][^:|\n]{{0,40}}?{_COLON}[*_` \t|]*+(?P<first>{_REFERENCE})"
    rf"(?:[*_`]*+[ \t]*+(?:[,;&+/]|and|und|et|y|-|–)[ \t]*+[*_`]*+{_REFERENCE})*+[*_` \t|.)]*+\Z",
    re.IGNORECASE,
)
"""A label, in any words, whose value is sprints: "**Abhängig von:** 1.1"."""
SAID_DONE = re.compile(
    rf"[\[(][xX][\])]|{CHECK}|[|:(\[–—-][ \t]*+[*_`~]*+(?:{STATE})[*_`~]*+[ \t]*+(?:[|)\]]|\Z)",
    re.IGNORECASE,
)
"""How a line about a sprint says that it is done or skipped."""
IS_DONE = re.compile(
    rf"[*_`]*+\s*+(?:(?:is|status)\b[*_`:\s]*+)?[*_`]*+(?:{CHECK}|\b(?:{STATE})\b)",
    re.IGNORECASE,
)
"""What follows a number without a title; "[x] Phase 1 report written" says something else."""
WAITS = re.compile(
    r"depend(?:s|ent|ing|enc(?:y|ies))?(?: on)?|requires?|prerequisites?|needs|waits(?: for)?|after"
    "|blocked by",
    re.IGNORECASE,
)
SAID_WAITING = re.compile(
    rf"{_LABEL}(?:sprint[ \t]+)?(?P<number>{NUMBER})(?!\w)(?P<title>.*?)\b(?:{WAITS.pattern})\b",
    re.IGNORECASE,
)
"""How a line elsewhere begins that says what a sprint waits for."""
WAITS_FOR = re.compile(
    rf"\b(?:{WAITS.pattern})\b[^|\n]{{0,60}}?\bsprint[ \t]+({NUMBER})(?!\w)", re.IGNORECASE
)
"""How a sentence under a sprint says it."""
ARROW = re.compile(
    rf"(?<![\w.])({NUMBER})[)*_` \t]*+(?:→|⟶|►|[-=]{{1,2}}>)[(*_` \t]*+(?:sprint[ \t]+)?"
    rf"(?=({NUMBER})(?!\w|\.\w))",
    re.IGNORECASE,
)
MENTION = re.compile(rf"(?<![\w.])({NUMBER})(?!\w|\.\w)")
IN_TITLES = re.compile(rf"{CHECK}|\b(?:{STATE.upper()})\b")
"""A state in the title of a heading: "Get it done" is a title, "Login **DONE**" names one."""
BEAD_NAMED = re.compile(r"^[ \t>]*<!--\s*beads?[-_ ]?ralph\b", re.IGNORECASE | re.MULTILINE)

_SHOWN = 80
"""Characters of a line that a message repeats."""


@dataclass(frozen=True)
class Unread(Finding):
    """A line that names something and is not read as such; a strict check refuses each."""

    kind: str = ""


def unread(
    kind: str,
    text: str,
    line: int,
    severity: Literal["error", "warning"] = "error",
    path: str = "",
) -> Finding:
    """Returns the finding for a text that names something of this kind and is not read."""
    message = f"{text.strip()[:_SHOWN]!r} names {kind}, not read"
    return Unread(path, message, severity, f"write it as {FORMS[kind]}", line, kind=kind)
