"""Care for the files of a hive: doctor, indexes, statistics. Commands load a module of it each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.services.care.doctor import examine as examine
    from queenbee.services.care.doctor import repair as repair


__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "doctor": "examine repair",
    },
)
