"""One person is one name: the hooks, the tools and the shell of one session of a client.

Each client is a process that does what the real one was seen to do: it runs hooks and commands
through a shell, starts `queen mcp` itself, and gives them the variables that it gives.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import shaped
from hives import COMMAND

from queenbee import Hive

pytestmark = [pytest.mark.slow, pytest.mark.linux]

CLIENT = """
import json, os, subprocess, sys
hook, queen = json.loads(sys.argv[1])
served = None
def say(value):
    print(json.dumps(value), flush=True)
def ask(message):
    served.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    served.stdin.flush()
    return json.loads(served.stdout.readline()) if "id" in message else None
for line in sys.stdin:
    what, given, env = json.loads(line)
    env = {**os.environ, **env}
    if what == "hook":
        ran = subprocess.run(["sh", "-c", "! true || " + hook], input=json.dumps(given),
                             text=True, capture_output=True, env=env)
        say([ran.stdout, ran.stderr])
    elif what == "shell":
        ran = subprocess.run(["bash", "-c", f"cd . && {queen} {given}"], text=True,
                             capture_output=True, env=env)
        say([ran.stdout, ran.stderr])
    else:
        if served is None:
            served = subprocess.Popen(["sh", "-c", f"{queen} mcp"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, env=env)
            ask({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                 "capabilities": {}, "clientInfo": {"name": "some-mcp-client", "version": "1"}}})
            ask({"method": "notifications/initialized"})
        say(ask({"id": 2, "method": "tools/call", "params": given}))
"""
HOOK = f"{sys.executable} -P -m queenbee.hook.main"
IDS = {
    "claude": "1b4e28ba-2fa1-41d2-883f-0016d3cca427",
    "codex": "01a20659-01d3-7833-9e09-81f64fc7a16d",
    "gemini": "6705e3ac-6f06-4864-8ebe-622e883c5516",
    "opencode": "ses_df9972545ffesGRknNrZkOaS4j",
    "copilot": "27f52861-fcb9-403d-a0e7-5ea1c7ee18b2",
}
NAMES = {
    "claude": "claude-1b4e28ba",
    "codex": "codex-4fc7a16d",
    "gemini": "gemini-6705e3ac",
    "opencode": "opencode-rZkOaS4j",
    "copilot": "copilot-27f52861",
}


class Client:
    """A client at work in a tree."""

    def __init__(self, agent: str, tree: Path) -> None:
        self.agent, self.tree = agent, tree
        clean = {key: value for key, value in os.environ.items() if not key.startswith("QUEEN_")}
        queen = f'{COMMAND[0]} -c "{COMMAND[2]}"'
        self._process = subprocess.Popen(
            [sys.executable, "-c", CLIENT, json.dumps([HOOK, queen])],
            cwd=tree,
            env={**clean, "QUEEN_DURABILITY": "buffered"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, what: str, given: object, env: dict[str, str]) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, given, env]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def hook(self, event: dict[str, Any]) -> dict[str, Any]:
        """Returns the hook's answer to an event."""
        out, error = self._ask("hook", event, {})
        assert error == ""
        return dict(json.loads(out)) if out else {}

    def shape(self, name: str) -> dict[str, Any]:
        """Returns the answer to an event as the client was seen to send it."""
        return self.hook(json.loads(shaped(f"{self.agent}/{name}", self.tree)))

    def start(self, session: str | None = None) -> None:
        """Starts a session."""
        event = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(self.tree)}
        self.hook({**event, "agent": self.agent, "session_id": session or IDS[self.agent]})

    def shell(self, command: str, **env: str) -> Any:
        """Returns what a command prints in the shell of the session."""
        out, error = self._ask("shell", f"{command} --json", env)
        return json.loads(out or error)

    def tool(self, name: str, given: dict[str, Any] | None = None, **env: str) -> Any:
        """Returns what a tool of the server answers."""
        session = IDS[self.agent]
        meta = {"x-codex-turn-metadata": {"session_id": session}} if self.agent == "codex" else {}
        asked = {"name": name, "arguments": given or {}, "_meta": meta}
        return self._ask("tool", asked, env)["result"]["structuredContent"]

    def kill(self) -> None:
        """Ends the client without a word to its hooks."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends the client and what it started."""
        self._process.communicate(timeout=20)


