"""From an entry of a list to an issue in our words; what was not understood is counted by name.

Pure. Nothing is guessed: a state that no table has becomes the status of that name, which keeps
agents away from the issue, and a priority that none has stays the usual one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from queenbee._hashing import sha256
from queenbee.core.text import one_line, shortened
from queenbee.core.timestamps import format_ms, instant_ms
from queenbee.documents.findings import Finding
from queenbee.documents.issue_lists.reading import Entry, read_entries
from queenbee.documents.issue_lists.sources import (
    DROPPED,
    FIELDS,
    PRIORITIES,
    STATES,
    STATUSES,
    TYPES,
    WHOLE,
    Source,
    plain,
)
from queenbee.documents.issue_lists.values import (
    all_words,
    bare,
    comments,
    first,
    is_empty,
    keys,
    moment_ms,
    objects,
    prose,
    scalar,
    words,
)
from queenbee.errors import InvalidInput

_MOST_TITLE = 500
"""Beads takes no longer title."""
_PRIORITY = re.compile(r"(?:prio(?:rity)?[\W_]*|p\s*[:/]+\s*)(.+)|(p[0-4])", re.IGNORECASE)
"""A label that says a priority: its word or number, or `P1` alone."""


@dataclass(frozen=True)
class Listed:
    """One issue of a list."""

    refs: tuple[str, ...]
    """What it may be called in `external_ref`; the first one is given to a new issue."""
    names: tuple[str, ...]
    """What other entries of the list call it."""
    title: str
    fields: Mapping[str, object]
    """Its other fields as a row has them, those that the list says."""
    status: str | None
    reason: str | None
    """Why it is closed, if it was not done."""
    needs: Sequence[tuple[str, str]]
    """The names of the issues that it depends on, each with the kind."""
    needed_by: Sequence[tuple[str, str]]
    """The names of those that depend on it."""
    closed_ms: int | None = None
    created_ms: int | None = None
    changed_at: str | None = None


@dataclass
class IssueList:
    """The issues of a list."""

    source: Source
    issues: list[Listed] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows as they are, if it is an export of ours or of Beads."""
    unread: dict[str, Counter[str]] = field(default_factory=dict)
    """How many issues have what was not understood: by what it is, then by its name."""
    says_needs: bool = False
    """Whether it says anything about dependencies."""
    can_map: bool = True
    """Whether whoever gives it can say what its names mean."""

    @property
    def count(self) -> int:
        """How many issues it has."""
        return len(self.issues) + len(self.rows)

    def note(self, what: str, name: str) -> None:
        """Counts something that was not understood."""
        self.unread.setdefault(what, Counter())[one_line(name, 60)] += 1

    def findings(self) -> list[Finding]:
        """Returns a warning for each kind of what was not understood, with names and counts."""
        return [
            Finding(
                "",
                f"{what}: " + ", ".join(f"{name} ({n})" for name, n in counts.most_common(20)),
                "warning",
                hint=_HINTS.get(what) if self.can_map else _READ if what == _STATE else None,
            )
            for what, counts in self.unread.items()
        ]


_STATE, _RANK, _COLUMN = "states not known, kept on hold", "priorities not known", "not imported"
_KIND, _TIME, _LEFT = "types not known, imported as tasks", "times not read", "left out"
_TWICE = "keys that several issues have"
_WRITTEN = frozenset({"taskmaster", "backlog.md"})
_CUT = "titles cut to 500 characters, whole in the description"
_READ = "for each that you have read: queen issue edit ISSUE --status open"
_HINTS = {
    _STATE: "--map 'NAME=open', or in_progress, in_review, blocked, deferred, closed",
    _COLUMN: "--map 'NAME=labels', or another field: queen issue import --help",
}


