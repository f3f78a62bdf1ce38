"""How much an agent reads: what `queen` prints to three droids who share out fifteen issues.

    python -m bench.reading [--older FOLDER] [--show]

The issues are about three modules, each with a function that also goes into the package's list of
names and on top of the change log; one waits for another. The droids take turns: `next`, an edit,
`land -m TEXT --next`. Counted are the characters of both streams of all calls; the texts of the
issues are in them. `--older` is a folder with another version's package; `--show` prints the
first droid's calls.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

DROIDS = ("Ada", "Bea", "Cyd")
MODULES = ("strings", "numbers", "dates")
NAMES = (
    *("slugify", "clamp", "weekday", "truncate", "round_to", "month_end", "dedent", "gcd"),
    *("iso_week", "swapcase", "median", "add_days", "initials", "is_prime", "words"),
)
_TEXT = """Add `{name}(value)` to toolbox/{module}.py, with a docstring that has an example.

Export it in toolbox/__init__.py (the list stays sorted), and add a line on top of CHANGELOG.md.
A test in tests/test_{module}.py covers an empty value and a usual one."""


class Team:
    """The droids, each in a worktree, and how much they have read."""

    def __init__(self, folder: Path, package: Path, *, shows: bool) -> None:
        self._folder = folder
        self._package = package
        self._shows = shows
        self.read: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._make()

    def work(self) -> int:
        """Does all the issues, and returns how many."""
        has = {droid: self._called(droid, "next") for droid in DROIDS}
        begun = len(has)
        for _ in NAMES[:: len(DROIDS)]:
            for droid, name in has.items():
                self._edit(self._folder / f"main-{droid}", name)
                goes_on = ["--next"] if begun < len(NAMES) else []  # It would wait for the others.
                begun += len(goes_on)
                has[droid] = self._called(droid, "land", "-m", f"Add {name}", *goes_on)
        return begun

    def _make(self) -> None:
        main = self._folder / "main"
        for path, text in {
            **{f"toolbox/{each}.py": f'"""About {each}."""\n' for each in MODULES},
            **{f"tests/test_{each}.py": f"from toolbox import {each}\n" for each in MODULES},
            "toolbox/__init__.py": '"""Small tools."""\n\n__all__ = [\n    "zip_longest",\n]\n',
            "CHANGELOG.md": "# Changes\n\n## 1.0 (2026-01-02)\n\n- First.\n",
        }.items():
            (main / path).parent.mkdir(parents=True, exist_ok=True)
            (main / path).write_text(text)
        for arguments in (
            *(("init", "-q", "-b", "main"), ("config", "user.name", "A"), ("add", ".")),
            *(("config", "user.email", "a@example.org"), ("commit", "-qm", "first")),
        ):
            subprocess.run(["git", *arguments], cwd=main, check=True)
        self._queen(main, "human", "init")
        self._queen(main, "human", "config", "set", "land.check", "true")
        ids: list[str] = []
        for number, name in enumerate(NAMES):
            module = MODULES[number % 3]
            waits = ("--depends-on", ids[0]) if number == len(NAMES) - 1 else ()
            about = ("--description", _TEXT.format(name=name, module=module), *waits)
            ids += self._queen(main, "human", "issue", "new", f"Add `{name}` to {module}", *about)
        for droid in DROIDS:
            self._queen(main, droid, "worktree", "add", droid)

    def _edit(self, tree: Path, name: str) -> None:
        module = MODULES[NAMES.index(name) % 3]
        with (tree / f"toolbox/{module}.py").open("a") as file:
            file.write(f'\n\ndef {name}(value):\n    """Does {name}."""\n    return value\n')
        with (tree / f"tests/test_{module}.py").open("a") as file:
            file.write(f"\n\ndef test_{name}():\n    assert {module}.{name}(1) == 1\n")
        listed = tree / "toolbox/__init__.py"
        head, *names, tail = (
            listed.read_text().rstrip().rsplit("\n", listed.read_text().count(",") + 1)
        )
        listed.write_text("\n".join([head, *sorted([*names, f'    "{name}",']), tail, ""]))
        log = tree / "CHANGELOG.md"
        title, old = log.read_text().split("\n\n", 1)
        if not old.startswith("## Unreleased"):
            old = f"## Unreleased\n\n{old}"
        log.write_text(f"{title}\n\n" + old.replace("\n\n", f"\n\n- `{name}`.\n", 1))

    def _called(self, droid: str, *arguments: str) -> str:
        """Runs what a droid calls; returns the function of the first issue that it has then."""
        tree = self._folder / f"main-{droid}"
        said = self._queen(tree, droid, *arguments)
        self.calls[arguments[0]] += 1
        self.read[arguments[0]] += len("\n".join(said))
        if self._shows:
            print(f"$ queen {' '.join(arguments)}", *said, sep="\n")
        if _resolved(tree):
            return self._called(droid, "land", "--continue", "--next")
        me = json.loads(self._queen(tree, droid, "status", "--json")[0])["me"]
        return me["issues"][0]["title"].split("`")[1] if me and me["issues"] else ""

    def _queen(self, tree: Path, droid: str, *arguments: str) -> list[str]:
        command = "from queenbee.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", command, *arguments, "--as", droid],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(self._package)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1, 4, 5):
            raise SystemExit(f"{droid}: queen {' '.join(arguments)}: {done.stdout}")
        return done.stdout.splitlines()


def _resolved(tree: Path) -> bool:
    """Keeps both sides of each conflict of a tree; returns whether there was one."""
    listed = ("git", "diff", "--name-only", "--diff-filter=U", "-z")
    found = subprocess.run(listed, cwd=tree, capture_output=True, text=True, check=True).stdout
    for path in found.split("\0")[:-1]:
        text = (tree / path).read_text()
        (tree / path).write_text(re.sub(r"(?m)^(<{7}|={7}|>{7}).*\n", "", text))
        subprocess.run(["git", "add", path], cwd=tree, check=True)
    return bool(found)


def main() -> None:
    """Prints a row for each version."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--older", type=Path, help="a folder with another version's package")
    asked.add_argument("--show", action="store_true", help="print the first droid's calls")
    options = asked.parse_args()
    print("| version | landed | characters | next | land | calls |\n|---|---|---|---|---|---|")
    for package in filter(None, (options.older, Path(__file__).absolute().parent.parent)):
        with tempfile.TemporaryDirectory() as folder:
            team = Team(Path(folder), package, shows=options.show)
            landed, read = team.work(), team.read
            figures = (landed, read.total(), read["next"], read["land"], team.calls.total())
            print(f"| {package.name} | {' | '.join(map(str, figures))} |")


if __name__ == "__main__":
    main()
