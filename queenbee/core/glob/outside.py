"""Whether two patterns share a path other than some given ones: for leases that ended in part.

The given paths are walked as a tree, with the places that both patterns can be in. A shared path
leaves the tree at some segment, or ends where none of the given paths does; what comes after that
is decided as for any two patterns. The same within a segment, character by character.
"""

from __future__ import annotations

from queenbee.core.glob.chars import ANY_CHAR, Chars, common_char, fold
from queenbee.core.glob.pattern import compiled
from queenbee.core.glob.runs import meet
from queenbee.core.glob.segments import Segment, common_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from queenbee.core.glob.pattern import Branch
    from queenbee.core.glob.product import Automaton

    Item = str | Segment | None
    Tree = dict[str, "Tree"]
    """The next names, or the next characters; `` marks the end of a given path or name."""

_END = ""
_ANY_NAME = Segment((None,))
_NO_NAMES = ("", ".", "..")


def overlap_outside(
    a: str, b: str, without: Iterable[str], *, fold_case: bool = False
) -> str | None:
    """Returns a path that both patterns cover and that is not among the literal paths, or None.

    Raises `BadPattern`.
    """
    tree: Tree = {}
    for path in without:
        _grow(tree, (fold(path) if fold_case else path).split("/"))
    for mine in compiled(a, fold_case).branches:
        for theirs in compiled(b, fold_case).branches:
            names = _path(_items(mine), _items(theirs), {0}, {0}, tree)
            if names is not None:
                return "/".join(names)
    return None


def _path(
    one: Sequence[Item],
    other: Sequence[Item],
    mine: set[int],
    theirs: set[int],
    tree: Tree,
    *,
    depth: int = 0,
) -> list[str] | None:
    """Returns the names of a shared path from these places on; `tree` has the paths to avoid."""
    mine, theirs = _closed(one, mine), _closed(other, theirs)
    if depth and len(one) in mine and len(other) in theirs and _END not in tree:
        return []
    names = [each for each in tree if each != _END]
    for i in mine - {len(one)}:
        for j in theirs - {len(other)}:
            name = _name(one[i], other[j], names)
            rest = None if name is None else _anything(_rest(one, i), _rest(other, j))
            if name is not None and rest is not None:
                return [name, *rest]
    for name in names:
        rest = _path(
            one,
            other,
            _after(one, mine, name),
            _after(other, theirs, name),
            tree[name],
            depth=depth + 1,
        )
        if rest is not None:
            return [name, *rest]
    return None


def _anything(one: Sequence[Item], other: Sequence[Item]) -> list[str] | None:
    """Returns the names of any shared path, which may be empty, or None."""
    meeting = meet(_runs(one), _runs(other), common_name)
    return None if meeting is None else [*meeting[0], *meeting[1]]


def _rest(items: Sequence[Item], place: int) -> Sequence[Item]:
    """Returns what comes after a name that was read at a place; `**` stays."""
    return items[place if items[place] is None else place + 1 :]


def _after(items: Sequence[Item], places: set[int], name: str) -> set[int]:
    """Returns the places after reading this name."""
    found = set()
    for place in places - {len(items)}:
        item = items[place]
        if item is None:
            found.add(place)
        elif item == name or (isinstance(item, Segment) and item.covers(name)):
            found.add(place + 1)
    return found


def _closed(items: Sequence[Item], places: set[int]) -> set[int]:
    """Returns the places with those behind each `**`, which may cover nothing."""
    closed = set(places)
    for place, item in enumerate(items):
        if item is None and place in closed:
            closed.add(place + 1)
    return closed


def _items(branch: Branch) -> list[Item]:
    items: list[Item] = []
    for index, run in enumerate(branch.runs):
        items += [None, *run] if index else run
    return items


