"""A `bd` as its documentation of 2026 describes it: issues in Dolt, claims that only one can have.

It is run as a program. Its database is a file where Dolt has its manifest. `BD_FAILS` has it refuse
words, `BD_OLD` is a version without `export --all`, `BD_HALF` breaks off, `BD_SLEEPS` waits.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__)
DATABASE = Path("embeddeddolt", "beads", ".dolt", "noms", "manifest")
AT = "2026-01-01T00:00:00Z"


def install(folder: Path) -> None:
    """Makes it a program in a folder."""
    folder.mkdir(exist_ok=True)
    program = folder / "bd"
    program.write_text(f"#!{sys.executable}\n{PROGRAM.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def fill(beads: Path, *rows: dict[str, Any]) -> None:
    """Makes its database, as `bd init` and `bd create` would."""
    (beads / "metadata.json").write_text('{"database": "dolt", "backend": "dolt"}\n')
    usual = {"status": "open", "priority": 2, "issue_type": "task", "created_at": AT}
    _write(beads / DATABASE, [{**usual, "updated_at": AT, **row} for row in rows])


def rows(beads: Path) -> dict[str, dict[str, Any]]:
    """What it has, by id."""
    return {row["id"]: row for row in json.loads((beads / DATABASE).read_text())}


def _write(path: Path, found: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("next")
    temporary.write_text(json.dumps(found))
    temporary.replace(path)


def _update(row: dict[str, Any], options: dict[str, str], actor: str) -> None:
    if "claim" in options:
        if row.get("assignee") not in (None, "", actor):
            sys.exit(f"issue already claimed by {row['assignee']}")
        if row["status"] == "closed":
            sys.exit("cannot claim a closed issue")
        row.update(assignee=actor, status="in_progress")
    for name in ("status", "assignee", "title"):
        if name in options:
            row[name] = options[name]


def _main(arguments: list[str]) -> None:
    with open(os.environ["BD_CALLS"], "a") as file:
        file.write(json.dumps(arguments) + "\n")
    time.sleep(float(os.environ.get("BD_SLEEPS", "0")))
    words = [each for each in arguments if not each.startswith("--")]
    values = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    pairs = [each[2:].partition("=") for each in arguments if each[:2] == "--" and each != "--"]
    options = {name: value for name, _, value in pairs}
    if words[0] in os.environ.get("BD_FAILS", "").split():
        sys.exit("Error: database is locked by another dolt process")
    if os.environ.get("BD_OLD") and {"all", "readonly"} & options.keys():
        sys.exit("Error: unknown flag: --all")
    path = Path(".beads") / DATABASE
    found = json.loads(path.read_text())
    by_id = {row["id"]: row for row in found}
    row = by_id.get(values[0]) if values else None
    actor = options.get("actor", "nobody")
    if words[0] == "export":
        text = '{"_schema": "beads-jsonl/1"}\n{"_type":"memory","key":"k","value":"private"}\n'
        text += "".join(json.dumps({"_type": "issue", **each}) + "\n" for each in found)
        sys.stdout.write(text[:-9] if os.environ.get("BD_HALF") else text)
        return
    if words[0] == "create":
        row = {"id": "app-new", "title": values[0], "status": "open", "created_at": AT}
        row.update(issue_type=options.get("type", "task"), priority=2)
        found.append(row)
        sys.stdout.write("app-new\n")
    elif row is None:
        sys.exit(f"no issue found: {values}")
    elif words[0] == "update":
        _update(row, options, actor)
    elif words[0] == "close":
        row.update(status="closed", close_reason=options.get("reason", ""), closed_at=AT)
    elif words[0] == "reopen":
        row.update(status="open")
    row["updated_at"] = f"2026-01-01T00:00:{os.getpid() % 60:02d}Z"
    _write(path, found)


if __name__ == "__main__":
    _main(sys.argv[1:])
