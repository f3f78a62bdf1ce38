"""Whether somebody on this machine has seen the commands that are about to run. ADR 0041.

A command may come from anywhere: by a clone, a pull, a sync or an import. Only this module makes a
`SeenCheck` or a `SeenCommand`, and what runs the commands of a repository takes nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType, Self

from queenbee.core.text import mentioned, quotation, some
from queenbee.errors import Untrusted
from queenbee.services.open_store import Store
from queenbee.store import safe_open
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.layout import Layout, discover
from queenbee.store.trust import GATE, VERIFIER, Proposal, Trust, builds_on_target, of_target, trees

if TYPE_CHECKING:
    from queenbee.checks.check import Check, Command, Script

__all__ = ["GATE", "VERIFIER", "Consent", "SeenCheck", "SeenCommand"]

SeenCheck = NewType("SeenCheck", "Check")
"""A check that reads only what is in the repository, or one that somebody here has seen."""
SeenCommand = NewType("SeenCommand", str)
"""A shell command that somebody here has seen."""
_SHOWN = 3
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Consent:
    """What the user of this machine lets a repository run.

    `ask` shows commands in full to a person who sits here, and returns whether they may run, or
    None if nobody sits here; it may be None itself.
    """

    trust: Trust
    ask: Callable[[Sequence[Proposal]], bool | None] | None = None

    @classmethod
    def of(cls, store: Store) -> Self:
        """Returns the consent to what the repository of a hive brings."""
        return cls(Trust(store.layout), store.asks_person)

    @classmethod
    def at(cls, folder: str) -> Self:
        """Returns the consent to what the repository of a folder brings, where nobody is asked."""
        return cls(Trust(discover(folder, os.environ, must_exist=False)))

    @property
    def shell(self) -> str:
        """The shell of verifiers that name none."""
        return self.trust.layout.settings.bead_shell

    def checks(
        self, kind: str, origin: str, checks: Sequence[Check], *, path: str = ""
    ) -> list[SeenCheck]:
        """Returns the checks of a document, which is in the file `path`. Raises `Untrusted`."""
        self.require(proposals(self.trust.layout, kind, origin, checks, path=path))
        return [SeenCheck(each) for each in checks]

    def require(self, asked: Sequence[Proposal]) -> None:
        """Asks for what nobody has seen. Raises `Untrusted` if it must not run."""
        # Each once: several issues may have the same command.
        unseen = [*{each.key: each for each in self.trust.unseen([*asked])}.values()]
        if not unseen:
            return
        is_person = self.ask is not None and not is_by_agent(self.trust.layout)
        said = self.ask(unseen) if self.ask is not None and is_person else None
        if not said:
            raise untrusted(unseen, is_answer=said is not None)
        self.trust.add(unseen)

    def require_still(self, look: Callable[[], Sequence[Proposal]]) -> None:
        """Asks for what nobody has seen until a look finds nothing more: what is swapped while a
        question waits is asked for, too. Raises `Untrusted`.
        """
        while unseen := self.trust.unseen([*look()]):
            self.require(unseen)

    def require_typed(self, *typed: Proposal) -> None:
        """Asks for what was typed for this very run, if an agent typed it: who may run `queen` may
        not thereby run anything else. Raises `Untrusted`.
        """
        if is_by_agent(self.trust.layout):
            try:
                self.require(typed)
            except Untrusted as error:
                error.hint = "a person types it, in a terminal that no agent has started"
                raise

    def require_target(self) -> None:
        """Asks for what work lands on, if no worktree may begin there yet. Raises `Untrusted`."""
        if not builds_on_target(self.trust.layout):
            self.require(of_target(self.trust.layout))


def typed(check: Check) -> SeenCheck:
    """Returns a check whose command was typed for this very run."""
    return SeenCheck(check)


def typed_command(text: str) -> SeenCommand:
    """Returns a command that was typed for this very run or set for this machine, or of which
    `require` has let pass the rest.
    """
    return SeenCommand(text)


def proposals(
    layout: Layout, kind: str, origin: str, checks: Sequence[Check], *, path: str = ""
) -> list[Proposal]:
    """Returns the commands in checks, with all that decides what they run; and the looks at files
    that are in no working tree of the repository: what matches there is written where others read.
    """
    from queenbee.checks.check import (  # noqa: PLC0415 - start-up
        Command,
        ContentMatch,
        FileExists,
        Script,
        described,
    )

    found = list[Proposal]()
    for each in checks:
        if isinstance(each.what, Command | Script):
            found.append(Proposal(kind, each.what.text, _more(each, each.what), origin, path))
        elif isinstance(each.what, FileExists | ContentMatch):
            real = safe_open.real_path(os.path.join(layout.tree, each.what.path))
            if real.startswith(own := f"/proc/{os.getpid()}/"):
                real = f"/proc/self/{real.removeprefix(own)}"  # Each run has another number.
            if not any(_is_in(tree, real) for tree in trees(layout)):
                found.append(Proposal(kind, described(each), (f"looks at {real}",), origin, path))
    return found


def _is_in(tree: str, path: str) -> bool:
    inside = os.path.relpath(path, tree).lower().split(os.sep)
    return not {os.pardir, ".git"} & {*inside}


def _more(check: Check, what: Command | Script) -> tuple[str, ...]:
    where = [f"in {check.cwd}"] if check.cwd else []
    variables = [
        f"gets {name} of the environment" if value is None else f"with {name}={value}"
        for name, value in sorted(check.environment.items())
    ]
    how = [what.how] if what.how != "shell sh" else []
    return (*how, *where, *variables)


def untrusted(unseen: Sequence[Proposal], *, is_answer: bool = False) -> Untrusted:
    """Returns the refusal of commands that nobody here has seen, or that a person who was asked
    does not want to run.
    """
    shown = [
        f"{each.kind} {quotation(each.text, _SHOWN_CHARS)} of {mentioned(each.origin)}"
        for each in unseen
    ]
    commands = [each.to_dict() for each in unseen]
    if is_answer:
        return Untrusted(
            f"you did not agree to {some(shown, _SHOWN, '; ')}; nothing ran",
            hint="run the same command again, or: queen config trust",
            commands=commands,
        )
    return Untrusted(
        f"it waits for a person: nobody on this machine has seen {some(shown, _SHOWN, '; ')}",
        hint="a person looks at it: queen config trust; until then, go on with something else: "
        "queen next",
        commands=commands,
    )
