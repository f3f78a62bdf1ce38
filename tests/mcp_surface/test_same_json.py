"""Every tool answers what the command of its name prints under `--json`, and refuses as it does.

Each case happens twice, in two copies of one repository: by the tool and by the command.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from hives import Clock, QuickQueen, commit_file, records, write_lines
from mcp_clients import ERAS, called, error_of, inside, result_of, texts

from queenbee.mcp.results import in_tools

_ID = re.compile(r"\b(q[a-z])-[0-9A-HJKMNP-TV-Z]{26}\b")
_TREE = re.compile(r'("tree_id": )"[0-9A-Z]+"')

Case = tuple[str, dict[str, Any], list[str]]

ANSWERS: list[Case] = [
    ("status", {}, ["status"]),
    ("next", {}, ["next"]),
    ("next", {"reserve": ["src/**"]}, ["next", "--reserve", "src/**"]),
    ("claim", {"issue": "2", "reason": "mine"}, ["claim", "2", "--reason", "mine"]),
    ("claim", {"issue": "qb-4", "anyway": True}, ["claim", "qb-4", "--anyway"]),
    (
        "complete",
        {"issue": "qb-3", "reason": "done", "next": True},
        ["complete", "qb-3", "--reason", "done", "--next"],
    ),
    ("complete", {"issue": "3"}, ["complete", "3"]),
    (
        "reserve",
        {"patterns": ["src/*.py", "new"], "shared": True, "ttl": "30m", "issue": "qb-3"},
        ["reserve", "src/*.py", "new", "--shared", "--ttl", "30m", "--issue", "qb-3"],
    ),
    (
        "reserve",
        {"patterns": ["docs/a.md"], "force": True, "reason": "urgent"},
        ["reserve", "docs/a.md", "--force", "--reason", "urgent"],
    ),
    ("release", {"issue": "qb-3", "reason": "stuck"}, ["release", "qb-3", "--reason", "stuck"]),
    ("release", {"patterns": ["lib/**"]}, ["reserve", "release", "lib/**"]),
    ("release", {"all": True}, ["reserve", "release", "--all"]),
    (
        "check",
        {"paths": ["src/app.py", "docs/a.md"]},
        ["reserve", "check", "src/app.py", "docs/a.md"],
    ),
    ("check", {"paths": ["src", "*.md"]}, ["reserve", "check", "src", "*.md"]),
    ("send", {"to": "reviewer", "body": "hello"}, ["msg", "send", "reviewer", "hello"]),
    (
        "send",
        {"to": "@all", "body": "hello", "subject": "s", "issue": "3", "importance": "high"},
        ["msg", "send", "@all", "hello", "--subject", "s", "--issue", "3", "--importance", "high"],
    ),
    (
        "send",
        {"to": "reviewer,human", "body": "b", "ack_within": "2h"},
        ["msg", "send", "reviewer,human", "b", "--ack-within", "2h"],
    ),
    (
        "send",
        {"to": "newcomer", "body": "b", "new": True},
        ["msg", "send", "newcomer", "b", "--new"],
    ),
    (
        "send",
        {"reply_to": "LAST", "body": "on it"},
        ["msg", "send", "reviewer", "on it", "--reply-to", "LAST"],
    ),
    ("inbox", {}, ["msg", "inbox"]),
    (
        "inbox",
        {"unread": True, "from": "reviewer", "since": "2h", "limit": 1, "issue": "qb-3"},
        [
            "msg",
            "inbox",
            "--unread",
            "--from",
            "reviewer",
            "--since",
            "2h",
            "--limit",
            "1",
            "--issue",
            "qb-3",
        ],
    ),
    ("inbox", {"read": True}, ["msg", "read"]),
    ("inbox", {"read": True, "ids": ["LAST"]}, ["msg", "read", "LAST"]),
    ("inbox", {"ack": True, "ids": ["LAST"]}, ["msg", "ack", "LAST"]),
    ("inbox", {"thread": "qb-3"}, ["msg", "thread", "qb-3"]),
    ("show", {"issue": "qb-4"}, ["show", "qb-4"]),
    ("show", {"text": "Issue 2"}, ["issue", "list", "--match", "issue 2"]),
    (
        "edit",
        {"issue": "qb-2", "title": "New", "status": "deferred"},
        ["issue", "edit", "qb-2", "--title", "New", "--status", "deferred"],
    ),
    ("note", {"text": "renaming too"}, ["note", "renaming too"]),
    ("wait", {"mail": True}, ["issue", "wait", "--mail"]),
    ("wait", {"ready": True, "timeout": "5s"}, ["issue", "wait", "--ready", "--timeout", "5s"]),
    ("wait", {"free": ["lib/x"]}, ["issue", "wait", "--free", "lib/x"]),
]

REFUSALS: list[tuple[str, dict[str, Any], list[str], str]] = [
    ("next", {"reserve": ["docs/a.md"]}, ["next", "--reserve", "docs/a.md"], "held"),
    ("claim", {"issue": "qb-1"}, ["claim", "qb-1"], "taken"),
    ("claim", {"issue": "qb-4"}, ["claim", "qb-4"], "not_ready"),
    ("claim", {"issue": "qb-9"}, ["claim", "qb-9"], "not_found"),
    ("complete", {"issue": "qb-1"}, ["complete", "qb-1"], "not_yours"),
    (
        "complete",
        {"issue": "3", "no_verify": True},
        ["complete", "3", "--no-verify"],
        "invalid_input",
    ),
    ("reserve", {"patterns": ["docs/**"]}, ["reserve", "docs/**"], "held"),
    ("reserve", {"patterns": ["../x"]}, ["reserve", "../x"], "bad_pattern"),
    ("reserve", {"patterns": ["a[", "b"]}, ["reserve", "a[", "b"], "bad_pattern"),
    (
        "reserve",
        {"patterns": ["docs/**"], "wait": "1s"},
        ["reserve", "docs/**", "--wait", "1s"],
        "busy",
    ),
    ("release", {"patterns": ["docs/**"]}, ["reserve", "release", "docs/**"], "not_yours"),
    ("release", {"issue": "qb-2"}, ["release", "qb-2"], "not_found"),
    ("check", {"paths": ["../out"]}, ["reserve", "check", "../out"], "bad_pattern"),
    ("send", {"to": "nobody", "body": "b"}, ["msg", "send", "nobody", "b"], "unknown_droid"),
    ("send", {"to": "reviewer", "body": " "}, ["msg", "send", "reviewer", " "], "invalid_input"),
    ("send", {"reply_to": "qm-1", "body": "b"}, ["msg", "reply", "qm-1", "b"], "not_found"),
    (
        "inbox",
        {"issue": "x", "since": "soon"},
        ["msg", "inbox", "--issue", "x", "--since", "soon"],
        "invalid_input",
    ),
    ("wait", {}, ["issue", "wait"], "invalid_input"),
    (
        "wait",
        {"issues": ["qb-1"], "timeout": "0s"},
        ["issue", "wait", "qb-1", "--timeout", "0s"],
        "busy",
    ),
]


@pytest.fixture
def twin(quick: QuickQueen, repo: Path, frozen: Clock, tmp_path: Path) -> QuickQueen:
    """The command in a copy of `repo`, which has issues, leases, messages and another droid."""
    for name in ("src/app.py", "docs/a.md", "lib/x"):
        commit_file(repo, name, "text\n")
    quick("init")
    write_lines(
        repo / ".beads" / "issues.jsonl",
        *({"id": f"qb-{n}", "title": f"issue {n}", "status": "open"} for n in (1, 2, 3)),
        {"id": "qb-4", "title": "later", "status": "open", "dependencies": ["qb-1"]},
    )
    for droid, *arguments in (
        ("reviewer", "claim", "qb-1"),
        ("reviewer", "reserve", "docs/**"),
        ("ui", "claim", "qb-3"),
        ("ui", "reserve", "lib/**"),
        ("reviewer", "msg", "send", "ui", "look at it", "--issue", "qb-3", "--ack"),
        ("reviewer", "msg", "send", "ui", "and at this"),
    ):
        assert quick(*arguments, as_=droid).code == 0
        frozen.advance(1)
    shutil.copytree(repo, tmp_path / "twin", symlinks=True)
    return QuickQueen(tmp_path / "twin")


@pytest.mark.some(12)
@pytest.mark.parametrize(
    ("tool", "given", "command"), ANSWERS, ids=[" ".join(each[2]) for each in ANSWERS]
)
def test_a_tool_answers_what_its_command_prints(
    tool: str, given: dict[str, Any], command: list[str], twin: QuickQueen, repo: Path
) -> None:
    last = records(repo / ".beads" / "queen_messages.jsonl")[-1]["id"]
    given, command = json.loads(json.dumps([given, command]).replace("LAST", last))
    ran = twin(*command, "--json", as_="ui")
    assert ran.code in (0, 1), ran
    (answer,) = called(repo, (tool, given), env={"QUEEN_DROID": "ui"})
    assert _alike(result_of(answer)) == _alike(ran.json)
    notices = json.loads(ran.err)["notices"] if ran.err else []
    assert answer.structured_content.get("notices", []) == notices
    assert [each["notices"] for each in texts(answer)[1:]] == ([notices] if notices else [])


@pytest.mark.some(8)
@pytest.mark.parametrize(
    ("tool", "given", "command", "code"), REFUSALS, ids=[" ".join(each[2]) for each in REFUSALS]
)
def test_a_tool_is_refused_as_its_command_is(
    tool: str,
    given: dict[str, Any],
    command: list[str],
    code: str,
    twin: QuickQueen,
    repo: Path,
) -> None:
    ran = twin(*command, "--json", as_="ui")
    (answer,) = called(repo, (tool, given), env={"QUEEN_DROID": "ui"})
    error = error_of(answer)
    assert error["code"] == code
    hinted = (
        {**ran.error, "hint": in_tools(ran.error["hint"])} if ran.error.get("hint") else ran.error
    )
    assert _alike(error, repo) == _alike(hinted, twin.cwd)


def test_work_that_was_discovered_becomes_an_issue(twin: QuickQueen, repo: Path) -> None:
    found = {"title": "Found", "description": "on the way", "priority": 0, "depends_on": ["qb-4"]}
    (made,) = called(repo, ("edit", found), env={"QUEEN_DROID": "ui"})
    (shown,) = called(repo, ("show", {"issue": result_of(made)["issue_id"]}))
    issue = result_of(shown)["issue"]
    assert {name: issue[name] for name in ("title", "description", "priority")} == {
        name: found[name] for name in ("title", "description", "priority")
    }
    refused = called(
        repo,
        ("edit", {"description": "x"}),
        ("show", {}),
        ("edit", {"issue": "qb-2", "depends_on": ["qb-1"]}),
    )
    assert [error_of(each)["code"] for each in refused] == ["invalid_input"] * 3


def test_a_hint_names_tools_and_their_arguments() -> None:
    commands = "queen reserve docs/a.md --wait=2h --no-verify; or: queen msg send ui 'TEXT'"
    assert in_tools(commands) == "reserve docs/a.md wait=2h no_verify; or: send ui 'TEXT'"
    assert in_tools("in a shell: queen land -m TEXT") == "in a shell: queen land -m TEXT"


@pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning")
def test_a_client_is_told_of_what_it_subscribed_to(repo: Path, quick: QuickQueen) -> None:
    quick("init")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "x", "status": "open"})

    told: list[str] = []
    came = [anyio.Event()]

    async def hear(message: Any) -> None:
        params = getattr(getattr(message, "root", message), "params", None)
        if uri := getattr(params, "uri", None):
            told.append(str(uri))
            came[0].set()

    async def act(client: Any) -> None:
        for uri in ("queen://inbox", "queen://issues/qb-1"):
            await client.subscribe_resource(uri)
        for command in (("claim", "qb-1"), ("msg", "send", "ui", "hello", "--new")):
            came[0] = anyio.Event()
            assert quick(*command, as_="reviewer").code == 0
            with anyio.fail_after(30):
                await came[0].wait()

    inside(repo, act, env={"QUEEN_DROID": "ui"}, mode="legacy", message_handler=hear)
    assert told == ["queen://issues/qb-1", "queen://inbox"]


def test_a_resource_is_what_its_command_prints(twin: QuickQueen, repo: Path) -> None:
    async def read(client: Any) -> list[Any]:
        uris = ("queen://inbox", "queen://issues/qb-3")
        found = [await client.read_resource(each) for each in uris]
        return [json.loads(each.contents[0].text) for each in found]

    for era in ERAS:
        inbox, issue = inside(repo, read, env={"QUEEN_DROID": "ui"}, mode=era)
        assert inbox == twin("msg", "inbox", "--json", as_="ui").json
        assert issue == twin("show", "qb-3", "--json", as_="ui").json


def _alike(value: Any, tree: Path | None = None) -> Any:
    """Returns the value without what differs between two copies: new ids, and where it is."""
    text = _TREE.sub(r"\1null", _ID.sub(r"\1-X", json.dumps(value)))
    return json.loads(text.replace(str(tree), "TREE") if tree is not None else text)
