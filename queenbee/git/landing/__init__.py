"""Landing: bringing a worktree's branch to the main branch, one after the other. ADR 0025.

`landing` is the order of the steps and `landed_issue` what it means for an issue; `place` knows the
two worktrees, `joining` the strategies, `conflicts` what needs nobody; `commands` runs git, and
`healing` is for those who come after one that was killed.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.git.landing.landing import CHECK as CHECK
    from queenbee.git.landing.landing import Landing as Landing
    from queenbee.git.landing.landing import Rules as Rules
    from queenbee.git.landing.landing import Work as Work
    from queenbee.git.landing.landing import abort as abort
    from queenbee.git.landing.landing import land as land
    from queenbee.git.landing.refusals import NotLanded as NotLanded

__getattr__, __dir__, __all__ = exports(
    __name__,
    {"landing": "CHECK Landing Rules Work abort land", "refusals": "NotLanded"},
)
