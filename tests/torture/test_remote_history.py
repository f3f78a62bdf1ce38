"""The checker of confirmed grants sees what must not be in a history, and nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.torture.places import ENVIRONMENT, Broken, must
from tests.torture.remote_history import BRANCH, MEET, check


def line(identifier: str, droid: str, what: str, **more: object) -> dict[str, object]:
    named = "pattern" if what in MEET else "issue_id"
    return {"id": identifier, "droid": droid, named: what, "status": "active", **more}


class History:
    """A bare repository whose branch gets commits of lines."""

    def __init__(self, folder: Path) -> None:
        self.bare = str(folder / "remote.git")
        subprocess.run(["git", "init", "-q", "--bare", self.bare], check=True, env=ENVIRONMENT)
        self._lines: list[str] = []
        self._head = ""

    def commit(self, *lines: dict[str, object]) -> None:
        """Makes a commit with these lines at the end of the ledger."""
        self._lines += [json.dumps(each) for each in lines]
        blob = self._put("hash-object", "-w", "--stdin", stdin="\n".join(self._lines) + "\n")
        tree = self._put("mktree", stdin=f"100644 blob {blob}\tqueen_reservations.jsonl\n")
        parents = ("-p", self._head) if self._head else ()
        self._head = must(self.bare, "commit-tree", tree, "-m", "x", *parents).strip()
        must(self.bare, "update-ref", f"refs/heads/{BRANCH}", self._head)

    def _put(self, *arguments: str, stdin: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.bare, *arguments],
            input=stdin, env=ENVIRONMENT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def told(do: str, at: int, identifier: str, droid: str, what: str = "", token: int = 0):
    return {"do": do, "at": at, "id": identifier, "droid": droid, "what": what, "token": token}


class TestCommits:
    def test_in_which_one_follows_the_other_are_fine(self, history: History) -> None:
        history.commit(line("a", "ada", "src/**"), line("a", "ada", "src/**", token=1))
        history.commit(line("a", "ada", "src/**", status="released", token=1))
        history.commit(line("b", "bob", "src/a.py", token=3))
        figures = check(history.bare, [])
        assert (figures["commits"], figures["confirmations"]) == (3, 2)

    @pytest.mark.parametrize(
        ("one", "other"), [("src/**", "src/a.py"), ("**/a.py", "docs/*"), ("shop-1", "shop-1")]
    )
    def test_with_two_that_exclude_each_other_are_caught(
        self, history: History, one: str, other: str
    ) -> None:
        history.commit(line("a", "ada", one, token=1))
        history.commit(line("b", "bob", other, token=2))
        with pytest.raises(Broken, match="commit 2: a of ada and b of bob are both confirmed"):
            check(history.bare, [])

    def test_with_two_for_a_while_are_caught_too(self, history: History) -> None:
        history.commit(line("a", "ada", "shop-1", token=1))
        history.commit(line("b", "bob", "shop-1", token=2))
        history.commit(line("a", "ada", "shop-1", status="released", token=1))
        with pytest.raises(Broken, match="both confirmed"):
            check(history.bare, [])

    def test_in_which_they_do_not_meet_or_one_has_no_token_are_fine(self, history: History) -> None:
        history.commit(line("a", "ada", "src/**", token=1))
        history.commit(line("b", "bob", "docs/*", token=2), line("c", "eve", "src/**"))
        history.commit(line("d", "ada", "src/a.py", token=3))
        assert check(history.bare, [])["most at once"] == 3

    def test_with_the_token_of_another_commit_are_caught(self, history: History) -> None:
        history.commit(line("a", "ada", "src/**"))
        history.commit(line("b", "bob", "docs/*", token=1))
        with pytest.raises(Broken, match="token of another commit"):
            check(history.bare, [])


class TestAnswers:
    def test_that_the_remote_has_are_fine(self, history: History) -> None:
        history.commit(line("a", "ada", "shop-1", token=1))
        history.commit(line("a", "ada", "shop-1", status="released"))
        history.commit(line("b", "bob", "shop-1", token=3))
        check(
            history.bare,
            [
                told("yes", 10, "a", "ada", "shop-1", 1),
                told("end", 20, "a", "ada"),
                told("yes", 30, "b", "bob", "shop-1", 3),
            ],
        )

    def test_that_the_remote_does_not_have_are_caught(self, history: History) -> None:
        history.commit(line("a", "ada", "shop-1"))
        with pytest.raises(Broken, match="a was granted, and the remote does not have it"):
            check(history.bare, [told("yes", 10, "a", "ada", "shop-1", 1)])

    def test_of_two_who_held_one_thing_at_once_are_caught(self, history: History) -> None:
        history.commit(line("a", "ada", "shop-1", token=1))
        history.commit(line("a", "ada", "shop-1", status="released"))
        history.commit(line("b", "bob", "shop-1", token=3))
        with pytest.raises(Broken, match="a and b were held at once"):
            check(
                history.bare,
                [
                    told("yes", 10, "a", "ada", "shop-1", 1),
                    told("yes", 30, "b", "bob", "shop-1", 3),
                    told("end", 40, "a", "ada"),
                ],
            )
