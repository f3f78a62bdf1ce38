"""The page docs/api.md: which names of which packages users may rely on.

python tests/api_page.py --write    write it

What each name does is in its docstring; `make docs` makes the reference from those.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"

PUBLIC = {
    "queenbee": "The hive and its records",
    "queenbee.library": "What a hive does with git, plans and the tracker",
    "queenbee.services": "The services of a hive",
    "queenbee.errors": "Refusals",
    "queenbee.testing": "Fixtures of pytest",
    "queenbee.workflows": "Verifying, running and completing",
    "queenbee.checks": "Checks",
    "queenbee.documents": "What documents share",
    "queenbee.documents.plans": "Plans",
    "queenbee.documents.sprints": "Sprint beads",
    "queenbee.documents.ralph": "Ralph beads",
    "queenbee.documents.gates": "Phase gates",
    "queenbee.documents.sessions": "Team sessions",
}
"""The packages whose names users may rely on, each with its heading."""

OFFERED = {
    "Hive": "abort_landing actor actor_or_none answer_review assignments author changes close "
    "complete cursor droids env find following grant history init issue_id issues kinds land "
    "last_landing layout log made messages next notes nudges open plans queue "
    "reservations rotate show status team tell undo wait withdraw worktrees",
    "TrackedIssues": "all close counts delete depend edit find get get_or_none ids import_ new "
    "open pull push ready reopen",
    "Worktrees": "add list prune remove setup",
    "Plans": "annotate check convert graph import_",
    "Assignments": "active assign claim complete conflicts find last_completed note only own "
    "release",
    "Reservations": "check conflicts covering find overlap release renew reserve resolve",
    "Messages": "acknowledge answer count delete get inbox mark_read reach read_unread recent "
    "reply search send send_many sent since thread wait",
    "Queue": "place waiting_for",
    "Nudges": "nudge unanswered",
    "Droids": "is_quiet known listed seen_ms",
}
"""The attributes of each object of a hive that users may rely on."""

OF_ITS_OWN = {
    "Hive": "allow_secrets ask_owner asks_person changed_by check_rows committed cwd documents "
    "engine grant_marks granted has_commit holders is_writing issue_lines long_lines "
    "look look_again looked_for migrate mint note_presence note_step now_ms one_step "
    "opened origin own_actor owned patient present_ms progress rebuild_memory "
    "refuse_two_names rows_path short_ids stamp state tracker transaction "
    "wait_for_change wrote wrote_elsewhere",
    "TrackedIssues": "at_work behind blockers change check_claimable check_described "
    "check_known completion deleted exact_row for_a_person given_back in_order "
    "is_described listed of_documents open_and_counts put ready_count referred row rows "
    "some standing standings standings_of startable_count taken_ids tombstone "
    "tracked undone unusable_lines",
    "Plans": "issues",
    "Assignments": "absurd begin_in begun_here check_ending in_review moved_here note_kept "
    "put_in_review relieve stage_claim stage_repair stage_return work_in",
    "Reservations": "absurd check_tracked editor fenced fold_case holders_against overlapping "
    "stage_again stage_release stage_repair stage_reserve stage_takeover stale store "
    "transaction verdicts",
    "Messages": "correspondent drop_merged unanswered",
    "Queue": "ahead_of before circle enter everything register store still",
    "Nudges": "may_take_over next_step take_overs",
    "Droids": "check check_addressee has_been_here has_ended joined_ms patience_s seen_here "
    "silent_s waiting_for",
}
"""What the parts of QueenBee use of each other: no user may rely on it."""

_HEAD = """\
# The library

To call QueenBee from Python: `pip install queenbee-hive`, or `pip install .` in a clone. Whatever
`queen` does in a droid's loop is one typed call on an open `Hive`:

```console
$ git init -q shop && cd shop && git commit -q --allow-empty -m 'first commit'
```

```python
from pathlib import Path
from queenbee import Begin, Hive, QueenError

with Hive.init(droid="lead") as lead:
    first = lead.issues.new("Totals with tax", issue_id="shop-1")
    lead.issues.new("A page for errors", issue_id="shop-2", depends_on=[first])
    place = lead.worktrees.add("ui")

with Hive.open(place.path) as ui:
    while isinstance(begun := ui.next(), Begin):  # without a wait: until nothing is free
        issue_id = begun.assignment.issue_id
        Path(place.path, f"{issue_id}.txt").write_text("done")  # the work
        try:
            done = ui.land(message=f"Do {issue_id}", reason="it works", unchecked=True)
        except QueenError as refused:
            print(refused.code, refused.hint)
            break
        print(issue_id, "landed" if done.landing.landed else done.landing.output)
    print("ended")
```

```text
shop-1 landed
shop-2 landed
ended
```

The calls have the names of the commands: `hive.next`, `complete`, `land`, `show`, `status`,
`undo`; `hive.issues.new`, `.edit`, `.close`; `hive.worktrees.add`; `hive.plans.import_`;
`hive.assignments.claim`; `hive.reservations.reserve`; `hive.messages.send`. `hive.team` is
`queen start`.

