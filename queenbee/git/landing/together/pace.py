"""How many branches are tried with one check: fewer the more of them failed lately.

Kept beside the line of those who land, in one small file; what passed last, which may spare a check
on any target, in another. A group of `p` bad branches
in a hundred is found with the fewest checks in groups of about 60 / `p`; ADR 0025 says how.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from queenbee.services.waiting import landing_steps
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_REMEMBERED = 36
"""So many branches tell how often a check fails."""
_FAILED_BEFORE, _SEEN_BEFORE = 0.4, 24
"""What is assumed before anything was seen."""
_GROUP = 0.6
_CHECK_S = 20.0
"""How long a check takes, as long as none was seen."""
_MOST_BYTES = 65_536
_PASSED = "queenbee-passed"
_LOST = 0.4
"""The part of a check that may be lost to begin again with those who come meanwhile."""
_LOOKS, _LEAST_LOOK_S, _MOST_LOOK_S = 20, 0.1, 1.0
"""How often it is looked for them in that part."""


class Pace:
    """What the last checks said."""

    def __init__(self, folder: str, most: int, common_dir: str) -> None:
        self._path = os.path.join(folder, landing_steps.PACE)
        self._passed_path = os.path.join(common_dir, _PASSED)
        self._limit = most
        said = recall(self._path, _MOST_BYTES)
        said = said if isinstance(said, dict) else {}
        self._passed = [each for each in _listed(said, "passed") if isinstance(each, bool)]
        self._suspects = [each for each in _listed(said, "suspects") if isinstance(each, str)]
        self._failed = [each for each in _listed(said, "failed") if isinstance(each, str)]
        check_s = said.get("check_s")
        self._check_s = check_s if isinstance(check_s, float) else _CHECK_S
        self._lost_s = 0.0

    def most(self, heads: Sequence[str]) -> int:
        """Returns how many of those in the line, which begins with these commits, to try at once.

        Of those among whom one is bad, half: all would fail again.
        """
        count = next((n for n, each in enumerate(heads) if each not in self._suspects), len(heads))
        if count:
            return max(1, min(count // 2, self._limit))
        bad = (self._passed.count(False) + _FAILED_BEFORE) / (len(self._passed) + _SEEN_BEFORE)
        return max(1, min(self._limit, int(_GROUP / bad)))

    @property
    def look_s(self) -> float:
        """How often to look who came while a check runs, in seconds."""
        return max(_LEAST_LOOK_S, min(_MOST_LOOK_S, self._check_s * _LOST / _LOOKS))

    def may_lose(self, seconds: float) -> bool:
        """Returns whether a check that has run so long may begin again."""
        return self._lost_s + seconds <= self._check_s * _LOST

    def gives_way(self, seconds: float, count: int, came: int) -> bool:
        """Returns whether a check of `count` branches that has run so long should begin again with
        others who came since.
        """
        if not self.may_lose(seconds) or seconds * (count + came) > self._check_s * came:
            return False
        self._lost_s += seconds
        return True

    def suspect(self, heads: Sequence[str], commit: str, check: str, output: str) -> None:
        """Remembers that one of these is bad, and the commit of all of them that failed."""
        self._failed = [commit, check, output]
        self._keep(suspects=list(heads))

    def failed_before(self, head: str, check: str, is_same: Callable[[str], bool]) -> str | None:
        """Returns what a check printed that failed on just these files, if the others in that
        commit have landed since and this one is left: running it again would say the same.
        """
        if self._suspects != [head] or len(self._failed) != 3 or self._failed[1] != check:
            return None
        return self._failed[2] if is_same(self._failed[0]) else None

    def keep_passed(self, commit: str, check: str, seconds: float) -> None:
        """Remembers the last commit that passed a check."""
        said = {"commit": commit, "check": check, "s": seconds, "at": time.time()}
        keep(self._passed_path, said)

    def passed_before(
        self, check: str, is_same: Callable[[str], bool]
    ) -> tuple[float, float] | None:
        """Returns how long a check took that passed on just these files, and how many seconds ago
        that was; None if it was not the last one that passed.
        """
        found = recall(self._passed_path, _MOST_BYTES)
        last: dict[str, object] = found if isinstance(found, dict) else {}
        commit, took_s, at_s = last.get("commit"), last.get("s"), last.get("at")
        if last.get("check") != check or not isinstance(commit, str):
            return None
        if not (isinstance(took_s, float) and isinstance(at_s, float)) or not is_same(commit):
            return None
        return took_s, max(0.0, time.time() - at_s)

    def note(self, heads: Sequence[str], *, passed: bool, check_s: float | None) -> None:
        """Remembers the verdict on these; a branch that failed alone clears the others."""
        self._passed = [*self._passed, *[passed] * len(heads)][-_REMEMBERED:]
        self._check_s = self._check_s if check_s is None else check_s
        left = [each for each in self._suspects if each not in heads] if passed else []
        self._keep(suspects=left)

    def _keep(self, suspects: list[str]) -> None:
        self._suspects = suspects
        said = {"passed": self._passed, "suspects": suspects, "check_s": self._check_s}
        failed = self._failed if suspects else []
        keep(self._path, {**said, "failed": failed})


def _listed(said: dict[str, object], name: str) -> list[object]:
    found = said.get(name)
    return found if isinstance(found, list) else []
