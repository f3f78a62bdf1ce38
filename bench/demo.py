"""`make demo`: three droids share one repository, told in less than a minute.

The repository is a throw-away one with two linked worktrees. Every command is the real `queen`
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

from bench.droid import close
from queenbee import Hive

QUEEN = (sys.executable, "-c", "from queenbee.cli.main import main; main()")
DROIDS = {"ui-engineer": "feature-ui", "api-engineer": "feature-api", "reviewer": "shop"}
"""Who works in which worktree; `shop` is the main one."""

ISSUES = (
    ("shop-1", "Cart shows the wrong total", 0, "cart"),
    ("shop-2", "Receipt needs the tax", 1, "receipt"),
    ("shop-3", "Search is slow", 1, "search"),
    ("shop-4", "Empty cart has no picture", 2, "cart"),
    ("shop-5", "Receipt as PDF", 2, "receipt"),
    ("shop-6", "Search by color", 2, "search"),
    ("shop-7", "Cart survives a reload", 3, "cart"),
    ("shop-8", "Receipt by mail", 3, "receipt"),
)


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

    @property
    def gist(self) -> str:
        """The line of the answer that says most."""
        said = (self.out if self.code == 0 else self.err).strip().splitlines()
        lines = [line for line in said if "does not exist yet" not in line]
        return lines[-1 if self.code == 0 else 0].removeprefix("queen: ") if lines else ""


class Stage:
    """A throw-away repository with its worktrees, and the droids in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.main = folder / "shop"
        self.env = own_environment()

    def git(self, *arguments: str) -> None:
        """Runs git in the main worktree."""
        subprocess.run(
            ["git", *arguments], cwd=self.main, env=self.env, check=True, capture_output=True
        )

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

    def close(self, issue_id: str) -> None:
        """Closes an issue in the tracker, as `bd close` would, and commits that."""
        with Hive.open(self.main, env=self.env) as hive:
            close(hive.layout.issues_path, hive.issues.get(issue_id))
        self.git("commit", "-qam", f"close {issue_id}")

    def race(self, commands: dict[str, tuple[str, ...]]) -> tuple[Said, list[Said]]:
        """Runs one command of each droid at the same moment; returns the winner and the rest."""
        for droid, words in commands.items():
            show_command(droid, words)
        begun = {droid: self.start(droid, *words) for droid, words in commands.items()}
        answers = [self.end(droid, process) for droid, process in begun.items()]
        won = [each for each in answers if each.code == 0]
        lost = [each for each in answers if each.code != 0]
        promised(len(won) == 1, f"{len(won)} of {len(answers)} droids got the same thing")
        promised(all(each.code == 5 for each in lost), "a refusal left with another status than 5")
        for each in (*won, *lost):
            verdict = "yes" if each.code == 0 else f"no, exit {each.code}"
            print(f"    {each.droid:13} {verdict:10}  {each.gist}")
        return won[0], lost


