"""Where a hive's lines are, and carrying them elsewhere: `queen hive engine`."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

from queenbee.core.ids import RANDOM_BYTES
from queenbee.core.text import suggested
from queenbee.errors import InvalidInput, QueenError
from queenbee.store.carriers.carrier import Fault
from queenbee.store.carriers.engine import Engine, without_psycopg
from queenbee.store.layout import noted_hive
from queenbee.store.settings import FILE_NAME
from queenbee.store.trust import Trust

if TYPE_CHECKING:
    from types import ModuleType

    from queenbee.store.carriers.carrier import Look
    from queenbee.store.layout import Layout

KINDS = ("files", "postgres")


def use(
    layout: Layout,
    kind: str,
    name: str | None = None,
    look: Look = lambda kind, lines: lines,
    *,
    is_typed: bool = False,
) -> dict[str, object]:
    """Carries the hive over, verifies every line, and switches to it.

    `name` is the hive's name in the database; `look` gets the lines of each kind before that does,
    and returns those that it may have. Repeating it adds what is missing. A person who has typed it
    for a new hive, or has typed the name, has agreed to that hive; else somebody has to have.
    Raises `InvalidInput`, `StoreError` and `Unreachable`; the old place is then still in use,
    unless the message says that the hive is in a database and the settings say files, or the
    reverse.
    """
    carrying = _carrying()
    known = layout.settings.engine_hive or noted_hive(layout)
    if kind == "files" and not known:
        raise InvalidInput("this hive is in files already", hint="queen hive engine status")
    if name and known and name != known and kind != "files":
        raise InvalidInput(
            f"this hive is {known!r} in the database, not {name!r}",
            hint="queen hive engine use postgres",
        )
    hive = known or name or _new_name(layout)
    if kind == "files":
        carrying.refuse_unagreed(layout, hive)
    elif not is_typed or (known and not name):  # A clone may have brought the name.
        way = suggested("queen hive engine use postgres", hive=hive)
        carrying.refuse_unagreed(layout, hive, way)
    if kind == "files":
        carried = carrying.to_files(layout, hive)
    else:
        carried = carrying.to_postgres(layout, hive, look)
        with suppress(QueenError):  # Where it cannot be kept, it is asked for.
            Trust(layout).add([carrying.of_hive(layout, hive)])
    kinds = {each: {"lines": lines, "added": added} for each, (lines, added) in carried.items()}
    return {"engine": kind, "hive": hive, "kinds": kinds}


def status(layout: Layout, *, verify: bool = False) -> dict[str, object]:
    """Returns where the lines are. In a database, also where that is, what is wrong with it, the
    lines that are only in files here and, with `verify`, the number of lines of each kind, each
    compared with its digest.
    """
    settings = layout.settings
    found: dict[str, object] = {"engine": settings.engine_kind}
    noted = noted_hive(layout)
    if (problem := settings.problem) is not None:
        path = os.path.join(layout.beads_dir, FILE_NAME)
        found["faults"] = [asdict(Fault(problem.code, path, problem.message, hint=problem.hint))]
    if settings.engine_kind == "files":
        return {**found, "noted": f"postgres {noted}"} if noted else found
    found["hive"] = settings.engine_hive
    carrying = _carrying()
    engine = Engine(layout)
    faults = engine.faults()
    engine.close()
    found["database"] = carrying.place(settings.database)
    found["faults"] = [asdict(each) for each in faults]
    if any(each.severity == "error" and each.code != carrying.LEFT for each in faults):
        return found
    found["only_in_files"] = carrying.only_here(layout, settings.engine_hive)
    if verify:
        found["verified"], wrong = carrying.verified(layout, settings.engine_hive)
        found["faults"] = [asdict(each) for each in (*faults, *wrong)]
    return found


def _carrying() -> ModuleType:
    try:
        from queenbee.store.carriers.postgres import carrying  # noqa: PLC0415 - start-up
    except ImportError as error:
        raise without_psycopg(error) from error
    return carrying


def _new_name(layout: Layout) -> str:
    """Returns a name that no other repository has."""
    return f"{os.path.basename(layout.root)[:60]}-{os.urandom(RANDOM_BYTES).hex()[:8]}"
