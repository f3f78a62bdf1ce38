"""Several sessions and subagents in one worktree: each has a name, and none passes for another.

Each event is a real `queen-hook` process. Its parent is what an agent is to its hooks: a process
that lives as long as its session.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_inputs import OTHER_SESSION, SESSION, shaped
from entry_points import run_hook
from hives import commit_file, git

from queenbee import Hive

FIRST, SECOND = "claude-1b4e28ba", "claude-7c9e6679"
SUB, OTHER_SUB = "a4d2c8f19e0b", "bbbbbbbbbbbb"
THIRD_SESSION = "33333333-7425-40de-944b-e07fc1f90ae7"

AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    event = json.loads(line)
    ran = subprocess.run(
        ["sh", "-c", "! false || true; " + sys.argv[1]], input=json.dumps(event), text=True,
        capture_output=True,
    )
    print(json.dumps([ran.stdout, ran.stderr]), flush=True)
"""
HOOK = f"{sys.executable} -P -m queenbee.hook.main"


class Agent:
    """A process that runs hooks, as an agent does."""

    def __init__(self, tree: Path, **env: str) -> None:
        self.tree = tree
        clean = {key: value for key, value in os.environ.items() if not key.startswith("QUEEN_")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGENT, HOOK],
            cwd=tree,
            env={**clean, "QUEEN_DURABILITY": "buffered", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, shape: str, **changes: Any) -> dict[str, Any] | None:
        """Returns the hook's answer to an event of this agent."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(shaped(shape, self.tree, **changes).decode() + "\n")
        self._process.stdin.flush()
        out, error = json.loads(self._process.stdout.readline())
        assert error == ""
        return json.loads(out) if out else None

    def start(self, session: str = SESSION, source: str = "startup") -> str:
        """Starts a session; returns the name that it is told."""
        answer = self.send("claude/session-start", session_id=session, source=source)
        text = answer["hookSpecificOutput"]["additionalContext"] if answer else ""
        return str(
            text.replace("You are ", "you are ").partition("you are ")[2].split()[0].rstrip(".,;:")
        )

    def edit(self, name: str, session: str = SESSION, **changes: Any) -> str:
        """Edits a file; returns the reason of a refusal, or "" """
        arguments = {"file_path": str(self.tree / name), "old_string": "a", "new_string": "b"}
        answer = self.send(
            "claude/pre-tool-use", session_id=session, tool_input=arguments, **changes
        )
        return answer["hookSpecificOutput"]["permissionDecisionReason"] if answer else ""

    def die(self) -> None:
        """Ends at once, without a word to its hooks."""
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def agents(tree: Path) -> Iterator[list[Agent]]:
    """Three agents in one worktree."""
    made = [Agent(tree) for _ in range(3)]
    yield made
    for each in made:
        each.die()


def hive_of(tree: Path, droid: str | None = None) -> Hive:
    return Hive.open(tree, droid=droid, env={"QUEEN_DURABILITY": "buffered"})


def holders(tree: Path) -> dict[str, str]:
    return {lease.pattern: lease.droid for lease in hive_of(tree).reservations.find()}


def remember(tree: Path, name: str) -> None:
    (tree / ".git" / "queenbee-droid").write_text(f"{name}\n")


# A second session


def test_the_first_session_bears_the_worktrees_name_and_a_second_one_another(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    assert agents[0].start() == "alice"
    assert agents[1].start(OTHER_SESSION) == "alice-7c9e6679"

    agents[0].edit("src/app.py")

    assert "src/app.py is reserved by alice" in agents[1].edit("src/app.py", OTHER_SESSION)
    assert agents[1].edit("docs.md", OTHER_SESSION) == ""
    assert holders(tree) == {"src/app.py": "alice", "docs.md": "alice-7c9e6679"}


def test_sessions_that_edit_before_they_say_that_they_start_are_told_apart(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].edit("a.py")
    agents[1].edit("b.py", OTHER_SESSION)
    assert holders(tree) == {"a.py": "alice", "b.py": "alice-7c9e6679"}


def test_a_second_session_keeps_its_name_when_the_first_one_ends(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[1].start(OTHER_SESSION)
    agents[0].send("claude/session-end", session_id=SESSION, reason="prompt_input_exit")
    agents[1].edit("b.py", OTHER_SESSION)
    assert agents[1].start(OTHER_SESSION, "compact") == "alice-7c9e6679"
    assert holders(tree) == {"b.py": "alice-7c9e6679"}
    assert agents[2].start(THIRD_SESSION) == "alice"


def test_an_agent_that_died_leaves_its_name_to_the_next_session(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    assert agents[0].start() == "alice"
    agents[0].die()
    assert agents[1].start(OTHER_SESSION) == "alice"


def test_an_agent_that_resumes_a_session_keeps_its_name(tree: Path, agents: list[Agent]) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[1].start(OTHER_SESSION)
    agents[1].die()
    assert agents[2].start(OTHER_SESSION, "resume") == "alice-7c9e6679"
    agents[0].die()
    agent = Agent(tree)
    assert agent.start(SESSION, "resume") == "alice"
    agent.die()


@pytest.mark.some(1)
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_a_session_that_is_cleared_keeps_its_name(
    tree: Path, agents: list[Agent], told: bool, named: bool
) -> None:
    """Also if the agent does not wait for the hook of the old session's end."""
    if named:
        remember(tree, "alice")
    agents[0].start()
    mine = "alice-7c9e6679" if named else SECOND
    assert agents[1].start(OTHER_SESSION) == mine
    if told:
        agents[1].send("claude/session-end", session_id=OTHER_SESSION, reason="clear")
    assert agents[1].start(THIRD_SESSION, "clear") == mine
    if not told:
        agents[1].send("claude/session-end", session_id=OTHER_SESSION, reason="clear")
    agents[1].edit("b.py", THIRD_SESSION)
    assert holders(tree) == {"b.py": mine}


