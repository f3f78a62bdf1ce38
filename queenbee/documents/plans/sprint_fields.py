"""The fields under a sprint's heading: worktree, branches, agents, tasks, acceptance criteria.

`docs/plans.md`, section "How to write a plan".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from queenbee.documents.agents import MODELS
from queenbee.documents.findings import Finding
from queenbee.documents.markdown import Block, Item, strip_box
from queenbee.documents.plans.grammar import (
    AGENT,
    BEAD,
    FIELD,
    FIELDS,
    NUMBER,
    OPEN,
    Unread,
    unread,
)
from queenbee.documents.plans.marks import Mark, read_status
from queenbee.documents.sprints.numbers import is_sprint
from queenbee.documents.sprints.sprint_bead import metadata_findings

METADATA = ("agent_type", "dev_model", "max_retry_attempts")
"""Fields that go into the bead's metadata as they are."""
_WORDS = frozenset({"worktree", "branch", "source_branch", "team", "priority", *METADATA})
_AGENTS = frozenset({"dev_agents", "qa_agents"})

_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+")
_OPEN_BOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[ \](?:[ \t]|$)", re.MULTILINE)
"""An item below a task that is not ticked: then the task is not done, whatever its own box."""
_INNER = re.compile(r"^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?")
_LIST_BELOW = re.compile(r"\n[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")

_NOTHING = re.compile(r"(?:none|nothing|n/a|no|[-–—])(?:\W.*)?", re.IGNORECASE | re.DOTALL)
_MENTION = re.compile(rf"(?<![\w.])(?:{NUMBER})(?![\w.])")
_TITLED = re.compile(rf"(?:sprint[ \t]+)?({NUMBER})[ \t]*(?::|[ \t][–—-][ \t])[ \t]*(\S.*)", re.I)
_SEPARATOR = re.compile(r"[,;\n&+]|\band\b", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()]{0,500}\)")
_MAX_LENGTH = 2_000
"""Characters of one value: no list of dependencies is longer."""


@dataclass(frozen=True)
class AgentRef:
    """An agent that a plan names, with its model and prompt if the plan gives them."""

    name: str
    model: str | None = None
    prompt: str | None = None


@dataclass
class Fields:
    """The fields under a sprint's heading; an unknown one is kept as `other:<its name>`.

    `where` and `line` are the sprint's own. `ticked` are the indices of the tasks that are ticked;
    `read` are the lines that have a meaning for the plan. Reading a field adds what is wrong with
    it to `findings`.
    """

    where: str
    line: int
    values: dict[str, list[str]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    prose: list[str] = field(default_factory=list)
    ticked: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)

    def word(self, key: str) -> str | None:
        """Returns the value of a field of one word."""
        values = self.values.get(key, [])
        if len(values) > 1:
            self._refuse(key, f"is given {len(values)} times; only the first is used")
        return (plain_value(values[0]) or None) if values else None

    def status(self) -> tuple[Mark | None, int]:
        """Returns what a `Status` field says, and its line."""
        for key, values in self.values.items():
            if key.lower() == "other:status" and values:
                return read_status(values[0]), self._at(key)[1]
        return None, 0

    def priority(self) -> int | None:
        """Returns a priority written as `1` or `P1`."""
        text = self.word("priority")
        match = re.fullmatch(r"[Pp]?([0-4])", text or "")
        if text is not None and match is None:
            message = f"{text[:80]!r} is not a priority; priorities go from 0 (critical) to 4"
            self._refuse("priority", message)
        return int(match[1]) if match else None

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
                match = AGENT.fullmatch(item.strip())
                if match is None:
                    self._tell_unread("an agent", item, key)
                    continue
                quoted, plain, remark, prompt = match.groups()
                model = (remark or "").strip().lower() or None
                if model is not None and model not in MODELS:
                    models = ", ".join(MODELS)
                    self._refuse(key, f"{remark!r} is not a model; the models are {models}")
                    model = None
                agents.append(AgentRef(quoted or plain, model, (prompt or "").strip() or None))
        return tuple(agents)

    def needs(self) -> tuple[str, ...]:
        """Returns the sprint numbers and bead ids that the sprint says it depends on.

        Only what is plain is read, the rest is an error: a dependency that is guessed wrong or left
        out lets work begin too early. They are separated by commas, semicolons, "and", or lines;
        `Sprint 1.2a: Title` is `1.2a`.
        """
        needs: dict[str, None] = {}
        for value in self.values.get("depends_on", []):
            for part in _parts(value[:_MAX_LENGTH]):
                if is_sprint(part) or BEAD.fullmatch(part):
                    needs[part] = None
                else:
                    self._tell_unread("a dependency", part, "depends_on")
        return tuple(needs)

    def text(self) -> str:
        """Returns the text around the fields, then the unknown fields."""
        parts = list(self.prose)
        for key, values in self.values.items():
            if key.startswith("other:"):
                items = values if len(values) == 1 else [f"\n- {item}" for item in values]
                parts.append(f"**{key[6:]}:** {''.join(items)}".rstrip())
        return "\n\n".join(parts)

    def _refuse(self, key: str, message: str) -> None:
        where, line = self._at(key)
        self.findings.append(Finding(where, message, line=line))

    def _tell_unread(self, kind: str, text: str, key: str) -> None:
        where, line = self._at(key)
        self.findings.append(unread(kind, text, line, path=where))

    def _at(self, key: str) -> tuple[str, int]:
        """Returns the path of a field in a finding, and its line."""
        return f"{self.where}.{key}", self.lines.get(key, self.line)


