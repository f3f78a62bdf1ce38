"""The fields under a sprint's heading: worktree, branches, agents, acceptance criteria.

They are read beside the text, which stays as it is. `docs/plans.md`, section "Fields".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from queenbee.core.text import some
from queenbee.documents.agents import MODELS
from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block, strip_box
from queenbee.documents.plans.marks import Mark, read_status
from queenbee.documents.plans.sections import Unread
from queenbee.documents.sprints.numbers import is_before
from queenbee.documents.sprints.sprint_bead import metadata_findings

METADATA = ("agent_type", "dev_model", "max_retry_attempts")
"""Fields that go into the bead's metadata as they are."""
FIELDS: dict[str, str] = {
    name: field
    for field, names in {
        "worktree": ("worktree",),
        "branch": ("branch",),
        "source_branch": ("source branch",),
        "team": ("team", "team name"),
        "priority": ("priority",),
        "status": ("status",),
        "agent_type": ("agent type",),
        "dev_model": ("dev model",),
        "max_retry_attempts": ("max retry attempts", "max attempts"),
        "dev_agents": ("dev agents", "dev agent"),
        "qa_agents": ("qa agents", "qa agent"),
        "prompts": ("prompts", "prompt", "dev prompts", "dev prompt"),
        "acceptance": ("acceptance criteria",),
        "depends_on": ("depends on", "depends", "dependencies", "dependency", "requires",
                       "blocked by", "depends on sprint", "waits for", "prerequisites"),
    }.items()
    for name in names
}  # fmt: skip
_PLAIN = frozenset({"depends_on", "status"})
"""These are read without bold, too: they order the work, or say that it is done."""
_WORDS = frozenset({"worktree", "branch", "source_branch", "team", "priority", "status", *METADATA})
_AGENTS = frozenset({"dev_agents", "qa_agents"})
_PRIORITIES = {"critical": 0, "high": 1, "medium": 2, "normal": 2, "low": 3, "backlog": 4}

_FIELD = re.compile(
    r"[ \t]*\*\*[ \t]*+([^*\n]{1,60}?)[ \t]*(?::[ \t]*\*\*|\*\*[ \t]*:)[ \t]*(.*)", re.S
)
_PLAIN_FIELD = re.compile(
    r"[ \t]*[*_]{0,2}([A-Za-z][A-Za-z -]{3,20})(?:[*_]{0,2}:[*_]{0,2}|\*\*(?=[ \t]))[ \t]*(\S.*)",
    re.S,
)
_ROW = re.compile(r"[ \t]*\|[ \t*]*+([^|*:\n]{1,60}?)[ \t*:]*\|([^|\n]*)\|?[ \t]*")
_AGENT = re.compile(
    r"(?:`([^\s`(),]+)`|([^\s`(),*/]+))"
    r"\s*(?:\(([^()]*)\)\s*)?(?:(?:(?<=[\s`)])-{1,2}|–|—|:)\s*(.*))?",
    re.S,
)
_NUMBER = r"[0-9]+[a-z]*\.[0-9]+[a-z]*"
_BEAD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_.]*[A-Za-z0-9_])+")
_LINE = re.compile(r"([ \t>]*)((?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?(.*)")

