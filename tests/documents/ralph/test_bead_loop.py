"""The pass over a bead's checks, its completion, and the loop. Only the clock is not real."""

from __future__ import annotations

import json
import os
import signal

import pytest
from bead_folders import bead_folders
from live_processes import is_alive
from stamps import format_ms

from queenbee.checks import CheckRunner, Consent
from queenbee.documents.ralph.bead_files import find_bead, list_beads
from queenbee.documents.ralph.bead_loop import run_bead
from queenbee.documents.ralph.verify import complete_bead, verify_bead
from queenbee.errors import Conflict, NotFound, Unwritable

pytestmark = pytest.mark.slow

START_MS = 1_763_217_020_000


class Clock:
    """Stands still, but for the waits, and what a test says has passed."""

    def __init__(self):
        self.waits = []
        self.passed_s = 0.0

    def now_ms(self):
        return START_MS + int((sum(self.waits) + self.passed_s) * 1000)

    def sleep(self, seconds):
        self.waits.append(seconds)


class Bench:
    """A project in a folder, with the records that the ledger would have got."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.clock = Clock()
        self.records = []
        self.lines = []
        self.folders = bead_folders(root)
        self.evidence_dir = os.path.join(self.root, ".beads", "evidence")

    def context(self, **more):
        settings = {
            "cwd": self.root,
            "env": dict(os.environ) | {"API_TOKEN": "secret"},
            "evidence_dir": self.evidence_dir,
            "record": self.record,
            "consent": Consent.at(self.root),
            "now_ms": self.clock.now_ms,
            "tell": self.lines.append,
        }
        return CheckRunner(**(settings | more)), self.folders

    def record(self, record):
        self.records.append(record)
        return record

    def put(self, *commands, folder="active", **members):
        verifiers = [
            {"name": f"Check {number}", "command": command}
            for number, command in enumerate(commands, 1)
        ]
        document = {"id": "gt-1", "intent": "Do it", "dod": {"verifiers": verifiers}}
        dod = members.pop("dod", {})
        document.update(members)
        document["dod"].update(dod)
        target = getattr(self.folders, folder)
        os.makedirs(target, exist_ok=True)
        with open(os.path.join(target, f"{document['id']}.json"), "w") as file:
            json.dump(document, file)
        return self.bead(document["id"])

    def bead(self, bead_id="gt-1"):
        return find_bead(self.folders, bead_id)

    def run(self, agent_command, run_bead=run_bead, waits_for=None, **more):
        return run_bead(
            self.bead(),
            lambda: agent_command,
            *self.context(**more),
            waits_for=waits_for,
            sleep=self.clock.sleep,
        )

    def read(self, name):
        with open(os.path.join(self.root, name)) as file:
            return file.read()


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_a_name_that_is_not_valid_text_is_recorded_with_a_replacement(bench):
    verifier = {"name": "half \ud800", "command": "true"}
    done = verify_bead(bench.put(dod={"verifiers": [verifier]}), *bench.context())
    assert done.record["results"][0]["name"] == "half ?"
    assert bench.bead().document["dod"]["verifiers"][0]["name"] == "half \ud800"


def test_evidence_is_ignored_by_git_until_somebody_wants_it(bench):
    verify_bead(bench.put("true"), *bench.context())
    ignore = os.path.join(bench.evidence_dir, ".gitignore")
    assert bench.read(ignore) == "*\n"
    os.unlink(ignore)
    verify_bead(bench.bead(), *bench.context())
    assert not os.path.exists(ignore)


def test_two_passes_in_one_millisecond_keep_evidence_of_both(bench):
    bench.put("true")
    for _ in range(2):
        verify_bead(bench.bead(), *bench.context(now_ms=lambda: START_MS))
    files = [record["results"][0]["evidence"] for record in bench.records]
    assert len(set(files)) == 2
    assert all(bench.read(os.path.join(".beads", file)) for file in files)


def test_a_verifier_sees_the_allow_list_and_what_it_names(bench):
    bench.put('test -z "$API_TOKEN"')
    assert verify_bead(bench.bead(), *bench.context()).verdict == "passed"
    verifier = {"name": "x", "command": 'test "$API_TOKEN" = secret', "env": ["API_TOKEN"]}
    bench.put(dod={"verifiers": [verifier]})
    assert verify_bead(bench.bead(), *bench.context()).verdict == "passed"


def test_a_bead_that_requires_evidence_is_not_completed_without(bench):
    bead = bench.put("true", dod={"evidence_required": True}, status="in_progress")
    with pytest.raises(Conflict, match="gt-1 requires evidence"):
        complete_bead(bead, *bench.context(), unverified_because="in a hurry")
    assert (bench.bead().document["status"], bench.records) == ("in_progress", [])


def test_a_bead_that_requires_evidence_is_completed_with_it(bench):
    complete_bead(bench.put("true", dod={"evidence_required": True}), *bench.context())
    assert bench.bead().document["status"] == "completed"


@pytest.mark.parametrize(
    ("command", "status", "folder"),
    [("true", "completed", "completed"), ("false", "in_progress", "active")],
)
def test_a_bead_that_says_it_is_completed_is_held_to_it(command, status, folder, bench):
    complete_bead(bench.put(command, folder="completed", status="completed"), *bench.context())
    bead = bench.bead()
    assert bead.document["status"] == status
    assert os.path.dirname(bead.path) == getattr(bench.folders, folder)


def test_each_attempt_is_recorded_with_the_agent_first(bench):
    bench.put("test -e done")
    bench.run("test $QUEEN_ATTEMPT = 2 && touch done; true")
    assert [
        (record["attempt"], record["verdict"], [one["status"] for one in record["results"]])
        for record in bench.records
    ] == [(1, "failed", ["passed", "failed"]), (2, "passed", ["passed", "passed"])]
    assert bench.records[0]["results"][0]["name"] == "agent command"


def test_the_loop_says_what_it_does(bench):
    bench.put("false", constraints={"max_iterations": 2})
    bench.run("true")
    assert bench.lines == ["attempt 1 of 2", "waiting 30 s before attempt 2", "attempt 2 of 2"]


def test_the_loop_ends_after_ten_attempts(bench):
    bench.put("false", ralph_meta={"retry_backoff_seconds": 1})
    outcome = bench.run("true")
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "max_iterations", 10)
    assert outcome.message == "not verified after 10 attempts"


def test_the_loop_ends_after_max_iterations(bench):
    bench.put("echo ran >> runs; false", constraints={"max_iterations": 2})
    assert bench.run("true").attempts == 2
    assert bench.read("runs") == "ran\nran\n"


def test_the_wait_between_attempts_doubles(bench):
    bench.put("false", constraints={"max_iterations": 6}, ralph_meta={"retry_backoff_seconds": 40})
    bench.run("true")
    assert bench.clock.waits == [40, 80, 160, 300, 300]


def test_the_first_wait_is_kept_for_the_next_run(bench):
    bench.put("false", constraints={"max_iterations": 3})
    bench.run("true")
    assert bench.bead().document["ralph_meta"]["retry_backoff_seconds"] == 30


def test_the_loop_ends_when_the_next_attempt_would_come_after_the_deadline(bench):
    deadline = format_ms(START_MS + 200_000)
    bench.put("false", constraints={"deadline": deadline})
    outcome = bench.run("true")
    assert (outcome.why, bench.clock.waits) == ("deadline", [30, 60])
    assert outcome.message == f"not verified after 3 attempts: no time is left before {deadline}"


def test_no_attempt_begins_after_the_deadline(bench):
    bench.put("true", constraints={"deadline": format_ms(START_MS - 1)})
    outcome = bench.run("touch ran")
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "deadline", 0)
    assert not os.path.exists(os.path.join(bench.root, "ran"))


def test_the_loop_ends_when_the_time_budget_is_used_up(bench):
    bench.put("false", constraints={"time_budget_minutes": 3})
    outcome = bench.run("true")
    assert (outcome.why, bench.clock.waits) == ("time_budget", [30, 60])


def test_a_budget_of_nothing_leaves_no_attempt(bench):
    bench.put("true", constraints={"time_budget_minutes": 0})
    outcome = bench.run("true")
    assert (outcome.why, outcome.attempts) == ("time_budget", 0)


def test_an_agent_is_ended_at_the_deadline(bench):
    bench.put("true", constraints={"deadline": format_ms(START_MS + 500)})
    outcome = bench.run("echo $$ > pid; sleep 600")
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "deadline", 1)
    assert "no time is left" in bench.records[0]["results"][0]["reason"]
    assert not is_alive(int(bench.read("pid")))


def test_an_agent_is_ended_when_the_time_budget_is_used_up(bench):
    meta = {"attempt_count": 1, "time_spent_seconds": 59.5}
    budget = {"time_budget_minutes": 1}
    bench.put("true", status="in_progress", ralph_meta=meta, constraints=budget)
    outcome = bench.run("sleep 600")
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "time_budget", 2)
    assert "no time is left" in bench.records[0]["results"][0]["reason"]


def test_a_verifier_is_ended_at_the_deadline(bench):
    bench.put("sleep 600", constraints={"deadline": format_ms(START_MS + 500)})
    outcome = bench.run("true")
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "deadline", 1)
    assert "no time is left" in bench.records[0]["results"][1]["reason"]


def test_no_verifier_begins_after_the_deadline(bench):
    bench.put("true", "touch ran", constraints={"deadline": format_ms(START_MS + 60_000)})

    def on_progress(progress):
        if (progress.event, progress.name) == ("finished", "Check 1"):
            bench.clock.passed_s = 60

    outcome = bench.run("true", on_progress=on_progress)
    assert (outcome.status, outcome.why) == ("failed", "deadline")
    assert bench.records[0]["results"][2]["reason"] == "not run: no time is left"
    assert not os.path.exists(os.path.join(bench.root, "ran"))


def test_an_agent_that_fails_uses_up_its_attempt_and_runs_no_verifier(bench):
    bench.put("echo ran >> runs", constraints={"max_iterations": 3})
    outcome = bench.run("test $QUEEN_ATTEMPT = 3")
    assert (outcome.status, outcome.attempts) == ("completed", 3)
    assert bench.read("runs") == "ran\n"


def test_an_agent_command_that_cannot_be_started_uses_up_its_attempt(bench):
    bench.put("true", constraints={"max_iterations": 2})
    outcome = bench.run("no-such-agent")
    assert (outcome.status, outcome.attempts) == ("failed", 2)


def test_the_environment_of_an_agent_is_not_kept_as_evidence(bench):
    bench.put("true")
    bench.run("true")
    log = bench.read(os.path.join(".beads", bench.records[0]["results"][0]["evidence"]))
    assert "secret" not in log


def test_an_agent_gets_the_whole_environment_and_its_bead(bench):
    path = bench.put("true").path
    bench.run('printf "%s\\n" "$API_TOKEN" "$QUEEN_BEAD" "$QUEEN_BEAD_FILE" > told')
    assert bench.read("told").splitlines() == ["secret", "gt-1", path]


def test_what_failed_is_handed_to_the_next_attempt_by_variable_and_file(bench):
    bench.put(
        "echo wanted >&2; printf 'a\\0b'; exit 4",
        constraints={"max_iterations": 2},
    )
    bench.run(
        'printf "%s" "$QUEEN_FAILURES" > variable.$QUEEN_ATTEMPT;'
        'cp "$QUEEN_FAILURES_FILE" file.$QUEEN_ATTEMPT'
    )
    assert (bench.read("variable.1"), bench.read("file.1")) == ("", "")
    assert bench.read("file.2") == (
        "## Check 1\nexit code 4, expected 0\n\nstandard output:\na\0b\n\nstandard error:\nwanted\n"
    )
    assert bench.read("variable.2") == bench.read("file.2").replace("\0", "\ufffd")


def test_a_failed_agent_is_reported_to_the_next_attempt(bench):
    bench.put("true", constraints={"max_iterations": 2})
    bench.run("cp $QUEEN_FAILURES_FILE told; echo out of credit; exit 9")
    assert "exit code 9, expected 0" in bench.read("told")
    assert "out of credit" in bench.read("told")


def test_the_failures_for_the_next_attempt_are_bounded(bench):
    command = "yes 0123456789 | head -c 3000000; exit 1"
    verifiers = [
        {"name": f"{'ä' * 3000} {number}", "command": command, "on_failure": "continue"}
        for number in range(12)
    ]
    bench.put(dod={"verifiers": verifiers}, constraints={"max_iterations": 2})
    outcome = bench.run('printf "%s" "$QUEEN_FAILURES" > variable; cp $QUEEN_FAILURES_FILE file')
    assert outcome.attempts == 2
    assert bench.records[1]["results"][0]["status"] == "passed"
    size = os.path.getsize(os.path.join(bench.root, "variable"))
    assert 32_000 < size <= 32 * 1024
    assert os.path.getsize(os.path.join(bench.root, "file")) > size


def test_the_first_attempt_gets_what_an_earlier_pass_found(bench):
    verify_bead(bench.put("exit 4", constraints={"max_iterations": 1}), *bench.context())
    bench.run('printf "%s" "$QUEEN_FAILURES" > told')
    assert bench.read("told") == "## Check 1\nexit code 4, expected 0\n"


def test_the_bead_is_in_progress_while_the_agent_works(bench):
    bench.put("true", status="pending")
    bench.run("cp $QUEEN_BEAD_FILE seen")
    document = json.loads(bench.read("seen"))
    assert document["status"] == "in_progress"
    assert document["ralph_meta"]["attempt_count"] == 1
    assert document["ralph_meta"]["last_attempt"] >= format_ms(START_MS)


def test_a_failed_run_leaves_the_bead_failed_with_the_reason(bench):
    bench.put("false", constraints={"max_iterations": 1})
    bench.run("true")
    document = bench.bead().document
    assert (document["status"], document["ralph_meta"]["failure_reason"]) == (
        "failed",
        "not verified after 1 attempts",
    )


def test_a_failed_bead_starts_again_and_forgets_the_reason(bench):
    meta = {"attempt_count": 10, "failure_reason": "old"}
    bench.put("true", status="failed", ralph_meta=meta)
    outcome = bench.run("true")
    assert (outcome.status, outcome.attempts) == ("completed", 1)
    assert "failure_reason" not in bench.bead().document["ralph_meta"]


def test_an_interrupted_run_continues_with_its_remaining_attempts(bench):
    bench.put(
        "false",
        status="in_progress",
        ralph_meta={"attempt_count": 2},
        constraints={"max_iterations": 3},
    )
    outcome = bench.run("echo ran >> runs")
    assert (outcome.attempts, bench.read("runs")) == (3, "ran\n")


def test_an_interrupted_run_continues_with_its_remaining_time(bench):
    bench.put(
        "false",
        status="in_progress",
        ralph_meta={"attempt_count": 1, "time_spent_seconds": 100},
        constraints={"time_budget_minutes": 2},
    )
    outcome = bench.run("true")
    assert (outcome.why, outcome.attempts) == ("time_budget", 2)
    assert bench.bead().document["ralph_meta"]["time_spent_seconds"] >= 100


def test_a_bead_that_waits_for_another_is_blocked_and_runs_nothing(bench):
    bench.put("true", depends_on=["gt-0"])
    outcome = bench.run("touch ran")
    assert (outcome.status, outcome.why) == ("blocked", "dependencies")
    assert outcome.message == "gt-0 does not exist"
    assert bench.bead().document["status"] == "blocked"
    assert not os.path.exists(os.path.join(bench.root, "ran"))


def test_a_gate_bead_blocks_until_it_has_passed(bench):
    bench.put("test -e up", id="smoke", type="gate")
    bench.put("true", depends_on=["smoke"])
    assert bench.run("true").status == "blocked"
    with open(os.path.join(bench.root, "up"), "w"):
        assert complete_bead(bench.bead("smoke"), *bench.context()).verdict == "passed"
    assert bench.run("true").status == "completed"


def test_an_agent_that_rewrites_its_definition_of_done_does_not_complete(bench):
    bench.put("test -e done", constraints={"max_iterations": 2})
    outcome = bench.run(
        "perl -pi -e 's/test -e done/true/' $QUEEN_BEAD_FILE; test $QUEEN_ATTEMPT = 1 || touch done"
    )
    assert (outcome.status, outcome.why, outcome.attempts) == ("failed", "dod_changed", 2)


def test_what_an_agent_adds_to_its_bead_is_kept(bench):
    bench.put("true")
    bench.run('perl -pi -e \'s/"intent"/"note": "mine", "intent"/\' $QUEEN_BEAD_FILE')
    assert bench.bead().document["note"] == "mine"


def test_a_bead_whose_evidence_is_gone_is_not_completed(bench):
    bench.put("true", dod={"evidence_required": True})
    outcome = bench.run("true", record=lambda record: without_evidence(bench, record))
    assert (outcome.status, outcome.why) == ("failed", "evidence")


def without_evidence(bench, record):
    os.unlink(os.path.join(bench.root, ".beads", record["results"][1]["evidence"]))
    return record


def test_without_a_place_for_evidence_nothing_is_completed(bench):
    bench.put("true", status="pending")
    with open(os.path.join(bench.root, "file"), "w") as file:
        file.write("not a folder")
    with pytest.raises(Unwritable):
        bench.run("true", evidence_dir=os.path.join(bench.root, "file", "evidence"))
    assert bench.bead().document["status"] != "completed"


def test_a_bead_that_its_agent_removes_is_reported_missing(bench):
    bench.put("true")
    with pytest.raises(NotFound):
        bench.run("rm $QUEEN_BEAD_FILE")


def test_an_id_of_any_shape_keeps_its_evidence_in_the_evidence_folder(bench):
    bench.put("true", id="ünï cödé 漢字")
    verify_bead(bench.bead("ünï cödé 漢字"), *bench.context())
    evidence = bench.records[0]["results"][0]["evidence"]
    assert evidence.split("/")[:2] == ["evidence", "-n--c-d----"]
    assert bench.read(os.path.join(".beads", evidence))


def test_a_request_to_end_that_comes_while_a_pass_is_recorded_waits_for_it(bench):
    bench.put("true", "touch second")

    def record(run):
        os.kill(os.getpid(), signal.SIGHUP)
        return run

    with pytest.raises(KeyboardInterrupt):
        verify_bead(bench.bead(), *bench.context(record=record))
    assert bench.bead().document["ralph_meta"]["verifier_results"][1]["status"] == "passed"
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_completed_run_leaves_one_file(bench):
    bench.put("test -e done", status="pending")
    bench.run("touch done")
    beads, problems = list_beads(bench.folders)
    assert ([bead.path for bead in beads], problems) == (
        [os.path.join(bench.folders.completed, "gt-1.json")],
        [],
    )
