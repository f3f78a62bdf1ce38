"""Taking back a setting."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from queenbee.core.text import suggested
from queenbee.errors import Conflict, NotYours
from queenbee.services.undo.reversal import Reversal
from queenbee.services.undo.step import Step
from queenbee.store.creating import in_toml
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.settings import FILE_NAME
from queenbee.store.settings_file.changing_text import put_value, values_in

if TYPE_CHECKING:
    from queenbee.services.hive import Services
    from queenbee.store.layout import Layout


def note_setting(layout: Layout, droid: str | None, name: str, path: str, before: object) -> None:
    """Notes that a droid has set a setting in this file, as its last step."""
    after = values_in(path).get(name)
    step = Step(
        "", "queen config", time.time_ns() // 1_000_000, settings={name: [path, before, after]}
    )
    step.keep(layout, droid)


def of_settings(hive: Services, step: Step, *, dry_run: bool) -> list[Reversal]:
    """Sets the settings of a step to what they were; returns what follows. Raises `Conflict`, and
    `NotYours` for an agent: what was agreed to once would be back with nobody's word.

    What they were is read from a file in which agents may write, too: it counts as seen only if it
    was seen before.
    """
    found, layout = [], hive.layout
    if is_by_agent(layout):
        raise NotYours(
            f"no agent takes back a setting: {', '.join(step.settings)}",
            hint="a person: queen undo, in a terminal that no agent has started",
        )
    files = [os.path.join(each, FILE_NAME) for each in (layout.beads_dir, f"{layout.tree}/.beads")]
    for name, (path, before, after) in step.settings.items():
        if path not in files:
            raise Conflict(f"{path} has no settings of this hive", setting=name)
        now = values_in(path).get(name)
        if now != after:
            raise Conflict(
                f"{name} has changed since: it is {in_toml(now)}",
                hint=suggested("queen config get", name),
                setting=name,
            )
        what = "the default" if before is None else in_toml(before)
        found.append(Reversal("set", "settings", name, detail=what))
        if not dry_run:
            put_value(layout, name, before, holder=hive.author, path=path)
            note_setting(hive.layout, hive.actor_or_none, name, path, now)
    return found
