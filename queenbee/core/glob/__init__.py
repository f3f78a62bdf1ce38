"""Glob patterns as languages: what a pattern covers, and whether two cover a common path.

`pattern` compares two patterns, `sieve` one with thousands, and `by_folder` many with many. Below
them, `parse` reads a pattern, `segments` and `chars` compile it, and `product` and `runs` decide
overlap and find a witness. ADR 0003.
"""

from __future__ import annotations

from queenbee._lazy import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        "pattern": "escape is_literal literal_path literal_prefix matches normalise overlap",
    },
)
