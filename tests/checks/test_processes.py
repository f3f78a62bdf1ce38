"""A program is bounded in time and memory, and nothing of it stays. Real processes throughout."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap

import pytest
from live_processes import assert_gone

pytestmark = pytest.mark.slow


MEMORY = """
    from queenbee.checks import processes
    def peak_kib():
        # Not getrusage: a child is told the peak of whoever started it.
        with open("/proc/self/status") as status:
            return int(next(line for line in status if line.startswith("VmHWM")).split()[1])
    before = peak_kib()
    done = processes.run_process(processes.Program(["/usr/bin/yes"], "/", {}, timeout_s=1.0))
    print(done.stdout.total_bytes, peak_kib() - before)
"""


def memory_growth_kib():
    """Returns by how much an interpreter of its own grew while a program printed for a second."""
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEMORY)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    printed, grown_kib = map(int, driver.stdout.split())
    assert printed > 40 * 1024 * 1024, "it printed too little to prove anything"
    return grown_kib


@pytest.mark.linux
def test_memory_stays_bounded_while_a_program_prints_forever():
    assert memory_growth_kib() < 16 * 1024


INTERRUPTED = """
    import os, signal, sys
    from queenbee.checks.processes import Interrupts, Program, run_process
    command, cwd, grace_s = sys.argv[1:]
    argv = ["/bin/sh", "-c", command]
    program = Program(argv, cwd, dict(os.environ), timeout_s=60, grace_s=float(grace_s))
    with Interrupts() as interrupts:
        done = run_process(program, interrupts=interrupts)
    print(done.ended, done.exit_code, done.stdout.text())
    print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""


def run_and_interrupt(command, cwd, *, grace_s=0.2, program=INTERRUPTED, **more):
    """Runs a command that interrupts its caller, in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), command, str(cwd), str(grace_s)],
        capture_output=True,
        text=True,
        timeout=60,
        **more,
    )


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_request_to_end_ends_the_group_and_is_reported(name, tmp_path):
    command = f"trap '' TERM; echo $$ > 1.pid; kill -{name} $PPID; while :; do sleep 1; done"
    driver = run_and_interrupt(command, tmp_path)
    assert (driver.stdout, driver.stderr) == ("interrupted None \nTrue\n", "")
    assert_gone(tmp_path, 1)


def test_two_requests_at_once_leave_nothing_behind(tmp_path):
    command = "echo $$ > 1.pid; kill -TERM $PPID; kill -HUP $PPID; kill -TERM $PPID; sleep 600"
    driver = run_and_interrupt(command, tmp_path)
    assert driver.stdout.startswith("interrupted None")
    assert_gone(tmp_path, 1)


def test_a_second_request_ends_the_grace_period(tmp_path):
    # Asked to end, the command asks its caller in turn; a grace of ten minutes would not end here.
    command = (
        "trap 'kill -TERM $PPID' TERM; echo $$ > 1.pid; kill -TERM $PPID; while :; do wait; done"
    )
    driver = run_and_interrupt(command, tmp_path, grace_s=600)
    assert driver.stdout.startswith("interrupted None")
    assert_gone(tmp_path, 1)


def test_a_signal_that_is_ignored_stays_so(tmp_path):
    driver = run_and_interrupt(
        "kill -HUP $PPID; echo finished",
        tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert driver.stdout.startswith("exited 0 finished\n")


def test_a_signal_that_the_application_handles_is_left_to_it(tmp_path):
    handler = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: print('its own'))\n"
    program = handler + textwrap.dedent(INTERRUPTED)
    driver = run_and_interrupt("kill -TERM $PPID; echo finished", tmp_path, program=program)
    assert driver.stdout.startswith("its own\nexited 0 finished\n")
