"""One run of a list of checks: its record, its evidence, and a request to end while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from queenbee.checks import Check, CheckRunner, Command, Consent
from queenbee.checks.verification import Subject

GATE = Subject("gate", "wf/one", 3)


@pytest.fixture
def records():
    return []


@pytest.fixture
def runner(tmp_path, records):
    """A runner whose clock advances by a second each time it is read."""
    ticks = iter(range(1_763_217_020_000, 1_763_218_020_000, 1000))
    return CheckRunner(
        cwd=str(tmp_path),
        env={"PATH": os.environ["PATH"]},
        evidence_dir=str(tmp_path / "evidence"),
        now_ms=lambda: next(ticks),
        record=lambda record: records.append(record) or {**record, "id": "qv-1"},
        consent=Consent.at(str(tmp_path)),
    )


def test_the_record_and_the_evidence_are_kept_before_the_block(runner, records, tmp_path):
    with runner.run(GATE, [Check("It", Command("echo out"))]) as run:
        (record,) = records
        evidence = "evidence/wf-one/20251115T143020.000Z/01-It.log"
        log = (tmp_path / evidence).read_text()
        assert log.endswith("out\n\n--- standard error, 0 bytes ---\n")
        (result,) = record.pop("results")
    assert (result["status"], result["evidence"]) == ("passed", evidence)
    assert record == {
        "subject_kind": "gate",
        "subject_id": "wf/one",
        "attempt": 3,
        "started_at": "2025-11-15T14:30:20.000Z",
        "finished_at": "2025-11-15T14:30:21.000Z",
        "verdict": "passed",
    }
    assert run.record["id"] == "qv-1"


def test_the_judge_can_change_a_result(runner):
    def judge(result):
        return replace(result, status="failed", reason="says who?")

    with runner.run(GATE, [Check("It", Command("true"))], judge=judge) as run:
        assert (run.record["verdict"], run.record["results"][0]["reason"]) == (
            "failed",
            "says who?",
        )
        assert run.results[0].status == "failed"


def test_an_error_in_the_block_is_raised(runner):
    with pytest.raises(ValueError, match="of the block"), runner.run(GATE, []):
        raise ValueError("of the block")


def test_evidence_that_is_gone_is_named(runner, tmp_path):
    with runner.run(GATE, [Check("a", Command("true")), Check("b", Command("true"))]) as run:
        (tmp_path / run.record["results"][1]["evidence"]).unlink()
    assert runner.missing_evidence(run) == ["b"]


def test_what_was_not_verified_is_recorded_with_the_reason(runner, records):
    run = runner.record_unverified(GATE, "the server is down")
    (record,) = records
    assert (record["verdict"], record["results"], record["reason"], run.results) == (
        "not_verified",
        [],
        "the server is down",
        (),
    )


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_request_to_end_interrupts_one_check_skips_the_rest_and_is_raised(name, tmp_path):
    # In an interpreter of its own: the command sends it the signal that a terminal would.
    script = """
        import os, sys
        from queenbee.checks import Check, CheckRunner, ChecksInterrupted, Command, Consent
        from queenbee.checks.verification import Subject
        texts = ["true", f"kill -{sys.argv[2]} $PPID; sleep 60", "touch third"]
        checks = [Check(text, Command(text)) for text in texts]
        runner = CheckRunner(
            cwd=sys.argv[1], env=dict(os.environ), evidence_dir=sys.argv[1] + "/evidence",
            now_ms=lambda: 0, record=lambda record: record, consent=Consent.at(sys.argv[1]),
        )
        try:
            with runner.run(Subject("bead", "gt-1", 0), checks) as run:
                os.kill(os.getpid(), 1)
                print(run.record["verdict"])
        except KeyboardInterrupt as stop:
            assert isinstance(stop, ChecksInterrupted)
            print([result.status for result in stop.results])
    """
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), name],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert driver.stderr == ""
    assert driver.stdout == "interrupted\n['passed', 'interrupted', 'skipped']\n"
    assert not (tmp_path / "third").exists()