def gather_fields(blocks: Iterable[Block], where: str, line: int) -> Fields:
    """Returns the fields of a section. A list outside a field contains the tasks."""
    gathered = _Gathering(Fields(where, line))
    for block in blocks:
        gathered.take(block)
    return gathered.fields


def split_items(text: str) -> list[str]:
    """Returns the items of a list inside a value, or the value itself as the only one."""
    items: list[str] = []
    for line in text.splitlines():
        marker = _ITEM.match(line)
        if marker:
            items.append(line[marker.end() :])
        elif items:
            items[-1] += f"\n{line.strip()}"
        elif line.strip():
            items.append(line)
    return [stripped for item in items if (stripped := item.strip())]


def plain_value(text: str) -> str:
    """Returns the value of a field of one word: `` `develop` (after 1.1 merged)`` is `develop`."""
    text = text.strip()
    if text.startswith("`") and "`" in text[1:]:
        return text[1:].partition("`")[0].strip()
    before, bracket, _ = text.rpartition("(")
    if bracket and text.endswith(")") and before != before.rstrip():
        text = before
    return text.strip("*_` \t")


def _parts(value: str) -> Iterator[str]:
    """Yields the names in a value, without the words and marks around them."""
    text = _LINK.sub(r"\1", value).strip()
    if not text or (_NOTHING.fullmatch(text.strip("*_`. ")) and not _MENTION.search(text)):
        return
    titled = _TITLED.fullmatch(text.strip("*_` "))
    # Commas in a title separate nothing, unless another sprint is behind one.
    if titled is not None and not _MENTION.search(titled[2]):
        yield titled[1]
        return
    # A remark in brackets is none of the names: "1.1 (merged, and tested)".
    for part in _SEPARATOR.split(re.sub(r"[ \t]\((?:[^()]|\([^()]*\))*\)", "", text)):
        name = re.sub(r"^sprints?[ \t]+", "", part.strip("*_` \t."), flags=re.IGNORECASE)
        name = name.strip("*_` \t\u2705\u2714\ufe0f")
        if inner := _TITLED.fullmatch(name):
            name = inner[1]
        if name:
            yield name


