"""The loop as calls: each does the work of a command, which is built on it."""

from __future__ import annotations

import inspect
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import written_documents
from acting import answer, command
from hives import Queen, commit_file, git, write_lines, write_settings

from queenbee import Hive
from queenbee.cli.main import queen as root
from queenbee.core.json_form import to_plain
from queenbee.errors import Busy, Conflict, Held, InvalidInput, NotFound, Taken
from queenbee.library.schemas import schema_names
from queenbee.next_calls import CALLS
from queenbee.services.work import Begin, Nothing

NAMED = {
    "wait": "timeout_s", "timeout": "timeout_s", "no_verify": "unverified", "ttl": "ttl_s",
    "go_on": "resume", "only": "issues", "issues": "issue_ids", "on": "on",
    "file": "data", "older_than": "older_than_s", "words": "body",
    "ack_within": "ack_within_s", "after": "since_ms", "match": "text", "mode": "exclusive",
    "patterns": "reserve", "ids": "message_ids", "paths": "path",
    "left_pattern": "left", "right_pattern": "right", "path": "paths", "message_id": "message_ids",
}  # fmt: skip
"""What an option of a command is called in its call, where that is another name."""

LIMITS = ("minutes", "issues", "failures", "cost", "issue_cost")
_GRANTS = {"confirm", "local_if_offline"}  # `grant`.
OF_QUEEN = {
    "claim": {*_GRANTS, "issue_ids", "new"},  # One call an issue, by a name that was given.
    "reserve": {*_GRANTS, "keep"},  # `issue_id=""`.
    "reserve list": {"stale"},
    "reserve check": {"token"},
    "issue assign": {"new"},
    "issues": {"everything", "deleted"},  # `issues.all`, `history`.
    "issue list": {"form"},
    "msg send": {"ack", "batch"},  # With the term of the settings; `send_many`.
    "msg read": {"ids"},  # `mark_read`.
    "init": {"check"},  # A setting.
    "land": {"no_wait", "result", "abort"},  # Of a landing that outlives its command.
    "complete": {"take_next"},
    "log": {"follow"},  # `changes`.
    "show": {"issue_ids"},  # One call an issue.
    "start": {"interactive", "logs", "adopt", *(f"max_{each}" for each in LIMITS)},
    "undo": {"yes"},  # A question to a person.
    "status": {"everywhere"},  # `hives.glimpses`.
}
"""Options that are calls of their own, or of a process: `following`, `last_landing`."""


def parameters(path: str) -> set[str]:
    found: click.Command = root
    context = click.Context(root)
    for name in [path] if path.startswith("reserve") else path.split(" "):
        assert isinstance(found, click.Group)
        inner = found.get_command(context, name)
        assert inner is not None
        found = inner
    common = {"json", "actor", "beads_dir", "help_"}
    return {str(each.name) for each in found.params} - common


def call_of(hive: Hive, name: str) -> Any:
    found: Any = hive
    for each in name.split("."):
        found = getattr(found, each)
    return found


@pytest.mark.parametrize("path", CALLS)
def test_a_call_takes_what_its_command_takes(path: str, hive: Hive) -> None:
    known = {*inspect.signature(call_of(hive, CALLS[path])).parameters}
    asked = parameters(path) - OF_QUEEN.get(path, set())
    lacking = {each for each in asked if each not in known and NAMED.get(each) not in known}
    assert not lacking, f"queen {path} has {lacking}"