_NOTHING = re.compile(r"(?:none|nothing|n/a|no|[-–—])(?:\W.*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rf"(?<![\w.])(?:{_NUMBER})(?![\w.])")
_NAMED = r"(?:[^\W\d_]+[ \t#]+)?[0-9]+[a-z]*(?:\.[0-9]+[a-z]*)?"
_TITLED = re.compile(rf"({_NAMED})[ \t]*(?::|[ \t][–—-][ \t])[ \t]*(\S.*)", re.I)
_SEPARATOR = re.compile(r"[,;\n&+]|\band\b", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{0,500}\)")
_MAX_LENGTH = 2_000
"""Characters of one value: no list of dependencies is longer."""

Resolve = Callable[[str], tuple[str, ...] | None]
"""Returns the sprints that a name such as `Sprint 2` or `Phase 1` means, None for no name."""


@dataclass(frozen=True)
class AgentRef:
    """An agent that a plan names, with its model and prompt if the plan gives them."""

    name: str
    model: str | None = None
    prompt: str | None = None


@dataclass
class Fields:
    """The fields under a sprint's heading.

    `where` and `line` are the sprint's own. Reading a field adds what is wrong with it to
    `findings`. `others` are the lines and values of bold labels that are no fields.
    """

    where: str
    line: int
    values: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    others: list[tuple[int, str, str]] = field(default_factory=list)

    def word(self, key: str) -> str | None:
        """Returns the value of a field of one word."""
        values = self.values.get(key, [])
        if len({*values}) > 1:
            self._tell(key, f"is given {len(values)} times; only the first is used")
        return (plain_value(values[0]) or None) if values else None

    def status(self) -> tuple[Mark | None, int]:
        """Returns what a `Status` field says, and its line."""
        values = self.values.get("status", [])
        return (read_status(values[0]) if values else None), self._at("status")[1]

    def priority(self) -> int | None:
        """Returns a priority written as `1`, `P1` or `High`."""
        text = self.word("priority")
        match = re.match(r"[Pp]?([0-4])(?!\w)", text or "")
        word = next(iter(re.findall(r"[^\W\d_]+", text or "")), "").lower()
        if match is None and text is not None and word not in _PRIORITIES:
            message = f"{text[:80]!r} is not a priority, from 0 (critical) to 4: 2 is used"
            self._tell("priority", message, "warning")
        return int(match[1]) if match else _PRIORITIES.get(word)

    def metadata(self) -> dict[str, object]:
        """Returns the fields of the bead's metadata, as far as its schema allows them."""
        found: dict[str, object] = {}
        for name in METADATA:
            text = self.word(name)
            if text is None:
                continue
            where, line = self._at(name)
            value = int(text) if re.fullmatch("[0-9]{1,9}", text) else text.lower()
            faults = [
                replace(each, path=where, line=line) for each in metadata_findings(name, value)
            ]
            self.findings += faults
            if not faults:
                found[name] = value
        return found

    def agents(self, key: str) -> tuple[AgentRef, ...]:
        """Returns the agents in `` `name` (model) - prompt`` items."""
        agents: list[AgentRef] = []
        for value in self.values.get(key, []):
            # One line may hold several, separated by commas; a prompt may have commas of its own.
            for item in re.split(r",\s+(?=`)", value) if value.startswith("`") else [value]:
                match = _AGENT.fullmatch(item.strip())
                if match is None:
                    hint = "write it as - `name` (sonnet) - what it should do"
                    self._tell(key, f"{item.strip()[:80]!r} names no agent", "error", hint)
                    continue
                quoted, plain, remark, prompt = match.groups()
                model = (remark or "").strip().lower() or None
                if model is not None and model not in MODELS:
                    models = ", ".join(MODELS)
                    self._tell(key, f"{remark!r} is not a model; the models are {models}")
                    model = None
                agents.append(AgentRef(quoted or plain, model, (prompt or "").strip() or None))
        return tuple(agents)

    def needs(self, resolve: Resolve, number: str, known: Collection[str]) -> tuple[str, ...]:
        """Returns the sprint numbers and bead ids that the sprint `number` says it depends on.

        `known` are the sprints of the plan.

        What is not plain is an error if it looks like a number, or names a sprint that does not
        come before anyway: a dependency that is guessed wrong lets work begin too early. Other
        conditions are for who reads the text, and are told.
        """
        needs: dict[str, None] = {}
        unread: dict[str, bool] = {}
        for value in self.values.get("depends_on", []):
            for part in name_parts(value[:_MAX_LENGTH]):
                found = resolve(part)
                if found is None and _BEAD.fullmatch(part):
                    found = (part,)
                needs |= dict.fromkeys(found or ())
                if found is None:
                    named = [*_MENTION.findall(part), *re.findall(_NAMED, part, re.I)[:9]]
                    sprints = [one for name in named for one in resolve(name) or ()]
                    later = [
                        one for one in sprints if one not in known or not is_before(one, number)
                    ]
                    like = not sprints and re.match(r"[0-9]+[a-z]*[.-][0-9]", part)
                    unread[part] = bool(later or like)
        for orders in (True, False):
            parts = [part for part, each in unread.items() if each is orders]
            if parts:
                self._not_plain(parts, orders=orders)
        return tuple(needs)

    def _not_plain(self, parts: Sequence[str], *, orders: bool) -> None:
        hint = "write it as **Depends On:** 1.1, 1.2a; put other conditions in the text"
        where, line = self._at("depends_on")
        said = some([repr(part[:80]) for part in parts], 5)
        message = f"nothing waits for {said}, which is no sprint or bead"
        self.findings.append(Unread(where, message, "error" if orders else "warning", hint, line))

    def _tell(
        self,
        key: str,
        message: str,
        severity: Literal["error", "warning"] = "error",
        hint: str | None = None,
    ) -> None:
        where, line = self._at(key)
        self.findings.append(Finding(where, message, severity, hint, line))

    def _at(self, key: str) -> tuple[str, int]:
        """Returns the path of a field in a finding, and its line."""
        return f"{self.where}.{key}", self.lines.get(key, self.line)


def gather_fields(blocks: Iterable[Block], where: str, line: int) -> Fields:
    """Returns the fields of a section: of its lines, items, rows of two cells and quotations."""
    reading = _Reading(Fields(where, line))
    for block in blocks:
        if block.kind == "heading" and not block.nested:
            label, _, value = block.text.partition(":")
            key = FIELDS.get(_label(label))
            reading.open(key, label, value, block.first + 1) if key else reading.close()
        elif block.kind in ("paragraph", "list", "other"):
            reading.take(block)
        elif block.kind == "rule":
            reading.close()
    return reading.fields


def field_in(line: str) -> tuple[str | None, str, str] | None:
    """Returns the field that a line begins, or None as its key, with its label and value.

    A row of a table with two cells is one, too.
    """
    row = _ROW.fullmatch(line)
    bold = _FIELD.fullmatch(f"**{row[1]}:** {row[2]}" if row else line)
    if bold:
        return FIELDS.get(_label(bold[1])), bold[1], bold[2]
    plain = _PLAIN_FIELD.fullmatch(line)
    key = FIELDS.get(_label(plain[1])) if plain else None
    return (key, plain[1], plain[2]) if plain and key in _PLAIN else None


def _label(text: str) -> str:
    """Returns a label without a remark in brackets: `depends on` of "Depends-On (soft)"."""
    return text.partition("(")[0].replace("-", " ").strip().lower()


def plain_value(text: str) -> str:
    """Returns the value of a field of one word: `` `develop` (after 1.1 merged)`` is `develop`."""
    text = text.strip()
    if text.startswith("`") and "`" in text[1:]:
        return text[1:].partition("`")[0].strip()
    before, bracket, _ = text.rpartition("(")
    if bracket and text.endswith(")") and before != before.rstrip():
        text = before
    return text.strip("*_` \t")


def name_parts(value: str) -> Iterator[str]:
    """Yields the names in a value, without the marks around them."""
    text = _LINK.sub(r"\1", value).strip()
    if not text or (_NOTHING.fullmatch(text.strip("*_`. ")) and not _MENTION.search(text)):
        return
    titled = _TITLED.fullmatch(text.strip("*_` "))
    # Commas in a title separate nothing, unless another sprint is behind one.
    if titled is not None and not re.search(_NAMED, titled[2], re.I):
        yield titled[1]
        return
    # A remark in brackets is none of the names: "1.1 (merged, and tested)".
    for part in _SEPARATOR.split(re.sub(r"[ \t]\((?:[^()]|\([^()]*\))*\)", "", text)):
        name = part.strip("*_` \t.\u2705\u2714\ufe0f")
        inner = _TITLED.fullmatch(name)
        if name:
            yield inner[1] if inner else name


class _Reading:
    """Reads one line after another, and keeps the field that the next line may belong to."""

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._key: str | None = None
        self._level: int | None = None
        """How far the items of the open field are indented, None before the first."""
        self._inline = False
        """Whether the open field has a value on its own line."""

    def take(self, block: Block) -> None:
        """Reads the lines of a paragraph, a list or a quotation.

        Markdown counts a line right below an item as part of it; its author wrote a field.
        """
        begins, in_code = True, False
        for n, row in enumerate(block.text.split("\n"), block.first + 1):
            found = _LINE.match(row)
            assert found is not None
            indent, marker, text = len(found[1].expandtabs(4)), found[2] or "", found[3].strip()
            in_code ^= text.startswith(("```", "~~~"))
            named = None if in_code else field_in(text)
            if named and (named[0] or not (marker and self._takes(indent, text))):
                self.open(*named, n)
            elif text and self._key is not None:
                self._add(marker, text, indent, begins=begins)
            begins = not text

    def open(self, key: str | None, label: str, value: str, line: int) -> None:
        """Begins a field; with None as its key, what is a label and no field."""
        self._key, self._level, self._inline = key, None, bool(value.strip())
        if key is None:
            self.fields.others.append((line, label, value))
            return
        self.fields.lines.setdefault(key, line)
        self.fields.values.setdefault(key, []).extend([value.strip()] if self._inline else [])

    def close(self) -> None:
        """Ends the open field."""
        self._key = None

    def _takes(self, indent: int, text: str) -> bool:
        """Returns whether an item belongs to the open field and is not a task below its value."""
        if self._key is None:
            return False
        if self._inline and self._key in _AGENTS:
            # More agents may follow, in backticks; "Setup" is a task.
            return text.startswith("`")
        if self._level is not None:
            return indent >= self._level
        return not self._inline or self._key not in (*_WORDS, "depends_on")

    def _add(self, marker: str, text: str, indent: int, *, begins: bool) -> None:
        assert self._key is not None
        values = self.fields.values[self._key]
        if marker and not self._takes(indent, text):
            self.close()
        elif marker and self._level in (None, indent):
            self._level = indent
            values.append(strip_box(text)[0])
        elif not values:
            values.append(text)
            self._inline = True
        elif marker or not begins or (self._level is not None and indent > self._level):
            values[-1] += f"\n{marker}{text}"
        else:
            self.close()