def main() -> int:
    """Tells the story; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="queenbee-demo-") as folder:
        stage = Stage(Path(folder).resolve())
        try:
            build(stage)
            owner, others = one_issue(stage)
            holder, waiter = one_file(stage, owner, others)
            a_word(stage, holder, waiter)
            a_turn(stage, holder, waiter)
            a_stash(stage)
            the_rest(stage)
        except BrokenPromise as broken:
            print(f"\nThis should not have happened: {broken}.", file=sys.stderr)
            return 1
    print("\nThat was all: text files in .beads/, one command, no server.")
    print("Next: README.md, or: .venv/bin/queen --beads-dir .beads-example show qb-12")
    return 0


def build(stage: Stage) -> None:
    """Makes the repository, its worktrees and its hive."""
    stage.main.mkdir()
    stage.git("init", "-q", "-b", "main")
    for name in ("cart", "receipt", "search"):
        (stage.main / "src" / name).mkdir(parents=True)
        (stage.main / "src" / name / "total.ts").write_text(f"// {name}\n")
    subprocess.run([*QUEEN, "init"], cwd=stage.main, env=stage.env, check=True, capture_output=True)
    rows = [
        {"id": key, "title": title, "status": "open", "priority": priority, "labels": [label]}
        for key, title, priority, label in ISSUES
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (stage.main / ".beads" / "issues.jsonl").write_text(lines)
    stage.git("add", "-A")
    stage.git("commit", "-qm", "a shop")
    for name in ("feature-ui", "feature-api"):
        stage.git("worktree", "add", "-q", str(stage.folder / name))
    print("Three droids, one git repository, two linked worktrees. Every `queen` below is real,")
    print("and a process of its own.")


def one_issue(stage: Stage) -> tuple[str, list[str]]:
    """Three droids claim one issue at the same moment."""
    heading("Who does it? All three claim the most urgent issue at once; one gets it.")
    won, lost = stage.race(dict.fromkeys(DROIDS, ("claim", "shop-1")))
    others = [each.droid for each in lost]
    print("\n  The other two take what is ready next:\n")
    for droid in others:
        ready = stage.asked(droid, "ready")
        stage.queen(droid, "claim", ready[0]["id"])
    return won.droid, others


def one_file(stage: Stage, owner: str, others: list[str]) -> tuple[str, str]:
    """Three droids reserve overlapping patterns at the same moment, from two worktrees."""
    heading("Who edits where? Three patterns that meet in src/cart/total.ts; one is granted.")
    issues = {each["droid"]: each["issue_id"] for each in stage.asked(owner, "assignments")}
    patterns = dict(zip((owner, *others), ("src/cart/**", "src/*/total.ts", "src/**"), strict=True))
    won, lost = stage.race(
        {
            droid: ("reserve", pattern, "--issue", issues[droid])
            for droid, pattern in patterns.items()
        }
    )
    print("\n  An edit can be checked beforehand, by the droid or by a hook of its editor:\n")
    checked = stage.queen(lost[0].droid, "check", "src/cart/total.ts")
    promised(checked.code == 1, "a file that another droid holds was called free")
    return won.droid, lost[0].droid


def a_word(stage: Stage, holder: str, waiter: str) -> None:
    """One droid asks another."""
    heading("They talk.")
    stage.queen(waiter, "msg", "send", holder, "How long will you need src/cart?")
    question = stage.asked(holder, "msg", "inbox", "--unread")[0]
    stage.queen(holder, "msg", "inbox")
    stage.queen(holder, "msg", "reply", question["id"], "Nearly done, wait for it.")
    stage.queen(waiter, "msg", "inbox", "--unread")


def a_turn(stage: Stage, holder: str, waiter: str) -> None:
    """One droid waits for the files of another, which finishes its issue."""
    heading("One waits; the other closes its issue and completes it, which gives its files free.")
    words = ("reserve", "src/cart/total.ts", "--wait", "30s")
    show_command(waiter, words, "   (waits)")
    waiting = stage.start(waiter, *words)
    issue = stage.asked(holder, "assignments", "--droid", holder)[0]["issue_id"]
    stage.close(issue)
    stage.queen(holder, "complete", issue, "--reason", "merged in 3f2a1bc")
    granted = stage.end(waiter, waiting)
    promised(granted.code == 0, "a waiter did not get the files that came free")
    show_command(waiter, words, "   (has it)")
    show(granted.out)
    stage.queen(waiter, "unreserve", "--all")


def a_stash(stage: Stage) -> None:
    """Git removes the ledgers, and nothing is lost."""
    heading("Somebody runs `git stash -u`, and every ledger is gone. Nothing is lost.")
    before = stage.asked("reviewer", "assignments", "--status", "all")
    stage.git("stash", "-q", "-u")
    left = sorted(path.name for path in (stage.main / ".beads").glob("queen_*.jsonl"))
    print(f"    ledgers in .beads/ after the stash: {', '.join(left) or 'none'}")
    after = stage.asked("reviewer", "assignments", "--status", "all")
    promised(before == after, "a stash took assignments away")
    stage.queen("reviewer", "assignments", "--status", "all")


def the_rest(stage: Stage) -> None:
    """The droids work through what is left, on their own."""
    heading(
        "Now on their own: claim what is ready, reserve, edit, complete, until nothing is left."
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.droid"],
            cwd=stage.folder / tree,
            env={
                **stage.env,
                "QUEEN_DROID": droid,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
            },
        )
        for droid, tree in DROIDS.items()
    ]
    codes = [each.wait(timeout=120) for each in workers]
    promised(not any(codes), "a droid ended with an error")
    done = stage.asked("reviewer", "assignments", "--status", "completed")
    per_issue = {each["issue_id"] for each in done}
    promised(len(done) == len(ISSUES) == len(per_issue), "an issue was done twice, or never")
    leases = stage.asked("reviewer", "reserved", "--all")
    promised(no_two_at_once(leases), "two droids held one folder at the same time")
    print(f"    {len(done)} issues, each done once; no folder was held by two droids at a time:\n")
    stage.queen("reviewer", "assignments", "--status", "completed")


def no_two_at_once(leases: list[dict[str, Any]]) -> bool:
    """Returns whether the leases on each pattern followed one another."""
    spans: dict[str, list[tuple[str, str]]] = {}
    for lease in leases:
        end = lease.get("released_at", lease["expires_at"])
        spans.setdefault(lease["pattern"], []).append((lease["created_at"], end))
    return all(
        end <= begin
        for each in spans.values()
        for (_, end), (begin, _) in zip(sorted(each), sorted(each)[1:], strict=False)
    )


def promised(held: bool, otherwise: str) -> None:
    """Raises `BrokenPromise` if something does not hold."""
    if not held:
        raise BrokenPromise(otherwise)


def heading(text: str) -> None:
    """Begins a part of the story."""
    print(f"\n{text}\n")


def show_command(droid: str, words: tuple[str, ...], more: str = "") -> None:
    """Shows who types what, and where."""
    typed = " ".join(f"'{word}'" if set(word) & set(" *?") else word for word in words)
    print(f"  {f'{droid} in {DROIDS[droid]}':27} $ queen {typed}{more}", flush=True)


def show(text: str) -> None:
    """Shows what a command said."""
    for line in text.rstrip().splitlines():
        print(f"    {line[:108]}")


if __name__ == "__main__":
    sys.exit(main())
