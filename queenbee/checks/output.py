"""The output of a program: bounded, so that any amount of it can be kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Output:
    """What a program wrote to one stream, with the middle left out beyond the cap."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    found: bool = True
    """Whether the text that was looked for occurred, even in the part that was left out."""

    @property
    def left_out_bytes(self) -> int:
        """The bytes between `head` and `tail` that were not kept."""
        return self.total_bytes - len(self.head) - len(self.tail)

    def data(self) -> bytes:
        """Returns what was kept, with a line in the middle that says what was not."""
        if not self.left_out_bytes:
            return self.head + self.tail
        return self.head + f"\n[… {self.left_out_bytes:,} bytes left out …]\n".encode() + self.tail

    def text(self) -> str:
        """Returns `data` as text; bytes that are not UTF-8 become the replacement character."""
        return self.data().decode(errors="replace")


NOTHING = Output()
"""The output of a program that wrote nothing, or never started."""
