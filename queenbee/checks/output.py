"""What a program wrote."""

from __future__ import annotations

from typing import NamedTuple

LONGEST_S = 7 * 24 * 3600
"""No wait is longer than a week, which also keeps a document's number within a clock's range."""


class Output(NamedTuple):
    """What a program wrote to one stream; beyond the cap, the middle is left out."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    found: bool = True
    """Whether the wanted text occurred, even in the part that was left out."""

    @property
    def left_out_bytes(self) -> int:
        """The bytes between `head` and `tail` that were not kept."""
        return self.total_bytes - len(self.head) - len(self.tail)

    def data(self) -> bytes:
        """Returns what was kept, with a line in the middle that says how much was not."""
        if not self.left_out_bytes:
            return self.head + self.tail
        return self.head + f"\n[… {self.left_out_bytes:,} bytes left out …]\n".encode() + self.tail

    def text(self) -> str:
        """Returns `data` as text; bytes that are not UTF-8 become the replacement character."""
        return self.data().decode(errors="replace")


NOTHING = Output()
"""The output of a program that wrote nothing, or never started."""
