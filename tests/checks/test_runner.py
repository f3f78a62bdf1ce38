"""One run of a list of checks: its record, its evidence, and a request to end while it runs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from queenbee.checks import CheckRunner, Consent


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
