"""Where the clients of agents look, in a repository, for what they run: one table, for the landing
that names its changes and for the team that is started.
"""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from queenbee.errors import ExternalFailure, QueenError
from queenbee.git.run import git, names_in
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.in_the_way import repositories
from queenbee.store.git_trees import git_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.git_trees import GitTree

_OPENCODE = (".opencode/", "opencode.json", "opencode.jsonc", ".claude/", ".agents/")
CLIENT_FILES: Mapping[str, Sequence[str]] = {
    "claude": (".claude/", ".mcp.json"),
    "codex": (".codex/", ".agents/plugins/"),
    "copilot": (".github/hooks/", ".github/copilot/", ".github/agents/", ".github/mcp.json",
                ".github/extensions/", ".github/skills/", ".github/plugin/",
                ".github/lsp.json", "lsp.json",
                ".mcp.json", ".vscode/mcp.json", ".claude/"),
    "cursor": (".cursor/", ".claude/"),
    "gemini": (".gemini/", ".env"),
    "kilo": (".kilo/", ".kilocode/", ".kilocodemodes", "kilo.json", "kilo.jsonc", *_OPENCODE),
    "opencode": _OPENCODE,
    "qwen": (".qwen/", ".env"),
}  # fmt: skip
"""By client: hooks, servers, plugins, helpers and variables; folders end with a slash."""
_NOT_READ = re.compile(
    r"(?:[^./][^/]*/)*\.claude/(?:state|worktrees)/(?!(?:.*/)?\.[^/]+/)",
    re.IGNORECASE | re.DOTALL,
)
"""Gates, and Claude Code's own worktrees: no settings. A client's folder within is one."""
_VARIABLES = ").env"
_PACKAGES = ("node_modules/**", "package.json", "package-lock.json", "bun.lock", "bun.lockb")
"""Of what git ignores: each worktree may have variables of its own, and OpenCode fetches packages
when it begins.
"""
_NESTED = ".claude/"
"""Claude Code finds skills in such folders below the top, too."""
MOST_FILES = 5000
"""So many behind links are looked at."""
EVERY = tuple(dict.fromkeys(each for row in CLIENT_FILES.values() for each in row))


def client_files(tree: str, client: str) -> list[str]:
    """Returns the files of a client in a working tree, from its top, or in `.claude/` anywhere; of
    what git ignores no `.env`, and no packages. Of a program, those of every client.

    What a link to a folder leads to is named as what is in that folder. Only a link that leads out
    of the tree, to what git ignores or to too many files is named itself; so is `.claude` in a
    repository within the tree.
    """
    wanted = CLIENT_FILES.get(client, EVERY)
    # macOS and Windows find `.claude` as `.Claude`, too.
    patterns = [f":(top,literal,icase){each.removesuffix('/')}" for each in wanted]
    inner = list[str]()
    if _NESTED in wanted:
        inner = _of_repositories(tree)
        patterns += [f":(top,glob,icase)**/{_NESTED}**", f":(top,glob,icase)**/{_NESTED[:-1]}"]
    asked = [each for each in patterns if not each.endswith(_VARIABLES)]
    asked += [f":(exclude,top,glob)**/{each}" for each in _PACKAGES]
    listed = _listed(tree, patterns) + _listed(tree, asked, ignored=True)
    found = _followed(tree, [each for each in listed if not _NOT_READ.match(each)])
    starts = tuple(each.lower() for each in wanted)
    above = {posixpath.dirname(each.removesuffix("/")) for each in wanted}
    links = [each for each in above if each and os.path.islink(os.path.join(tree, each))]
    of_links = _followed(tree, links)
    found += [each for each in of_links if each in links or each.lower().startswith(starts)]
    return sorted({*(each for each in found if not _NOT_READ.match(each)), *inner})


def is_of_client(path: str) -> bool:
    """Returns whether a file is in one of the places where any client looks."""
    folded = f"/{path.lower()}/"
    return f"/{_NESTED}" in folded or folded.startswith(
        tuple(f"/{each.lower().removesuffix('/')}/" for each in EVERY)
    )


def _of_repositories(tree: str) -> list[str]:
    """Returns the `.claude` of repositories within a tree. Their git is not asked: its settings may
    be an agent's.
    """
    found, here = list[str](), git_tree(tree)
    for inner in repositories(tree):
        if here is None or _has_own_question(inner, here):
            continue
        for folder, folders, files in os.walk(inner):
            named = [each for each in (*folders, *files) if f"{each.lower()}/" == _NESTED]
            found += [os.path.relpath(os.path.join(folder, each), tree) for each in named]
            folders[:] = {*folders} - {".git", *named}
    return found


def _has_own_question(inner: str, here: GitTree) -> bool:
    """Returns whether a repository is a worktree of the same one, and no part of what is here: in
    the main worktree, or where Claude Code makes its own.
    """
    with suppress(QueenError):
        it = git_tree(inner)
        is_one = it is not None and (it.tree, it.linked, it.common_dir) == (
            *(inner, True),
            here.common_dir,
        )
        name = os.path.relpath(inner, here.tree)
        return is_one and (not here.linked or bool(_NOT_READ.match(f"{name}/")))
    return False


def _followed(tree: str, names: Sequence[str]) -> list[str]:
    """Returns these names, but of links to folders what git has in there, as if it were here."""
    top, found, count = os.path.realpath(tree), list[str](), 0
    todo = [(each, frozenset[str]()) for each in names]
    inside: dict[str, list[str]] = {}
    while todo:
        name, before = todo.pop()
        path = os.path.join(tree, name)
        if not (os.path.islink(path) and os.path.isdir(path)):
            found.append(name)
            continue
        folder = os.path.realpath(path)
        if folder in before:  # A loop.
            continue
        if folder not in inside:
            inside[folder] = _inside(tree, os.path.relpath(folder, top))
        more = inside[folder]
        count += len(more)
        if count > MOST_FILES:
            return [*names]
        if not more:
            found.append(name)
        else:
            todo += [(f"{name}/{each}", before | {folder}) for each in more]
    return found


def _inside(tree: str, folder: str) -> list[str]:
    """Returns what git has in a folder of the tree, from there; nothing for one outside."""
    if folder == os.pardir or folder.startswith(f"{os.pardir}/"):
        return []
    if folder == os.curdir:
        return _listed(tree, [":(top)"])
    listed = _listed(tree, [f":(top,literal){folder}"])
    return [each.removeprefix(f"{folder}/") for each in listed if each.startswith(f"{folder}/")]


def _listed(tree: str, patterns: Sequence[str], *, ignored: bool = False) -> list[str]:
    which = "--ignored" if ignored else "--cached"
    asked = ("ls-files", "-z", "--others", which, "--exclude-standard", "--", *patterns)
    try:
        return sorted({*names_in(git(*asked, cwd=tree, repository={}))})
    except ExternalFailure:
        refuse_elsewhere(tree)
        raise
