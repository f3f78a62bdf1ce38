"""Where the clients of agents look, in a repository, for what they run: one table, for the landing
that names its changes and for the team that is started.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queenbee.git.landing.judged.command_reads import with_links
from queenbee.git.run import git

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OPENCODE = (".opencode/", "opencode.json", "opencode.jsonc")
CLIENT_FILES: Mapping[str, Sequence[str]] = {
    "claude": (".claude/", ".mcp.json"),
    "codex": (".codex/", ".agents/plugins/"),
    "copilot": (".github/hooks/", ".github/copilot/", ".github/agents/", ".github/mcp.json",
                ".mcp.json", ".vscode/mcp.json", ".claude/"),
    "cursor": (".cursor/", ".claude/"),
    "gemini": (".gemini/", ".env"),
    "kilo": (".kilo/", ".kilocode/", "kilo.json", "kilo.jsonc", *_OPENCODE),
    "opencode": _OPENCODE,
    "qwen": (".qwen/", ".env"),
}  # fmt: skip
"""By client: hooks, servers, plugins, helpers and variables; folders end with a slash."""
_NOT_READ = (".claude/state/", ".claude/worktrees/")
"""Gates, and Claude Code's own worktrees: no settings."""
EVERY = tuple(dict.fromkeys(each for row in CLIENT_FILES.values() for each in row))


def client_files(tree: str, client: str) -> list[str]:
    """Returns the files of a client in a working tree, from its top: also what a link in their
    place leads to within it, but nothing that git ignores. Of a program, those of every client.
    """
    places = sorted({each for name in CLIENT_FILES.get(client, EVERY) for each in _at(tree, name)})
    if not places:
        return []
    # macOS and Windows find `.claude` as `.Claude`, too.
    patterns = [f":(top,literal,icase){each}" for each in places]
    asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns)
    listed = os.fsdecode(git(*asked, cwd=tree, repository={}))
    return sorted({each for each in listed.split("\0") if each and not each.startswith(_NOT_READ)})


def _at(tree: str, name: str) -> Iterator[str]:
    """Yields a file, or a folder with all that is in it; and links on the way to it."""
    for way in with_links(tree, f"{name}*" if name.endswith("/") else name):
        place = way.removesuffix("/*")
        path = os.path.join(tree, place)
        is_whole = place != way or os.path.islink(path) or not os.path.isdir(path)
        if is_whole and place and not place.startswith(("/", "..")):
            yield place