class _Gathering:
    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._current: str | None = None
        self._has_value = False
        """Whether the open field has a value other than a list."""

    def take(self, block: Block) -> None:
        if block.kind == "paragraph":
            self._paragraph(block)
        elif block.kind == "list":
            for item in block.items:
                self._item(item)
        elif block.kind == "heading" and not block.nested:
            self._open(block.text.rstrip(": \t"), "", block.first + 1)
        elif block.kind == "rule":
            self._current = None
        elif block.kind in ("fence", "code", "other"):
            self.fields.prose.append(block.text)

    def _paragraph(self, block: Block) -> None:
        loose: list[str] = []
        for offset, line in enumerate(block.text.split("\n")):
            match = FIELD.fullmatch(line)
            if match:
                self._open(match[1], match[2], block.first + offset + 1)
            elif offset or self._expects_value():
                if self._expects_value() and self._current in ("other:Status", "other:status"):
                    self.fields.read.add(block.first + offset + 1)
                self._continue(line, loose)
            else:
                loose.append(line)
        if loose:
            self._current = None
            self.fields.prose.append("\n".join(loose))

    def _expects_value(self) -> bool:
        return self._current is not None and not self.fields.values[self._current]

    def _continue(self, line: str, loose: list[str]) -> None:
        if self._current is None or loose:
            loose.append(line)
        elif self._expects_value():
            self.fields.values[self._current].append(line.strip())
            self._has_value = True
        else:
            self.fields.values[self._current][-1] += f"\n{line.strip()}"

    def _item(self, item: Item) -> None:
        text, later = self._split(item)
        match = FIELD.fullmatch(text)
        current = self._current if self._takes_item(text) else None
        if match and (match[1].lower() in FIELDS or current is None):
            self._open(match[1], match[2], item.first + 1)
        else:
            if current is None:
                self._begin("tasks", "", item.first + 1)
                current = "tasks"
            if text:
                self._add(current, text, ticked=item.ticked)
        for line, label, value in later:
            self._open(label, value, line)
        value = later[-1][2] if later else match[2] if match else ""
        if self._current is not None and _LIST_BELOW.search(value):
            self._current = None  # Its value is the list in this item, so the next item is none.

    def _split(self, item: Item) -> tuple[str, list[tuple[int, str, str]]]:
        """Returns the text of an item up to the first field in it, and (line, name, value) of each.

        Markdown counts a line right below an item as part of it; its author wrote a field.
        """
        own: list[str] = []
        later: list[tuple[int, str, list[str]]] = []
        for offset, row in enumerate(item.text.split("\n")):
            match = FIELD.fullmatch(_INNER.sub("", row)) if offset else None
            if match and match[1].lower() in FIELDS:
                later.append((item.first + offset + 1, match[1], [match[2]]))
                continue
            if match:
                self._warn_of_misspelling(match[1], item.first + offset + 1)
            (later[-1][2] if later else own).append(row)
        text = "\n".join(own).strip()
        # A line end at the beginning stays: the list below the field is then its value.
        return text, [(line, label, "\n".join(rows).rstrip()) for line, label, rows in later]

    def _add(self, key: str, text: str, *, ticked: bool = False) -> None:
        text, box = strip_box(text)
        if (ticked or box) and key == "tasks" and _OPEN_BOX.search(text) is None:
            self.fields.ticked.add(len(self.fields.values[key]))
        self.fields.values[key].append(text.strip())

    def _takes_item(self, text: str) -> bool:
        """Returns whether an item belongs to the open field and is not a task below its value."""
        if self._current is None or not self._has_value:
            return self._current is not None
        if self._current in _AGENTS:
            # More agents may follow, in backticks; "Setup" is a task.
            return text.startswith("`")
        return self._current not in _WORDS and self._current != "depends_on"

    def _open(self, label: str, value: str, line: int) -> None:
        key = FIELDS.get(label.lower())
        if key is None:
            self._warn_of_misspelling(label, line)
            key = f"other:{label}"
        if label.lower() in FIELDS or (
            label.lower() == "status" and (read_status(value) or OPEN.match(value))
        ):
            self.fields.read.add(line)
        self._begin(key, value, line)

    def _begin(self, key: str, value: str, line: int) -> None:
        self._current, self._has_value = key, bool(value.strip())
        self.fields.lines.setdefault(key, line)
        values = self.fields.values.setdefault(key, [])
        items = split_items(value) if "\n" in value else []
        if items and (key not in _WORDS or len(items) == 1):
            for each in items:
                self._add(key, each)
        elif value.strip():
            values.append(value.strip())

    def _warn_of_misspelling(self, label: str, line: int) -> None:
        meant = get_close_matches(label.lower(), FIELDS, n=1, cutoff=0.8)
        if meant:
            message = f"the field {label!r} is unknown"
            hint = f"did you mean **{meant[0].title().replace('Qa ', 'QA ')}:**?"
            self.fields.findings.append(Unread("", message, "warning", hint, line))
