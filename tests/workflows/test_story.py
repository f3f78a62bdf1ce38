"""The whole story with real processes, from a plan to the completion of all of its beads.

plan → beads → ready → claim → reserve → work, talk → verify → gate → complete → release
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from bead_files import ATTEMPT, JUDGEMENT, PLAN, ids_by_sprint, put_bead, ralph_bead
from hives import Queen, Ran, commit_file, git, records

pytestmark = pytest.mark.slow

GATE = ("--plan", "plans/accounts.md", "--phase", "1")


def both(queen: Queen, *calls: tuple[str, ...], as_: tuple[str, str], cwd: list[Path]) -> list[Ran]:
    """Runs two commands at the same moment, each as its droid in its worktree."""
    results: dict[int, Ran] = {}
    start = threading.Barrier(2)

    def call(place: int) -> None:
        start.wait()
        results[place] = queen(*calls[place], as_=as_[place], cwd=cwd[place])

    threads = [threading.Thread(target=call, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results[0], results[1]]


@pytest.mark.thorough
def test_a_plan_becomes_work_that_two_droids_finish(
    queen: Queen, repo: Path, beads: Path, tmp_path: Path
) -> None:
    # The lead writes a plan, makes beads of it, and puts a gate behind its first phase.
    commit_file(repo, "plans/accounts.md", PLAN)
    assert queen("init").code == 0
    assert queen("plan", "check", "plans/accounts.md").code == 0
    assert queen("plan", "import", "plans/accounts.md", as_="lead").code == 0
    assert queen("plan", "annotate", "plans/accounts.md").code == 0
    ids = ids_by_sprint(beads / "issues.jsonl")
    assert f"<!-- beads-ralph: {ids['1.1']} -->" in (repo / "plans/accounts.md").read_text()
    assert queen("gate", "new", *GATE).code == 0
    assert queen("gate", "add-rule", *GATE, "--test", "sh build.sh").code == 0
    put_bead(repo, ralph_bead(ids["1.1"], "sh build.sh"))
    git(repo, "add", "plans")
    git(repo, "commit", "-qm", "annotate")

    # Two droids in worktrees of their own go for the one bead that is ready.
    trees = [tmp_path / name for name in ("api", "ui")]
    for tree in trees:
        git(repo, "worktree", "add", "-q", str(tree))
    droids = ("api", "ui")
    offered = [queen("issue", "ready", "--json", as_=each).json for each in droids]
    assert [[one["id"] for one in each] for each in offered] == [[ids["1.1"]]] * 2
    claim = ("claim", ids["1.1"], "--json")
    claims = both(queen, claim, claim, as_=droids, cwd=trees)
    assert sorted(each.code for each in claims) == [0, 5]
    first = 0 if claims[0].code == 0 else 1
    winner, tree = droids[first], trees[first]
    other = droids[1 - first]

    # The winner reserves, asks, is held to its checks, and completes.
    reserve = ("reserve", "build.sh", "--issue", ids["1.1"])
    assert queen(*reserve, as_=winner, cwd=tree).code == 0
    assert queen("reserve", "build.sh", as_=other, cwd=trees[1 - first]).code == 5
    assert queen("msg", "send", other, "Which shell?", "--issue", ids["1.1"], as_=winner).code == 0
    (question,) = queen("msg", "inbox", "--json", as_=other).json
    assert queen("msg", "reply", question["id"], "Plain sh", as_=other).code == 0
    failed = queen("complete", ids["1.1"], "--json", as_=winner, cwd=tree)
    assert (failed.code, failed.json["status"]) == (1, "active")
    (tree / "build.sh").write_text("echo built\n")
    assert queen("bead", "verify", ids["1.1"], as_=winner, cwd=tree).code == 0
    done = queen("complete", ids["1.1"], "--json", as_=winner, cwd=tree)
    assert (done.code, done.json["status"]) == (0, "completed")
    assert queen("reserve", "list", "--json").json == []
    assert (beads / "completed" / f"{ids['1.1']}.json").exists()

    # The gate holds the next phase back until its rules pass where they are run.
    assert queen("issue", "ready", "--json").json == []
    assert queen("gate", "hook", *GATE).code == 2
    assert queen("gate", "run", *GATE, as_="lead").code == 1
    assert queen("issue", "ready", "--json").json == []
    assert queen("gate", "run", *GATE, as_="lead", cwd=tree).code == 0
    assert queen("gate", "hook", *GATE).code == 0
    assert {one["id"] for one in queen("issue", "ready", "--json").json} == {
        ids["2.1a"],
        ids["2.1b"],
    }

    # The two beads of the next phase run beside each other: one by hand, one by the loop.
    by_hand, by_loop = ids["2.1a"], ids["2.1b"]
    put_bead(repo, ralph_bead(by_loop, "test -e page.html"))
    assert queen("issue", "assign", by_hand, winner, as_="lead").code == 0
    assert queen("issue", "assign", by_loop, other, as_="lead").code == 0
    agent = 'test "$QUEEN_ATTEMPT" = 1 || touch page.html'
    loop = ("bead", "run", by_loop, "--agent-cmd", agent, "--json")
    record = ("bead", "record", "dev", by_hand, json.dumps(ATTEMPT))
    worked = both(queen, record, loop, as_=(winner, other), cwd=[tree, trees[1 - first]])
    assert [each.code for each in worked] == [0, 0]
    assert worked[1].json["attempts"] == 2
    assert queen("complete", by_hand, as_=winner).code == 1
    assert queen("bead", "record", "qa", by_hand, json.dumps(JUDGEMENT)).code == 0
    assert queen("complete", by_hand, as_=winner).code == 0

    # All is done, everybody was told, and the files are sound.
    told = {one["subject"] for one in queen("msg", "inbox", "--json", as_="lead").json}
    assert told == {f"[{by_hand}] Completed", f"[{by_loop}] Completed"}
    assert queen("issue", "ready", "--json").json == []
    assert {one["status"] for one in queen("bead", "list", "--json").json} == {"closed"}
    assert queen("issue", "assignments", "--json").json == []
    runs = records(beads / "queen_verifications.jsonl")
    gates = [one for one in runs if one["subject_kind"] == "gate"]
    assert [one["subject_id"] for one in gates] == ["accounts/1"] * 2
    assert [one["verdict"] for one in gates] == ["failed", "passed"]
    shown = queen("show", ids["1.1"], "--json").json["bead"]
    assert shown["verification"]["verdict"] == "passed"
    assert shown["missing_evidence"] == []
    doctor = queen("doctor", "--json")
    assert (doctor.code, doctor.json) == (0, [])
    again = queen("plan", "import", "plans/accounts.md", "--json", as_="lead").json
    assert {one["action"] for one in again["changes"]} == {"keep"}
