"""Validates beads from files, standard input or ids: what `queen bead validate` calls.

Each bead is one `Validated`; so is input that cannot be read as a bead, with the reason.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee.core.beads import definition_of_done, newest
from queenbee.documents.agents import AGENTS_DIR, DEFAULT_AGENT, list_agents
from queenbee.documents.findings import Finding
from queenbee.documents.issue_rows import metadata_of
from queenbee.documents.json_documents import parse_json
from queenbee.documents.ralph.bead_files import bead_in_row
from queenbee.documents.ralph.ralph_bead import validate_bead
from queenbee.documents.sprints.numbers import branch_fault
from queenbee.documents.sprints.sprint_bead import MAX_BYTES, check_bead, is_sprint_bead, objects_in
from queenbee.errors import NotFound, Unreadable
from queenbee.store.codec import Unusable, decode
from queenbee.store.files import split_lines
from queenbee.store.git_trees import git_tree
from queenbee.store.whole_files import MAX_BYTES as MAX_FILE_BYTES
from queenbee.store.whole_files import read_document

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, Literal

    from queenbee.errors import QueenError
    from queenbee.workflows.complete_hive import Hive

    Kind = Literal["ralph", "sprint"]

STDIN = "-"
_RALPH = ("dod", "intent", "ralph_meta")
_SPRINT = ("metadata", "issue_type")


@dataclass(frozen=True, slots=True)
class Rules:
    """How to validate beads.

    `kind` None means that each bead's own fields decide; `agents` are the known agents, or None
    if only their folder is known.
    """

    kind: Kind | None = None
    strict: bool = False
    agents: Collection[str] | None = None
    branch_conflict: Callable[[str], str | None] = lambda _: None
    """Returns why this repository cannot have the branch of a bead, or None."""


@dataclass(frozen=True, slots=True)
class Validated:
    """One bead and everything that is wrong with it; `source` says where it was found."""

    source: str
    kind: Kind | None
    bead_id: str | None
    findings: Sequence[Finding]

    @property
    def valid(self) -> bool:
        """Whether it has no errors; warnings do not count."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Returns the verdict and the findings as plain values."""
        return {
            "source": self.source,
            "kind": self.kind,
            "id": self.bead_id,
            "valid": self.valid,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def validate_target(
    name: str, rules: Rules, *, stdin: BinaryIO, hive: Callable[[], Hive]
) -> list[Validated]:
    """Returns the beads that a name refers to, validated: `-`, a file, or an id.

    A `.jsonl` file is a tracker's file, of which only the beads are validated, each in its newest
    row. `hive` opens the hive, which only an id needs. Raises `NotFound`, or `Unreadable`
    if it is not a file.
    """
    if name == STDIN:
        return validate_data(stdin.read(MAX_FILE_BYTES + 1), "standard input", rules)
    if os.path.exists(name):
        data = read_document(name)
        is_rows = name.endswith(".jsonl")
        return [*_rows(data, name, rules)] if is_rows else validate_data(data, name, rules)
    if os.sep in name or name.endswith((".json", ".jsonl")):
        raise NotFound(f"{name} does not exist", hint="queen bead list", path=name)
    return [_known(hive(), name, rules)]


def unreadable(name: str, error: QueenError) -> Validated:
    """Returns the verdict on a target that cannot be read."""
    return Validated(name, None, None, [Finding("", error.message, hint=error.hint)])


def validate_data(data: bytes, source: str, rules: Rules) -> list[Validated]:
    """Returns the bead in a JSON document, or each bead in a list, validated."""

    def refused(text: str, bead: Validated | None = None) -> list[Validated]:
        kind, bead_id = (bead.kind, bead.bead_id) if bead is not None else (rules.kind, None)
        return [Validated(source, kind, bead_id, [Finding("", text)])]

    if len(data) > MAX_FILE_BYTES:
        return refused(f"is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        document = parse_json(data, source)
    except Unreadable as error:
        return refused(error.message)
    if document == []:
        return refused("is an empty list: there is no bead in it")
    if isinstance(document, list):
        # The form that `bd show --json` prints.
        return [_validated(one, f"{source}[{n}]", rules) for n, one in enumerate(document)]
    found = _validated(document, source, rules)
    if found.kind == "sprint" and len(data) > MAX_BYTES:
        return refused(f"has {len(data):,} bytes; a bead has at most {MAX_BYTES:,}", found)
    return [found]


def _rows(data: bytes, source: str, rules: Rules) -> Iterator[Validated]:
    found: list[tuple[int, dict[str, Any] | Unusable]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        for whole in split_lines(line):
            try:
                found.append((number, decode(whole)))
            except Unusable as error:
                if b'"_type"' not in whole:
                    found.append((number, error))
    current = newest(row for _, row in found if isinstance(row, dict))
    for number, row in found:
        place = f"{source}:{number}"
        if isinstance(row, Unusable):
            finding = Finding("", f"is not a usable row: {row}", line=number)
            yield Validated(place, None, None, [finding])
        elif _counts(row, current) and (is_sprint_bead(row) or definition_of_done(row) is not None):
            yield _validated(row, place, rules)


def _counts(row: Mapping[str, Any], current: Mapping[str, object]) -> bool:
    """Returns whether it has no id, or is the newest with its id and not deleted."""
    identifier = row.get("id")
    if not isinstance(identifier, str) or not identifier:
        return True
    return current[identifier] is row and row.get("status") != "tombstone"


def _known(hive: Hive, bead_id: str, rules: Rules) -> Validated:
    bead = hive.documents.find_bead(bead_id) if rules.kind != "sprint" else None
    if bead is not None and not bead.in_row:
        return _validated(bead.document, bead.path, rules)
    return _validated(dict(hive.issues.get(bead_id).fields), bead_id, rules)


def _shown(document: Any) -> Any:
    """Returns the bead in what `queen show --json` or `queen bead show --json` prints."""
    if isinstance(document, dict) and (_kind(document) is None or "issue_id" in document):
        for name in ("document", "issue"):
            if isinstance(document.get(name), dict):
                return document[name]
    return document


def _validated(document: Any, source: str, rules: Rules) -> Validated:
    document = _shown(document)
    bead_id = document.get("id") if isinstance(document, dict) else None
    kind = rules.kind or _kind(document)
    row = bead_in_row(document, source) if _is_row(document) else None
    if kind == "ralph":
        found = validate_bead(row.document if row is not None else document)
    elif kind == "sprint":
        found = check_bead(document, agents=rules.agents, strict=rules.strict)
        found += _unchecked(document, rules)
        found += _without_branch(document, rules)
        found += validate_bead(row.document) if row is not None else []
    else:
        text = "is neither a Ralph bead (intent, dod) nor a sprint bead (issue_type, metadata)"
        found = [Finding("", text if isinstance(document, dict) else "must be an object")]
    return Validated(source, kind, bead_id if isinstance(bead_id, str) else None, found)


def _unchecked(document: object, rules: Rules) -> Iterator[Finding]:
    """Yields a note if a bead names agents of a folder that is not there."""
    metadata = metadata_of(document) if isinstance(document, dict) else {}
    named = [metadata.get("dev_agent_path")]
    named += [agent.get("agent_path") for agent in objects_in(metadata.get("qa_agents"))]
    others = sorted({path for path in named if isinstance(path, str) and path != DEFAULT_AGENT})
    if rules.agents is None and others:
        message = f"cannot be looked for, because there is no {AGENTS_DIR}: {', '.join(others)}"
        hint = "name the folder with --agents-dir"
        yield Finding("metadata.dev_agent_path", message, _severity(rules), hint=hint)


def _without_branch(document: object, rules: Rules) -> Iterator[Finding]:
    """Yields a note if nobody can make the branch of an open bead here."""
    is_open = isinstance(document, dict) and document.get("status") != "closed"
    branch = metadata_of(document).get("branch") if isinstance(document, dict) and is_open else None
    if not isinstance(branch, str) or branch_fault(branch) is not None:
        return
    if why := rules.branch_conflict(branch):
        hint = "name another one: queen bead edit ID --set metadata.branch=NAME"
        message = f"cannot be made in this repository: {why}"
        yield Finding("metadata.branch", message, _severity(rules), hint=hint)


def _severity(rules: Rules) -> Literal["error", "warning"]:
    """Returns how much it counts what only the present place lacks."""
    return "error" if rules.strict else "warning"


def _is_row(document: object) -> bool:
    """Returns whether a bead is a row of the tracker, and not a document of its own."""
    return isinstance(document, dict) and "issue_type" in document


def _kind(document: object) -> Kind | None:
    if not isinstance(document, dict):
        return None
    if _is_row(document) and definition_of_done(document) is not None:
        return "sprint" if is_sprint_bead(document) else "ralph"
    if any(name in document for name in _RALPH):
        return "ralph"
    return "sprint" if any(name in document for name in _SPRINT) else None


def agents_for(start: str, agents_dir: str | None) -> Collection[str] | None:
    """Returns the agents that beads may name, or None if they are unknown.

    They are in `agents_dir`, or else in `.claude/agents/` at the top of the git working tree
    around `start` (outside git, in `start`), if that folder exists. Raises `NotFound`.
    """
    home = git_tree(os.path.realpath(start)) if agents_dir is None else None
    folder = agents_dir or os.path.join(home.tree if home is not None else start, AGENTS_DIR)
    if os.path.isdir(folder):
        return list_agents(folder)
    if agents_dir is not None:
        raise NotFound(f"{agents_dir} is not a directory", path=agents_dir)
    return None
