"""A `bd` and a `br` as their documentation of 2026 describes them: issues in a database of their
own, claims that only one can have.

It is run as a program, under the name of the one that it is. `bd`'s database is a file where Dolt
has its manifest; `br`'s is `beads.db`, written to `issues.jsonl` after each change unless
`BR_NO_FLUSH` is set. `BD_FAILS` has it refuse words, `BD_OLD` is a version without `export --all`
and `statuses`, `BD_HALF` breaks off, `BD_SLEEPS` waits.
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
DATABASES = {
    "bd": Path("embeddeddolt", "beads", ".dolt", "noms", "manifest"),
    "br": Path("beads.db"),
}
AT = "2026-01-01T00:00:00Z"
DONE_WORDS = {"closed", "pinned", "tombstone"}


def install(folder: Path, name: str = "bd") -> None:
    """Makes it a program in a folder."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\n{PROGRAM.read_text()}")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def fill(beads: Path, *rows: dict[str, Any], name: str = "bd") -> None:
    """Makes its database, as `init` and `create` would."""
    said = '{"database": "dolt", "backend": "dolt"}\n' if name == "bd" else "{}\n"
    (beads / "metadata.json").write_text(said)
    usual = {"status": "open", "priority": 2, "issue_type": "task", "created_at": AT}
    _write(beads, name, [{**usual, "updated_at": AT, **row} for row in rows])


def rows(beads: Path) -> dict[str, dict[str, Any]]:
    """What it has, by id."""
    path = next(beads / each for each in DATABASES.values() if (beads / each).exists())
    return {row["id"]: row for row in json.loads(path.read_text())}


def _write(beads: Path, name: str, found: list[dict[str, Any]]) -> None:
    _replace(beads / DATABASES[name], json.dumps(found))
    if name == "br" and not os.environ.get("BR_NO_FLUSH"):
        _flush(beads, found)


def _flush(beads: Path, found: list[dict[str, Any]]) -> None:
    (beads / ".br_history").mkdir(exist_ok=True)
    _replace(beads / "issues.jsonl", "".join(json.dumps(row) + "\n" for row in found))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("next")
    temporary.write_text(text)
    temporary.replace(path)


def _refuse_blocked(
    row: dict[str, Any], by_id: dict[str, dict[str, Any]], options: dict[str, str], verb: str
) -> None:
    needs = [each["depends_on_id"] for each in row.get("dependencies", [])]
    waits = [each for each in needs if by_id[each]["status"] not in DONE_WORDS]
    if waits and "force" not in options:
        sys.exit(f"cannot {verb} blocked issue: {', '.join(waits)}")


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
    if "acceptance" in options:
        row["acceptance_criteria"] = options["acceptance"]


def _answers(name: str, words: list[str], found: list[dict[str, Any]]) -> bool:
    """Answers what changes nothing."""
    if words[0] == "export" and name == "bd":
        text = '{"_schema": "beads-jsonl/1"}\n{"_type":"memory","key":"k","value":"private"}\n'
        text += "".join(json.dumps({"_type": "issue", **each}) + "\n" for each in found)
        sys.stdout.write(text[:-9] if os.environ.get("BD_HALF") else text)
    elif words[0] == "statuses" and name == "bd" and not os.environ.get("BD_OLD"):
        custom = [{"name": "shipped", "category": "done"}, {"name": "qa", "category": "wip"}]
        sys.stdout.write(json.dumps({"built_in_statuses": [], "custom_statuses": custom}))
    elif words[0] == "sync" and name == "br":
        _flush(Path(".beads"), found)
    else:
        return False
    return True


def _main(name: str, arguments: list[str]) -> None:
    with open(os.environ["BD_CALLS"], "a") as file:
        file.write(json.dumps(arguments) + "\n")
    time.sleep(float(os.environ.get("BD_SLEEPS", "0")))
    words = [each for each in arguments if not each.startswith("--")]
    values = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    pairs = [each[2:].partition("=") for each in arguments if each[:2] == "--" and each != "--"]
    options = {name: value for name, _, value in pairs}
    if words[0] in os.environ.get("BD_FAILS", "").split():
        sys.exit("Error: database is locked by another process")
    if os.environ.get("BD_OLD") and {"all", "readonly"} & options.keys():
        sys.exit("Error: unknown flag: --all")
    found = json.loads((Path(".beads") / DATABASES[name]).read_text())
    if _answers(name, words, found):
        return
    by_id = {row["id"]: row for row in found}
    row = by_id.get(values[0]) if values else None
    actor = options.get("actor", "nobody")
    if name == "br" and words[0] == "create" and {"id", "acceptance"} & options.keys():
        sys.exit("error: unexpected argument found")
    begins = "claim" in options or options.get("status") == "in_progress"
    if row is not None and (words[0] == "close" or (name == "br" and begins)):
        _refuse_blocked(row, by_id, options, words[0])
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
    _write(Path(".beads"), name, found)


if __name__ == "__main__":
    _main(os.path.basename(sys.argv[0]), sys.argv[1:])
