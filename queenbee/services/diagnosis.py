"""What the doctor reports: one thing that is wrong or worth knowing."""

from __future__ import annotations


class Diagnosis:
    """One thing that is wrong, where, and what to do about it."""

    __slots__ = ("code", "file", "fixed", "hint", "line", "message", "severity")

    def __init__(
        self,
        code: str,
        file: str,
        message: str,
        *,
        line: int | None = None,
        hint: str | None = None,
        severity: str = "error",
    ) -> None:
        self.code = code
        self.file = file
        self.line = line
        self.message = message
        self.hint = hint
        self.severity = severity
        """`error`: something is wrong; `note`: worth knowing, nothing is wrong."""
        self.fixed = False

    def to_dict(self) -> dict[str, object]:
        """Returns the diagnosis as plain values."""
        return {name: getattr(self, name) for name in sorted(self.__slots__)}
