"""The JSON form of values and of refusals, for the command and for tools alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queenbee.errors import QueenError


def to_plain(value: object) -> object:
    """Returns the value as JSON types: a dataclass as its fields, unless it says otherwise itself,
    by a `to_dict`.
    """
    if hasattr(value, "to_dict"):
        return to_plain(value.to_dict())
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def error_document(error: QueenError) -> dict[str, object]:
    """Returns the JSON form of a refusal."""
    document: dict[str, object] = {"code": error.code, "message": error.message}
    if error.hint:
        document["hint"] = error.hint
    document.update((key, to_plain(each)) for key, each in error.details.items())
    return {"error": document}