def commands(group: click.Group, context: click.Context, before: str = "") -> Iterator[str]:
    for name in group.list_commands(context):
        inner = group.get_command(context, name)
        assert inner is not None
        if isinstance(inner, click.Group):
            yield from commands(inner, click.Context(inner, parent=context), f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_each_command_has_a_schema_in_schemas_json() -> None:
    """If it fails: say in queenbee/library/schemas.json what the command prints with `--json`."""
    known = {*commands(root, click.Context(root))} - {*written_documents.WITHOUT}
    ledgers = {each for each in schema_names() if each.endswith(".jsonl")}
    assert {*schema_names()} - ledgers - {"error"} == known


@pytest.fixture
def team(repo: Path) -> Iterator[Hive]:
    """A repository whose landings are checked, with three issues; the hive is open for `lead`."""
    write_settings(repo / ".beads", '[land]\ntarget = "main"\ncheck = "test ! -e broken"\n')
    rows = [{"id": f"qb-{n}", "title": f"Issue {n}", "status": "open"} for n in (1, 2, 3)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hive")
    with Hive.open(repo, droid="lead") as hive:
        yield hive


def test_a_hive_is_made_once_and_opened(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    with Hive.init(tmp_path, droid="ui", env={}) as hive:
        assert {Path(each).name for each in hive.made} == {"queen.toml", ".gitattributes"}
        assert hive.actor == "ui"
        assert answer(hive, "init")["made"] == []
    assert Hive.init(tmp_path, env={}).made == []


def test_a_droid_takes_lands_and_takes_the_next(team: Hive) -> None:
    place = team.worktrees.add("ui", "qb-1")
    assert place.assignment is not None
    with Hive.open(place.path) as ui:
        begun = ui.next()
        assert isinstance(begun, Begin)
        assert (begun.assignment.issue_id, begun.again) == ("qb-1", True)
        Path(place.path, "a.txt").write_text("a\n")
        done = ui.land(message="Add a", reason="there is an a")
        assert done.landing.landed
        assert done.completion is not None
        assert (
            done.completion.assignment.reason == f"there is an a ({str(done.landing.commit)[:10]})"
        )
        following = ui.next()
        assert isinstance(following, Begin)
        assert following.assignment.issue_id == "qb-2"
        Path(place.path, "broken").write_text("")
        failed = ui.land(message="Break it")
        assert not failed.landing.landed
        assert not failed.done
    assert git(Path(team.layout.root), "log", "-1", "--format=%s", "--", "a.txt").strip() == "Add a"
    assert team.issues.get("qb-1").done
    assert not team.issues.get("qb-2").done


def test_the_command_prints_what_the_call_returns(team: Hive) -> None:
    assert answer(team, "status") == without_times(team.status().to_dict())
    taken = team.next()
    assert isinstance(taken, Begin)
    assert answer(team, "next") == to_plain(team.next().to_dict())
    assert answer(team, "show", "qb-1") == to_plain(team.show("qb-1").to_dict())
    assert answer(team, "show") == to_plain(team.show().to_dict())
    team.worktrees.add("ui")
    assert answer(team, "worktree", "list") == to_plain(team.worktrees.list())
    assert team.complete(reason="done").completed
    assert answer(team, "issue", "wait", "qb-1", "--timeout=1s") == team.wait("qb-1", timeout_s=1)
    assert isinstance(team.following(), Begin)


def without_times(value: Any) -> Any:
    return to_plain(value)


def test_the_log_prints_what_the_calls_return(team: Hive) -> None:
    team.assignments.claim("qb-1")
    team.reservations.reserve(["src/**"])
    team.messages.send("lead", "hello")
    team.issues.edit("qb-2", title="Other")
    shown = command(team, "log", "--json").out.splitlines()
    assert [json.loads(each) for each in shown] == to_plain(team.log())
    assert not {"somebody", "described"} & {*command(team, "log").out.split()}
    (line,) = command(team, "log", "--kind=reservations", "--path=src/a", "--json").out.splitlines()
    assert json.loads(line)["after"]["pattern"] == "src/**"
    assert command(team, "log", "--droid=api", "--json").out == ""
    said = command(team, "log").out
    for each in ("lead took qb-1", "lead reserved src/**", "wrote to lead: hello", "qb-2: title"):
        assert each in said


def test_who_follows_the_log_is_told_what_happens(queen: Queen, hive: Hive) -> None:
    hive.messages.send("ui-engineer", "before")
    follows = queen.start("log", "-f", "--json")
    assert follows.stdout is not None
    try:
        assert json.loads(follows.stdout.readline())["after"]["body"] == "before"
        hive.messages.send("ui-engineer", "after")
        assert json.loads(follows.stdout.readline())["after"]["body"] == "after"
    finally:
        follows.send_signal(signal.SIGINT)
        follows.communicate(timeout=30)


@pytest.mark.slow
def test_the_command_runs_as_a_module_and_takes_nothing_from_where_it_runs(repo: Path) -> None:
    for name in ("json", "click", "tomllib"):
        (repo / f"{name}.py").write_text("raise SystemExit('taken from the repository')\n")
    line = [sys.executable, "-m", "queenbee", "status", "--json"]
    ran = subprocess.run(line, cwd=repo, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["others"] == []


def test_issues_are_written_as_the_commands_write_them(team: Hive) -> None:
    made = team.issues.new(
        "Search", "A field", priority=1, labels=["ui"], depends_on=["qb-1"], parent="qb-2",
        acceptance="it finds", estimate=30,
    )  # fmt: skip
    words = ["--priority=1", "--label=ui", "--depends-on=qb-1", "--parent=qb-2", "--estimate=30"]
    other = answer(team, "issue", "new", "Search", "--description=A field",
                   "--acceptance=it finds", *words)["issue_id"]  # fmt: skip
    assert content(team, made) == content(team, other)
    assert team.issues.edit(made, title="Find", add_labels=["x"], status="blocked").title == "Find"
    answer(team, "issue", "edit", other, "--title=Find", "--label=x", "--status=blocked")
    assert content(team, made) == content(team, other)
    assert [each for each, _ in team.issues.depend(made, "qb-3").dependencies][-1] == "qb-3"
    assert "qb-3" not in dict(team.issues.depend(made, "qb-3", remove=True).dependencies)
    assert [each.status for each in team.issues.close(made, other, reason="no")] == ["closed"] * 2
    assert [each.status for each in team.issues.reopen(made)] == ["open"]
    assert [each.status for each in team.issues.delete(other)] == ["tombstone"]
    with pytest.raises(Taken):
        team.assignments.claim("qb-3")
        team.issues.close("qb-1", "qb-3")
    assert not team.issues.get("qb-1").done
    for kind in ("add", "keep"):
        found = team.issues.import_(b"title,number\nFrom elsewhere,7\n")
        assert [each.kind for each in found.changes] == [kind]


def content(hive: Hive, issue_id: str) -> Mapping[str, object]:
    row = hive.issues.get(issue_id).to_dict()
    own = ("id", "created_at", "updated_at")
    kept = {name: value for name, value in row.items() if name not in own}
    kept["dependencies"] = hive.issues.get(issue_id).dependencies
    return kept


def test_refusals_of_the_loop_are_errors(team: Hive) -> None:
    with pytest.raises(InvalidInput, match="name of the droid is missing"):
        team.worktrees.add()
    with pytest.raises(NotFound):
        team.worktrees.remove("nobody")
    with pytest.raises(NotFound, match="you have no issue"):
        team.complete()
    with pytest.raises(InvalidInput, match="nothing was landed from this worktree yet"):
        team.last_landing()
    with pytest.raises(InvalidInput):  # From the main worktree.
        team.land()
    with pytest.raises(Busy):
        team.wait("qb-1", timeout_s=0.1)
    with Hive.open(team.layout.root, droid="api") as api:
        api.reservations.reserve(["a/**"])
    with pytest.raises(Held):
        team.next(reserve=["a/b"])
    assert team.assignments.find() == []


def test_a_conflict_is_resumed_as_it_was_asked_for(team: Hive) -> None:
    root = Path(team.layout.root)
    place = Path(team.worktrees.add("ui", "qb-1").path)
    commit_file(place, "same.txt", "mine\n")
    commit_file(root, "same.txt", "theirs\n")
    with Hive.open(place) as ui:
        with pytest.raises(Conflict) as refused:
            ui.land(reason="as both say")
        assert refused.value.code == "not_landed"
        assert refused.value.files == ["same.txt"]  # type: ignore[attr-defined]
        (place / "same.txt").write_text("both\n")
        git(place, "add", "-A")
        done = ui.land(resume=True)
        assert done.done
        assert done.completion is not None
        assert str(done.completion.assignment.reason).startswith("as both say")
    assert (root / "same.txt").read_text() == "both\n"


def test_when_all_is_done_next_says_so(team: Hive) -> None:
    team.issues.close("qb-1", "qb-2", "qb-3")
    end = team.next(timeout_s=5)
    assert isinstance(end, Nothing)
    assert end.is_end
    assert command(team, "next").code == 0
