"""`make demo`: three agents and a person share one repository, told in less than 20 seconds.

The repository is a throw-away one with three linked worktrees. Every command is the real `queen`
in a process of its own; if droids race, their processes start at the same moment. The demo prints
what they answer, and checks the promises of QueenBee on the way: if one does not hold, it ends
with status 1 and says which.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

QUEEN = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
AGENTS = ("ui", "api", "docs")
DROIDS = {"ann": "shop", **{name: f"shop-{name}" for name in AGENTS}}
"""Who works in which worktree; `ann` is the person in the main one."""

ISSUES = ("Cart shows the wrong total", "Receipt needs the tax", "Search is slow")
LATER = ("Empty cart has a picture", "Receipt as PDF")
MORTAL = """if mkdir "$QUEEN_DEMO" 2> /dev/null; then kill -9 $$; fi
echo done > "$QUEEN_ISSUE.txt" """
"""An agent of its own make: the first one that runs is killed in the middle of its issue."""


class BrokenPromise(Exception):
    """A promise of QueenBee that did not hold."""


def own_environment() -> dict[str, str]:
    """Returns an environment that knows nothing of who runs the story, nor of the user's git."""
    dropped = ("QUEEN_", "FACTORY_DROID", "BEADS_DIR", "GIT_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    for role in ("AUTHOR", "COMMITTER"):
        env |= {f"GIT_{role}_NAME": "Demo", f"GIT_{role}_EMAIL": "demo@example.com"}
    return env | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "NO_COLOR": "1"}


class Said:
    """The answer of one command."""

    def __init__(self, droid: str, code: int, out: str, err: str) -> None:
        self.droid = droid
        self.code = code
        self.out = out
        self.err = err


class Stage:
    """A throw-away repository with its worktrees, and the droids in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = folder / "shop"
        self.env = own_environment()

    def git(self, *arguments: str) -> str:
        """Runs git in the main worktree and returns what it prints."""
        return subprocess.run(
            ["git", *arguments],
            cwd=self.main, env=self.env, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip

    def start(self, droid: str, *words: str) -> subprocess.Popen[str]:
        """Starts a droid's `queen` in its worktree and returns at once."""
        return subprocess.Popen(
            [*QUEEN, *words],
            cwd=self.folder / DROIDS[droid],
            env={**self.env, "QUEEN_DROID": droid},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, droid: str, process: subprocess.Popen[str]) -> Said:
        """Waits for a droid's command and returns its answer."""
        out, err = process.communicate(timeout=60)
        return Said(droid, process.returncode, out, err)

    def queen(self, droid: str, *words: str) -> Said:
        """Runs one command and shows it with its answer."""
        show_command(droid, words)
        said = self.end(droid, self.start(droid, *words))
        show(said.out or said.err)
        return said

    def asked(self, droid: str, *words: str) -> Any:
        """Returns the JSON that a command answers, without showing it."""
        return json.loads(self.end(droid, self.start(droid, *words, "--json")).out)

    def race(self, commands: dict[str, tuple[str, ...]]) -> list[Said]:
        """Runs one command of each droid at the same moment, and shows them with the answers."""
        for droid, words in commands.items():
            show_command(droid, words)
        begun = {droid: self.start(droid, *words) for droid, words in commands.items()}
        answers = [self.end(droid, process) for droid, process in begun.items()]
        for each in answers:
            print(f"\n   {each.droid}:")
            show(each.out or each.err)
        return answers


