"""Files at whose changes git was told not to look: by `assume-unchanged` and `skip-worktree`, by a
sparse checkout, or by settings that have it trust the size and the time of a file.

Neither `git status` nor `git add` knows of an edit there, and some git commands overwrite it.
"""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import no_dash
from queenbee.core.text import shell_word, suggested
from queenbee.git.run import git, line, names_in, without_programs
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

LOOKING = {
    # A file of the same size whose time was set back has another time of change.
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.untrackedCache": "false",
    # A file outside of a sparse checkout counts if it is there.
    "index.sparse": "false",
    "sparse.expectFilesOutsideOfPatterns": "false",
}
"""Settings with which git looks at all files that are there, as `looking` says."""
_TELLING = re.compile(rb"\0([^H\0] [^\0]+)")


def looking(tree: str) -> dict[str, str]:
    """Returns the settings with which git looks at all files that are there, and tells names apart
    as the disk of that worktree does, whatever its settings say.
    """
    own, other = (os.path.join(tree, name) for name in (".git", ".GIT"))
    is_blind = os.path.lexists(other) and os.path.samefile(own, other)
    return {**LOOKING, "core.ignorecase": "true" if is_blind else "false"}


def is_sparse(tree: str) -> bool:
    """Returns whether a worktree has a sparse checkout: for files outside of it, `git add` needs
    `--sparse`, an option that git before 2.34 does not know.
    """
    here = git_tree(tree)
    if here is None or not os.path.lexists(os.path.join(here.git_dir, "info", "sparse-checkout")):
        return False  # Git need not be asked.
    asked = ("config", "--type=bool", "core.sparseCheckout")
    return line(*asked, cwd=tree, repository={}) == "true"


def telling(listed: bytes) -> list[str]:
    """Returns what `git ls-files -v -z` lists, but for the files that are tracked as any other:
    most are.
    """
    return [os.fsdecode(each) for each in _TELLING.findall(b"\0" + listed)]


def hidden_in(listed: Iterable[str]) -> list[str]:
    """Returns the files with such a flag in what `git ls-files -v -z` lists."""
    return [each[2:] for each in listed if each[:1] == "S" or each[:1].islower()]


def hidden_files(tree: str, repository: Mapping[str, str] | None = None) -> list[str]:
    """Returns the files with such a flag that are there; `repository` may name another index."""
    said = git("ls-files", "-v", "-z", cwd=tree, repository=repository or {})
    return _there(tree, hidden_in(telling(said)))


def changed_of(tree: str, hidden: Sequence[str]) -> list[str]:
    """Returns those of the files that are there with other content than in the index."""
    here = _there(tree, hidden)
    if not here:
        return []
    how = ("--literal-pathspecs", "ls-files", "-s", "-z", "--", *here)
    stored = _stored(names_in(git(*how, cwd=tree, repository={})))
    return _other(tree, {path: stored.get(path, "") for path in here}, {})


def lacking(tree: str, commit: str, paths: Sequence[str]) -> list[str]:
    """Returns those of the files of which a commit does not have what is there now, after what git
    does to line ends. No filter is run. Raises `ExternalFailure`.
    """
    here = files_in(tree, paths)
    if not here:
        return []
    listed = git("ls-tree", "-r", "-z", "--full-tree", no_dash(commit), cwd=tree, repository={})
    stored = _stored(names_in(listed))
    return _other(tree, {path: stored.get(path, "") for path in here}, without_programs(tree, {}))


def show_hidden(tree: str, repository: Mapping[str, str] | None = None) -> None:
    """Has git look at them again; `repository` may name another index. Raises `ExternalFailure`."""
    here = os.fsencode("".join(f"{each}\0" for each in hidden_files(tree, repository)))
    if here:  # One flag at a time.
        update = partial(git, cwd=tree, stdin=here, repository=repository or {})
        update("update-index", "--no-assume-unchanged", "-z", "--stdin")
        update("update-index", "--no-skip-worktree", "-z", "--stdin")


def way_to_show(tree: str, path: str) -> str:
    """Returns the commands that have git look at a file again."""
    update = f"{suggested('git -C', tree)} update-index"
    path = shell_word(path)
    return f"{update} --no-skip-worktree {path} && {update} --no-assume-unchanged {path}"


def files_in(tree: str, paths: Iterable[str]) -> list[str]:
    """Returns those of the paths at which a worktree has a file or a link. What is behind a link in
    place of a folder is none of its own.
    """
    top, own = os.path.realpath(tree), dict[str, bool]()
    found = []
    for path in paths:
        where = os.path.join(top, path)
        above = os.path.dirname(where)
        if above not in own:
            own[above] = os.path.realpath(above) == above
        if own[above] and (os.path.islink(where) or os.path.isfile(where)):
            found.append(path)
    return found


def _there(tree: str, paths: Iterable[str]) -> list[str]:
    return [each for each in paths if os.path.lexists(os.path.join(tree, each))]


def _stored(listed: Iterable[str]) -> dict[str, str]:
    """Returns the blob of each file, in what `ls-files -s` or `ls-tree` lists."""
    entries = (each.partition("\t") for each in listed)
    return {path: said.split()[-1 if " blob " in said else 1] for said, _, path in entries}


def _other(tree: str, stored: Mapping[str, str], config: Mapping[str, str]) -> list[str]:
    """Returns the files, of those with these blobs, that would get another one now."""
    plain, found = [], []
    for path, blob in stored.items():
        where = os.path.join(tree, path)
        if os.path.islink(where):
            import hashlib  # noqa: PLC0415 - start-up

            target = os.fsencode(os.readlink(where))
            algorithm = "sha1" if len(blob) == 40 else "sha256"
            made = hashlib.new(algorithm, b"blob %d\0" % len(target) + target)
            found += [path] if made.hexdigest() != blob else []
        elif os.path.isfile(where) and blob:
            plain.append(path)
        else:
            found.append(path)
    if plain:
        asked = os.fsencode("".join(f"{_quoted(each)}\n" for each in plain))
        how = ("hash-object", "--stdin-paths")
        said = git(*how, cwd=tree, stdin=asked, config=config, repository={}).decode().split()
        found += [path for path, blob in zip(plain, said, strict=True) if blob != stored[path]]
    return sorted(found)


def _quoted(path: str) -> str:
    """Returns a path as one line for git."""
    if "\n" not in path and not path.startswith('"'):
        return path
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
    return '"' + "".join(escapes.get(char, char) for char in path) + '"'
