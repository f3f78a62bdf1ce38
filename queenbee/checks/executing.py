"""Runs checks in order, each with its limits; the checks themselves are in `check`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from queenbee.checks.check import (
    Check,
    CheckResult,
    Command,
    ContentMatch,
    FileExists,
    Script,
    Unknown,
    quoted,
)
from queenbee.checks.file_checks import look_for_file, search_file
from queenbee.checks.processes import Interrupts, ProcessResult, Program, run_process
from queenbee.core.command_lines import CommandLine, typed_line

_ENVIRONMENT = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL", "VIRTUAL_ENV"})
_UNKNOWN = 127
"""The exit code of a shell that finds no program for a command."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: sent when a check starts, about once a second, and when it ends."""

    event: Literal["started", "running", "finished"]
    name: str
    number: int
    total: int
    elapsed_s: float = 0.0
    last_line: str = ""
    result: CheckResult | None = None


def run_checks(  # noqa: PLR0913 - by name
    checks: Sequence[Check],
    *,
    cwd: str,
    env: Mapping[str, str],
    interrupts: Interrupts | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_result: Callable[[CheckResult], None] | None = None,
    time_left: Callable[[], float] | None = None,
) -> list[CheckResult]:
    """Returns one result for each check, in order; those after a stop are `skipped`.

    `on_result` gets each result before the next check starts.

    `env` is the caller's whole environment: only the allow-list and what a check names reach
    it. `time_left` gives the seconds in which all must end, whatever a check's own timeout. When
    `interrupts` counts a request to end, the running check becomes `interrupted` once all its
    processes have ended. `CheckRunner` also keeps a record and the evidence.
    """
    notify = on_progress or (lambda _: None)
    run = _Run(os.path.abspath(cwd), env, time_left, interrupts or Interrupts())
    results: list[CheckResult] = []
    not_run = ""
    for number, check in enumerate(checks, 1):
        not_run = not_run or run.reason_to_stop(results[-1:])
        if not_run:
            results.append(CheckResult(check, "skipped", f"not run: {not_run}"))
        else:
            started = Progress("started", check.name, number, len(checks))
            results.append(_run_one(check, run, started, notify))
        if on_result is not None:
            on_result(results[-1])
    return results


def environment_for(check: Check, env: Mapping[str, str]) -> dict[str, str]:
    """Returns the part of `env` that reaches a check, and what the check itself names."""
    allowed = {
        name: value
        for name, value in env.items()
        if name in _ENVIRONMENT or name.startswith("LC_") or name in check.environment
    }
    named = {name: value for name, value in check.environment.items() if value is not None}
    return allowed | named


@dataclass(frozen=True, slots=True)
class _Run:
    cwd: str
    env: Mapping[str, str]
    time_left: Callable[[], float] | None
    interrupts: Interrupts

    def path(self, name: str) -> str:
        return os.path.join(self.cwd, name)

    def timeout_s(self, check: Check) -> float:
        return check.timeout_s if self.time_left is None else min(check.timeout_s, self.time_left())

    def reason_to_stop(self, last: Sequence[CheckResult]) -> str:
        """Returns why nothing runs after the last result; empty if the run continues."""
        for result in last:
            if result.status == "interrupted":
                return "the run was interrupted"
            if result.status == "failed" and result.check.on_failure == "stop":
                return f"{result.name!r} failed and stops the checks after it"
        if self.time_left is not None and self.time_left() <= 0:
            return "no time is left"
        return ""


def _run_one(
    check: Check, run: _Run, started: Progress, notify: Callable[[Progress], None]
) -> CheckResult:
    def on_tick(elapsed_s: float, last_line: str) -> None:
        notify(replace(started, event="running", elapsed_s=elapsed_s, last_line=last_line))

    if run.interrupts.count:
        return CheckResult(check, "interrupted", "interrupted before it started")
    notify(started)
    result = _result(check, run, on_tick)
    notify(replace(started, event="finished", elapsed_s=result.duration_s, result=result))
    return result


def _result(check: Check, run: _Run, on_tick: Callable[[float, str], None]) -> CheckResult:
    match check.what:
        case Command():
            return _run_program(check, check.what.argv, run, on_tick)
        case Script(path, args):
            return _run_program(check, typed_line([run.path(path), *args]), run, on_tick)
        case FileExists(path, file_type):
            return look_for_file(check, run.path(path), file_type)
        case ContentMatch(path, patterns):
            return search_file(
                check,
                run.path(path),
                patterns,
                env=environment_for(check, run.env),
                timeout_s=run.timeout_s(check),
                run=partial(run_process, on_tick=on_tick, interrupts=run.interrupts),
            )
        case Unknown(type_name):
            shown = repr(type_name[:60])
            return CheckResult(check, "skipped", f"not run: the type {shown} is unknown")


def _run_program(
    check: Check, argv: CommandLine, run: _Run, on_tick: Callable[[float, str], None]
) -> CheckResult:
    cwd = run.path(check.cwd or "")
    look_for = (check.expect.stdout_contains or "", check.expect.stderr_contains or "")
    program = Program(
        argv, cwd, environment_for(check, run.env), run.timeout_s(check), look_for=look_for
    )
    done = run_process(program, on_tick=on_tick, interrupts=run.interrupts)
    complaint = _complaint(done, check, program.timeout_s)
    if done.ended == "not_started" and not os.path.isdir(cwd):
        complaint = f"the working directory {cwd} does not exist"
    return CheckResult(
        check,
        "interrupted" if done.ended == "interrupted" else "failed" if complaint else "passed",
        complaint or f"{_exit(done.exit_code)}, as expected",
        done.exit_code,
        done.duration_s,
        done.stdout,
        done.stderr,
    )


def _complaint(done: ProcessResult, check: Check, timeout_s: float) -> str:
    expect = check.expect
    if done.ended == "not_started":
        return done.problem
    if done.ended == "interrupted":
        return "interrupted"
    if done.ended == "timed_out":
        if timeout_s < check.timeout_s:
            return f"stopped after {done.duration_s:.1f} s: no time is left"
        return f"timed out after {check.timeout_s:g} s"
    complaints = []
    code = done.exit_code
    # A shell reports 137 for a program that SIGKILL ended, and documents expect that number.
    if expect.exit_code not in (code, 128 - code if code is not None and code < 0 else code):
        shell = check.what.shell if isinstance(check.what, Command) else None
        missing = f" ({shell} does not know a command in it)" if shell and code == _UNKNOWN else ""
        complaints.append(f"{_exit(code)}, expected {expect.exit_code}{missing}")
    if not done.stdout.found:
        complaints.append(f"standard output does not contain {quoted(expect.stdout_contains)}")
    if not done.stderr.found:
        complaints.append(f"standard error does not contain {quoted(expect.stderr_contains)}")
    return "; ".join(complaints)


def _exit(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"