@pytest.fixture
def clients(tree: Path) -> Iterator[dict[str, Client]]:
    """The five clients in one working tree; those that are not used cost nothing."""

    class Clients(dict[str, Client]):
        def __missing__(self, agent: str) -> Client:
            self[agent] = Client(agent, tree)
            return self[agent]

    made = Clients()
    yield made
    for each in made.values():
        each.stop()


def given_by(agent: str) -> dict[str, str]:
    """Returns what a client puts into the environment of its server."""
    return {
        "claude": {"CLAUDE_CODE_SESSION_ID": IDS["claude"]},
        "copilot": {"COPILOT_AGENT_SESSION_ID": IDS["copilot"]},
    }.get(agent, {})


@pytest.mark.parametrize("agent", IDS)
def test_hook_tools_and_shell_of_a_session_have_one_name(
    clients: dict[str, Client], tree: Path, agent: str
) -> None:
    client = clients[agent]
    client.start()
    name = NAMES[agent]

    assert client.tool("status", **given_by(agent))["result"]["actor"] == name
    client.tool("reserve", {"patterns": ["src/app.py"]})
    edit = {"file_path": str(tree / "src" / "app.py"), "content": "b"}
    answer = client.hook({
        "hook_event_name": "PreToolUse", "agent": agent, "session_id": IDS[agent],
        "cwd": str(tree), "tool_name": "Write", "tool_input": edit,
    })  # fmt: skip

    assert answer == {}
    assert client.shell("hive whoami") == {"droid": name, "from": f"this session of {agent}"}


def test_a_second_session_has_its_own_name_in_its_shell_too(
    clients: dict[str, Client], tree: Path
) -> None:
    (tree / ".git" / "queenbee-droid").write_text("alice\n")
    clients["claude"].start()
    clients["gemini"].start()

    assert clients["claude"].shell("hive whoami")["droid"] == "alice"
    assert clients["gemini"].shell("hive whoami")["droid"] == "alice-6705e3ac"
    assert clients["gemini"].tool("status")["result"]["actor"] == "alice-6705e3ac"


def test_an_agent_in_the_shell_of_another_one_is_itself(
    clients: dict[str, Client], tree: Path
) -> None:
    """It inherits the variables of the agent around it."""
    clients["claude"].start()
    clients["gemini"].start()
    around = given_by("claude")

    assert clients["gemini"].shell("hive whoami", **around)["droid"] == NAMES["gemini"]
    assert clients["gemini"].tool("status", **around)["result"]["actor"] == NAMES["gemini"]


def test_a_process_with_several_sessions_says_which_one_it_is(
    clients: dict[str, Client], tree: Path
) -> None:
    client = clients["codex"]
    client.start()
    client.start(other := "01a2065e-4b3b-78e2-a24a-f075a30c89a1")

    assert client.shell("hive whoami", CODEX_THREAD_ID=IDS["codex"])["droid"] == NAMES["codex"]
    assert client.shell("hive whoami", CODEX_THREAD_ID=other)["droid"] == "codex-a30c89a1"
    assert client.tool("status")["result"]["actor"] == NAMES["codex"]
    assert client.shell("hive whoami")["error"]["code"] == "no_actor"


@pytest.mark.parametrize(
    ("variable", "agent"),
    [
        ("CLAUDE_CODE_SESSION_ID", "claude"),
        ("CODEX_THREAD_ID", "codex"),
        ("COPILOT_AGENT_SESSION_ID", "copilot"),
    ],
)
def test_a_shell_has_the_name_of_its_session_without_any_hook(
    clients: dict[str, Client], tree: Path, variable: str, agent: str
) -> None:
    assert clients[agent].shell("hive whoami", **{variable: IDS[agent]})["droid"] == NAMES[agent]
    (tree / ".git" / "queenbee-droid").write_text("alice\n")
    assert clients[agent].shell("hive whoami", **{variable: IDS[agent]})["droid"] == "alice"


