"""HTML made of elements: whatever is not an element is text, and stays text.

Everything that others wrote comes through `element`, which escapes it for HTML and for the eye:
control characters and those that turn the direction of text are shown as escapes.
"""

from __future__ import annotations

from html import escape

from queenbee.core.text import printable

_WITHOUT_END = frozenset({"meta", "rect", "path", "line", "br"})


class Markup(str):
    """Text that is HTML already; only this module makes it."""

    __slots__ = ()


Child = str | None
Value = str | int | float | bool | None


def element(name: str, *children: Child, **attributes: Value) -> Markup:
    """Returns an element. A child that is no `Markup` is text; one that is None is left out.

    `class_` is the attribute `class`, `view_box` is `viewBox`, and `aria_label` is `aria-label`.
    An attribute that is None or False is left out. A link may only lead to a place in the page:
    raises `ValueError` for any other.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _WITHOUT_END:
        return (
            Markup(f"<{name}{written}>")
            if name in ("meta", "br")
            else Markup(f"<{name}{written}/>")
        )
    inner = "".join(text(each) for each in children if each is not None)
    return Markup(f"<{name}{written}>{inner}</{name}>")


def text(child: str) -> Markup:
    """Returns a text as HTML; what is HTML already stays as it is."""
    if isinstance(child, Markup):
        return child
    return Markup(escape(printable(child, keep_newlines=True)))


def joined(*parts: Child) -> Markup:
    """Returns elements and texts one after the other."""
    return Markup("".join(text(each) for each in parts if each is not None))


def style(rules: str) -> Markup:
    """Returns a `style` element with rules of our own. Raises `ValueError` if they would end it."""
    if "</" in rules:
        raise ValueError("rules of style must not end their element")
    return Markup(f"<style>{rules}</style>")


def document(language: str, head: Markup, body: Markup) -> Markup:
    """Returns a whole page."""
    return Markup(f'<!doctype html>\n<html lang="{language}">\n{head}\n{body}\n</html>\n')


def _attribute(key: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    name = {"view_box": "viewBox", "http_equiv": "http-equiv"}.get(key)
    name = name or key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.1f}"
    leads = name in ("href", "src", "action", "style") or name.startswith("on")
    if leads and not (name == "href" and str(value).startswith("#")):
        raise ValueError(f"{name}={value!r} is not a place in the page")
    return f' {name}="{escape(printable(str(value)))}"'
