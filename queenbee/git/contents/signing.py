"""Says what is waited for where git waits for the key that signs a commit.

The program that asks for its passphrase (pinentry, ssh-askpass) may do so where nobody looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.git.run import line

if TYPE_CHECKING:
    from collections.abc import Callable

_WAITED_S = 10.0


def signs(tree: str) -> bool:
    """Returns whether commits in a worktree are signed."""
    asked = ("config", "--type=bool", "--get", "commit.gpgSign")
    return line(*asked, cwd=tree, repository={}) == "true"


class SigningWait:
    """Tells once, when git has made a signed commit for 10 s, what that may wait for."""

    def __init__(self, tree: str, tell: Callable[[str], None]) -> None:
        self._tree = tree
        self._tell = tell
        self._is_told = False

    def look(self, seconds: float, _: str = "") -> None:
        """Called every second, with the seconds that git has taken."""
        if self._is_told or seconds < _WAITED_S:
            return
        self._is_told = True
        if not signs(self._tree):
            return
        is_ssh = line("config", "--get", "gpg.format", cwd=self._tree, repository={}) == "ssh"
        program, way = ("ssh-keygen", "ssh-add") if is_ssh else ("gpg", "echo | gpg --clearsign")
        self._tell(
            f"git has been busy with a commit for {_WAITED_S:.0f} s: a hook runs, or {program} "
            "waits for the passphrase of the key that signs it; to unlock that in a terminal: "
            f"{way}"
        )