def main() -> int:
    """Tells the story; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="queenbee-demo-") as folder:
        stage = Stage(Path(folder).resolve())
        try:
            build(stage)
            an_issue_each(stage)
            one_file(stage)
            a_word(stage)
            landing(stage)
            a_stash(stage)
            a_team(stage)
        except BrokenPromise as broken:
            print(f"\nThis should not have happened: {broken}.", file=sys.stderr)
            return 1
    queen = os.path.join(os.path.dirname(sys.executable), "queen")
    print(
        "\nThat was all: text files in .beads/, one command, no server. In a repository of yours:\n"
    )
    print(f"  export PATH={os.path.dirname(queen)}:$PATH")
    print("  queen init && queen setup")
    print("  queen issue new 'What is to be done'")
    print("  queen start --agent claude,codex --yolo   # or gemini, opencode, copilot, qwen, kilo")
    return 0


def build(stage: Stage) -> None:
    """Makes the repository with its hive, its issues, and a worktree for each agent."""
    stage.main.mkdir()
    stage.git("init", "-q", "-b", "main")
    # Its check is its own: nothing of it is kept in the user's home.
    stage.git("config", "queenbee.trust", "all")
    for name in ("cart", "receipt", "search"):
        (stage.main / "src" / name).mkdir(parents=True)
        (stage.main / "src" / name / "total.ts").write_text(f"// {name}\n")
    (stage.main / "CHANGELOG.md").write_text("# Changes\n\n")
    print("Three agents and Ann, one git repository. Every `queen` below is real.\n")
    stage.queen("ann", "init")
    counted = f"echo run >> {stage.folder}/checks; sleep 1; test -s CHANGELOG.md"
    stage.asked("ann", "config", "set", "land.check", counted)
    for number, title in enumerate(ISSUES, 1):
        stage.queen("ann", "issue", "new", title, "--id", f"shop-{number}")
    stage.git("add", "-A")
    stage.git("commit", "-qm", "a shop")
    for name in AGENTS:
        stage.queen("ann", "worktree", "add", name)


def an_issue_each(stage: Stage) -> None:
    """Three agents ask for work at the same moment."""
    heading("Who does what? All three type `queen next` at once, and each gets another issue.")
    answers = stage.race(dict.fromkeys(AGENTS, ("next",)))
    promised(all(each.code == 0 for each in answers), "an agent got no issue")
    taken = {each["issue_id"] for each in stage.asked("ann", "issue", "assignments")}
    promised(len(taken) == len(AGENTS), f"{len(AGENTS)} agents got {len(taken)} issues")


def one_file(stage: Stage) -> None:
    """Two agents want files that overlap."""
    heading("Who edits where? Two patterns that meet; the first is granted.")
    won = stage.queen("ui", "reserve", "src/cart/**")
    lost = stage.queen("api", "reserve", "src/*/total.ts")
    promised((won.code, lost.code) == (0, 5), "two agents got one file")


def a_word(stage: Stage) -> None:
    """One agent waits for mail, which another sends."""
    heading("They talk: one waits for mail, and it arrives.")
    words = ("issue", "wait", "--mail", "--timeout", "30s")
    show_command("api", words, "   (waits)")
    waiting = stage.start("api", *words)
    stage.queen("ui", "msg", "send", "api", "src/cart is yours when I have landed.")
    promised(stage.end("api", waiting).code == 0, "mail did not arrive")
    read = stage.queen("api", "msg", "read")
    promised("when I have landed" in read.out, "mail was lost")


def landing(stage: Stage) -> None:
    """Three branches that conflict in one file land together."""
    heading("They land at once, after all three added a line to the same place of CHANGELOG.md.")
    for name, folder in zip(AGENTS, ("cart", "receipt", "search"), strict=True):
        tree = stage.folder / DROIDS[name]
        (tree / "src" / folder / "total.ts").write_text(f"// {folder}, by {name}\n")
        with (tree / "CHANGELOG.md").open("a") as file:
            file.write(f"- {folder}: mended\n")
    answers = stage.race({name: ("land", "-m", f"Mend it, by {name}") for name in AGENTS})
    promised(all(each.code == 0 for each in answers), "work did not land")
    lines = (stage.main / "CHANGELOG.md").read_text().splitlines()
    promised(len([each for each in lines if each.endswith("mended")]) == 3, "a line was lost")
    runs = len((stage.folder / "checks").read_text().splitlines())
    often = "once" if runs == 1 else f"{runs} times"
    print(f"\n    the check ran {often} for 3 branches; the conflict was joined:\n")
    show("\n".join(lines[2:]))


def a_stash(stage: Stage) -> None:
    """Git removes what was written, and nothing is lost."""
    heading("Ann describes more work, and somebody runs `git stash -u`. Nothing is lost.")
    for number, title in enumerate(LATER, len(ISSUES) + 1):
        stage.queen("ann", "issue", "new", title, "--id", f"shop-{number}")
    before = stage.asked("ann", "issues")
    stage.git("stash", "-q", "-u")
    promised(stage.asked("ann", "issues") == before != [], "a stash took issues away")
    stage.queen("ann", "issues")


def a_team(stage: Stage) -> None:
    """A team does the rest; one of its agents dies, and is replaced."""
    heading("A team does the rest. Its agents are a line of shell, and the first one is killed.")
    stage.env["QUEEN_DEMO"] = str(stage.folder / "killed")
    ended = stage.queen("ann", "start", "--agent", MORTAL, "--size", "2")
    promised((stage.folder / "killed").exists(), "no agent was killed")
    promised(ended.code == 0, "work was left after an agent died")
    promised(stage.asked("ann", "issues") == [], "an issue is open")
    print()
    show(stage.git("log", "--first-parent", "--format=%h %s"))


def promised(held: bool, otherwise: str) -> None:
    """Raises `BrokenPromise` if something does not hold."""
    if not held:
        raise BrokenPromise(otherwise)


def heading(text: str) -> None:
    """Begins a part of the story."""
    print(f"\n{text}\n")


def show_command(droid: str, words: tuple[str, ...], more: str = "") -> None:
    """Shows who types what, and where."""
    short = ("AGENT" if word == MORTAL else word for word in words)
    typed = " ".join(f"'{word}'" if set(word) & set(" *?") else word for word in short)
    print(f"  {f'{droid} in {DROIDS[droid]}':17} $ queen {typed}{more}", flush=True)


def show(text: str) -> None:
    """Shows what a command said."""
    for line in text.rstrip().splitlines():
        print(f"    {line[:108]}")


if __name__ == "__main__":
    sys.exit(main())
