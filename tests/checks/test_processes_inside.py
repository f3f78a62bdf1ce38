"""A program is bounded in time and memory: the parts inside."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest
from live_processes import assert_gone

from queenbee.checks.processes import Interrupts, Program, run_process

pytestmark = pytest.mark.slow

ENV = {"PATH": os.environ["PATH"]}


def run(
    command,
    cwd,
    *,
    timeout_s=20.0,
    run_process=run_process,
    on_tick=None,
    interrupts=None,
    **limits,
):
    limits = {"grace_s": 0.3} | limits
    program = Program(["/bin/sh", "-c", command], str(cwd), ENV, timeout_s, **limits)
    return run_process(program, on_tick=on_tick, interrupts=interrupts)


def test_a_program_runs_in_its_folder_with_its_environment_and_no_input(tmp_path):
    done = run("pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; cat", tmp_path)
    first, rest = done.stdout.text().split("\n", 1)
    assert first == str(tmp_path)
    assert set(rest.split()) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH"}


@pytest.mark.linux
def test_a_program_leads_its_own_session(tmp_path):
    done = run("cat /proc/self/stat", tmp_path)
    fields = done.stdout.text().rpartition(")")[2].split()
    group, session = int(fields[2]), int(fields[3])
    assert group == session
    assert session != os.getsid(0)


@pytest.mark.parametrize(
    ("argv", "cwd", "env"),
    [
        pytest.param(["/no/such/program"], "/", ENV, id="missing-program"),
        pytest.param(["/bin/sh", "-c", "true"], "/no/such/folder", ENV, id="missing-folder"),
        pytest.param(["/bin/sh", "-c", "true\0"], "/", ENV, id="nul-in-an-argument"),
        pytest.param(["/bin/sh", "-c", "true"], "/\0", ENV, id="nul-in-the-folder"),
        pytest.param(["/bin/sh", "-c", "true"], "/", {"A": "\0"}, id="nul-in-a-variable"),
        pytest.param(["/bin/sh", "-c", "\ud800"], "/", ENV, id="half-a-surrogate-pair"),
        pytest.param(
            ["/bin/sh", "-c", "x" * 3_000_000], "/", ENV, id="longer-than-the-kernel-takes"
        ),
    ],
)
def test_a_program_that_cannot_start_is_reported_and_raises_nothing(argv, cwd, env):
    done = run_process(Program(argv, cwd, env, timeout_s=5))
    assert (done.ended, done.exit_code) == ("not_started", None)
    assert done.problem.startswith("cannot be started: ")


HOSTILE = {
    "sleeps": "echo $$ > 1.pid; sleep 600",
    "ignores-the-request-to-end": "trap '' TERM INT; echo $$ > 1.pid; while :; do sleep 1; done",
    "prints-for-ever": "echo $$ > 1.pid; yes",
    "prints-for-ever-from-a-child": "echo $$ > 1.pid; yes & echo $! > 2.pid; wait",
    "ignores-forks-and-prints": "trap '' TERM; echo $$ > 1.pid; "
    "(trap '' TERM; echo $$ > /dev/null; yes >&2) & echo $! > 2.pid; "
    "(trap '' TERM; while :; do echo again; done) & echo $! > 3.pid; while :; do wait; done",
    "forks-for-ever": "echo $$ > 1.pid; while :; do sleep 600 & sleep 0.02; done",
}


@pytest.mark.parametrize("command", HOSTILE.values(), ids=HOSTILE)
def test_at_the_timeout_the_whole_group_ends(command, tmp_path):
    done = run(command, tmp_path, timeout_s=0.4)
    assert (done.ended, done.exit_code) == ("timed_out", None)
    assert_gone(tmp_path, command.count(".pid"))


def test_no_member_of_a_group_that_forks_forever_is_left(tmp_path):
    run("while :; do sleep 654.321 & sleep 0.02; done", tmp_path, timeout_s=0.4)
    left = subprocess.run(["pgrep", "-f", "sleep 654[.]321"], capture_output=True, text=True)
    assert left.stdout == ""


def test_a_program_that_ends_when_asked_may_clean_up(tmp_path):
    command = (
        "trap 'echo cleaned > done; exit 0' TERM; echo $$ > 1.pid; while :; do sleep 0.05; done"
    )
    run(command, tmp_path, timeout_s=0.4, grace_s=10)
    assert (tmp_path / "done").read_text() == "cleaned\n"


def test_what_a_program_leaves_behind_ends_with_it(tmp_path):
    done = run("sleep 600 & echo $! > 1.pid; echo ready", tmp_path)
    assert (done.ended, done.exit_code, done.stdout.text()) == ("exited", 0, "ready\n")
    assert_gone(tmp_path, 1)


def test_a_leftover_without_the_pipe_ends_with_it_too(tmp_path):
    done = run("sleep 600 >/dev/null 2>&1 & echo $! > 1.pid", tmp_path)
    assert done.exit_code == 0
    assert_gone(tmp_path, 1)


@pytest.mark.linux
def test_a_leftover_in_its_own_session_keeps_the_pipe_but_hangs_nothing(tmp_path):
    done = run("setsid sleep 600 & echo ready", tmp_path)
    try:
        assert (done.exit_code, done.stdout.text()) == (0, "ready\n")
    finally:
        end_own_sleepers(tmp_path)


def end_own_sleepers(folder):
    """Ends the one process whose working directory is the test's own folder."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(folder):
                os.kill(int(name), 9)
        except OSError:
            continue


