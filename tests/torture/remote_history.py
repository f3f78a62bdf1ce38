"""The checker of confirmed grants, which knows nothing of QueenBee.

It reads the commits of the remote's branch one after the other, and what each process noted before
it asked and after it was answered, and requires that

- in no commit two confirmed grants of different droids exclude each other;
- each token is the number of the commit that brought it;
- whoever was told yes is in that history, and no two were told so for the same thing at once.
"""

from __future__ import annotations

import json
import os
import subprocess

from tests.torture.places import ENVIRONMENT, must, require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Fields = dict[str, object]

BRANCH = "queenbee/hive"
MEET = {
    "src/**": {"src/**", "src/a.py", "**/a.py"},
    "src/a.py": {"src/**", "src/a.py", "**/a.py"},
    "**/a.py": {"src/**", "src/a.py", "**/a.py", "docs/*"},
    "docs/*": {"docs/*", "**/a.py"},
}
"""Which patterns share a path, by hand."""
_ENDED = ("released", "completed", "reassigned")
_NEVER = 2**62


def check(bare: str, notes: list[Fields]) -> dict[str, object]:
    """Reads the remote's history and the notes; returns figures. Raises `Broken`."""
    tokens: dict[tuple[str, int], int] = {}
    sure: dict[str, Fields] = {}
    """The grants that were confirmed and that no line has ended."""
    ended: set[str] = set()
    taken_over: set[str] = set()
    most = commits = 0
    for number, lines in enumerate(_commits(bare), 1):
        commits = number
        for line in lines:
            identifier = str(line["id"])
            if line.get("status") in _ENDED or line.get("deleted"):
                ended.add(identifier)
                if line.get("released_by", line["droid"]) != line["droid"]:
                    taken_over.add(identifier)
                sure.pop(identifier, None)
            token = line.get("token")
            # Later lines repeat the token; the first one is the confirmation.
            if isinstance(token, int) and token and (identifier, token) not in tokens:
                require(token == number, f"{identifier} has the token of another commit")
                tokens[identifier, token] = number
            if token and identifier not in ended:
                sure.setdefault(identifier, line)
        most = max(most, len(sure))
        _exclude_nobody(list(sure.values()), f"commit {number}")
    _told(notes, tokens, taken_over)
    counts: dict[str, int] = {}
    for note in notes:
        what = f"failed: {note['said']}" if note["do"] == "failed" else str(note["do"])
        counts[what] = counts.get(what, 0) + 1
    return {
        "commits": commits,
        "confirmations": len(tokens),
        "most at once": most,
        "taken over": len(taken_over),
        **counts,
    }


def _commits(bare: str) -> Iterator[list[Fields]]:
    """Returns the lines that each commit of the branch brought, oldest first."""
    seen: dict[str, set[bytes]] = {}
    read: set[str] = set()
    with subprocess.Popen(
        ["git", "-C", bare, "cat-file", "--batch"], env=ENVIRONMENT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as git:  # fmt: skip
        assert git.stdin is not None
        assert git.stdout is not None
        for commit in must(bare, "rev-list", "--reverse", "--first-parent", BRANCH).split():
            new: list[Fields] = []
            listed = must(bare, "ls-tree", "-r", commit).splitlines()
            for path, oid in ((each.split("\t")[1], each.split()[2]) for each in listed):
                if oid in read:
                    continue
                git.stdin.write(f"{oid}\n".encode())
                git.stdin.flush()
                size = int(git.stdout.readline().split()[2])
                data = git.stdout.read(size + 1)[:-1]
                known = seen.setdefault(os.path.basename(path).split(".")[0], set())
                for text in data.splitlines():
                    if text not in known:
                        known.add(text)
                        new.append(json.loads(text))
                read.add(oid)
            yield new
        git.stdin.close()


def _exclude_nobody(live: list[Fields], where: str) -> None:
    for count, one in enumerate(live):
        for other in live[count + 1 :]:
            both = f"{one['id']} of {one['droid']} and {other['id']} of {other['droid']}"
            require(not _clash(one, other), f"{where}: {both} are both confirmed")


def _clash(one: Fields, other: Fields) -> bool:
    if one["droid"] == other["droid"]:
        return False
    if "pattern" in one and "pattern" in other:
        return other["pattern"] in MEET[str(one["pattern"])]
    return one.get("issue_id") is not None and one.get("issue_id") == other.get("issue_id")


def _told(
    notes: Iterable[Fields], tokens: dict[tuple[str, int], int], taken_over: Iterable[str]
) -> None:
    """Requires that whoever was told yes had it alone, until they asked to give it back; when it
    was taken over, only the history says.
    """
    ends = dict.fromkeys(taken_over, 0)
    holds = []
    for note in notes:
        if note["do"] == "end":
            at = ends.get(str(note["id"]), _NEVER)
            ends[str(note["id"])] = min(at, int(str(note["at"])))
    for note in notes:
        if note["do"] != "yes":
            continue
        key = str(note["id"]), int(str(note["token"]))
        require(key in tokens, f"{key[0]} was granted, and the remote does not have it")
        what = "pattern" if note["what"] in MEET else "issue_id"
        grant = {"id": key[0], "droid": note["droid"], what: note["what"]}
        holds.append((int(str(note["at"])), ends.get(key[0], _NEVER), grant))
    holds.sort(key=lambda each: each[0])
    open_: list[tuple[int, int, Fields]] = []
    for hold in holds:
        open_ = [each for each in open_ if each[1] > hold[0]]
        for each in open_:
            both = f"{each[2]['id']} and {hold[2]['id']}"
            require(not _clash(each[2], hold[2]), f"{both} were held at once")
        open_.append(hold)