def _runs(items: Sequence[Item]) -> tuple[tuple[str | Segment, ...], ...]:
    runs: list[list[str | Segment]] = [[]]
    for item in items:
        if item is None:
            runs.append([])
        else:
            runs[-1].append(item)
    return tuple(map(tuple, runs))


def _name(one: Item, other: Item, without: Sequence[str]) -> str | None:
    """Returns a name that both items cover and that is not among these, or None."""
    first, second = one or _ANY_NAME, other or _ANY_NAME
    name = common_name(first, second)
    if name is None or name not in without:
        return name
    if isinstance(first, str) or isinstance(second, str):
        return None  # It was the only one.
    tree: Tree = {}
    for each in (*without, *_NO_NAMES):
        _grow(tree, each)
    mine, theirs = first.automaton, second.automaton
    return _word(mine, theirs, mine.ahead[0], theirs.ahead[0], tree)


def _word(one: Automaton, other: Automaton, mine: int, theirs: int, tree: Tree) -> str | None:
    """Returns a shared word from these states on; `tree` has the words to avoid."""
    if _END not in tree and mine >> one.end & 1 and theirs >> other.end & 1:
        return ""
    letters = "".join(tree)
    for first, after_first in _reads(one, mine):
        for second, after_second in _reads(other, theirs):
            letter = _letter(first, second, letters)
            rest = None if letter is None else _any_word(one, other, after_first, after_second)
            if letter is not None and rest is not None:
                return letter + rest
    for letter in letters:
        below_mine, below_theirs = one.after(mine, letter), other.after(theirs, letter)
        if below_mine and below_theirs:
            rest = _word(one, other, below_mine, below_theirs, tree[letter])
            if rest is not None:
                return letter + rest
    return None


def _any_word(one: Automaton, other: Automaton, mine: int, theirs: int) -> str | None:
    """Returns any shared word from these states on, by all pairs of states."""
    waiting = [(i, j, "") for i in _bits(mine) for j in _bits(theirs)]
    seen = {(i, j) for i, j, _ in waiting}
    for i, j, word in waiting:  # It grows meanwhile.
        if i == one.end and j == other.end:
            return word
        for first, after_first in _reads(one, 1 << i):
            for second, after_second in _reads(other, 1 << j):
                letter = common_char(first, second)
                for pair in () if letter is None else _pairs(after_first, after_second):
                    if pair not in seen:
                        seen.add(pair)
                        waiting.append((*pair, word + (letter or "")))
    return None


def _pairs(mine: int, theirs: int) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in _bits(mine) for j in _bits(theirs))


def _reads(automaton: Automaton, states: int) -> Iterator[tuple[str | Chars, int]]:
    """Yields what each of these states can read, with the states after it."""
    for state in _bits(states):
        if automaton.stars >> state & 1:
            yield ANY_CHAR, automaton.ahead[state]
        place = automaton.places[state]
        if place is not None:
            yield place, automaton.ahead[state + 1]


def _letter(one: str | Chars, other: str | Chars, without: str) -> str | None:
    """Returns a character that both places accept and that is not among these, or None."""
    letter = common_char(one, other)
    if letter is None or letter not in without:
        return letter
    if isinstance(one, str) or isinstance(other, str):
        return None
    ranges = list(one.ranges)
    for code in map(ord, without):
        parts = ((lo, hi) for low, high in ranges for lo, hi in _around(low, high, code))
        ranges = [ends for ends in parts if ends[0] <= ends[1]]
    return common_char(Chars(tuple(ranges), one.folded), other)


def _around(low: int, high: int, code: int) -> tuple[tuple[int, int], ...]:
    return ((low, code - 1), (code + 1, high)) if low <= code <= high else ((low, high),)


def _bits(states: int) -> Iterator[int]:
    while states:
        lowest = states & -states
        yield lowest.bit_length() - 1
        states ^= lowest


def _grow(tree: Tree, parts: Iterable[str]) -> None:
    for part in parts:
        tree = tree.setdefault(part, {})
    tree[_END] = {}
