"""What a hook makes of the commit that lands: `git commit --amend`, when the target has moved."""

from __future__ import annotations

from typing import NamedTuple

from queenbee.core.command_lines import no_dash
from queenbee.git.landing.commands import git

_FORMAT = "%H%n%T%n%P%n%an <%ae> %at%n%B"


class _Made(NamedTuple):
    """A commit, as far as an amended one is alike."""

    commit: str
    tree: str
    parents: list[str]
    author: str
    message: str

    def may_become(self, other: _Made) -> bool:
        """Returns whether it may have been amended to another: on the same parents, which name the
        branch if it is a merge; else with the same files, or with the author, time and message.
        """
        is_alike = self.tree == other.tree or (
            (self.author, self.message) == (other.author, other.message)
        )
        return self.parents == other.parents and (len(self.parents) > 1 or is_alike)


def amended_as(tree: str, commit: str, within: str) -> str | None:
    """Returns the commit of a first-parent line that another one was amended to, or None. Raises
    `ExternalFailure` where git does not have them.
    """
    (ours,) = _made(tree, f"{commit}^!")
    others = _made(tree, within)
    return next((each.commit for each in others if ours.may_become(each)), None)


def _made(tree: str, within: str) -> list[_Made]:
    wanted = ("log", "-z", "--first-parent", "--no-show-signature", f"--format={_FORMAT}")
    said = git(*wanted, no_dash(within), "--", cwd=tree).decode(errors="replace")
    parts = [each.split("\n", 4) for each in said.split("\0") if each]
    return [_Made(own, files, parents.split(), *more) for own, files, parents, *more in parts]
