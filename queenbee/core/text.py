"""Makes other people's text safe to show: on a terminal, on one line, in a suggested command.

This module imports nothing: the edit hook loads it.
"""

from __future__ import annotations

from queenbee.errors import InvalidInput

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JOINERS = frozenset("\u200d\ufe0f")
"""They join several emoji into one and hide nothing."""
_BLANK = frozenset(
    chr(code)
    for code in (
        # Default_Ignorable_Code_Point of Unicode 17 (DerivedCoreProperties.txt), as far as Python
        # takes it for printable: fillers, and variation selectors, which can carry a text.
        *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0),
        *(*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)),
        # Letters and signs that look like nothing or like a space.
        *(0x2800, 0x1D159, 0x16FE4, 0x1107F, 0x13441, 0x13442),
    )
)
"""Printable to Python, and invisible to people."""
_LINE_ENDS = frozenset("\u2028\u2029")
_LITERAL = frozenset("/._-+@")
"""Together with letters and digits, the characters that a shell does not change."""
_IN_NAMES = _LITERAL | frozenset(",:#*?[]{}!\\")
"""Together with letters and digits, the characters of names, paths and patterns."""
_IN_PHRASES = _IN_NAMES | frozenset(" &%='")
"""Together with letters and digits, the characters that cannot end brackets around them."""
_PAIRS = frozenset({"()", "[]"})
_SEPARATORS = " :-"
_CURLY = frozenset("“”„‟❝❞〝〞＂")


def visible(text: str) -> bool:
    """Returns whether people can see every character of a text, other than a space."""
    return text.isprintable() and (text.isascii() or _BLANK.isdisjoint(text))


def printable(text: str, *, keep_newlines: bool = False) -> str:
    """Returns the text with escapes for everything that a terminal would act on or hide."""
    if visible(text):
        return text
    return "".join(_shown(char, keep_newlines) for char in text)


def escaped(text: str) -> str:
    r"""Returns the text with each invisible character written as in Python: `\n`, `\x1b`."""
    return "".join(
        char if visible(char) else _code(char) if char in _BLANK else repr(char)[1:-1]
        for char in text
    )


HINT = "  try: "
"""What stands before the next command, below an error."""


def last_said(text: str) -> str:
    """Returns the last line of what a command printed, but for blank ones and our own hints."""
    lines = (each for each in reversed(text.splitlines()) if each.strip())
    return next((each for each in lines if not each.startswith(HINT)), "")


def utf8(text: str) -> bytes:
    """Returns the text as UTF-8. Raises `InvalidInput` for one with bytes that were no text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{text[error.start]!r} is not UTF-8 text") from error


def one_line(text: str, most: int | None = None) -> str:
    """Returns the text on one line, with a space for each invisible character."""
    line = "".join(char if visible(char) else " " for char in text)
    return line if most is None else shortened(line, most)


def shortened(text: str, most: int = 60) -> str:
    """Returns the text in at most this many characters, with a mark where it was cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def names_in_braces(template: str) -> list[str] | None:
    """Returns the names that stand in braces in a template; None where a brace has no other."""
    first, *parts = template.split("{")
    names = [each.partition("}") for each in parts]
    if "}" in first or any(not end or "}" in rest for _, end, rest in names):
        return None
    return [name for name, _, _ in names]


def filled(template: str, texts: Mapping[str, str]) -> str:
    """Returns a template with a text in place of each name, on one line. For a text that is empty,
    brackets around it go too, and what separates it from the rest at the beginning.
    """
    line, *parts = template.split("{")
    for part in parts:
        name, _, rest = part.partition("}")
        text = texts[name].strip()
        if not text and line[-1:] + rest[:1] in _PAIRS:
            line, rest = line[:-1], rest[1:]
        line += text + rest
    return " ".join(one_line(line).split()).lstrip(_SEPARATORS)


def without_escapes(text: str) -> str:
    """Returns the text of a program without what it says to a terminal, such as colors."""
    first, *parts = text.split("\x1b")
    return first + "".join(map(_after_escape, parts))


def _after_escape(part: str) -> str:
    if part[:1] == "[":  # To a letter: `ESC [ 38;2;1;2;3 m`.
        end = next((n for n, char in enumerate(part) if n and "@" <= char <= "~"), len(part))
        return part[end + 1 :]
    if part[:1] == "]":  # A title or a link, to a bell; or to `ESC \\`, where the next part begins.
        return part.partition("\a")[2]
    return part[1:]


def lines_counted(count: int) -> str:
    """Returns how many lines there are, in words."""
    return f"{count} line{'s' * (count != 1)}"


def shell_quoted(text: str) -> str:
    """Returns the text as one word of a shell command, always in quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


def shell_word(text: str) -> str:
    """Returns the text as one word of a shell command, in quotes only where it needs them."""
    literal = text and all(char.isalnum() or char in _LITERAL for char in text)
    return text if literal else shell_quoted(text)


def is_plain(text: str) -> bool:
    """Returns whether a word is the same in a shell, and no option: fit for a suggested command."""
    return shell_word(text) == text and not text.startswith("-")


def suggested(command: str, *words: str, **options: str | bool | None) -> str:
    """Returns a command to run: each word and value stays one argument, whatever is in it.

    An option named `as_` is written `--as`; one that is None or false is left out. Words that
    begin with a dash are put behind `--`, so that they are not read as options.
    """
    flags = [
        f"--{name.rstrip('_').replace('_', '-')}{_value(value)}"
        for name, value in options.items()
        if value is not None and value is not False
    ]
    quoted = [shell_word(word) for word in words]
    if any(word.startswith("-") for word in words):
        return " ".join([command, *flags, "--", *quoted])
    return " ".join([command, *quoted, *flags])


def quotation(text: str, most: int | None = None) -> str:
    """Returns the text in quotes that it cannot close, for a sentence; with `most`, on one line and
    cut to so many characters.
    """
    text = text if most is None else one_line(text, most)
    return "“" + "".join('"' if char in _CURLY else char for char in text) + "”"


def mentioned(name: str, most: int | None = None) -> str:
    """Returns a name for a sentence: as it is if it is one plain word, otherwise in quotes; with
    `most`, on one line and cut to so many characters.
    """
    name = name if most is None else one_line(name, most)
    plain = name and all(char.isalnum() or char in _IN_NAMES for char in name)
    return name if plain else quotation(name)


def some(texts: Sequence[str], most: int, between: str = ", ") -> str:
    """Returns the first texts for a sentence, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more


def named(paths: Sequence[str], most: int = 5) -> str:
    """Returns files or branches for a sentence; none of them can be taken for a part of it."""
    return some([mentioned(each, 200) for each in paths], most)


def bracketed(text: str) -> str:
    """Returns the text in brackets, for a sentence; one that could close them is in quotes too."""
    plain = all(char.isalnum() or char in _IN_PHRASES for char in text)
    return f"({text if plain else quotation(text)})"


def _value(value: str | bool) -> str:
    if isinstance(value, bool):
        return ""
    return ("=" if value.startswith("-") else " ") + shell_word(value)


def _shown(char: str, keep_newlines: bool) -> str:
    if char == "\n":
        return char if keep_newlines else "⏎"
    if char == "\t":
        return "    " if keep_newlines else " "
    if visible(char) or char in JOINERS:
        return char
    # A space of some width: it separates words and nothing else.
    if char.isspace() and char >= "\xa0" and char not in _LINE_ENDS:
        return char
    return _code(char)


def _code(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
