"""Landing: bringing a worktree's branch to the main branch, one after the other. ADR 0025.

`landing` is the order of the steps, `work` what is asked and what comes of it, `landed_issue` what
it means for an issue. `judged` finds the check that judges it. `together` checks a branch with
those who wait. `place` knows the two worktrees, `joining` the strategies, `conflicts` what needs
nobody; `commands` runs git. `promised` and `healing` are for those who come after one that was
killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.git.landing.landing import abort as abort
    from queenbee.git.landing.landing import land as land
    from queenbee.git.landing.refusals import NotLanded as NotLanded
    from queenbee.git.landing.work import CHECK as CHECK
    from queenbee.git.landing.work import Landing as Landing
    from queenbee.git.landing.work import Rules as Rules
    from queenbee.git.landing.work import Work as Work

exports(
    __name__,
    {"landing": "abort land", "refusals": "NotLanded", "work": "CHECK Landing Rules Work"},
)
