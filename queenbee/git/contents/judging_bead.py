"""By which Definition of Done an issue is judged: that of the main branch in git, and what the
hive's files say beside it.

Whoever is judged can edit those files. So no edit takes a verifier away, or changes what it
expects, before it has landed itself. ADR 0025.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from queenbee.core.beads import definition_of_done, is_sprint_bead
from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, suggested
from queenbee.core.timestamps import instant_ms
from queenbee.documents.folders import bead_dirs
from queenbee.errors import Conflict, QueenError
from queenbee.git.objects import Objects
from queenbee.git.ownership import bead_branches
from queenbee.git.run import git, line, names_in
from queenbee.store.codec import Unusable, decode
from queenbee.store.git_files.worktrees import ref_target, target_ref
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from queenbee.documents.ralph.bead_files import BeadFile
    from queenbee.store.layout import Layout
    from queenbee.workflows.complete_hive import Hive

_SHOWN = 3


def judging_bead(hive: Hive, issue_id: str) -> tuple[BeadFile | None, bool]:
    """Returns the bead with all the checks that count for an issue, or None; and whether the main
    branch has others than its file. Raises as `find_bead` does, and `Conflict` for an issue of
    which the main branch says two things, or that was begun as a sprint bead, and whose row says by
    now that it is none.
    """
    issue = hive.issues.row(issue_id)
    is_sprint = issue is not None and is_sprint_bead(issue.fields)
    if not is_sprint and issue_id in bead_branches(hive.layout).values():
        raise Conflict(
            f"{issue_id} was begun as a sprint bead, and its row says that it is none any more",
            hint=suggested("queen bead validate", issue_id),
        )
    bead, landed = hive.documents.find_bead(issue_id), _on_main(hive, issue_id)
    if landed is None:
        return bead, False
    from queenbee.documents.ralph.ralph_bead import first_error  # noqa: PLC0415 - start-up

    if first_error(landed.document):
        return bead, False
    if bead is None:
        return replace(landed, in_row=True), True
    now, then = _dod(bead), _dod(landed)
    names = {each.get("name") for each in then["verifiers"]}
    more = [each for each in now["verifiers"] if each.get("name") not in names]
    needs = bool(now.get("evidence_required") or then.get("evidence_required"))
    dod = {**now, "verifiers": [*then["verifiers"], *more], "evidence_required": needs}
    changed = any(each not in now["verifiers"] for each in then["verifiers"])
    return replace(bead, document={**bead.document, "dod": dod}), changed


def _dod(bead: BeadFile) -> dict[str, Any]:
    found = bead.document.get("dod")
    dod = found if isinstance(found, dict) else {}
    listed = dod.get("verifiers")
    verifiers = listed if isinstance(listed, list) else []
    return {**dod, "verifiers": [each for each in verifiers if isinstance(each, dict)]}


def _on_main(hive: Hive, issue_id: str) -> BeadFile | None:
    """Returns the bead that the main branch has in git, in a file or in a row of the tracker."""
    layout = hive.layout
    here, target = git_tree(layout.tree), target_ref(layout)
    if here is None or target is None:
        return None
    top = here.main_tree or here.tree
    known = ref_target(here.common_dir, target)
    asked = ("rev-parse", "--quiet", "--verify", no_dash(f"{target}^{{commit}}"))
    tip = known or line(*asked, cwd=top, repository={})
    if tip is None:  # Nothing is committed yet.
        return None
    rows = "".join(_inside(top, layout.issues_path))
    return _at(top, tip, bead_folders(layout), rows, layout.issues_path, issue_id)


def bead_folders(layout: Layout) -> tuple[str, ...]:
    """Returns the folders of beads that are in the repository, from its top."""
    here = git_tree(layout.tree)
    return _inside(here.main_tree or here.tree, *bead_dirs(layout)) if here is not None else ()


def _inside(top: str, *paths: str) -> tuple[str, ...]:
    found = (os.path.relpath(each, top) for each in paths)
    return tuple(each for each in found if not each.startswith(os.pardir))


@lru_cache(maxsize=8)
def _at(
    top: str, commit: str, folders: tuple[str, ...], rows: str, path: str, issue_id: str
) -> BeadFile | None:
    """Returns the bead that a commit has: a landing asks twice. Raises `Conflict` if it has several
    with other Definitions of Done.
    """
    with Objects(top) as objects:
        blob = objects.read(f"{commit}:{rows}") if rows else None
        there = [each for each in folders if objects.read(f"{commit}:{each}") is not None]
        found = [*_in_files(objects, top, commit, there, issue_id)]
    found += _in_rows(path, blob, issue_id)
    if any(each.document.get("dod") != found[0].document.get("dod") for each in found):
        raise Conflict(
            f"the main branch has more than one Definition of Done of {issue_id}: "
            + named([each.path for each in found], _SHOWN),
            hint="remove all but one there",
            bead_id=issue_id,
            paths=[each.path for each in found],
        )
    return found[0] if found else None


def _in_files(
    objects: Objects, top: str, commit: str, folders: list[str], issue_id: str
) -> Iterator[BeadFile]:
    """Yields those of the files that the hive would read, were they in its folders."""
    listed = ("ls-tree", "-z", no_dash(commit), "--", *(f"{each}/" for each in folders))
    for entry in names_in(git(*listed, cwd=top, repository={})) if folders else ():
        said, _, path = entry.partition("\t")
        mode, _, blob_id = said.split()
        is_file = mode.startswith("100") and path.endswith(".json")
        blob = objects.read(blob_id) if is_file else None
        if blob is None or issue_id.encode() not in blob[2] + os.fsencode(path):
            continue
        from queenbee.documents.json_documents import parse_json  # noqa: PLC0415 - start-up
        from queenbee.documents.ralph.bead_files import BeadFile, id_in  # noqa: PLC0415 - start-up

        with suppress(QueenError):
            document = parse_json(blob[2], path)
            if isinstance(document, dict) and id_in(document, path) == issue_id:
                yield BeadFile(issue_id, os.path.join(top, path), document)


def _in_rows(path: str, blob: tuple[str, str, bytes] | None, issue_id: str) -> Iterator[BeadFile]:
    rows = []
    for raw in blob[2].split(b"\n") if blob is not None else ():
        if issue_id.encode() in raw:
            with suppress(Unusable):
                rows.append(decode(raw))
    rows = [each for each in rows if each.get("id") == issue_id]
    newest = max(rows, key=lambda each: instant_ms(each.get("updated_at")) or 0, default=None)
    if newest is not None and definition_of_done(newest) is not None:
        from queenbee.documents.ralph.bead_files import bead_in_row  # noqa: PLC0415 - start-up

        if (bead := bead_in_row(newest, path)) is not None:
            yield bead
