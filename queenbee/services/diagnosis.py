"""What the doctor reports: one thing that is wrong or worth knowing."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass


@dataclass(slots=True)
class Diagnosis:
    """One thing that is wrong, where, and what to do about it."""

    code: str
    file: str
    message: str
    _: KW_ONLY
    line: int | None = None
    hint: str | None = None
    severity: str = "error"
    """`error`: something is wrong; `note`: worth knowing, nothing is wrong."""
    fixed: bool = False

    def to_dict(self) -> dict[str, object]:
        """Returns the diagnosis as plain values."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}
