"""The engine of checks: what a Definition of Done and a phase gate are made of, and run by.

A check is a shell command, a script, a file that must exist, or text that a file must contain.
Commands are given to `sh -c` on purpose: the documents' own contain `&`, `|` and `&&`. They come
from a document that the caller chose to run, and from nowhere else. `docs/checks.md`.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field, replace

from queenbee.checks.bounds import DEFAULT_TIMEOUT_S
from queenbee.checks.files import Look, Pattern, look_for_file, search_file
from queenbee.checks.processes import NOTHING, Interrupts, Output, ProcessResult, run_process
from queenbee.core.text import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

_ENVIRONMENT = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL", "VIRTUAL_ENV"})
_SHELL = "/bin/sh"
_QUOTED_CHARS = 200


@dataclass(frozen=True)
class Command:
    """Is a line for `sh -c`."""

    text: str


@dataclass(frozen=True)
class Script:
    """Is a program and its arguments, started without a shell."""

    path: str
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileExists:
    """Is a path that must be there, and of this type."""

    path: str
    file_type: Literal["file", "directory", "any"] = "file"


@dataclass(frozen=True)
class ContentMatch:
    """Is a file in which every one of the patterns must occur."""

    path: str
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True)
class Unknown:
    """Is something of a type that is not known here: it is skipped, and so never passes."""

    type_name: str


@dataclass(frozen=True)
class Expectation:
    """Is what a program must do to pass; the two texts are literal."""

    exit_code: int = 0
    stdout_contains: str | None = None
    stderr_contains: str | None = None


@dataclass(frozen=True)
class Check:
    """Is one thing to be found true. Relative paths begin at the working directory of the run.

    `on_failure` decides only whether the checks after it still run. `environment` adds to the
    allow-list: a name with its value, or with None for the caller's own value.
    """

    name: str
    what: Command | Script | FileExists | ContentMatch | Unknown
    expect: Expectation = Expectation()
    timeout_s: float = DEFAULT_TIMEOUT_S
    severity: Literal["error", "warning"] = "error"
    on_failure: Literal["stop", "continue"] = "stop"
    cwd: str | None = None
    environment: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The word that documents use for what is checked."""
        return _KINDS.get(type(self.what), "unknown")


_KINDS: dict[type, str] = {
    Command: "command",
    Script: "script",
    FileExists: "file_exists",
    ContentMatch: "content_match",
}


