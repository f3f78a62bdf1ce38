"""Replays the conflicted merges of public projects, and compares what the rules join with what the
people of the project made of it.

    python -m bench.replay FOLDER... [--show RULE]

Each folder is a git repository. Nothing in it is touched: what a merge writes goes to `build/`.
"Right" is the people's text but for blank lines and white space at the ends of lines; "but for
order" has the same words in another order, or its lines at another place of the file; "then more"
has them all, and words that neither side had.

A conflict is joined if all of its file are, as in a landing, but for the check, which does not run.
It counts if the people's text for it can be read: if the lines around it are still there,
no conflict markers are left in the file, and the people did not drop everything that one side
changed in it, conflict or not.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from queenbee.core.conflicts import rules
from queenbee.core.conflicts.appended import is_change_log
from queenbee.core.conflicts.markers import MARKER_SIZE, Conflict, parts

CODE = ".c .cpp .go .h .java .js .jsx .kt .lua .php .pl .py .pyi .pyx .rb .rs .sh .swift .ts .tsx"
_MOST_LINES = 20_000


@dataclass(frozen=True)
class Found:
    """One conflict of a merge, and what the people made of it."""

    where: str
    path: str
    conflict: Conflict
    people: list[bytes]
    elsewhere: Counter[bytes]
    """The lines that the people's file has outside of the places of conflicts, and no side had."""
    of_file: Sequence[Conflict]
    """All conflicts of the file: they are joined together, or not at all."""
    parted_s: float = 0
    """How long before the merge the first commit was made that only one side has, in seconds."""

    @property
    def kind(self) -> str:
        """Returns `code`, `change log` or `other`."""
        if is_change_log(self.path):
            return "change log"
        return "code" if Path(self.path).suffix in CODE.split() else "other"

    @property
    def rules(self) -> Mapping[str, rules.Rule]:
        """Returns the rules that count for the file."""
        if is_change_log(self.path):
            return rules.APPENDED
        are_kept = self.parted_s <= rules.LATELY_S
        return rules.in_file(self.path, rules.KEPT if are_kept else rules.SURE)

    def joined(self) -> tuple[str, list[bytes]] | None:
        """Returns the rule that joins it, with its lines; None unless the whole file is joined."""
        if any(rules.settle(each, self.rules) is None for each in self.of_file):
            return None
        return rules.settle(self.conflict, self.rules)


class Clone:
    """A repository whose merges are replayed."""

    def __init__(self, folder: Path, objects: Path) -> None:
        self._folder = folder
        found = self._git("rev-parse", "--path-format=absolute", "--git-path", "objects")
        self._env = {
            **os.environ,
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": found.decode().strip(),
        }

    def conflicts(self) -> Iterator[Found]:
        """Yields the conflicts of all merges whose resolution can be read."""
        merges = self._merges()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for (commit, _, _), entries in zip(merges, pool.map(self._merge, merges), strict=True):
                parted_s = self._parted_s(commit) if entries else 0
                for path, stages in entries.items():
                    if stages.keys() == {b"1", b"2", b"3"}:
                        yield from self._of_file(commit, os.fsdecode(path), stages, parted_s)

    def _merges(self) -> list[tuple[str, str, str]]:
        """Returns each merge with the side of the target and that of the branch."""
        rows = self._git("log", "--all", "--merges", "--format=%H %P%x00%s")
        found = {}
        for row in rows.decode(errors="replace").splitlines():
            ids, _, subject = row.partition("\0")
            commit, *parents = ids.split()
            if len(parents) == 2:
                is_update = any(f"'{name}" in subject or f"/{name}" in subject for name in _MAIN)
                a, b = parents[::-1] if is_update and " into " in subject else parents
                found[a, b] = (commit, a, b)
        return list(found.values())

    def _merge(self, merge: tuple[str, str, str]) -> dict[bytes, dict[bytes, bytes]]:
        """Returns the objects of each file that conflicts, by stage."""
        options = ("--write-tree", "-z", "--no-messages", "--allow-unrelated-histories")
        try:
            self._git("merge-tree", *options, *merge[1:])
        except subprocess.CalledProcessError as error:
            found: dict[bytes, dict[bytes, bytes]] = defaultdict(dict)
            for entry in error.stdout.split(b"\0")[1:-1] if error.returncode == 1 else ():
                facts, _, name = entry.partition(b"\t")
                _, blob, stage = facts.split(b" ")
                found[name][stage] = blob
            return found
        return {}

    def _parted_s(self, commit: str) -> float:
        listed = self._git("rev-list", "--timestamp", f"{commit}^1...{commit}^2")
        merged = int(self._git("log", "-1", "--format=%ct", commit))
        return merged - min((int(each.split()[0]) for each in listed.splitlines()), default=merged)

    def _of_file(
        self, commit: str, path: str, stages: dict[bytes, bytes], parted_s: float
    ) -> Iterator[Found]:
        try:
            people = self._git("cat-file", "blob", f"{commit}:{path}")
        except subprocess.CalledProcessError:
            return
        with tempfile.TemporaryDirectory() as folder:
            names, texts = [], {}
            for name, stage in (("main", b"2"), ("base", b"1"), ("branch", b"3")):
                names.append(os.path.join(folder, name))
                texts[name] = self._git("cat-file", "blob", stages[stage].decode())
                Path(names[-1]).write_bytes(texts[name])
            options = ("--stdout", "--quiet", "--diff3", f"--marker-size={MARKER_SIZE}")
            done = subprocess.run(
                ["git", "merge-file", *options, *names], capture_output=True, check=False
            )
        if not 0 < done.returncode < 128 or done.stdout.count(b"\n") > _MOST_LINES:
            return
        between, found = parts(done.stdout)
        for side in ("main", "branch"):
            whole = _with_side(between, found, side)
            if people == texts[side] and people != whole:
                return  # The people dropped all that the other side has changed in the file.
        if b"\n<<<<<<< " in people or b"\n>>>>>>> " in people:
            return  # The people overlooked the marks themselves.
        resolved = _resolutions(between, people)
        known = [each for lines in (*between, *filter(None, resolved)) for each in lines]
        more = Counter(_stripped(people.split(b"\n"))) - Counter(_stripped(known))
        for conflict, lines in zip(found, resolved, strict=True):
            if lines is not None:
                where = f"{self._folder} {commit}"
                yield Found(where, path, conflict, lines, more, found, parted_s)

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        env = getattr(self, "_env", None)
        return subprocess.run(
            ["git", *arguments],
            cwd=self._folder,
            input=stdin,
            capture_output=True,
            check=True,
            env=env,
        ).stdout


