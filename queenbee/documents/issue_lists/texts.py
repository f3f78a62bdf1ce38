"""Plain text with issues in it: check lists, spec-kit's and Kiro's tasks, todo.txt, Backlog.md.

Pure. The entries have our names for the fields. What has no id of its own is found again by its
text, so an item with another text is another issue.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from queenbee._hashing import sha256
from queenbee.documents.front_matter import read_front_matter
from queenbee.documents.markdown import check_item, unfenced_lines
from queenbee.errors import InvalidInput

Entry = dict[str, Any]

_HEADING = re.compile(r"#{1,6}\s++(\S.*|)")
_STATES = {" ": "open", "x": "done", "X": "done", "-": "in progress", "~": "in progress"}
_SPEC_KIT = re.compile(r"(T\d{3,})\s+((?:\[[^\]]{1,40}\]\s+)*)(.*)")
_KIRO = re.compile(r"(\d+(?:\.\d+)*)\.?\s+(\S.*)")
_REQUIREMENTS = re.compile(r"^[ \t]*+-?[ \t]*_Requirements?:", re.MULTILINE)
_TODO = re.compile(r"^(?:x (?:\d{4}-\d\d-\d\d )?|\([A-Z]\) )\S", re.MULTILINE)
_TODO_WORDS = re.compile(r"^\d{4}-\d\d-\d\d \S|(?:^|\s)[+@]\w", re.MULTILINE)
"""What tasks that are neither done nor urgent have in a file that has the usual name."""
_TODO_LINE = re.compile(
    r"(?P<done>x )?(?:\((?P<rank>[A-Z])\) )?(?:(?P<first>\d{4}-\d\d-\d\d) )?"
    r"(?:(?P<second>\d{4}-\d\d-\d\d) )?(?P<text>.*)"
)


def read_text(text: str, name: str, insisted: str | None) -> tuple[str, list[Entry]] | None:
    """Returns the source and the entries of a text; None if it is none of these."""
    items = _items(text) if insisted in (None, "markdown", "spec-kit", "kiro") else []
    if insisted == "todo.txt" or (insisted is None and not items and _is_todo_txt(text, name)):
        return "todo.txt", [*_of_todo(text, name)]
    if not items:
        if insisted in ("markdown", "spec-kit", "kiro"):
            raise InvalidInput("the text has no item such as '- [ ] Fix the login form'")
        return None
    tasks = [_SPEC_KIT.fullmatch(each.text) for each in items]
    if insisted == "spec-kit" or (insisted is None and sum(map(bool, tasks)) * 2 > len(items)):
        return "spec-kit", _of_spec_kit(items, name)
    if insisted == "kiro" or (insisted is None and _REQUIREMENTS.search(text)):
        return "kiro", [*_of_check_list(items, name, numbered=True)]
    return "markdown", [*_of_check_list(items, name, numbered=False)]


def _is_todo_txt(text: str, name: str) -> bool:
    """Returns whether a text is a `todo.txt`."""
    named = name.rpartition("/")[2] in ("todo.txt", "done.txt")
    return bool(_TODO.search(text) or (named and _TODO_WORDS.search(text)))


@dataclass
class _Item:
    """An item of a check list."""

    depth: int
    state: str
    text: str
    heading: str
    below: list[str] = field(default_factory=list)
    """The lines under it that are no items."""


def _items(text: str) -> list[_Item]:
    found: list[_Item] = []
    heading = ""
    for line in unfenced_lines(text):
        if (item := check_item(line)) and item.text:
            found.append(_Item(item.depth, _STATES[item.mark], item.text, heading))
        elif title := _HEADING.fullmatch(line):
            heading = title[1].rstrip().rstrip("#").rstrip()
        elif line.strip() and found and found[-1].heading == heading:
            is_inside = len(line) - len(line.lstrip()) > found[-1].depth
            found[-1].below += [line.strip()] if is_inside else []
    return found


def _of_check_list(items: Sequence[_Item], name: str, *, numbered: bool) -> Iterator[Entry]:
    above: list[tuple[int, str]] = []
    seen: set[str] = set()
    for item in items:
        number = _KIRO.fullmatch(item.text) if numbered else None
        key = f"{name}#{number[1] if number else _digest(item.text)}"
        if key in seen:  # The same text below another heading, or once more.
            count = sum(each == key or each.startswith(f"{key}-") for each in seen)
            key = f"{key}-{_digest(item.heading) if count == 1 else count}"
        seen.add(key)
        above = [each for each in above if each[0] < item.depth]
        parent = above[-1][1] if above else None
        if number and "." in number[1] and parent is None:
            parent = f"{name}#{number[1].rpartition('.')[0]}"
        yield {
            "key": key, "title": item.text, "state": item.state, "parent": parent,
            "description": _description(item, name),
        }  # fmt: skip
        above.append((item.depth, key))


def _description(item: _Item, name: str) -> str:
    place = f"{name}, {item.heading}" if item.heading else name
    return "\n".join([*item.below, *([""] if item.below else []), f"From {place}."])


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def _of_spec_kit(items: Sequence[_Item], name: str) -> list[Entry]:
    """Returns the tasks, which wait as spec-kit has them done: phase after phase, stories beside
    each other, and in a phase in order, but for those marked [P].
    """
    entries: list[Entry] = []
    phases: dict[str, list[_Item]] = {}
    for item in items:
        phases.setdefault(item.heading, []).append(item)
    shared: list[str] = []
    stories: list[str] = []
    for phase in phases.values():
        tasks = [match for each in phase if (match := _SPEC_KIT.fullmatch(each.text))]
        is_story = bool(tasks) and all("[US" in each[2] for each in tasks)
        ends = shared if is_story else [*shared, *stories]
        barrier, beside = ends, list[str]()
        for item in phase:
            task = _SPEC_KIT.fullmatch(item.text)
            marks = re.findall(r"\[([^\]]+)\]", task[2]) if task else []
            key = f"{name}#{task[1] if task else _digest(item.text)}"
            waits = barrier if "P" in marks else beside or barrier
            entries.append({
                "key": key, "title": task[3] if task else item.text, "state": item.state,
                "labels": [each for each in marks if each != "P"], "blocked_by": [*waits],
                "description": _description(item, name),
            })  # fmt: skip
            if "P" in marks:
                beside.append(key)
            else:
                barrier, beside = [key], []
        if is_story:
            stories += beside or barrier
        else:
            shared, stories = beside or barrier, []
    return entries


def _of_todo(text: str, name: str) -> Iterator[Entry]:
    seen: dict[str, int] = {}
    for line in text.splitlines():
        parts = _TODO_LINE.fullmatch(line.strip())
        if parts is None or not parts["text"]:
            continue
        words = parts["text"].split()
        pairs = dict(
            each.split(":", 1) for each in words if re.fullmatch(r"[a-z]+:[^\s/]\S*", each)
        )
        key = pairs.get("id") or pairs.get("uuid") or _digest(parts["text"])
        seen[key] = seen.get(key, 0) + 1
        rank = parts["rank"] or (pri if (pri := pairs.get("pri", "")) in _RANKS else "")
        first, second = parts["first"], parts["second"]
        yield {
            "key": f"{name}#{key}" if seen[key] == 1 else f"{name}#{key}-{seen[key]}",
            "title": parts["text"],
            "state": "done" if parts["done"] else "open",
            "priority": f"P{min(ord(rank[0]) - ord('A'), 4)}" if rank else None,
            "labels": [each[1:] for each in words if each[0] in "+@" and len(each) > 1],
            "created_at": second or (None if parts["done"] else first),
            "closed_at": first if parts["done"] else None,
            "due_at": pairs.get("due"),
        }  # fmt: skip


_RANKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SECTION = re.compile(r"^## ++(.+)$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*-->\n?", re.MULTILINE)
_NAMES = re.compile(r"(^[ \t]*+(?:assignee:|reporter:|-)[ \[]*|,\s*)(@[\w./-]+)(?=[\s,\]]|$)", re.M)
_SECTIONS = {
    "acceptance criteria": "acceptance_criteria",
    "implementation plan": "design",
    "implementation notes": "notes",
}


def read_backlog_task(path: str, text: str) -> Entry:
    """Returns the entry of a task of Backlog.md. Raises `InvalidInput`, which names its file."""
    head, end, body = text.partition("\n---")
    body = body if body[:1].isspace() else f"\n{body}"  # Its own reader wants no line's end there.
    # It writes names as @ann, which YAML does not take without quotes.
    front = read_front_matter(_NAMES.sub(r"\1'\2'", head) + end + body)
    if front.fields is None:
        raise InvalidInput(f"{path} is no task of Backlog.md: {front.problem}")
    said = {str(name): value for name, value in front.fields.items()}
    parts = _SECTION.split(_COMMENT.sub("", front.body))
    sections = {
        name: [""] for name in ("description", *_SECTIONS.values())
    } | {"description": [parts[0].strip()]}  # fmt: skip
    for line, body in zip(parts[1::2], parts[2::2], strict=True):
        heading = line.rstrip(" ")
        plain = heading.casefold()
        name = _SECTIONS.get(plain, "description")
        is_other = name == "description" and plain != "description"
        sections[name].append(f"## {heading}\n\n{body.strip()}" if is_other else body.strip())
    return {
        **{name: "\n\n".join(filter(None, texts)) for name, texts in sections.items()},
        "key": str(said.pop("id", "")).lower(), "title": said.pop("title", None),
        "state": said.pop("status", None), "labels": said.pop("labels", None),
        "priority": said.pop("priority", None), "assignee": said.pop("assignee", None),
        "issue_type": said.pop("type", None), "parent": said.pop("parent_task_id", None),
        "blocked_by": said.pop("dependencies", None),
        "created_at": str(said.pop("created_date", "")),
        "updated_at": str(said.pop("updated_date", "")),
        "completed_date": str(said.pop("completed_date", "")),
        **said,
    }  # fmt: skip