@dataclass(frozen=True)
class CheckResult:
    """Is what came of one check; `reason` is a sentence for people, whatever the status."""

    check: Check
    status: Literal["passed", "failed", "skipped", "interrupted"]
    reason: str
    exit_code: int | None = None
    duration_s: float = 0.0
    stdout: Output = NOTHING
    stderr: Output = NOTHING
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the check."""
        return self.check.name


@dataclass(frozen=True)
class Progress:
    """Is told while checks run: when one starts, about once a second, and when it is done."""

    event: Literal["started", "running", "finished"]
    name: str
    number: int
    total: int
    elapsed_s: float = 0.0
    last_line: str = ""
    result: CheckResult | None = None


class ChecksInterrupted(KeyboardInterrupt):
    """A Ctrl-C, SIGTERM or SIGHUP while checks ran; `results` has one for each, to be recorded."""

    def __init__(self, results: list[CheckResult]) -> None:
        super().__init__("interrupted while checks ran")
        self.results = results


def run_checks(
    checks: Sequence[Check],
    *,
    cwd: str,
    env: Mapping[str, str],
    on_progress: Callable[[Progress], None] | None = None,
    time_left: Callable[[], float] | None = None,
) -> list[CheckResult]:
    """Returns one result for each check, in order; those after a stop are `skipped`.

    `env` is the caller's whole environment: only the allow-list and what a check names reach
    it. `time_left` gives the seconds in which all must end, whatever a check's own timeout.
    Raises `ChecksInterrupted` on Ctrl-C, SIGTERM and SIGHUP, when every process has ended.
    """
    with Interrupts() as interrupts:
        results = run_until(
            interrupts, checks, cwd=cwd, env=env, on_progress=on_progress, time_left=time_left
        )
    if interrupts.count:
        raise ChecksInterrupted(results)
    return results


def run_until(
    interrupts: Interrupts,
    checks: Sequence[Check],
    *,
    cwd: str,
    env: Mapping[str, str],
    on_progress: Callable[[Progress], None] | None = None,
    time_left: Callable[[], float] | None = None,
) -> list[CheckResult]:
    """Returns the same, for a caller that records it before it raises `ChecksInterrupted`.

    It does so while `interrupts` is still entered: a terminal that is closed sends two SIGHUPs.
    """
    tell = on_progress or (lambda _: None)
    setting = _Setting(os.path.abspath(cwd), env, time_left, interrupts)
    results: list[CheckResult] = []
    not_run = ""
    for number, check in enumerate(checks, 1):
        not_run = not_run or _reason_to_stop(results[-1:], setting)
        if not_run:
            results.append(CheckResult(check, "skipped", f"not run: {not_run}"))
        else:
            place = Progress("started", check.name, number, len(checks))
            results.append(_run_told(check, setting, place, tell))
    return results


def verdict(results: Sequence[CheckResult]) -> Literal["passed", "failed", "interrupted"]:
    """Returns whether every check of error severity passed; nothing checked is nothing passed."""
    if any(result.status == "interrupted" for result in results):
        return "interrupted"
    good = all(result.status == "passed" for result in results if result.check.severity == "error")
    return "passed" if results and good else "failed"


def describe(checks: Sequence[Check]) -> list[str]:
    """Returns a line for each check: what would be run or looked at, and what is expected.

    The variables are told that its document names: they can change what a command does.
    """
    return [
        f"{number}. {escaped(check.name[:_QUOTED_CHARS])}: {described(check)}{_variables(check)}"
        for number, check in enumerate(checks, 1)
    ]


def environment_for(check: Check, env: Mapping[str, str]) -> dict[str, str]:
    """Returns the part of `env` that reaches a check, and what the check itself names."""
    allowed = {
        name: value
        for name, value in env.items()
        if name in _ENVIRONMENT or name.startswith("LC_") or name in check.environment
    }
    named = {name: value for name, value in check.environment.items() if value is not None}
    return allowed | named


@dataclass(frozen=True)
class _Setting:
    cwd: str
    env: Mapping[str, str]
    time_left: Callable[[], float] | None
    interrupts: Interrupts

    def path(self, name: str) -> str:
        return os.path.join(self.cwd, name)

    def timeout_s(self, check: Check) -> float:
        return check.timeout_s if self.time_left is None else min(check.timeout_s, self.time_left())


def _reason_to_stop(last: Sequence[CheckResult], setting: _Setting) -> str:
    """Returns why nothing runs after the last result, if there is one; else the empty text."""
    for result in last:
        if result.status == "interrupted":
            return "the run was interrupted"
        if result.status == "failed" and result.check.on_failure == "stop":
            return f"{result.name!r} failed, and stops what comes after it"
    if setting.time_left is not None and setting.time_left() <= 0:
        return "no time is left"
    return ""


def _run_told(
    check: Check, setting: _Setting, place: Progress, tell: Callable[[Progress], None]
) -> CheckResult:
    def on_tick(elapsed_s: float, last_line: str) -> None:
        tell(replace(place, event="running", elapsed_s=elapsed_s, last_line=last_line))

    if setting.interrupts.count:
        return CheckResult(check, "interrupted", "interrupted before it began")
    tell(place)
    result = _run(check, setting, on_tick)
    tell(replace(place, event="finished", elapsed_s=result.duration_s, result=result))
    return result


def _run(check: Check, setting: _Setting, on_tick: Callable[[float, str], None]) -> CheckResult:
    match check.what:
        case Command(text):
            return _run_program(check, [_SHELL, "-c", text], setting, on_tick)
        case Script(path, args):
            return _run_program(check, [setting.path(path), *args], setting, on_tick)
        case FileExists(path, file_type):
            return _looked(check, look_for_file(setting.path(path), file_type))
        case ContentMatch(path, patterns):
            look = search_file(
                setting.path(path),
                patterns,
                env=environment_for(check, setting.env),
                timeout_s=setting.timeout_s(check),
                on_tick=on_tick,
                interrupts=setting.interrupts,
            )
            return _looked(check, look)
        case Unknown(type_name):
            shown = repr(type_name[:60])
            return CheckResult(check, "skipped", f"not run: the type {shown} is not known here")


def _looked(check: Check, look: Look) -> CheckResult:
    return CheckResult(
        check, look.status, look.reason, duration_s=look.duration_s, details=look.details
    )


def _run_program(
    check: Check, argv: list[str], setting: _Setting, on_tick: Callable[[float, str], None]
) -> CheckResult:
    cwd = setting.path(check.cwd or "")
    timeout_s = setting.timeout_s(check)
    done = run_process(
        argv,
        cwd=cwd,
        env=environment_for(check, setting.env),
        timeout_s=timeout_s,
        look_for=(check.expect.stdout_contains or "", check.expect.stderr_contains or ""),
        on_tick=on_tick,
        interrupts=setting.interrupts,
    )
    complaint = _complaint(done, check, timeout_s)
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
    # A shell says 137 of what SIGKILL ended, and so do those who write what they expect.
    if expect.exit_code not in (code, 128 - code if code is not None and code < 0 else code):
        complaints.append(f"{_exit(code)}, expected {expect.exit_code}")
    if not done.stdout.found:
        complaints.append(f"standard output does not contain {_quoted(expect.stdout_contains)}")
    if not done.stderr.found:
        complaints.append(f"standard error does not contain {_quoted(expect.stderr_contains)}")
    return "; ".join(complaints)


def _exit(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"


def described(check: Check) -> str:
    """Returns what a check runs or looks at, and what it expects, as one line."""
    match check.what:
        case Command(text):
            what = f"sh -c {escaped(text)}"
        case Script(path, args):
            what = f"run {escaped(' '.join([path, *args]))}"
        case FileExists(path, file_type):
            noun = "anything" if file_type == "any" else f"a {file_type}"
            return f"{noun} exists at {escaped(path)}"
        case ContentMatch(path, patterns):
            texts = ", ".join(escaped(repr(pattern.text)) for pattern in patterns)
            return f"{escaped(path)} contains {texts}"
        case Unknown(type_name):
            return f"cannot be run: {escaped(type_name)} is not known"
    expect = f"exit code {check.expect.exit_code}"
    if check.expect.stdout_contains is not None:
        expect += f", standard output with {_quoted(check.expect.stdout_contains)}"
    if check.expect.stderr_contains is not None:
        expect += f", standard error with {_quoted(check.expect.stderr_contains)}"
    where = f", in {escaped(check.cwd)}" if check.cwd else ""
    limit = f"within {check.timeout_s:g} s"
    return f"{what} (expects {expect}, {limit}{where})"


def _variables(check: Check) -> str:
    named = [
        escaped(name if value is None else f"{name}={_quoted(value)}")
        for name, value in check.environment.items()
    ]
    return f" with {', '.join(named)}" if named else ""


def _quoted(text: str | None) -> str:
    return repr(text if text is None or len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "…")