def test_the_end_of_a_session_ends_its_leases_also_if_it_comes_late(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[0].edit("a.py")
    agents[0].edit("b.py", agent_id=SUB)
    agents[0].start(OTHER_SESSION, "clear")
    agents[0].edit("c.py", OTHER_SESSION)
    agents[0].send("claude/session-end", session_id=SESSION, reason="clear")
    assert holders(tree) == {"c.py": "alice"}


def test_a_name_from_the_user_is_that_of_every_session_that_has_it(
    tree: Path,
) -> None:
    remember(tree, "alice")
    both = [Agent(tree, QUEEN_DROID="bob"), Agent(tree, QUEEN_DROID="bob")]
    assert [both[0].start(), both[1].start(OTHER_SESSION)] == ["bob", "bob"]
    for each in both:
        each.die()


def test_each_worktree_has_a_first_session_of_its_own(tree: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    commit_file(tree, "first.py")
    git(tree, "worktree", "add", "-q", str(linked))
    remember(tree, "alice")
    (tree / ".git" / "worktrees" / "linked" / "queenbee-droid").write_text("bob\n")
    both = [Agent(tree), Agent(linked)]
    assert [both[0].start(), both[1].start(OTHER_SESSION)] == ["alice", "bob"]
    for each in both:
        each.die()


def test_a_hive_with_a_list_of_droids_gets_no_name_that_is_not_in_it(
    tree: Path, agents: list[Agent]
) -> None:
    (tree / ".factory" / "droids").mkdir(parents=True)
    (tree / ".factory" / "droids" / "alice.md").write_text("A droid.\n")
    remember(tree, "alice")
    assert agents[0].start() == "alice"
    assert agents[1].start(OTHER_SESSION) == "alice"
    agents[0].edit("b.py", agent_id=SUB)
    assert holders(tree) == {"b.py": "alice"}


# A subagent


def test_a_subagent_has_its_own_name_under_that_of_its_session(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[0].edit("a.py", agent_id=SUB)
    assert holders(tree) == {"a.py": "alice.c8f19e0b"}
    assert "a.py is reserved by alice.c8f19e0b" in agents[0].edit("a.py")
    assert "a.py is reserved by alice.c8f19e0b" in agents[0].edit("a.py", agent_id=OTHER_SUB)


def test_a_subagent_is_told_its_name(tree: Path, agents: list[Agent]) -> None:
    agents[0].start()
    answer = agents[0].send("claude/subagent-start", agent_id=SUB)
    assert answer is not None
    text = answer["hookSpecificOutput"]["additionalContext"]
    assert f"you are {FIRST}.c8f19e0b, a subagent of {FIRST}." in text
    assert f"--as {FIRST}.c8f19e0b" in text


def test_the_end_of_a_subagent_ends_its_leases_and_no_others(
    tree: Path, agents: list[Agent]
) -> None:
    agents[0].start()
    agents[0].edit("a.py")
    agents[0].edit("b.py", agent_id=SUB)
    agents[0].edit("c.py", agent_id=OTHER_SUB)
    agents[0].send("claude/subagent-stop", agent_id=SUB)
    assert holders(tree) == {"a.py": FIRST, "c.py": f"{FIRST}.bbbbbbbb"}
    assert f"{FIRST}.c8f19e0b" not in os.listdir(tree / ".git" / "queenbee" / "droids")


def test_a_file_that_its_session_has_edited_is_handed_to_a_subagent(
    tree: Path, agents: list[Agent]
) -> None:
    agents[0].start()
    agents[0].edit("a.py")
    assert agents[0].edit("a.py", agent_id=SUB) == ""
    assert holders(tree) == {"a.py": f"{FIRST}.c8f19e0b"}
    assert "a.py is reserved by" in agents[0].edit("a.py")
    agents[0].send("claude/subagent-stop", agent_id=SUB)
    assert agents[0].edit("a.py") == ""


def test_what_its_session_has_reserved_by_name_is_open_to_a_subagent_and_to_no_other(
    tree: Path, agents: list[Agent]
) -> None:
    agents[0].start()
    hive_of(tree, FIRST).reservations.reserve(["src/**"])
    assert agents[0].edit("src/app.py", agent_id=SUB) == ""
    assert holders(tree) == {"src/**": FIRST}
    refused = agents[1].edit("src/app.py", OTHER_SESSION, agent_id=SUB)
    assert f"src/app.py is reserved by {FIRST}" in refused


def test_a_subagent_of_another_session_does_not_get_the_files_of_this_one(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[1].start(OTHER_SESSION)
    agents[0].edit("a.py")
    assert "a.py is reserved by alice" in agents[1].edit("a.py", OTHER_SESSION, agent_id=SUB)


# Names, and races


@pytest.mark.parametrize("name", ["a" * 64, "b" * 60, "c"])
def test_a_name_that_is_made_is_no_longer_than_a_name_may_be(
    tree: Path, agents: list[Agent], name: str
) -> None:
    remember(tree, name)
    agents[0].start()
    made = agents[1].start(OTHER_SESSION)
    assert len(made) <= 64
    assert made.endswith("-7c9e6679")
    assert made.startswith(name[:55])


def test_of_sessions_that_start_at_once_one_is_the_first(tree: Path, agents: list[Agent]) -> None:
    remember(tree, "alice")
    ids = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(12)]
    ran = [
        subprocess.Popen(
            HOOK.split(), cwd=tree, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "QUEEN_DURABILITY": "buffered"},
        )
        for _ in ids
    ]  # fmt: skip
    for process, session in zip(ran, ids, strict=True):
        assert process.stdin is not None
        process.stdin.write(shaped("claude/session-start", tree, session_id=session))
    for process in ran:
        assert process.stdin is not None
        process.stdin.close()
    told = []
    for process in ran:
        assert process.stdout is not None
        told.append(process.stdout.read().decode().count("You are alice."))
        process.stdout.close()
        process.wait()
    assert sum(told) == 1


def test_a_session_that_was_quiet_for_long_leaves_its_name(tree: Path, agents: list[Agent]) -> None:
    remember(tree, "alice")
    agents[0].start()
    (file,) = (tree / ".git" / "queenbee" / "sessions" / "git").iterdir()
    long_ago = time.time() - 12 * 3600 - 60
    os.utime(file, (long_ago, long_ago))
    assert agents[1].start(OTHER_SESSION) == "alice"
    agents[0].edit("a.py")
    assert holders(tree) == {"a.py": "alice-1b4e28ba"}


def test_a_session_that_is_being_cleared_does_not_lose_its_name(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    agents[0].start()
    agents[0].send("claude/session-end", session_id=SESSION, reason="clear")
    assert agents[1].start(OTHER_SESSION) == "alice-7c9e6679"
    assert agents[0].start(THIRD_SESSION, "clear") == "alice"


def test_sessions_of_one_process_do_not_pass_for_each_other(
    tree: Path, agents: list[Agent]
) -> None:
    remember(tree, "alice")
    assert agents[0].start() == "alice"
    assert agents[0].start(OTHER_SESSION) == "alice-7c9e6679"
    assert agents[0].start(THIRD_SESSION, "resume") == "alice-33333333"


def test_the_second_session_of_a_droid_has_a_name_of_its_own(tree: Path) -> None:
    remember(tree, "alice")
    told = []
    for session in (SESSION, OTHER_SESSION):
        data = shaped("claude/session-start", tree, session_id=session)
        answer = run_hook(data, {"QUEEN_DURABILITY": "buffered"}, str(tree))
        assert answer is not None
        text = answer["hookSpecificOutput"]["additionalContext"]
        told += re.findall(r"[Yy]ou are (alice[-0-9a-f]*)", text)[:1]
    assert told == ["alice", "alice-7c9e6679"]
