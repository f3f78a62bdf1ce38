"""Names of Python's library that the hot paths need, without what importing them loads.

`contextlib` and `functools` load `collections`, `types`, `operator` and `keyword`: 3.5 ms, a third
of what the interpreter takes to start, at each edit of an agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import nullcontext, suppress
    from functools import cached_property
else:

    class suppress:  # noqa: N801 - the library's name
        """Ends its block at one of these errors, as `contextlib.suppress` does."""

        def __init__(self, *errors):
            self._errors = errors

        def __enter__(self):
            return None

        def __exit__(self, kind, error, trace):
            return kind is not None and issubclass(kind, self._errors)

    class nullcontext:  # noqa: N801 - the library's name
        """Does nothing around its block, as `contextlib.nullcontext` does."""

        def __init__(self, enter_result=None):
            self.enter_result = enter_result

        def __enter__(self):
            return self.enter_result

        def __exit__(self, *error):
            return None

    class cached_property:  # noqa: N801 - the library's name
        """Calls its function once for each object and keeps the result in its `__dict__`, as
        `functools.cached_property` does.
        """

        def __init__(self, func):
            self.func = func
            self.__doc__ = func.__doc__

        def __set_name__(self, owner, name):
            self.attrname = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ("cached_property", "nullcontext", "suppress")
