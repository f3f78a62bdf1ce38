"""`make demo-machines`: three machines share one git remote, one of them loses its network.

The machines are three clones in a throw-away folder, and each has a cable of its own to the remote:
a link that the demo pulls. The clock of one of them is an hour behind. Every command is the real
`queen` in a process of its own. The demo prints what they answer, and checks the promises on the
way: if one does not hold, it ends with status 1 and says which.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import demo
from bench.demo import BrokenPromise, heading, promised, show

MACHINES = {"ada": "laptop", "bob": "desktop", "eve": "cloud"}
"""Who works on which machine."""
LATE = "desktop"
"""The clock of this machine is an hour behind."""
RACES = 4
ISSUES = 2 + RACES
_MIGRATIONS = "db/migrations/**"
_BEHIND = (
    "import time; now = time.time_ns; time.time_ns = lambda: now() - 3_600_000_000_000; "
    "from queenbee.cli.main import main; main()"
)


class Said:
    """The answer of one command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.text = "\n".join(each for each in (out.rstrip(), err.rstrip()) if each)


class Stage:
    """A remote, and the machines that reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote = folder / "remote.git"
        self.env = demo.Stage(folder).env

    def git(self, place: Path, *arguments: str) -> str:
        """Runs git in a place, and returns what it prints."""
        done = subprocess.run(
            ["git", *arguments], cwd=place, env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def add(self, machine: str) -> None:
        """Clones the repository on a machine, through a cable of its own."""
        self.plug(machine)
        url = f"file://{self._cable(machine)}/remote.git"
        self.git(self.folder, "clone", "-q", url, machine)

    def plug(self, machine: str) -> None:
        """Connects a machine with the remote."""
        self._cable(machine).symlink_to(self.folder)

    def pull(self, machine: str) -> None:
        """Cuts a machine off."""
        self._cable(machine).unlink()

    def start(self, droid: str, *words: str) -> subprocess.Popen[str]:
        """Starts a droid's `queen` on its machine and returns at once."""
        machine = MACHINES[droid]
        queen = (sys.executable, "-c", _BEHIND) if machine == LATE else demo.QUEEN
        return subprocess.Popen(
            [*queen, *words],
            cwd=self.folder / machine,
            env={**self.env, "QUEEN_DROID": droid},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def queen(self, droid: str, *words: str, code: int = 0) -> Said:
        """Runs one command and shows it with its answer, which is to have this exit status."""
        typed = " ".join(f"'{word}'" if "*" in word else word for word in words)
        print(f"  {droid} on the {MACHINES[droid]:8} $ queen {typed}", flush=True)
        said = self._end(self.start(droid, *words))
        show(said.text.replace(str(self.folder), "..."))
        if said.code:
            print(f"    (exit {said.code})")
        promised(said.code == code, f"queen {typed} exits with {said.code} instead of {code}")
        return said

    def asked(self, droid: str, *words: str) -> Any:
        """Returns the JSON that a command answers, without showing it."""
        out, _ = self.start(droid, *words, "--json").communicate(timeout=60)
        return json.loads(out)

    def at_once(self, *words: str) -> list[int]:
        """Runs one command on both machines at the same moment; returns the exit statuses."""
        return [self._end(each).code for each in [self.start(x, *words) for x in ("ada", "bob")]]

    def _end(self, process: subprocess.Popen[str]) -> Said:
        out, err = process.communicate(timeout=60)
        return Said(process.returncode, out, err)

    def _cable(self, machine: str) -> Path:
        return self.folder / f"cable-of-the-{machine}"


def main() -> int:
    """Tells the story; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="queenbee-machines-") as folder:
        stage = Stage(Path(folder).resolve())
        try:
            build(stage)
            one_issue(stage)
            partition(stage)
            healing(stage)
            third_machine(stage)
            at_the_same_moment(stage)
            the_history(stage)
        except BrokenPromise as broken:
            print(f"\nThis should not have happened: {broken}.", file=sys.stderr)
            return 1
    return 0


def build(stage: Stage) -> None:
    """Makes the remote, and two machines with clones of it."""
    subprocess.run(
        ["git", "init", "-q", "--bare", "-b", "main", str(stage.remote)], env=stage.env, check=True
    )
    stage.add("laptop")
    laptop = stage.folder / "laptop"
    _quietly(stage, "ada", "init")
    rows = [
        {"id": f"shop-{number}", "title": f"Part {number}", "status": "open", "priority": 1}
        for number in range(1, ISSUES + 1)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (laptop / ".beads" / "issues.jsonl").write_text(lines)
    migrations = laptop / "db" / "migrations"
    migrations.mkdir(parents=True)
    (migrations / "1.sql").write_text("create table carts (id integer);\n")
    _quietly(stage, "ada", "sync", "setup")
    stage.git(laptop, "add", "-A")
    stage.git(laptop, "commit", "-qm", "a shop")
    stage.git(laptop, "push", "-q", "origin", "HEAD:main")
    stage.add("desktop")
    _quietly(stage, "bob", "init")
    _quietly(stage, "bob", "sync")
    print("Two machines, one git remote, no server. The clock of the desktop is an hour behind.")


def one_issue(stage: Stage) -> None:
    """Two machines claim one issue, one after the other."""
    heading("The remote confirms one claim, and refuses the other.")
    stage.queen("ada", "claim", "shop-1", "--confirm")
    stage.queen("bob", "claim", "shop-1", "--confirm", code=5)
    stage.queen("bob", "claim", "shop-2", "--confirm")


def partition(stage: Stage) -> None:
    """One machine loses its network, and the other goes on."""
    heading("The desktop loses its network.")
    stage.pull("desktop")
    stage.queen("bob", "reserve", _MIGRATIONS, "--confirm", code=6)
    promised(
        stage.asked("bob", "reserve", "list") == [], "something was granted without the remote"
    )
    print("\n  It can go on without a confirmation, and everybody there sees that:\n")
    stage.queen("bob", "reserve", _MIGRATIONS, "--local-if-offline")
    stage.queen("bob", "reserve", "list")
    print("\n  The laptop asks the remote, and gets it:\n")
    stage.queen("ada", "reserve", _MIGRATIONS, "--confirm")


def healing(stage: Stage) -> None:
    """The machine is back, and what was never confirmed ends."""
    heading(
        "The network is back. What was never confirmed ends, though its clock says it is older."
    )
    stage.plug("desktop")
    stage.queen("bob", "sync")
    stage.queen("bob", "reserve", "list")
    stage.queen("bob", "reserve", "check", "db/migrations/1.sql", code=1)


def third_machine(stage: Stage) -> None:
    """A new clone has everything, and gets what comes free, with a larger token."""
    heading(
        "A third machine clones the repository. Its ledgers are on the branch alone, so "
        "`queen init` brings all records."
    )
    stage.add("cloud")
    stage.queen("eve", "init")
    stage.queen("eve", "reserve", _MIGRATIONS, "--confirm", code=5)
    print("\n  The laptop gives it back. Its token is no longer good for anything:\n")
    old = stage.asked("ada", "reserve", "list")[0]["token"]
    stage.queen("ada", "reserve", "release", "--all")
    stage.queen("ada", "sync")
    stage.queen("eve", "reserve", _MIGRATIONS, "--confirm")
    stage.queen("eve", "reserve", "check", "db/migrations/1.sql", "--token", str(old), code=1)
    new = stage.asked("eve", "reserve", "list")[0]["token"]
    promised(new > old, "a later grant has a smaller token")


def at_the_same_moment(stage: Stage) -> None:
    """Two machines claim issue after issue at the same moment."""
    heading(f"Laptop and desktop claim one issue at the same moment, {RACES} times.")
    said = [stage.at_once("claim", f"shop-{number}", "--confirm") for number in range(3, 3 + RACES)]
    promised(all(sorted(each) == [0, 5] for each in said), f"the machines were told {said}")
    print(f"    {RACES} times one of them was told yes, and the other no (exit 5)")


def the_history(stage: Stage) -> None:
    """Reads every commit of the remote's branch: no issue and no file had two holders."""
    heading("What the remote has seen, commit by commit:")
    commits = stage.git(stage.remote, "rev-list", "--reverse", "queenbee/hive").split()
    confirmed: set[str] = set()
    for commit in commits:
        last: dict[str, dict[str, Any]] = {}
        for name in stage.git(stage.remote, "ls-tree", "-r", "--name-only", commit).splitlines():
            for line in stage.git(stage.remote, "show", f"{commit}:{name}").splitlines():
                fields = json.loads(line)
                if fields["rev"] > last.get(fields["id"], {"rev": 0})["rev"]:
                    last[fields["id"]] = fields
        sure = [x for x in last.values() if x.get("token") and x["status"] == "active"]
        confirmed |= {each["id"] for each in sure}
        held = [each.get("pattern") or each["issue_id"] for each in sure]
        promised(len(held) == len(set(held)), f"{commit} has two holders of one thing")
    print(f"    {len(confirmed)} confirmed grants; in no commit do two of them exclude each other")


def _quietly(stage: Stage, droid: str, *words: str) -> None:
    process = stage.start(droid, *words)
    _, err = process.communicate(timeout=60)
    promised(process.returncode == 0, f"queen {' '.join(words)} fails: {err}")


if __name__ == "__main__":
    sys.exit(main())