def read_issue_list(
    data: bytes,
    *,
    name: str = "-",
    insisted: str | None = None,
    mapped: Sequence[str] = (),
) -> IssueList:
    """Returns the issues of a list. `name` is that of its file; `insisted` its source, if somebody
    says so; `mapped` are `NAME=field` and `STATE=status`. Raises `InvalidInput`, which names the
    entry.
    """
    titles = [name for name, ours in _mapping(mapped)[0].items() if ours == "title"]
    found = read_entries(data, name, insisted, titles)
    return understood(found.source, found.entries, mapped, found.left_out)


def understood(
    source: Source,
    entries: Sequence[Entry],
    mapped: Sequence[str] = (),
    left_out: Counter[str] | None = None,
) -> IssueList:
    """Returns the issues in these entries. Raises `InvalidInput`, which names the entry."""
    result = IssueList(source)
    if left_out:
        result.unread[_LEFT] = left_out
    if source.name == WHOLE:
        result.rows = [_row(number, each) for number, each in enumerate(entries, start=1)]
        _refuse_twice([row["id"] for row in result.rows])
        return result
    reader = _Reader(source, *_mapping(mapped), result)
    found = [reader.listed(number, entry) for number, entry in enumerate(entries, start=1)]
    result.issues = _distinct(found, result)
    _refuse_twice([each.refs[0] for each in result.issues])
    return result


def _distinct(found: Sequence[Listed], result: IssueList) -> list[Listed]:
    """Returns the issues without those that are there again, as pages overlap. Of files in which
    people write the keys, two issues with one key are two.
    """
    known: dict[tuple[str, str], Listed] = {}
    refs: set[str] = set()
    for each in found:
        issue = each
        if each.refs[0] in refs and result.source.name in _WRITTEN:
            result.note(_TWICE, each.refs[0])
            digest = sha256(each.title.encode(errors="surrogatepass")).hexdigest()[:8]
            issue = replace(each, refs=(f"{each.refs[0]}~{digest}",), names=())
        refs.add(each.refs[0])
        if known.get((issue.refs[0], issue.title)) is not None:
            result.note(_LEFT, "the same issue again")
        known[issue.refs[0], issue.title] = issue
    return [*known.values()]


def _refuse_twice(names: Sequence[str]) -> None:
    name, count = Counter(names).most_common(1)[0] if names else ("", 0)
    if count > 1:
        raise InvalidInput(f"the list has {name} {count} times", hint="remove all but one")


