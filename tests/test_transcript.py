"""An agent that knows nothing but what the hook and its own commands tell it finishes two issues
beside another one. Real processes, real git, two worktrees.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hives import COMMAND, commit_file, git, write_lines

from queenbee import Hive

pytestmark = pytest.mark.slow

SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
HOOK = "from queenbee.hook.main import main; main()"
MOST_CALLS = 25


class Agent:
    """Runs no command that it has not read in what it was told, and fills in only the words that
    are written in capitals. What it is told is kept, word for word, in `transcript`.
    """

    def __init__(self, tree: Path, bin_folder: Path) -> None:
        self.tree = tree
        self.transcript: list[str] = []
        self.commands: list[str] = []
        self._env = {
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "HOME": str(tree.parent),
            "QUEEN_DURABILITY": "buffered",
            "CLAUDE_CODE_SESSION_ID": SESSION,
        }

    def told(self) -> str:
        return "\n".join(self.transcript)

    # What its program does around it

    def event(self, name: str, **fields: object) -> dict[str, object]:
        """Hands an event to the hook, and reads what the model would read of the answer."""
        event = {"session_id": SESSION, "cwd": str(self.tree), "hook_event_name": name, **fields}
        done = subprocess.run(
            [sys.executable, "-P", "-c", HOOK],
            input=json.dumps(event).encode(),
            cwd=self.tree,
            env=self._env,
            capture_output=True,
            timeout=60,
        )
        assert done.stderr == b""
        answer = json.loads(done.stdout) if done.stdout else {}
        specific = answer.get("hookSpecificOutput", {})
        self.transcript += [
            text for text in (specific.get("additionalContext"), answer.get("reason")) if text
        ]
        return dict(answer)

    def run(self, line: str) -> str:
        """Runs a shell command, as the tool `Bash`, and reads what it prints and what is new."""
        self.commands.append(line)
        assert len(self.commands) < MOST_CALLS, self.commands
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.tree,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.transcript.append(done.stdout + done.stderr)
        self.event("PostToolUse", tool_name="Bash", tool_input={"command": line})
        return done.stdout

    def write(self, name: str, text: str) -> None:
        """Writes a file, as the tool `Write`."""
        arguments = {"file_path": str(self.tree / name), "content": text}
        answer = self.event("PreToolUse", tool_name="Write", tool_input=arguments)
        assert not answer, answer
        (self.tree / name).write_text(text)
        self.event("PostToolUse", tool_name="Write", tool_input=arguments)

    # What the model does

    def found(self, pattern: str, text: str | None = None) -> str:
        """Returns the last command in what it was told that begins like this."""
        every = re.findall(pattern, self.told() if text is None else text)
        assert every, f"was never told of {pattern}:\n{self.told()}"
        return str(every[-1])

    def step(self, number: int) -> str:
        """Returns the first command in a step of the loop, as the session's start told it."""
        [line] = re.findall(rf"^{number}\. (.*)$", self.transcript[0], re.MULTILINE)
        return str(re.findall(r"`(queen [^`]*)`", line)[0])

    def answer_mail(self) -> None:
        """Reads its mail and answers it, if it was told that there is some."""
        news = [each for each in self.transcript if each.startswith("News for")]
        for text in news[self.answered :]:
            if "To read your mail: " in text:
                self.run(self.found(r"To read your mail: (queen .*)", text))
            for command in re.findall(r"it wants an answer: (queen .*)", text):
                self.run(command.replace("TEXT", "'Yes, gladly.'"))
        self.answered = len(news)

    answered = 0

    def work(self, told: str) -> bool:
        """Does the issue that a command has printed; returns False if there is none."""
        described = re.search(r"is yours: .*?Write (\S+) with (\w+) in it\.", told, re.DOTALL)
        if described is None:
            return False
        self.write(described[1], f"{described[2]}\n")
        self.run(f"git add {described[1]} && git commit -qm work")
        return True


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with a hive and three issues, each about a file of its own."""
    tree = tmp_path / "shop"
    tree.mkdir()
    git(tree, "init", "-q", "-b", "main")
    git(tree, "config", "user.name", "a person")
    git(tree, "config", "user.email", "person@example.org")
    git(tree, "config", "queenbee.trust", "all")
    commit_file(tree, "README.md", "a shop\n")
    (tree / ".beads").mkdir()
    (tree / ".beads" / "queen.toml").write_text("[land]\ncheck = 'test -s README.md'\n")
    write_lines(
        tree / ".beads" / "issues.jsonl",
        *(
            {"id": f"shop-{n}", "title": f"File {n}", "status": "open", "priority": n}
            | {"description": f"Write {n}.txt with {word} in it."}
            for n, word in enumerate(("zero", "one", "two"))
        ),
    )
    for name in ("agent", "other"):
        git(tree, "worktree", "add", "-q", str(tmp_path / name), "-b", name)
    return tree


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with `queen` in it, as a shell finds it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "queen"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -P -c '{COMMAND[2]}' \"$@\"\n")
    script.chmod(0o755)
    return folder


class Other:
    """Another agent, which takes the first issue, writes to everybody, and lands its work."""

    def __init__(self, tree: Path, bin_folder: Path) -> None:
        self.tree = tree
        self.begun, self.has_written, self.may_land = (threading.Event() for _ in range(3))
        self.failure: BaseException | None = None
        self._env = {**os.environ, "PATH": f"{bin_folder}:/usr/bin:/bin", "QUEEN_DROID": "other"}
        self.thread = threading.Thread(target=self._work)

    def queen(self, *words: str) -> str:
        done = subprocess.run(
            ["queen", *words], cwd=self.tree, env=self._env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _work(self) -> None:
        try:
            assert "shop-0 is yours" in self.queen("next")
            self.begun.set()
            commit_file(self.tree, "0.txt", "zero\n")
            assert self.may_land.wait(60)
            self.queen("msg", "send", "@all", "Shall we rename the shop?", "--ack")
            self.has_written.set()
            self.queen("land", "--check", "true")
        except BaseException as error:
            self.failure = error
            self.begun.set()
            self.has_written.set()


def test_an_agent_that_knows_only_what_it_is_told_finishes_two_issues(
    shop: Path, tmp_path: Path, bin_folder: Path
) -> None:
    other = Other(tmp_path / "other", bin_folder)
    agent = Agent(tmp_path / "agent", bin_folder)
    other.thread.start()
    try:
        assert other.begun.wait(60)
        agent.event("SessionStart", source="startup")
        printed = agent.run(agent.step(1))
        # It takes a rest, and is asked whether that is meant.
        assert agent.event("Stop", stop_hook_active=False)["decision"] == "block"
        other.may_land.set()
        assert other.has_written.wait(60)
        while agent.work(printed):
            agent.answer_mail()
            printed = agent.run(agent.step(3))
        while "Everything is done" not in printed:
            printed = agent.run(agent.step(4))
        agent.answer_mail()
        assert agent.event("Stop", stop_hook_active=False) == {}
    finally:
        other.may_land.set()
        other.thread.join()
    assert other.failure is None

    with Hive.open(shop, droid="human", env={}) as hive:
        by = {each.issue_id: each.droid for each in hive.assignments.find(status="completed")}
        assert by == {
            "shop-0": "other",
            "shop-1": "claude-1b4e28ba",
            "shop-2": "claude-1b4e28ba",
        }
        assert all(issue.done for issue in hive.issues.all().values())
        assert hive.assignments.find() == []
    landed = git(shop, "ls-tree", "-r", "--name-only", "main").split()
    assert {"0.txt", "1.txt", "2.txt"} <= set(landed)
    with Hive.open(shop, droid="other", env={}) as hive:
        assert [each.body for each in hive.messages.inbox(from_="claude-1b4e28ba")] == [
            "Yes, gladly."
        ]
    # It asked for nothing: what it was told once, it was told once.
    assert agent.told().count("“Shall we rename the shop?”") == 1
    assert not [each for each in agent.commands if "inbox" in each or "status" in each]
    coordinating = [each for each in agent.commands if each.startswith("queen ")]
    assert len(coordinating) <= 7, coordinating


def test_an_agent_that_is_told_nothing_does_nothing(tmp_path: Path, bin_folder: Path) -> None:
    """The script knows no command of its own."""
    agent = Agent(tmp_path, bin_folder)
    agent.transcript.append("Several agents share this repository.")
    with pytest.raises(ValueError, match="not enough values"):
        agent.step(1)
    source = Path(__file__).read_text(encoding="utf-8").partition("class Agent")[2]
    source = source.partition("@pytest.fixture")[0]
    named = set(re.findall(r"queen ([a-z]+)", source))
    assert named == set()
