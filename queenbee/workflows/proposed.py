"""What the repository of a hive would run here: its check, the commands of options, beads and
gates, and the hooks of the program that owns the tracker.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.checks.consent import GATE, VERIFIER, proposals
from queenbee.documents.findings import errors_in
from queenbee.documents.folders import gates_dir, json_stamp
from queenbee.documents.ralph.ralph_bead import bead_checks, bead_status, first_error
from queenbee.errors import QueenError, Unreadable
from queenbee.store import safe_open
from queenbee.store.droids import roster
from queenbee.store.git_trees import git_tree, upward
from queenbee.store.layout import BEADS
from queenbee.store.tracker.issue_owner import owner_in
from queenbee.store.trust import HOOK, PRUNING, Proposal, Trust, of_exchange, of_setting, of_target

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from queenbee.documents.ralph.bead_files import BeadFile
    from queenbee.store.layout import Layout

_SETTINGS = (
    "config.yaml", "config.local.yaml", ".env", "metadata.json", "config.json", "routes.jsonl",
    "redirect",
)  # fmt: skip
_PLAIN = re.compile(r"""\s*(#.*)?|(issue-prefix|no-db): *["']?[\w.-]*["']? *(#.*)?""")
"""A line that `bd init` writes. Other settings may name a hook, or a remote to push to."""
_MEMBER = r"""\s*"(?:
    (?:database|jsonl_export|dolt_database|project_id|last_bd_version)"\s*:\s*"\w[\w.-]*"
    |backend"\s*:\s*"(?:dolt|sqlite)"
    |dolt_mode"\s*:\s*"embedded"
    |(?:deletions_retention_days|stale_closed_issues_days)"\s*:\s*\d+
)\s*"""
_PLAIN_JSON = re.compile(rf"\s*(?:\{{(?:{_MEMBER}(?:,{_MEMBER})*|\s*)\}}\s*)?", re.VERBOSE)
"""What `bd init` writes there. Other members name a server, or a database elsewhere with hooks."""
_MOST_BYTES = 1 << 20


def unseen_of(
    layout: Layout, beads: Iterable[BeadFile], open_ids: Container[str]
) -> list[Proposal]:
    """Returns the commands that nobody on this machine has seen, each once."""
    said = layout.settings
    settings = {
        "land.check": said.land_check,
        "worktree.setup": said.worktree_setup,
        "team.args": said.team_args,
        PRUNING: said.team_prune,
    }
    of_settings = [each for name in settings for each in of_setting(name, settings[name])]
    of_settings += [*of_exchange(layout, said.host_issues), *of_target(layout)]
    with suppress(QueenError, OSError):  # Whoever calls that program refuses it.
        of_settings += of_tracker(layout)
    of_settings += [Proposal.of(each) for each in roster.unseen(layout)]
    found = Trust(layout).unseen(
        [*of_settings, *of_gates(layout), *of_beads(layout, beads, open_ids, said.bead_shell)]
    )
    return [*{each.key: each for each in reversed(found)}.values()][::-1]


def of_beads(
    layout: Layout, beads: Iterable[BeadFile], open_ids: Container[str], shell: str
) -> Iterator[Proposal]:
    """Yields the commands of beads that are valid and not completed, or whose issue is open, say
    what its file may.
    """
    for bead in beads:
        is_open = bead_status(bead.document) != "completed" or bead.bead_id in open_ids
        if is_open and not first_error(bead.document):
            checks = bead_checks(bead.document, shell)
            yield from proposals(layout, VERIFIER, bead.bead_id, checks, path=bead.path)


def of_gates(layout: Layout) -> Iterator[Proposal]:
    """Yields the commands of gates that are valid."""
    folder = gates_dir(layout)
    if not json_stamp(folder):
        return
    from queenbee.documents.gates.gate import validate_gate  # noqa: PLC0415 - start-up
    from queenbee.documents.gates.gate_files import list_gates  # noqa: PLC0415 - start-up
    from queenbee.documents.gates.rule_types import rule_check  # noqa: PLC0415 - start-up

    for gate in list_gates(folder)[0]:
        if not errors_in(validate_gate(gate.document)):
            rules = gate.document["validation_config"]["rules"]
            checks = [rule_check(each) for each in rules]
            yield from proposals(layout, GATE, "/".join(gate.key), checks, path=gate.path)


def of_tracker(layout: Layout) -> list[Proposal]:
    """Returns the hooks that `bd` runs when it is called, in full: programs of the tree, and
    settings that may have commands, servers or remotes, also of each `.beads/` above the hive in
    its repository. Raises `Unreadable` and `OSError` for what cannot be shown, such as a link.
    """
    if owner_in(layout.beads_dir) is None:
        return []
    home = os.path.dirname(layout.beads_dir)
    here = git_tree(home)
    above = upward(home, here)[1:] if here is not None else []
    folders = [layout.beads_dir, *(os.path.join(each, BEADS) for each in above)]
    return [each for folder in folders for each in _of_folder(folder, home)]


def _of_folder(beads_dir: str, home: str) -> Iterator[Proposal]:
    folder = os.path.join(beads_dir, "hooks")
    hooks = [f"hooks/{each}" for each in safe_open.names_in(folder) if each.startswith("on_")]
    for name in (*hooks, *_SETTINGS):
        path = os.path.join(beads_dir, name)
        if not (os.access(path, os.X_OK) if name in hooks else os.path.lexists(path)):
            continue
        if os.path.isdir(path) and not os.path.islink(path):  # Nothing in it is run.
            continue
        said = safe_open.read(path, _MOST_BYTES)
        if len(said) == _MOST_BYTES:
            raise Unreadable(f"{path} is too long to be shown")
        text = said.decode(errors="backslashreplace")
        if name in hooks or not _is_plain(name, text):
            where = os.path.join(os.path.relpath(os.path.dirname(beads_dir), home), BEADS, name)
            origin = os.path.normpath(where)
            # The same text does something else as another file.
            more = [f"as {origin}"]
            more += [f"SHA-256 {sha256(said).hexdigest()}"] if text.encode() != said else []
            yield Proposal(HOOK, text, (*more,), origin, path)


def _is_plain(name: str, text: str) -> bool:
    if name.endswith(".json"):
        return _PLAIN_JSON.fullmatch(text) is not None
    return name != "redirect" and all(map(_PLAIN.fullmatch, text.splitlines()))
