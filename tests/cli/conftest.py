"""A hive in the middle of its work, for tables of commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hives import QuickQueen, write_lines

ISSUES = (
    {"id": "qb-1", "title": "Button component", "status": "open", "priority": 1},
    {"id": "qb-2", "title": "Login form", "status": "open", "priority": 2},
    {"id": "qb-3", "title": "Write the guide", "status": "open", "priority": 3},
    {"id": "qb-4", "title": "Set up the build", "status": "closed", "priority": 2},
)


@pytest.fixture
def names() -> dict[str, str]:
    """What the records of `busy` are called."""
    return {}


@pytest.fixture
def busy(quick: QuickQueen, beads: Path, names: dict[str, str]) -> QuickQueen:
    """A command line on a hive in which ui-engineer and reviewer are at work.

    ui-engineer has qb-1 and src/ui/**, reviewer has qb-2 and src/api/**, and reviewer has asked
    ui-engineer a question. `names` gives the ids of those records.
    """
    write_lines(beads / "issues.jsonl", *ISSUES)
    (quick.cwd / "src" / "ui").mkdir(parents=True)

    def made(*arguments: str, as_: str) -> str:
        done = quick("--json", *arguments, as_=as_)
        record = done.json if isinstance(done.json, dict) else done.json[0]
        return str(record["id"])

    names["mine"] = made("claim", "qb-1", as_="ui-engineer")
    names["theirs"] = made("claim", "qb-2", as_="reviewer")
    names["lease"] = made("reserve", "src/ui/**", "--issue", "qb-1", as_="ui-engineer")
    names["held"] = made("reserve", "src/api/**", "--reason", "login", as_="reviewer")
    names["question"] = made("msg", "send", "ui-engineer", "Ready?", as_="reviewer")
    names["answer"] = made("msg", "reply", names["question"], "Soon", as_="ui-engineer")
    return quick


@pytest.fixture
def state(repo: Path) -> tuple[Path, Path]:
    """The folders in which nothing may change when a command is refused."""
    return repo / ".beads", repo / ".git" / "queenbee"


@pytest.fixture
def toml(repo: Path) -> Path:
    """The settings of the hive, with a comment."""
    path = repo / ".beads" / "queen.toml"
    path.write_text('# ours\nttl = "1h"  # short\n')
    return path


@pytest.fixture
def team(quick: QuickQueen, repo: Path, beads: Path) -> Path:
    """A hive with something in each state."""
    rows = [
        {"id": f"qb-{n}", "title": f"issue {n}", "status": "open", "issue_type": "task"}
        for n in range(1, 6)
    ]
    rows[4]["dependencies"] = [{"depends_on_id": "qb-1", "type": "blocks"}]
    write_lines(beads / "issues.jsonl", *rows)
    for number, droid in ((1, "ui"), (2, "oak"), (3, "ui")):
        assert quick("claim", f"qb-{number}", as_=droid).code == 0
    assert quick("complete", "qb-3", "--reason", "merged", as_="ui").code == 0
    assert quick("reserve", "src/*.py", as_="oak").code == 0
    assert quick("reserve", "docs/**", "--reason", "the pages", as_="ui").code == 0
    assert quick("msg", "send", "ui", "hello", as_="oak").code == 0
    return repo