def test_both_ends_of_a_longer_stream_are_kept_and_the_gap_is_reported(tmp_path):
    done = run("printf 0123456789ABCDEF", tmp_path, cap_bytes=10)
    assert (done.stdout.head, done.stdout.tail) == (b"01234", b"BCDEF")
    assert done.stdout.text() == "01234\n[… 6 bytes left out …]\nBCDEF"


def test_the_end_of_a_long_stream_is_its_very_end(tmp_path):
    done = run("seq 1 200000", tmp_path, cap_bytes=1000)
    assert done.stdout.tail.endswith(b"199999\n200000\n")
    assert len(done.stdout.head) + len(done.stdout.tail) == 1000


def test_an_interrupt_before_its_start_ends_it_too(tmp_path):
    interrupts = Interrupts()
    interrupts._count = 1
    done = run("sleep 600", tmp_path, interrupts=interrupts)
    assert done.ended == "interrupted"


@pytest.mark.parametrize("where", ["beginning", "middle", "end"])
def test_a_text_is_found_anywhere_in_a_stream(where, tmp_path):
    filler = "seq 1 100000"
    parts = {"beginning": f"echo NEEDLE; {filler}", "middle": f"{filler}; echo NEEDLE; {filler}"}
    command = parts.get(where, f"{filler}; echo NEEDLE")
    done = run(command, tmp_path, cap_bytes=1000, look_for=("NEEDLE", "NEEDLE"))
    assert (done.stdout.found, done.stderr.found) == (True, False)


def test_a_text_is_found_across_two_reads(tmp_path):
    command = "printf NEE; sleep 0.2; printf DLE"
    assert run(command, tmp_path, look_for=("NEEDLE", "")).stdout.found


def test_progress_is_reported_with_the_last_line(tmp_path):
    told = []
    run(
        "echo working; while [ ! -e told ]; do sleep 0.02; done",
        tmp_path,
        on_tick=lambda elapsed_s, line: (told.append(line), (tmp_path / "told").touch()),
    )
    assert told == ["working"]


def test_an_error_of_the_caller_ends_the_group_and_is_raised(tmp_path):
    def fail(elapsed_s, line):
        raise RuntimeError("the terminal is gone")

    with pytest.raises(RuntimeError, match="the terminal is gone"):
        run("echo $$ > 1.pid; sleep 600", tmp_path, on_tick=fail)
    assert_gone(tmp_path, 1)


def test_another_thread_than_the_main_one_gets_no_signals(tmp_path):
    done = []

    def work():
        with Interrupts() as interrupts:
            done.append(run("true", tmp_path, interrupts=interrupts).ended)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["exited"]
