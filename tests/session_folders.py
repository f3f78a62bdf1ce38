"""Team sessions on disk: the document's example, and ways to spoil it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hives import QuickQueen

FIXTURES = Path(__file__).parent / "documents" / "fixtures" / "sessions"
ROLES = ("researcher", "developer", "tester")

Change = Callable[[Path], object]


def role_spec(role: str) -> str:
    """Returns the document's required structure, filled in."""
    text = (FIXTURES / "role-spec.md").read_text(encoding="utf-8")
    for placeholder, value in {
        "<name>": role,
        "<PREFIX>": role.upper(),
        "<true|false>": "false",
        "<type>": f"{role}_complete",
        "<Role Name>": role.title(),
        "<Name>": "Work",
    }.items():
        text = text.replace(placeholder, value)
    return text


def team_session() -> dict[str, Any]:
    """Returns the document's template of a session, filled in."""
    session = json.loads((FIXTURES / "team-session.json").read_text())
    (role,) = session["roles"]
    return session | {
        "session_id": "TC-auth-feature-2026-02-27",
        "task_description": "Add authentication",
        "status": "active",
        "team_name": "auth",
        "created_at": "2026-02-27T10:00:00Z",
        "roles": [
            role | {"name": name, "prefix": name.upper(), "role_spec": f"role-specs/{name}.md"}
            for name in ROLES
        ],
    }


def task_analysis() -> dict[str, Any]:
    """Returns the document's template of an analysis, with a graph of three tasks."""
    analysis = json.loads((FIXTURES / "task-analysis.json").read_text())
    graph = {
        "RESEARCH-001": {"depends_on": [], "role": "researcher"},
        "DEV-001": {"depends_on": ["RESEARCH-001"], "role": "developer"},
        "TEST-001": {"depends_on": ["DEV-001"], "role": "tester"},
    }
    return analysis | {"dependency_graph": graph}


def content(path: Path) -> str:
    if path.name == "team-session.json":
        return json.dumps(team_session())
    if path.name == "task-analysis.json":
        return json.dumps(task_analysis())
    if path.parent.name == "role-specs":
        return role_spec(path.stem)
    return "{}" if path.suffix == ".json" else f"# {path.stem}\n"


def findings(session: Path | str | None) -> list[dict[str, Any]]:
    """Returns what `queen session validate` finds, in its order."""
    named = [] if session is None else [f"--session={session}"]
    ran = QuickQueen(Path.cwd())("session", "validate", *named, "--json")
    assert ran.code in (0, 1), ran
    found: list[dict[str, Any]] = ran.json["findings"]
    return found


def errors(session: Path | str | None) -> list[str]:
    return [each["message"] for each in findings(session) if each["severity"] == "error"]


def warnings(session: Path) -> list[str]:
    return [each["message"] for each in findings(session) if each["severity"] == "warning"]


def in_session(**fields: object) -> Change:
    return edited("team-session.json", team_session, fields)


def in_analysis(**fields: object) -> Change:
    return edited("task-analysis.json", task_analysis, fields)


def edited(name: str, make: Callable[[], dict[str, Any]], fields: dict[str, object]) -> Change:
    def change(session: Path) -> None:
        document = make() | fields
        document = {key: value for key, value in document.items() if value is not GONE}
        (session / name).write_text(json.dumps(document))

    return change


def in_file(name: str, data: bytes) -> Change:
    return lambda session: (session / name).write_bytes(data)


def without(name: str) -> Change:
    return lambda session: (session / name).unlink()


def in_spec(old: str, new: str) -> Change:
    def change(session: Path) -> None:
        path = session / "role-specs" / "tester.md"
        assert old in path.read_text(encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    return change


def role_named(name: object) -> Change:
    role = team_session()["roles"][0]
    return in_session(roles=[*team_session()["roles"], role | {"name": name, "role_spec": "x"}])


GONE = object()
"""Stands for a field that is left out."""

ALL = team_session()["roles"]
ONE = ALL[0]


def lacking(field: str) -> dict[str, Any]:
    return {key: value for key, value in ONE.items() if key != field}


def example_session(parent: Path) -> Path:
    """Writes the document's example of a valid session, file by file, and returns its folder."""
    lines = (FIXTURES / "valid-session.txt").read_text().splitlines()
    folder = parent / Path(lines[0].strip("/ ")).name
    parents = [folder]
    for line in lines[1:]:
        match = re.match(r"([| ]*)\+-- (\S+)", line)
        assert match is not None
        path = parents[len(match[1]) // 4] / match[2]
        if match[2].endswith("/"):
            path.mkdir(parents=True)
            parents[len(match[1]) // 4 + 1 :] = [path]
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content(path), encoding="utf-8")
    return folder


def build(folder: Path) -> None:
    """Writes the smallest valid session."""
    (folder / "role-specs").mkdir(parents=True)
    for name in ("team-session.json", "task-analysis.json"):
        (folder / name).write_text(content(folder / name))
    for role in ROLES:
        (folder / "role-specs" / f"{role}.md").write_text(role_spec(role), encoding="utf-8")
