"""Sets of words with stars, and a word that two sets share.

A name is a word of characters, in which `*` stands for any of them; a path is a word of names, in
which `**` does. One walk decides both: for each symbol of a word, it holds all places in the other
set that can be reached so far, as the bits of an integer. ADR 0003.
"""

from __future__ import annotations

from queenbee.core.glob.chars import ANY_CHAR, NO_DOT, common_char, sample

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, TypeAlias

    from queenbee.core.glob.chars import Place

    Name: TypeAlias = "str | Words | None"
    Common = Callable[[Any, Any], Any]
    Walk = tuple[Sequence[Any], list[int]]

STAR = None
_MEMO_SIZE = 1024


class Words:
    """The words that sequences of symbols cover. A `str` covers itself, `STAR` any symbols; two
    stars are never adjacent.
    """

    def __init__(self, sequences: Iterable[Sequence[Any]]) -> None:
        self.sequences: tuple[Sequence[Any], ...] = tuple(sequences)
        self._symbols: list[Any] = []

    def walk(self, sequences: Iterable[Sequence[Any]], meets: Common) -> Walk | None:
        """Returns how one of these sequences covers a word of this set, or None if none does.

        `meets` returns whether two symbols share anything.
        """
        if not self._symbols:
            self._lay_out()
        for sequence in sequences:
            rows = [self._starts]
            for symbol in sequence:
                rows.append(self._after(rows[-1], symbol, meets))
                if not rows[-1]:
                    break
            if rows[-1] & self._ends:
                return sequence, rows
        return None

    def _lay_out(self) -> None:
        """Gives a bit to each symbol and, with a gap behind it, to the end of each sequence."""
        symbols: list[Any] = []
        places: dict[Any, int] = {}
        starts = ends = 0
        for sequence in self.sequences:
            first = len(symbols)
            symbols += [*sequence, "", ""]
            starts |= 1 << first
            ends |= 1 << first + len(sequence)
            for at, symbol in enumerate(sequence, first):
                places[symbol] = places.get(symbol, 0) | 1 << at
        self._ends = ends
        self._all = (ends << 1) - starts
        self._stars = places.pop(STAR, 0)
        self._starts = starts | (starts & self._stars) << 1
        self._places = places
        self._sets = {key: bits for key, bits in places.items() if not isinstance(key, str)}
        # Last, as it tells other threads that all is laid out.
        self._symbols = symbols

    def _after(self, row: int, symbol: Any, meets: Common) -> int:
        """Returns the places that one more symbol leads to from those in `row`."""
        if symbol is STAR:
            # From the first place in each sequence to its end: `row | -row`, one by one.
            return row | ((self._ends << 1) - row) & self._all
        fitting = self._places.get(symbol, 0)
        for partner, places in (self._sets if isinstance(symbol, str) else self._places).items():
            if places & row & ~fitting and meets(symbol, partner):
                fitting |= places
        row = (row & fitting) << 1 | row & self._stars
        return row | (row & self._stars) << 1

    def spelled(self, walk: Walk, common: Common) -> tuple[list[Any], bool]:
        """Returns the word of a walk. `common` returns what two symbols share, false if nothing.

        The second value says whether any symbol may be put before the word.
        """
        sequence, rows = walk
        word = []
        ends = rows[-1] & self._ends
        step, at = len(sequence), (ends & -ends).bit_length() - 1
        while step:
            symbol, before, passed = sequence[step - 1], rows[step - 1], self._symbols[at - 1]
            if symbol is STAR and before >> at & 1:
                step -= 1
            elif symbol is STAR:
                at -= 1
                word += [] if passed is STAR else [common(passed, passed)]
            elif passed is STAR and rows[step] >> at - 1 & 1:
                at -= 1
            elif passed and before >> at - 1 & 1 and (shared := common(symbol, passed)):
                step, at = step - 1, at - 1
                word.append(shared)
            else:
                step -= 1
                word.append(common(symbol, symbol))
        starred = STAR in (self._symbols[at], self._symbols[at - 1])
        return word[::-1], starred and sequence[0] is STAR


def names_meet(one: str | Words, other: str | Words) -> bool:
    """Returns whether some name is in both."""
    if isinstance(other, str):
        one, other = other, one
    if isinstance(other, str):
        return one == other
    return bool(other.walk([one] if isinstance(one, str) else one.sequences, common_char))


def common_name(one: str | Words, other: str | Words) -> str:
    """Returns a name that is in both, or ""."""
    if isinstance(one, str) or isinstance(other, str):
        name = one if isinstance(one, str) else str(other)
        return name if names_meet(one, other) else ""
    walk = other.walk(one.sequences, common_char)
    if walk is None:
        return ""
    letters, may_grow = other.spelled(walk, common_char)
    name = "".join(map(sample, letters))
    return "x" + name if may_grow and name[0] == "." else name


def name_of(choices: Iterable[Sequence[Place | None]]) -> Words:
    """Returns the names that these sequences of places cover; the same object for the same ones."""
    key = tuple(map(tuple, choices))
    name = _names.get(key)
    if name is None:
        if len(_names) >= _MEMO_SIZE:
            _names.clear()
        name = _names[key] = Words(name for places in key for name in _proper(places))
    return name


def _proper(places: Sequence[Place | None]) -> Iterable[Sequence[Place | None]]:
    """Yields sequences that cover the same words but ``, `.` and `..`, which are not names."""
    letters = [place for place in places if place is not STAR]
    if len(letters) > 2 or not all(common_char(place, ".") for place in letters):
        yield places
        return
    for at, place in enumerate(places):
        around = [STAR] if place is STAR else []
        if letter := NO_DOT if place is STAR else common_char(place, NO_DOT):
            yield [*places[:at], *around, letter, *around, *places[at + 1 :]]
    if STAR in places:
        # Three dots or more.
        at = places.index(STAR)
        yield [*places[:at], *[ANY_CHAR] * (3 - len(letters)), *places[at:]]


_names: dict[tuple[tuple[Place | None, ...], ...], Words] = {}
