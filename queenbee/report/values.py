"""What a report says, as plain values. Both forms, the page and the Markdown, are made of these.

Instants are in ms since 1970; `to_dict` turns them into timestamps. All texts are as in the
records: whoever shows them makes them safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from queenbee.core.timestamps import format_ms
from queenbee.store.droids.spending import Spent


class _Value:
    """A value that can be printed as JSON."""

    def to_dict(self) -> dict[str, object]:
        """Returns the fields; `made_ms` becomes `made_at`, a timestamp."""
        found: dict[str, object] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            name, is_instant, _ = field.name.rpartition("_ms")
            if is_instant:
                value = None if value is None else format_ms(value)
                name = name if name == "at" else f"{name}_at"
            found[name or field.name] = value
        return found


@dataclass(frozen=True)
class IssueLine(_Value):
    """Where one issue stands; `state` is one of `core.readiness.STATES`."""

    issue_id: str
    title: str
    state: str
    holder: str | None
    waits_for: Sequence[str]
    because: str | None
    review: str | None = None
    """The pull request that proposes it, and what that asks for."""


@dataclass(frozen=True)
class GateLine(_Value):
    """A phase gate with its verdict, and why it has not passed."""

    workflow_id: str
    phase_id: str
    status: str
    blocking: Sequence[str]

    @property
    def name(self) -> str:
        """How commands name it."""
        return f"{self.workflow_id}/{self.phase_id}"


@dataclass(frozen=True)
class Phase(_Value):
    """A phase of a plan, an epic, or the issues that belong to neither, with how far it is."""

    name: str
    counts: Mapping[str, int]
    gates: Sequence[GateLine]


@dataclass(frozen=True)
class Graph(_Value):
    """Which issue waits for which; `alone` counts the issues without any edge."""

    nodes: Mapping[str, IssueLine]
    needs: Mapping[str, Sequence[str]]
    alone: int
    left_out: int = 0
    """Issues with edges that are not shown because there are too many."""
    waiting: Sequence[IssueLine] = ()
    """The most urgent issues that wait for others, if there are too many to show any."""


@dataclass(frozen=True)
class Bar(_Value):
    """Something that a droid had from one instant to another: an issue, or a lease."""

    droid: str
    kind: str
    """`issue`, `exclusive` or `shared`."""
    what: str
    begin_ms: int
    end_ms: int
    how: str
    """How it ended: `completed`, `released`, `expired`, `taken over` …; `held` if it has not."""
    issue_id: str | None
    reason: str | None


@dataclass(frozen=True)
class Wait(_Value):
    """How long an issue that could be started waited for somebody, and how long it then took."""

    issue_id: str
    title: str
    droid: str
    waited_s: float
    worked_s: float | None
    """None while it is being worked on."""


@dataclass(frozen=True)
class Waiting(_Value):
    """Somebody who waits now."""

    droid: str
    what: str
    since_ms: int


@dataclass(frozen=True)
class Conflict(_Value):
    """A conflict that was met; `kind` is `superseded`, `withdrawn`, `taken over` or `reassigned`.

    `droid` lost what `other` has; None if the records do not say who.
    """

    kind: str
    at_ms: int
    what: str
    droid: str
    other: str | None
    reason: str | None


@dataclass(frozen=True)
class Handover(_Value):
    """A conflict that was avoided: a droid got files soon after another one let go of them."""

    at_ms: int
    first: str
    then: str
    witness: str
    """A path that both had."""
    gap_s: float


@dataclass(frozen=True)
class Foreseen(_Value):
    """Two worktrees whose present work would conflict."""

    a: str
    b: str
    files: Sequence[str]


@dataclass(frozen=True)
class Run(_Value):
    """One run of checks."""

    at_ms: int
    verdict: str
    droid: str | None
    seconds: float
    failed: Sequence[str]
    """The checks that did not pass, each with its reason."""


@dataclass(frozen=True)
class Checked(_Value):
    """A bead or a gate with the runs of its checks, oldest first."""

    kind: str
    subject: str
    runs: Sequence[Run]
    earlier: int
    """How many runs before those are not shown."""


@dataclass(frozen=True)
class Said(_Value):
    """One message of a thread."""

    at_ms: int
    sender: str
    to: str
    subject: str
    body: str
    cut: bool


@dataclass(frozen=True)
class Thread(_Value):
    """A thread with its newest messages, oldest first; `earlier` counts those not shown."""

    subject: str
    issue_id: str | None
    last_ms: int
    droids: Sequence[str]
    messages: Sequence[Said]
    earlier: int


@dataclass(frozen=True)
class Report(_Value):
    """Everything that a report says."""

    name: str
    made_ms: int
    since_ms: int | None
    counts: Mapping[str, int]
    phases: Sequence[Phase]
    open: Sequence[IssueLine]
    graph: Graph
    bars: Sequence[Bar]
    waits: Sequence[Wait]
    usual_wait_s: float | None
    """The median of all waits, also of those that are not listed."""
    waiting: Sequence[Waiting]
    met: Sequence[Conflict]
    avoided: Sequence[Handover]
    foreseen: Sequence[Foreseen]
    gates: Sequence[GateLine]
    checks: Sequence[Checked]
    threads: Sequence[Thread]
    messages: int
    left_out: Sequence[str]
    """What is not in the report because there is too much of it, a sentence each."""
    started: Sequence[str] = ()
    """What `queen start` does on this machine, or how it last ended, a sentence each."""
    spent: Sequence[Spent] = ()
    """What its clients reported on this machine, what was reported last first."""
