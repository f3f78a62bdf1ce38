"""Each message, notice and end of a lease is told exactly once, however many readers run at once:
commands, hooks and the server of MCP, over files and over PostgreSQL."""

from __future__ import annotations

import os
import random
import subprocess
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
from extent import quick_or
from hives import environment
from start_line import at_the_line, one_round

from queenbee import Hive
from queenbee.services.telling import news

pytestmark = [pytest.mark.slow, pytest.mark.both_engines(thorough=True)]

ROUNDS = quick_or(25, quick=8)
READERS = ("read", "read", "next", "mcp", "issues", "hook", "hook")
WORKER = Path(__file__).with_name("telling_worker.py")


def hive_of(repo: Path, droid: str) -> Hive:
    """Returns the hive as one droid has it, by the clock that the readers have."""
    return Hive.open(repo, droid=droid, env=environment())


def reader(role: str, tree: Path) -> AbstractContextManager[subprocess.Popen[str]]:
    """Starts one reader, who stands at the line."""
    env = {**os.environ, **environment(), "QUEEN_DROID": "tester"}
    return at_the_line(WORKER, role, tree=tree, env=env)


def test_each_thing_is_told_once(repo: Path) -> None:
    ours, theirs = hive_of(repo, "tester"), hive_of(repo, "reviewer")
    random_ = random.Random(26)
    with ExitStack() as stack:
        readers = [stack.enter_context(reader(role, repo)) for role in READERS]
        told, sent, lost = [], [], []
        for number in range(ROUNDS):
            for one in range(random_.randrange(4)):
                sent.append(f"subject-{number}-{one}.")
                theirs.messages.send("tester", "The body.", subject=sent[-1])
            if random_.random() < 0.7:
                lost.append(f"src/{number}.py")
                ours.reservations.reserve([lost[-1]])
                theirs.reservations.reserve([lost[-1]], force=True, reason="it is urgent")
            told += one_round(readers)
    # What no reader was told in its last round, the next one is.
    whole = [each for said in told for each in said["whole"]]
    whole += [each.subject for each in ours.messages.read_unread()]
    assert sorted(each for each in whole if each in sent) == sorted(sent)
    heads = "\n".join([*(said["heads"] for said in told), *ours.notes(), news.take(ours)])
    assert {each: heads.count(f"your lease on {each} ") for each in lost} == dict.fromkeys(lost, 1)
    announced = [heads.count(f"reviewer: “{each}”") for each in sent]
    assert max(announced) <= 1


@pytest.mark.parametrize("wanted", [None, lambda _: True], ids=["all", "wanted"])
def test_a_message_that_is_deleted_meanwhile_is_no_error(
    repo: Path, monkeypatch: pytest.MonkeyPatch, wanted: Any
) -> None:
    """Between the look at what is unread and the mark, its sender deletes one of two messages."""
    ours, theirs = hive_of(repo, "tester"), hive_of(repo, "reviewer")
    first, second = (theirs.messages.send("tester", text)[0] for text in ("first", "second"))
    transaction = ours.transaction

    def deleted_before(*arguments: Any) -> Any:
        monkeypatch.setattr(ours, "transaction", transaction)
        theirs.messages.delete(first.id)
        return transaction(*arguments)

    monkeypatch.setattr(ours, "transaction", deleted_before)
    assert [each.id for each in ours.messages.read_unread(wanted=wanted)] == [second.id]


def test_the_hook_hears_of_every_message(repo: Path) -> None:
    with reader("hook", repo) as hook:
        for number in range(3):
            importance = "urgent" if number == 1 else "normal"
            subject = f"subject-{number}."
            hive_of(repo, "reviewer").messages.send(
                "tester", "The body.", subject=subject, importance=importance
            )
            [said] = one_round([hook])
            assert subject in said["heads"]
            [again] = one_round([hook])
            assert again["heads"] == "null"
