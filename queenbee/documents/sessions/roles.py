"""Role-specs: one Markdown file for each role, with front matter and Phases 2 to 4.

Pure. After the document on team sessions, "Role-Spec Structure Validation": its steps in its
order; each message begins with its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from queenbee.documents.findings import Finding
from queenbee.documents.front_matter import read_front_matter
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