def test_a_subagent_of_codex_has_one_name_in_its_hooks_and_its_shell(
    clients: dict[str, Client], tree: Path
) -> None:
    client = clients["codex"]
    client.start()
    subagent = "01a2065e-53e8-7301-99b7-2ed7fb33956e"
    ids = {"CODEX_SESSION_ID": IDS["codex"], "CODEX_THREAD_ID": subagent}
    said = client.hook({
        **json.loads(shaped("codex/subagent-start", tree)),
        "session_id": IDS["codex"], "agent_id": subagent,
    })  # fmt: skip

    name = client.shell("hive whoami", **ids)["droid"]
    assert name == f"{NAMES['codex']}.fb33956e"
    assert name in json.dumps(said)


def holders(tree: Path) -> dict[str, str]:
    """Returns who holds each pattern."""
    return {each.pattern: each.droid for each in Hive.open(tree).reservations.find()}


def test_a_subagent_of_copilot_is_one_of_its_session(
    clients: dict[str, Client], tree: Path
) -> None:
    """Its tools come under an id of its own, as both session and agent; only its end says the
    session's id.
    """
    client = clients["copilot"]
    client.shape("claude-names-session-start")
    session = "copilot-5b1c9b32"
    assert client.shape("claude-names-pre-tool-use") == {}
    assert holders(tree) == {"src/app.py": session}

    assert client.shape("recorded-pre-tool-use-of-subagent") == {}
    assert holders(tree) == {"src/app.py": f"{session}.83c7e6b4"}
    other = "4dfc3e92-330a-41da-a249-a4dc31b75a20"
    assert client.shell("hive whoami", COPILOT_AGENT_SESSION_ID=other)["droid"] == session

    assert client.shape("recorded-stop-of-subagent") == {}
    client.shape("recorded-subagent-stop")
    assert holders(tree) == {}


def test_what_a_session_had_ends_with_it_or_is_told_to_the_next_one(
    clients: dict[str, Client], tree: Path
) -> None:
    client = clients["opencode"]  # Its process goes on when a session ends.
    client.start()
    client.tool("reserve", {"patterns": ["docs/**"]})
    client.shape("session-end")  # Of another session.
    assert holders(tree) == {"docs/**": NAMES["opencode"]}
    client.tool("claim", {"issue": "qb-1"})
    end = {"hook_event_name": "SessionEnd", "agent": "opencode", "cwd": str(tree)}

    client.hook({**end, "session_id": IDS["opencode"], "reason": "clear"})
    assert holders(tree) == {"docs/**": NAMES["opencode"]}
    client.start()
    client.hook({**end, "session_id": IDS["opencode"], "reason": "deleted"})

    assert holders(tree) == {}
    assert Hive.open(tree).droids.has_ended(NAMES["opencode"])
    start = {"hook_event_name": "SessionStart", "source": "startup", "cwd": str(tree)}
    answer = clients["claude"].hook({**start, "session_id": IDS["claude"]})
    assert f"{NAMES['opencode']} has qb-1, last seen " in json.dumps(answer)


def test_what_a_client_had_that_was_killed_ends_when_the_next_session_begins(
    clients: dict[str, Client], tree: Path
) -> None:
    for agent in ("opencode", "gemini"):
        clients[agent].start()
        clients[agent].tool("reserve", {"patterns": [f"{agent}/**"]})
    clients["opencode"].kill()

    clients["claude"].start()

    assert holders(tree) == {"gemini/**": NAMES["gemini"]}


def test_what_is_reserved_under_the_worktrees_name_ends_with_its_session_but_for_its_issue(
    clients: dict[str, Client], tree: Path
) -> None:
    (tree / ".git" / "queenbee-droid").write_text("alice\n")
    client = clients["gemini"]
    client.start()
    client.shell("reserve 'docs/**'")
    client.shell("claim qb-1 --new")
    client.shell("reserve 'src/**'")
    end = {"hook_event_name": "SessionEnd", "cwd": str(tree), "reason": "exit"}
    client.hook({**end, "agent": "gemini", "session_id": IDS["gemini"]})
    assert holders(tree) == {"src/**": "alice"}
