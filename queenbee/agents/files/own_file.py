"""A file that is ours as a whole, such as an agent's skill."""

from __future__ import annotations

from queenbee.errors import Conflict


class OwnFile:
    """A file with our mark in it. Another file with its name is never touched."""

    def __init__(self, path: str, what: str, content: str, mark: str) -> None:
        self.path = path
        self.what = what
        self._content = content
        self._mark = mark
        assert mark in content

    def key(self) -> object:
        """Returns what makes two parts of one file the same."""
        return self._content

    def added(self, text: str | None) -> str:
        """Returns the file's content. Raises `Conflict` if another file has its name."""
        if text is not None and self._mark not in text:
            raise Conflict(
                f"{self.path} is not a file of queen setup; nothing was changed",
                hint="move it away, then run it again",
                path=self.path,
            )
        return self._content

    def removed(self, text: str | None) -> str | None:
        """Returns None for our file, and another one unchanged."""
        return None if text is None or self._mark in text else text
