"""The types of checks, their results, and how a check reads to a person. docs/checks.md.

Commands are passed to `sh -c` on purpose: those of the documents contain `&`, `|` and `&&`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from queenbee.checks.output import NOTHING, Output
from queenbee.core.command_lines import CommandLine, shell_line
from queenbee.core.text import escaped

DEFAULT_TIMEOUT_S = 300
"""The timeout of a check whose document names none."""

MAX_CHECKS = 500
"""The limit of one bead or gate: the record of a run is one ledger line, of 1 MiB at most."""

_QUOTED_CHARS = 200


@dataclass(frozen=True, slots=True)
class Command:
    """A line for a shell: `sh`, `bash`, `zsh`, or PowerShell (`pwsh`, `powershell`)."""

    text: str
    shell: str = "sh"

    @property
    def how(self) -> str:
        """What starts it, in words."""
        return f"shell {self.shell}"

    @property
    def argv(self) -> CommandLine:
        """The shell and its arguments; `sh` is always the system's."""
        if self.shell == "sh":
            return shell_line(self.text)
        if self.shell in ("pwsh", "powershell"):
            how = (self.shell, "-NoProfile", "-NonInteractive", "-Command")
            return shell_line(self.text, by=how)
        return shell_line(self.text, by=(self.shell, "-c"))


@dataclass(frozen=True, slots=True)
class Script:
    """A program and its arguments, started without a shell."""

    path: str
    args: tuple[str, ...] = ()
    how = "a program, without a shell"

    @property
    def text(self) -> str:
        """The program and its arguments as one line."""
        return shlex.join([self.path, *self.args])


@dataclass(frozen=True, slots=True)
class FileExists:
    """A path that must exist and have this type."""

    path: str
    file_type: Literal["file", "directory", "any"] = "file"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One text, or regular expression, to find."""

    text: str
    literal: bool = False
    case_sensitive: bool = True


@dataclass(frozen=True, slots=True)
class ContentMatch:
    """A file in which every pattern must occur."""

    path: str
    patterns: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A check of an unknown type: it is skipped, and so never passes."""

    type_name: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a program must do to pass; the two texts are literal."""

    exit_code: int = 0
    stdout_contains: str | None = None
    stderr_contains: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to verify. Relative paths start at the working directory of the run.

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


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check; `reason` is a sentence for people, whatever the status."""

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


def verdict(results: Sequence[CheckResult]) -> Literal["passed", "failed", "interrupted"]:
    """Returns whether every check of error severity passed; False if nothing was checked."""
    if any(result.status == "interrupted" for result in results):
        return "interrupted"
    good = all(result.status == "passed" for result in results if result.check.severity == "error")
    return "passed" if results and good else "failed"


def describe(checks: Sequence[Check]) -> list[str]:
    """Returns a line for each check: what it would run or look at, and what it expects.

    The line names the variables that the document sets, which can change what a command does.
    """
    return [
        f"{number}. {escaped(check.name[:_QUOTED_CHARS])}: {described(check)}{_variables(check)}"
        for number, check in enumerate(checks, 1)
    ]


def described(check: Check) -> str:
    """Returns what a check runs or looks at, and what it expects, as one line."""
    match check.what:
        case Command(text, shell):
            option = "-Command" if shell in ("pwsh", "powershell") else "-c"
            what = f"{shell} {option} {escaped(text)}"
        case Script(path, args):
            what = f"run {escaped(' '.join([path, *args]))}"
        case FileExists(path, file_type):
            noun = "anything" if file_type == "any" else f"a {file_type}"
            return f"{noun} exists at {escaped(path)}"
        case ContentMatch(path, patterns):
            texts = ", ".join(escaped(repr(pattern.text)) for pattern in patterns)
            return f"{escaped(path)} contains {texts}"
        case Unknown(type_name):
            return f"cannot be run: the type {escaped(type_name)} is unknown"
    expect = f"exit code {check.expect.exit_code}"
    if check.expect.stdout_contains is not None:
        expect += f", standard output with {quoted(check.expect.stdout_contains)}"
    if check.expect.stderr_contains is not None:
        expect += f", standard error with {quoted(check.expect.stderr_contains)}"
    where = f", in {escaped(check.cwd)}" if check.cwd else ""
    limit = f"within {check.timeout_s:g} s"
    return f"{what} (expects {expect}, {limit}{where})"


def _variables(check: Check) -> str:
    named = [
        escaped(name if value is None else f"{name}={quoted(value)}")
        for name, value in check.environment.items()
    ]
    return f" with {', '.join(named)}" if named else ""


def quoted(text: str | None) -> str:
    """Returns the beginning of a text, in quotes."""
    return repr(text if text is None or len(text) <= _QUOTED_CHARS else text[:_QUOTED_CHARS] + "…")
