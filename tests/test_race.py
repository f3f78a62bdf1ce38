"""Eight processes in two worktrees want the same issues and the same files: one gets them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from extent import quick_or
from hives import Queen, git, records
from raw_files import remembered
from start_line import at_the_line, one_round

pytestmark = pytest.mark.slow

PROCESSES = 8
ROUNDS = quick_or(50, quick=12)
WORKER = Path(__file__).with_name("race_worker.py")


@pytest.fixture
def worktrees(repo: Path, tmp_path: Path) -> list[Path]:
    """Two linked worktrees of one repository."""
    trees = [tmp_path / "feature-ui", tmp_path / "feature-api"]
    for tree in trees:
        git(repo, "worktree", "add", "-q", str(tree))
    return trees


def test_each_round_has_one_winner_and_every_loser_is_told_who(
    worktrees: list[Path], repo: Path, beads: Path
) -> None:
    with ExitStack() as stack:
        racers = [
            stack.enter_context(
                at_the_line(WORKER, f"droid-{number}", str(ROUNDS), tree=worktrees[number % 2])
            )
            for number in range(PROCESSES)
        ]
        rounds = [one_round(racers) for _ in range(ROUNDS)]
    claimed, leased = [], []
    for number, answers in enumerate(rounds):
        claimed.append(the_winner([each["claim"] for each in answers]))
        leased.append(the_winner([each["lease"] for each in answers]))
        for answer in answers:
            claim, lease = answer["claim"]["document"], answer["lease"]["document"]
            if answer["claim"]["code"]:
                assert claim["error"]["code"] == "taken"
                assert claim["error"]["holder"] == claimed[-1]
                assert f"qb-{number} is assigned to {claimed[-1]}" in claim["error"]["message"]
            if answer["lease"]["code"]:
                assert lease["error"]["code"] == "held"
                assert [each["droid"] for each in lease["error"]["holders"]] == [leased[-1]]
                assert f"held by {leased[-1]}" in lease["error"]["message"]
    assert [row["droid"] for row in records(beads / "queen_assignments.jsonl")] == claimed
    assert [row["droid"] for row in records(beads / "queen_reservations.jsonl")] == leased
    everything_is_well_formed(repo, worktrees)


def the_winner(answers: list[dict[str, Any]]) -> str:
    """Returns who was granted it; everybody else must have left with 5."""
    assert sorted(answer["code"] for answer in answers) == [0] + [5] * (PROCESSES - 1)
    [won] = [answer["document"] for answer in answers if answer["code"] == 0]
    return str((won if isinstance(won, dict) else won[0])["droid"])


def everything_is_well_formed(repo: Path, worktrees: list[Path]) -> None:
    for kind in ("assignments", "reservations"):
        ledger = repo / ".beads" / f"queen_{kind}.jsonl"
        rows = records(ledger)
        assert len({row["id"] for row in rows}) == len(rows)
        assert remembered(repo / ".git" / "queenbee", kind) == ledger.read_bytes().splitlines()
    assert not any((tree / ".beads").exists() for tree in worktrees)


def test_the_real_command_has_one_winner_too(
    queen: Queen, worktrees: list[Path], beads: Path
) -> None:
    rounds = quick_or(2, quick=1)
    for number in range(rounds):
        for arguments in (("claim", f"qb-{number}", "--new"), ("reserve", f"src/{number}/**")):
            racing = [
                queen.start(*arguments, as_=f"droid-{racer}", cwd=worktrees[racer % 2])
                for racer in range(PROCESSES)
            ]
            told = [racer.communicate(timeout=60)[1] for racer in racing]
            codes = [racer.returncode for racer in racing]
            assert sorted(codes) == [0] + [5] * (PROCESSES - 1)
            winner = f"droid-{codes.index(0)}"
            assert all(winner in said for code, said in zip(codes, told, strict=True) if code)
    assert len(records(beads / "queen_assignments.jsonl")) == rounds
    assert len(records(beads / "queen_reservations.jsonl")) == rounds