def _mapping(mapped: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    columns: dict[str, str] = {}
    states: dict[str, str] = {}
    for each in mapped:
        name, is_pair, ours = (part.strip() for part in each.rpartition("="))
        if not (is_pair and name and ours in (*FIELDS, *STATUSES)):
            known = f"a field ({', '.join(FIELDS)}) or a status ({', '.join(STATUSES)})"
            raise InvalidInput(
                f"--map {each!r} does not end with {known}", hint="--map 'Name=title'"
            )
        if ours in FIELDS:
            columns[name.lower()] = ours
        else:
            states[plain(name)] = ours
    return columns, states


def _row(number: int, entry: Entry) -> dict[str, Any]:
    """Returns an entry as a row: what only an answer has is left out, and a table's texts are what
    they stand for. Raises `InvalidInput`.
    """
    made = {"_type", "completed_by", "state", "holder", "waits_for", "because"}
    row = {name: value for name, value in entry.items() if name not in made and value is not None}
    identifier, title = row.get("id"), row.get("title")
    if not isinstance(identifier, str) or not isinstance(title, str) or not title.strip():
        raise InvalidInput(f"entry {number} of the list has no id or no title")
    priority = row.get("priority")
    if isinstance(priority, str):
        row["priority"] = int(priority) if priority in tuple("01234") else 2
    if isinstance(row.get("labels"), str):
        row["labels"] = words(row["labels"])
    return row


class _Reader:
    def __init__(
        self,
        source: Source,
        columns: Mapping[str, str],
        states: Mapping[str, str],
        result: IssueList,
    ) -> None:
        self._source = source
        self._states = states
        self._result = result
        self._names = {
            ours: [*(name for name, its in columns.items() if its == ours), *source.names(ours)]
            for ours in FIELDS
        }
        self._known = {each for names in self._names.values() for each in names}

    def listed(self, number: int, entry: Entry) -> Listed:
        """Returns the issue of an entry. Raises `InvalidInput`."""
        for name, value in entry.items():
            if name not in self._known and not is_empty(value) and not self._source.skips(name):
                self._result.note(_COLUMN, name)
        title = self._text(entry, "title")
        if title is None or not title.strip():
            has = shortened(", ".join(entry) or "nothing", 200)
            why = f"entry {number} of the list has no title; it has {has}"
            raise InvalidInput(why, hint="--map 'NAME=title', or queen issue import --help")
        refs, names = self._called(number, entry, title)
        fields = {**self._texts(entry), **self._words_of(entry)}
        whole = one_line(title).strip()
        if len(whole) > _MOST_TITLE:
            self._result.note(_CUT, refs[0])
            fields["description"] = f"{title}\n\n{fields.get('description', '')}".strip()
        status, reason = self._status(entry)
        changed_ms = self._moment(entry, "updated_at")
        return Listed(
            refs, names, " ".join(shortened(whole, _MOST_TITLE).split()), fields, status, reason,
            needs=[*self._needs(entry, blocked="blocked_by", parents="parent")],
            needed_by=[*self._needs(entry, blocked="blocks", parents="children")],
            closed_ms=self._moment(entry, "closed_at") or self._moment(entry, "dropped_at"),
            created_ms=self._moment(entry, "created_at"),
            changed_at=None if changed_ms is None else format_ms(changed_ms),
        )  # fmt: skip

    def _called(
        self, number: int, entry: Entry, title: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the references of an entry and what others call it. Raises `InvalidInput`."""
        keys = [
            text
            for name in self._names["key"]
            if (text := scalar(entry.get(name)).strip().lstrip("#!"))
        ]
        urls = [each for name in self._names["url"] if (each := scalar(entry.get(name)).strip())]
        if not keys and not urls and self._source.name == "github-projects":
            keys = [f"draft {title}"]  # A draft has neither.
        plain_key = [each for each in keys[:1] if not each.isdecimal()]  # As version 0.2 had it.
        refs = [*urls[:1], *(f"{self._source.ref}{each}" for each in keys[:1]), *plain_key]
        if not refs:
            raise InvalidInput(
                f"entry {number} of the list ({one_line(title, 60)!r}) has neither a number nor an "
                "address",
                hint="by these an issue is found again: --map 'NAME=key', or 'NAME=url'",
            )
        others = [scalar(entry.get(name)) for name in ("id", "issue id", "uuid", "work item id")]
        names = dict.fromkeys([*keys, *urls, *refs, *filter(None, others)])
        by_title = (title,) if self._source.name == "asana" else ()
        return tuple(dict.fromkeys(refs)), (*map(str.casefold, names), *by_title)

    def _values(self, entry: Entry, ours: str) -> list[Any]:
        """Returns what an entry says of a field: the value of each of its names that has one."""
        return [value for name in self._names[ours] if not is_empty(value := bare(entry.get(name)))]

    def _text(self, entry: Entry, ours: str) -> str | None:
        value = next(iter(self._values(entry, ours)), None)
        if isinstance(value, dict):  # Jira's documents.
            return "\n".join(prose(value)).strip()
        return None if value is None else scalar(value)

    def _texts(self, entry: Entry) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in ("description", "acceptance_criteria", "design", "notes"):
            if any(each in entry for each in self._names[name]):
                found[name] = self._text(entry, name) or ""
        due_ms = self._moment(entry, "due_at")
        if due_ms is not None:
            found["due_at"] = format_ms(due_ms)
        said = [text for value in self._values(entry, "comments") for text in comments(value)]
        if said:
            found["comments"] = said
        return found

    def _words_of(self, entry: Entry) -> dict[str, object]:
        found: dict[str, object] = {}
        labels = [text for value in self._values(entry, "labels") for text in words(value)]
        if any(name in entry for name in self._names["labels"]):
            found["labels"] = labels
        person = next(iter(self._values(entry, "assignee")), None)
        # Jira writes one person, as "Family, Given".
        people = [first(person)] if self._source.name == "jira" else words(person)
        if people and people[0]:
            found["assignee"] = people[0]
        kind = next((first(value) for value in self._values(entry, "issue_type")), None)
        known = [TYPES.get(plain(each)) for each in ([kind] if kind else labels)]
        if kind and known == [None]:
            self._result.note(_KIND, kind)
        if any(known):
            found["issue_type"] = next(filter(None, known))
        priority = self._priority(entry, labels)
        if priority is not None:
            found["priority"] = priority
        return found

    def _priority(self, entry: Entry, labels: Sequence[str]) -> int | None:
        said = next((first(value) for value in self._values(entry, "priority")), None)
        if said is None:
            matches = (_PRIORITY.fullmatch(each.strip()) for each in labels)
            ranks = (PRIORITIES.get(plain(each[1] or each[2])) for each in matches if each)
            return next((each for each in ranks if each is not None), None)
        word = plain(said)
        tables = (self._source.priorities, PRIORITIES)
        found = next((table[word] for table in tables if word in table), -1)
        if found == -1:
            self._result.note(_RANK, said)
            return None
        return found

    def _status(self, entry: Entry) -> tuple[str | None, str | None]:
        """Returns the status, None if the entry says none, and why it is closed if not done."""
        words = [text for value in self._values(entry, "state") for text in all_words(value)]
        known = [status for word in words if (status := self._state(word))]
        reasons = [text for value in self._values(entry, "reason") for text in all_words(value)]
        dropped = [word for word in (*reasons, *words) if plain(word) in DROPPED]
        dropped = [each for each in dropped if plain(each) not in self._states]
        if dropped:
            return "closed", plain(dropped[0])
        for name, why in (("dropped_at", "canceled"), ("archived_at", "archived")):
            if self._moment(entry, name) is not None and known[:1] != ["closed"]:
                return "closed", why
        if known or not words:
            is_closed = not words and self._moment(entry, "closed_at") is not None
            return (known[0] if known else "closed" if is_closed else None), None
        if self._moment(entry, "closed_at") is not None:
            return "closed", None
        self._result.note(_STATE, words[0])
        return re.sub(r"\W+", "_", plain(words[0])).strip("_")[:40] or "unknown", None

    def _state(self, word: str) -> str | None:
        return self._states.get(plain(word)) or STATES.get(plain(word))

    def _needs(self, entry: Entry, *, blocked: str, parents: str) -> Iterator[tuple[str, str]]:
        known = entry.keys() & {name for each in (blocked, parents, "links")
                                for name in self._names[each]}  # fmt: skip
        self._result.says_needs = self._result.says_needs or bool(known)
        for value in self._values(entry, parents)[:1]:
            yield from ((each, "parent-child") for each in keys(value))
        for value in self._values(entry, blocked):
            yield from ((each, "blocks") for each in keys(value))
        inner = (
            ("inwardissue", "issue")
            if blocked == "blocked_by"
            else ("outwardissue", "relatedissue")
        )
        for value in self._values(entry, "links"):
            for link in objects(value):
                kind = link.get("type")
                kind = kind.get("name") if isinstance(kind, dict) else kind
                if plain(str(kind)) == "blocks":
                    yield from ((key, "blocks") for name in inner for key in keys(link.get(name)))

    def _moment(self, entry: Entry, ours: str) -> int | None:
        value = next(iter(self._values(entry, ours)), None)
        if value is None:
            return None
        text = scalar(value).strip()
        found = instant_ms(text)
        if found is None and (found := moment_ms(re.sub(r" \([^)]*\)$", "", text))) is None:
            self._result.note(_TIME, f"{ours} {text}")
        return found
