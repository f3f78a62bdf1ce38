"""Two commits merged without a worktree: nothing that anybody has checked out is changed."""

from __future__ import annotations

import os
from functools import partial

from queenbee.core.command_lines import no_dash
from queenbee.git.run import user_git, without_programs

_UNKNOWN_OPTION = 129
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.sparseCheckout": "false",
    "merge.autoStash": "false",
    "merge.verifySignatures": "false",
    "rerere.enabled": "false",
    "submodule.recurse": "false",
}


def merged_in_memory(tree: str, one: str, other: str) -> tuple[str, bytes | None]:
    """Returns the tree that a merge of two commits makes, also one with conflicts: their marks
    repeat the names that the merge was called with; and the entries that are in conflict, or None.
    Nothing where git cannot merge the two, which is no answer to what a merge would do.
    """
    how = ("merge-tree", "--write-tree", "--no-messages", "-z", no_dash(one), no_dash(other))
    status, out, _ = user_git(*how, cwd=tree)
    if status == _UNKNOWN_OPTION:
        return _merged_apart(tree, one, other)
    made, _, listed = out.partition(b"\0")
    if status not in (0, 1) or not made:
        return "", None
    return made.decode(), listed if status else None


def _merged_apart(tree: str, one: str, other: str) -> tuple[str, bytes | None]:
    """Returns the same with a git before 2.38, in a worktree that no other git knows of. Its marks
    call the first commit HEAD.
    """
    import tempfile  # noqa: PLC0415 - start-up

    asked = ("--path-format=absolute", "--git-common-dir", no_dash(f"{one}^{{commit}}"))
    common, _, head = user_git("rev-parse", *asked, cwd=tree)[1].partition(b"\n")
    filters = (each for each in without_programs(tree, {}).items() if each[0][:7] == "filter.")
    with tempfile.TemporaryDirectory(prefix="queen-merge-") as folder:
        there = {"GIT_DIR": folder, "GIT_WORK_TREE": os.path.join(folder, "tree")}
        os.mkdir(there["GIT_WORK_TREE"])
        for name, said in (("commondir", common), ("HEAD", head)):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(said)
        run = partial(user_git, cwd=tree, repository=there, config={**_SETTINGS, **dict(filters)})
        run("read-tree", "HEAD")
        run("checkout", "-q", "--", ":(glob)**/.gitattributes")  # Git reads them only there.
        status = run("merge", "-q", "-sort", "--ff", "--no-commit", no_dash(other))[0]
        made = run(*(("rev-parse", "--verify", "AUTO_MERGE") if status else ("write-tree",)))
        listed = run("ls-files", "--unmerged", "-z")
    if status not in (0, 1) or made[0] or listed[0]:
        return "", None
    return made[1].decode().strip(), listed[1] if status else None
