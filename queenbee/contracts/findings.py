"""What a validator returns: findings are values, and all of a document's are told at once."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


@dataclass(frozen=True)
class Finding:
    """Is one thing that a validator has to say about a document.

    `path` says where in the document (`rules[0].rule_config`, empty for the whole of it), `line`
    the line of a text document, from 1. Only errors make the document invalid.
    """

    path: str
    message: str
    severity: Literal["error", "warning"] = "error"
    hint: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, object]:
        """Returns the finding as plain values."""
        return {
            "severity": self.severity,
            "path": self.path,
            "line": self.line,
            "message": self.message,
            "hint": self.hint,
        }