_MAIN = ("master", "main", "trunk", "stable", "develop")


def _with_side(between: list[list[bytes]], found: list[Conflict], side: str) -> bytes:
    """Returns the merged text with one side of each conflict."""
    lines = list(between[0])
    for conflict, rest in zip(found, between[1:], strict=True):
        lines += [*getattr(conflict, side), *rest]
    return b"".join(lines)


_WORDS = re.compile(rb"[^\s,()\[\]{}]+")


def _stripped(lines: list[bytes]) -> list[bytes]:
    return [each.rstrip() for each in lines]


def _resolutions(between: list[list[bytes]], people: bytes) -> list[list[bytes] | None]:
    """Returns what the people's text has in the place of each conflict."""
    ours: list[object] = []
    places = []
    for at, lines in enumerate(between):
        if at:
            places.append(len(ours))
            ours.append(at)
        ours += [each.rstrip() for each in lines]
    theirs = [each.rstrip() for each in people.split(b"\n")]
    found: list[list[bytes] | None] = [None] * len(places)
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag in ("replace", "delete") and i2 - i1 == 1 and i1 in places:
            found[places.index(i1)] = theirs[j1:j2]
    return found


def verdict(found: Found, joined: list[bytes]) -> str:
    """Returns `right`, `order`, `more` (the people added words), or `wrong`.

    A line that the people put into another place of the file, outside the conflict, is one of
    order.
    """
    one, two = ([line.rstrip() for line in each if line.strip()] for each in (joined, found.people))
    if one == two:
        return "right"
    if sorted(_WORDS.findall(b"\n".join(one))) == sorted(_WORDS.findall(b"\n".join(two))):
        return "order"
    said = [Counter(_WORDS.findall(b"\n".join(each))) for each in (one, two)]
    if said[0] <= said[1] and one:
        return "more"
    more = Counter(one) - Counter(two)
    moved = all(found.elsewhere[line] >= count for line, count in more.items())
    return "order" if moved and not Counter(two) - Counter(one) else "wrong"


def main() -> None:
    """Prints a table for each kind of file: what each rule settled, and how right it was."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folders", nargs="+", type=Path)
    asked.add_argument("--show", help="print what this rule got wrong")
    options = asked.parse_args()
    Path("build").mkdir(exist_ok=True)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    merges, total = set(), Counter()
    with tempfile.TemporaryDirectory(dir="build") as objects:
        for folder in options.folders:
            for each in Clone(folder.absolute(), Path(objects).absolute()).conflicts():
                merges.add(each.where)
                total[each.kind] += 1
                settled = each.joined()
                if settled is None:
                    continue
                name, lines = settled
                said = verdict(each, lines)
                counts[each.kind, name][said] += 1
                if said == "wrong" and options.show in (name, "all"):
                    _show(each, lines, name)
    print(f"{len(merges)} conflicted merges")
    print("| files | rule | joined | right | but for order | then more | wrong |")
    print("|---|---|---|---|---|---|---|")
    for kind in ("code", "change log", "other"):
        print(f"| {kind}, {total[kind]} conflicts | | | | | | |")
        for name in {**rules.APPENDED, **rules.KEPT}:
            if count := counts[kind, name]:
                every = count.total()
                said = [str(count[each]) for each in ("right", "order", "more", "wrong")]
                share = f"({100 * count['wrong'] / every:.0f} %)"
                print(f"| | {name} | {every} | {' | '.join(said)} {share} |")


def _show(found: Found, joined: list[bytes], name: str) -> None:
    print("=" * 70, found.kind, name, found.where, found.path, sep="\n")
    one = found.conflict
    for name, lines in (
        ("before", one.before[-4:]), ("main", one.main), ("base", one.base),
        ("branch", one.branch), ("after", one.after[:4]), ("JOINED", joined),
        ("PEOPLE", found.people),
    ):  # fmt: skip
        print(f"--- {name}")
        for line in lines[:25]:
            print("   ", line.decode(errors="replace").rstrip("\n"))


if __name__ == "__main__":
    main()