**`next` answers** with a `Begin` or a `Nothing`. `Begin` has the `assignment`, the `issue`, the
`share` that is held for the droid with it, and `mail`, which now counts as read. `Nothing` says in
`state` why there is no issue; if `is_end` is true, there will be none. With `timeout_s`, it waits
while others are at work, and returns a `Nothing` that is no end when urgent mail comes (in `mail`).

**The issue of a worker that died** goes to whoever waits in `next`: after three minutes without a
sign of life it is asked, and a minute later taken over (the settings `ask_after` and
`answer_within`). If you know that it died: `assignments.assign(issue_id, name, reassign=True)`.

**No call does** what a person sets up: `queen config`, `config trust`, `setup`, `guard`, `sync`,
`hive engine`. Run these with `sys.executable -P -m queenbee`. On several machines, `next`,
`following` and `land` take `confirm=True` ([what that means](machines.md)); other grants go through
`grant`: `hive.grant(lambda left_s: hive.reservations.reserve(["db/**"], timeout_s=left_s),
confirm=True)`. In a clone whose work lands on a remote's branch, a person first agrees to that with
`queen config trust`.

**Records are values.** You can compare, hash, copy and pickle an `Issue`, `Assignment`,
`Reservation` or `Message`; to change one does not change the hive. `to_dict()` returns all its
fields, `get(name)` one of them.

**A refusal is an error with attributes**: `Held.holders`, `Taken.holder`, `NotFound.issue_id`. All
are below `QueenError`, with its `code`, `message` and `hint`, which names commands; `calls` has the
calls that do the same, such as `reservations.check`. Errors can be pickled.
[Errors](scripting.md#errors) lists what each code carries.

**Waiting can be given up.** What waits takes `timeout_s`, and `cancel`, an event such as
`threading.Event`. Once another thread sets it, the call raises `Cancelled`: there is no lease, no
place in the line, and nothing has landed. A landing that has moved the main branch by then is done.

**Under asyncio or trio**, `AsyncHive` has the calls that wait or touch the disk, awaited; `sync` is
its `Hive`, for the others. A task that is cancelled or runs into a timeout gives its call up, as
above, before it goes on. While it waits, a call has no thread: one looks after all that wait in a
process, and ends with the last of them.

```python
import asyncio
from queenbee import AsyncHive

async def main() -> None:
    async with await AsyncHive.open(droid="api") as hive:
        try:
            async with asyncio.timeout(30):
                await hive.reservations.reserve(["src/**"], timeout_s=3600)
        except TimeoutError:
            print("somebody else has it")
        print([lease.pattern for lease in await hive.reservations.find(droid="api")])

asyncio.run(main())
```

```text
['src/**']
```

**Changes** are all new and changed records, in order of arrival in this clone, each as it was
`before` and is `after`, in the fields of [the format](format.md); `by` is the droid, or None where
the record names none, such as an issue. Keep the cursor of the last one, and pass it the next time:
you miss nothing and see nothing twice.

```python
from queenbee import Hive

with Hive.open(droid="lead") as hive:
    cursor = "0"  # Before everything; hive.cursor() is behind everything.
    for change in hive.changes(cursor, kinds=["assignments"], timeout_s=0):
        print(change.by, change.after.get("issue_id"), change.after.get("status"))
        cursor = change.cursor
```

```text
ui shop-1 active
ui shop-1 completed
ui shop-2 active
ui shop-2 completed
```

Without `timeout_s`, it goes on with what arrives, until `cancel` is set. A cursor is of one clone.
If its memory is deleted, the cursor is refused (`NotFound`), and you begin anew.

**A harness** starts workers of its own: [harness.py](examples/harness.py), in 60 lines, has each as
a task in its worktree. They take what is ready, wait for each other, and land; the issue of a
worker that crashes goes to another.

**A team of clients**: `hive.team("ui", "api", agent="claude")` does what `queen start` does, and
returns how it ended, with the reasons why something is left. `on_progress` gets what each agent
does; set the event `finish` to let them finish their issue, `cancel` to stop them.

**In tests**, `from queenbee.testing import hive, hive_clock` in a `conftest.py` gives pytest a hive
in a temporary repository, with a clock that moves when `hive_clock.advance(seconds)` is called.
`python -P -m queenbee` is `queen`, where that is not on the path.

## Names

You can rely on what these packages export, as far as [what is stable](scripting.md#what-is-stable)
says; everything else may change without notice. `help(queenbee.Hive)`, and the reference that `make
docs` builds, describe each name. If your program forks, open a hive in each process after the fork.

{packages}

Of the objects of an open hive, these attributes count; others are for QueenBee itself. `AsyncHive`
has those that wait or touch the disk.

{attributes}
"""


def names_of(package: str) -> list[str]:
    """Returns the public names of a package: its `__all__`, or else what it imports by name."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and name != "annotations" and not inspect.ismodule(value)
    ]
    return sorted(names, key=str.lower)


def page() -> str:
    """Returns the whole page."""
    packages = ", ".join(f"`{each}`" for each in PUBLIC)
    attributes = "\n".join(_attributes())
    return _HEAD.replace("{packages}", packages).replace("{attributes}", attributes)


def _attributes() -> Iterator[str]:
    yield "| object | attributes |\n|---|---|"
    for name, attributes in OFFERED.items():
        yield f"| `{name}` | {' '.join(f'`{each}`' for each in attributes.split())} |"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
