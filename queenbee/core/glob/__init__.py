"""Glob patterns as languages: what a pattern covers, and whether two cover a common path.

`pattern` compares two patterns, and `index` compares one with thousands. Below them, `parse` reads
a pattern, `segments` and `chars` compile it, `product` and `runs` decide overlap and find a
witness, and `sieve` spares comparisons. ADR 0003.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from queenbee.core.glob.index import GlobIndex as GlobIndex
    from queenbee.core.glob.index import scan_covering as scan_covering
    from queenbee.core.glob.index import scan_meeting as scan_meeting
    from queenbee.core.glob.pattern import escape as escape
    from queenbee.core.glob.pattern import is_literal as is_literal
    from queenbee.core.glob.pattern import literal_path as literal_path
    from queenbee.core.glob.pattern import literal_prefix as literal_prefix
    from queenbee.core.glob.pattern import matches as matches
    from queenbee.core.glob.pattern import normalise as normalise
    from queenbee.core.glob.pattern import overlap as overlap

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "index": "GlobIndex scan_covering scan_meeting",
        "pattern": "escape is_literal literal_path literal_prefix matches normalise overlap",
    },
)
