"""Installs the clients, runs the matrix, prints the table, writes it into bench/results/clients.md.

    python -m bench.clients [--only codex,gemini] [--newest] [--keep FOLDER] [--no-page]

The exit status is 1 if a cell does not hold. A client that cannot be installed is skipped by name.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.clients import cells, install, known, sessions, table, trouble
from bench.clients.model import Model
from bench.clients.queue import a_team, together
from bench.clients.world import World, stop

SITTINGS = (
    *(sessions.at_work, sessions.resumed, sessions.by_mcp, sessions.with_a_subagent),
    *(sessions.two_at_once, sessions.in_a_worktree, trouble.without_trust),
    *(trouble.broken, trouble.slow, trouble.absent, trouble.undone, a_team),
)
_AT_ONCE = 3
"""Clients that run at the same time: they wait more than they compute."""
PAGE = install.ROOT / "bench" / "results" / "clients.md"


def main() -> int:
    """Returns the exit status."""
    given = _arguments()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
    chosen = [each for each in known.CLIENTS if each.name in given.only]
    with tempfile.TemporaryDirectory(prefix="clients-") as temporary:
        folder = Path(given.keep or temporary).resolve()
        columns = [
            (client, version, folder)
            for client in chosen
            for version in (client.versions[:1] if given.newest else client.versions)
        ]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            ran = list(pool.map(lambda column: _run(*column), columns))
        _in_pairs(chosen, ran, folder)
    text = table.text(ran, time.strftime("%Y-%m-%d", time.gmtime()))
    print("\n" + text)
    whole = chosen == list(known.CLIENTS) and not any(each.skipped for each in ran)
    if whole and not given.no_page:
        PAGE.write_text(table.written(PAGE.read_text(), text))
    return int(any(cell.held is False for each in ran for cell in each.cells.values()))


def _arguments() -> argparse.Namespace:
    names = [each.name for each in known.CLIENTS]
    parser = argparse.ArgumentParser(prog="python -m bench.clients", description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=names)
    parser.add_argument("--newest", action="store_true", help="no older version of each")
    parser.add_argument("--keep", help="a folder that keeps homes, repositories and outputs")
    parser.add_argument("--no-page", action="store_true", help="do not write the results")
    given = parser.parse_args()
    unknown = set(given.only) - set(names)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return given


def _run(client: known.Client, version: str, folder: Path) -> table.Ran:
    """Runs every sitting of a client, each on a machine of its own."""
    print(f"{client.title} {version}", file=sys.stderr)
    try:
        program = install.installed(client, version)
    except install.NotInstalled as why:
        return table.Ran(client.title, version, cells.Findings(), str(why))
    found, model = cells.Findings(), Model()
    begun = time.monotonic()
    for sitting in SITTINGS:
        name = f"{client.name}-{version}-{sitting.__name__}"
        world = World(folder / name, client, program, model)
        try:
            sitting(world, found)
        except Exception as error:  # noqa: BLE001 - the table tells it
            found.say(sitting.__name__, False, f"{type(error).__name__}: {error}")
        if sitting is not trouble.slow:
            found.note_times(world)
    model.close()
    found.tell_times(time.monotonic() - begun)
    for row, why in client.reasons(version).items():
        if row in found and not found[row].held:
            found[row] = cells.Cell(None, why)
    return table.Ran(client.title, version, found)


def _in_pairs(chosen: list[known.Client], ran: list[table.Ran], folder: Path) -> None:
    """Lets each client work off a queue with the next one, at their newest versions."""
    newest = {client.title: client.versions[0] for client in chosen}
    found = {each.title: each.cells for each in ran if each.version == newest[each.title]}
    able = [client for client in chosen if found[client.title]]
    for one, other in zip(able, able[1:] + able[:1], strict=True):
        if one is other:
            return
        print(f"{one.title} and {other.title}", file=sys.stderr)
        model = Model()
        worlds = [
            World(folder / f"{one.name}-{other.name}" / each.name, each, program, model)
            for each in (one, other)
            for program in [install.installed(each, each.versions[0])]
        ]
        together(*worlds, found[one.title])
        model.close()


if __name__ == "__main__":
    sys.exit(main())
