"""How long a caller waits for a grant: it may take several attempts."""

from __future__ import annotations

import time


class Patience:
    """The time that a caller has, from now on."""

    def __init__(self, wait_s: float) -> None:
        self._deadline_s = time.monotonic() + wait_s
        self.is_none = wait_s <= 0

    def left_s(self) -> float:
        """Returns the seconds that are left, at least 0."""
        return 0.0 if self.is_none else max(0.0, self._deadline_s - time.monotonic())
