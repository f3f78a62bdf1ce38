"""Role-specs: one Markdown file for each role, with front matter and Phases 2 to 4.

Pure. After the document on team sessions, "Role-Spec Structure Validation": its steps in its
order; each message begins with its text. Anyone may have written the front matter: size, nesting
and aliases are limited before a value is built, and tags never create objects.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from queenbee.documents.findings import Finding
from queenbee.documents.markdown import parse_blocks
from queenbee.documents.sessions.folder import File

MANUAL_FIX = "Manual fix or re-run team-coordinate"
RESUME = "Re-run team-coordinate with resume"

PHASES = (2, 3, 4)
NOUNS: dict[type, str] = {
    str: "a string",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
}

_FIELDS = {"role": str, "prefix": str, "inner_loop": bool, "message_types": dict}
_MAX_NAME_BYTES = 250


def field_fault(fields: Mapping[Any, Any], name: str, kind: type) -> str | None:
    """Returns what is wrong with a required field, or None; an empty string counts as missing."""
    value = fields.get(name)
    if value is None or value == "":
        return f"{name} ({NOUNS[kind].split()[1]}) is missing"
    if not isinstance(value, kind):
        return f"{name} must be {NOUNS[kind]}, it is {value!r:.60}"
    return None


def name_fault(name: str) -> str | None:
    """Returns why a role's name cannot be a file name in `role-specs/`, or None."""
    if not name.strip():
        return "the name is empty"
    if name in (".", "..") or re.search(r"[/\\\0]", name):
        return "the name leaves the folder"
    if len(name.encode(errors="replace")) > _MAX_NAME_BYTES:
        return "the name is too long for a file"
    return None


def role_spec_findings(name: str, file: File, *, prefix: str | None = None) -> Iterator[Finding]:
    """Returns everything that is wrong with a role's role-spec.

    `prefix` is the role's prefix in the session; the file should have the same.
    """
    path = f"role-specs/{name}.md"
    incomplete = f"Invalid role-spec: {path} missing required section"
    if file.data is None:
        yield Finding(path, f"{incomplete}: {file.problem}", hint=MANUAL_FIX)
        return
    try:
        text = file.data.decode()
    except UnicodeDecodeError as error:
        message = f"{incomplete}: not UTF-8 (byte {error.start})"
        yield Finding(path, message, hint=MANUAL_FIX)
        return
    front = read_front_matter(text)
    if front.fields is None:
        message = f"Invalid role-spec: {path} missing frontmatter: {front.problem}"
        yield Finding(path, message, hint=MANUAL_FIX, line=1)
    else:
        for field, kind in _FIELDS.items():
            fault = field_fault(front.fields, field, kind)
            if fault is not None:
                yield Finding(f"{path}#{field}", f"{incomplete}: {fault}", hint=MANUAL_FIX)
        yield from _agreement(front.fields, name, prefix, path)
    yield from _phase_findings(front.body, front.body_line, path)


def _agreement(
    fields: dict[Any, Any], name: str, prefix: str | None, path: str
) -> Iterator[Finding]:
    for field, wanted in (("role", name), ("prefix", prefix)):
        value = fields.get(field)
        if isinstance(value, str) and value and wanted is not None and value != wanted:
            message = f"{field} is {value!r}, the session says {wanted!r}"
            yield Finding(f"{path}#{field}", message, "warning")


def _phase_findings(body: str, body_line: int, path: str) -> Iterator[Finding]:
    headings = [block for block in parse_blocks(body) if block.kind == "heading"]
    top = [block.text for block in headings if block.level == 2 and not block.nested]
    for number in PHASES:
        # "Phase 2: Load" and "Phase 2." match; "Phase 20", "Phase 2.5" and "Phase 2-4" do not.
        phase = rf"Phase {number}(?!\w|\.\w|[-–]\d)"
        if any(re.match(phase, text) for text in top):
            continue
        message = f"Invalid role-spec: missing Phase {number} in {path}"
        like = re.compile(rf"[\W_]*{phase}", re.IGNORECASE)
        close = next((block for block in headings if like.match(block.text)), None)
        line = body_line + close.first if close else None
        if close:
            message += f"; it has {'#' * close.level} {close.text[:60]}"
        yield Finding(path, message, hint=MANUAL_FIX, line=line)


MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_ALIASES = 8
MAX_EVENTS = 4_000

_SLIPS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_MARKER = re.compile(r"---[ \t]*\Z")
_END = re.compile(r"(?:---|\.\.\.)[ \t]*\Z")


@dataclass(frozen=True)
class FrontMatter:
    """The front matter of a file, and the text after it.

    `fields` is None if the front matter cannot be used; `problem` then says why. `body` begins
    in line `body_line`, counted from 1.
    """

    fields: dict[Any, Any] | None
    problem: str | None
    body: str
    body_line: int


def read_front_matter(text: str) -> FrontMatter:
    """Returns the front matter of a Markdown text and its body. Never raises."""
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    if not _MARKER.match(lines[0]):
        return FrontMatter(None, "the first line is not ---", text, 1)
    end = next((at for at, line in enumerate(lines) if at and _END.match(line)), None)
    if end is None:
        return FrontMatter(None, "the second --- is missing", text, 1)
    body = "\n".join(lines[end + 1 :])
    fields, problem = load_yaml_object("\n".join(lines[1:end]))
    return FrontMatter(fields, problem, body, end + 2)


def load_yaml_object(text: str) -> tuple[dict[Any, Any] | None, str | None]:
    """Returns the YAML mapping in a text, or None and the reason."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        return None, f"it has more than {MAX_BYTES:,} bytes"
    try:
        # One object for each pass: after an error it holds state.
        fault = _fault(YAML(typ="safe", pure=True).parse(text))
        if fault is not None:
            return None, fault
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        return None, f"it is not YAML: {_first_line(error)}"
    except _SLIPS as error:
        # The library does not catch these when a value does not match its tag.
        return None, f"it cannot be read: {_first_line(error)}"
    if not isinstance(value, dict):
        return None, "it is not a list of `name: value` lines"
    return value, None


def _fault(events: Any) -> str | None:
    """Returns which limit the events exceed; nothing is built from them yet."""
    depth = aliases = 0
    anchors: set[str] = set()
    for count, event in enumerate(events):
        kind = type(event).__name__
        depth += kind in ("MappingStartEvent", "SequenceStartEvent")
        depth -= kind in ("MappingEndEvent", "SequenceEndEvent")
        anchor = getattr(event, "anchor", None)
        if kind == "AliasEvent":
            aliases += 1
        elif anchor is not None:
            if anchor in anchors:
                return f"the anchor &{anchor} is defined twice"
            anchors.add(anchor)
        if depth > MAX_DEPTH:
            return f"it has more than {MAX_DEPTH} levels of nesting"
        if aliases > MAX_ALIASES or len(anchors) > MAX_ALIASES:
            return f"it has more than {MAX_ALIASES} aliases"
        if count >= MAX_EVENTS:
            return f"it has more than {MAX_EVENTS:,} parts"
    return None


def _first_line(error: Exception) -> str:
    problem = getattr(error, "problem", None)
    mark = getattr(error, "problem_mark", None)
    text = str(problem or error).strip().splitlines()
    where = f" (line {mark.line + 2})" if problem and mark is not None else ""
    return (text[0] if text else type(error).__name__)[:200] + where
