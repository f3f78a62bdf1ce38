"""`queen land` as a worker runs it, and its answer: a JSON document, of which the code decides."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from queenbee.core.command_lines import CommandLine, command_line, shell_line
from queenbee.core.text import printable, quotation, shortened
from queenbee.errors import QueenError
from queenbee.services.writing.secrets import redacted
from queenbee.starting.processes.child import Child
from queenbee.store.trust import Proposal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.git.contents.landing_messages import Messages

NOTHING = "nothing_to_land"
UNKNOWN = "unknown"
"""Its answer is lost: it was started by a run that was killed, or was killed itself."""
CHECK_FAILED = "check_failed"
TARGET_FAILS = "target_fails"
_LINE_CHARS = 160


@dataclass(frozen=True, slots=True)
class LandingResult:
    """Why a landing did not complete its issue."""

    code: str
    """That of a refusal, or `check_failed` or `unknown`."""
    message: str
    hint: str = ""
    files: Sequence[str] = ()
    output: str = ""
    """The end of what the check that failed printed."""
    commands: Sequence[Proposal] = ()
    """What nobody on this machine has seen."""
    commit: str = ""
    """The commit of the target that fails itself."""
    path: str = ""
    """The worktree in which files are in the way."""
    has_mail: bool = False
    """Whether it waited for mail to be read, which its message has."""

    @property
    def of_settings(self) -> bool:
        """Whether the check is what nobody has seen: then no issue can land."""
        return any(each.origin in ("land.check", "worktree.setup") for each in self.commands)

    @classmethod
    def read(cls, printed: bytes, ended: str) -> LandingResult:
        """Returns what `queen land --json` or `queen complete --json` says in what it printed;
        `ended` says how its process ended.
        """
        documents = [*_documents(printed)]
        for each in documents:
            error = each.get("error")
            if isinstance(error, dict) and isinstance(error.get("code"), str):
                return cls.refused(error)
        answer = next((each for each in documents if {"landing", "verification"} & {*each}), None)
        if answer is None:
            return cls(UNKNOWN, ended or "it said nothing")
        output = _failed(answer)
        last = next((each for each in reversed(output.splitlines()) if each.strip()), "")
        after = f", after {quotation(last, _LINE_CHARS)}" if last else ""
        return cls(CHECK_FAILED, f"the check failed{after}", output=output)

    @classmethod
    def refused(cls, error: Mapping[str, Any]) -> LandingResult:
        """Returns what a refusal says, or what `asdict` made of a result."""
        files, commands = error.get("files"), error.get("commands")
        named = [str(each) for each in files] if isinstance(files, list) else []
        said = [each for each in commands or () if isinstance(each, dict)]
        message, hint = str(error.get("message", "")), str(error.get("hint", ""))
        proposals = [*map(Proposal.of, said)]
        commit, path = str(error.get("commit") or ""), str(error.get("path") or "")
        mail = bool(error.get("messages"))
        return cls(error["code"], message, hint, named, "", proposals, commit, path, mail)

    @property
    def text(self) -> str:
        """All that the next attempt has to know."""
        parts = (self.message, f"try: {self.hint}" if self.hint else "", self.output)
        return "\n".join(filter(None, parts))


def land_line(issue_id: str, message: str) -> CommandLine:
    """Returns the command line that commits and lands the work on an issue."""
    return command_line("queen", "land", "--json", values=[issue_id], message=message)


def message_of(issue_id: str, title: str, droid: str, messages: Messages) -> str:
    """Returns what the commit of an issue says: its title on one line, or its id without one, in
    the form of the repository. A title that looks like a secret is left out: the commit would be
    refused each time.
    """
    said = redacted(title.strip() or issue_id)
    return messages.work(issue_id, printable(shortened(said, 72)), droid)


def abort_landing(path: str, env: Mapping[str, str], log: str) -> None:
    """Takes back a landing that was killed in a worktree, if there is one; never fails, since an
    issue can be given back without it.
    """
    with suppress(OSError, QueenError):
        # Mostly there is none, which it says.
        argv = shell_line("exec queen land --abort > /dev/null 2>&1")
        Child.start(argv, cwd=path, env=env, log=log).wait()


def _documents(printed: bytes) -> Sequence[Mapping[str, Any]]:
    """Returns the JSON objects in what `queen` printed: each is a line."""
    found = []
    for line in printed.splitlines():
        with suppress(ValueError, RecursionError):
            document = json.loads(line)
            if isinstance(document, dict):
                found.append(document)
    return found


def _failed(answer: Mapping[str, Any]) -> str:
    """Returns what a check that failed printed, or the checks of a bead that failed."""
    landing, record = answer.get("landing"), answer.get("verification")
    if isinstance(landing, dict):
        return str(landing.get("output") or "")
    results = record.get("results") if isinstance(record, dict) else None
    failed = (each for each in results or () if each.get("status") != "passed")
    return "\n".join(f"{each.get('name')}: {each.get('reason')}" for each in failed)
