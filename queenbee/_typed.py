"""Calls of the library that refuse what is of a wrong type, before they do anything."""

from __future__ import annotations

TYPE_CHECKING = False  # Not typing's: the hooks load this module.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Call = TypeVar("Call", bound=Callable[..., Any])

_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "str": ("a str", (str,)),
    "bytes": ("bytes", (bytes,)),
    "int": ("an int", (int,)),
    "float": ("a number of seconds", (int, float)),
    "bool": ("a bool", (bool,)),
}
_HAS_REST = 4
"""The flag of a function that takes any number of arguments."""
_SEVERAL = ("Sequence[str]", "Collection[str]")


def typed(call: Call) -> Call:
    """Returns a method that raises a `TypeError` which says what is of a wrong type, as far as its
    annotations are texts, bytes, numbers, flags or sequences of texts.
    """
    code, kinds = call.__code__, {**call.__annotations__}
    names = code.co_varnames[: code.co_argcount]
    behind = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][:1]
    rest = kinds.get(behind[0], "") if code.co_flags & _HAS_REST else ""

    def checked(*given: Any, **named: Any) -> Any:
        for name, value in zip(names[1:], given[1:], strict=False):
            _check(call.__name__, name, kinds.get(name, ""), value)
        for number, value in enumerate(given[len(names) :] if rest else ()):
            _check(call.__name__, f"{behind[0]}[{number}]", rest, value)
        for name, value in named.items():
            _check(call.__name__, name, kinds.get(name, ""), value)
        return call(*given, **named)

    for name in ("__doc__", "__name__", "__qualname__", "__module__", "__annotations__"):
        setattr(checked, name, getattr(call, name))
    checked.__wrapped__ = call  # type: ignore[attr-defined]
    return checked  # type: ignore[return-value]


def _check(call: str, name: str, kind: str, value: object) -> None:
    wanted = kind.removesuffix(" | None")
    if value is None and wanted != kind:
        return
    if wanted in _SEVERAL:
        _check_several(call, name, value)
    elif wanted in _KINDS:
        what, types = _KINDS[wanted]
        is_flag = isinstance(value, bool) and bool not in types
        if is_flag or not isinstance(value, types):
            raise _wrong(call, name, what, value)


def _check_several(call: str, name: str, value: object) -> None:
    if isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            if not isinstance(each, str):
                raise _wrong(call, f"{name}[{number}]", "a str", each)
    elif not hasattr(value, "__iter__"):
        raise _wrong(call, name, "a list of str", value)


def _wrong(call: str, name: str, what: str, value: object) -> TypeError:
    return TypeError(f"{call}: {name} must be {what}, not {type(value).__name__}: {value!r:.80}")
