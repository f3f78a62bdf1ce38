"""The product of two segment automata, for segments with alternatives.

One automaton is walked state by state, in an order in which every edge leads forward. Each state
has the set of the other's states that can be reached together with it, as the bits of one integer.
A pair of states costs a bit, and no pair is visited twice, for any patterns.
"""

from __future__ import annotations

from queenbee.core.glob.chars import ANY_CHAR, DOT, Chars, common_char, sample_char

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from queenbee.core.glob.chars import Part

    Place = str | Chars
    Node = tuple[int, int]
    """What has been read of the name, and a state."""

    Step = tuple[int, Place | None]
    """The other end of an edge, and what the edge reads: a character or nothing."""

_NOTHING, _DOT, _DOTS, _NAME = range(4)
"""What has been read so far: the first three are not names of a segment unless more follows."""

_MEMO_SIZE = 1024


class Automaton:
    """One segment as states in order; an edge that reads leads to the next state.

    Free edges (to alternatives, out of them, past a star) lead forward too. Only a star
    stays in its state.
    """

    __slots__ = (
        "_accepting",
        "_walk",
        "ahead",
        "end",
        "free",
        "jumps",
        "places",
        "reach",
        "sources",
        "stars",
    )

    def __init__(self, parts: Sequence[Part]) -> None:
        self.places: list[Place | None] = []
        self.free: list[list[int]] = []
        self.stars = 0
        self._lay(parts)
        self.end = self._state(None)
        self.ahead = self._reachable(reading=False)
        self.reach = self._reachable(reading=True)
        self.jumps = sum(1 << state for state, targets in enumerate(self.free) if targets)
        self.sources: list[list[int]] = [[] for _ in self.free]
        for state, targets in enumerate(self.free):
            for target in targets:
                self.sources[target].append(state)
        self._accepting: dict[Place, int] = {}
        self._walk: _Walk | None = None

    @property
    def walk(self) -> _Walk:
        """The order in which the product walks this automaton, created when first needed."""
        if self._walk is None:
            self._walk = _Walk(self)
        return self._walk

    def accepts(self, name: str) -> bool:
        """Returns whether the name is in the segment's language."""
        states = self.ahead[0]
        for char in name:
            states = self.after(states, char)
        return bool(states >> self.end & 1)

    def after(self, states: int, place: Place) -> int:
        """Returns the states that can be reached by reading what the place and these share."""
        if place not in self._accepting:
            if len(self._accepting) >= _MEMO_SIZE:
                self._accepting.clear()
            self._accepting[place] = sum(
                1 << state
                for state, mine in enumerate(self.places)
                if mine is not None and common_char(place, mine) is not None
            )
        moved = (states & self._accepting[place]) << 1 | (states & self.stars)
        return _extended(moved, moved & self.jumps, self.ahead)

    def flooded(self, states: int) -> int:
        """Returns the states that can be reached by reading anything."""
        return _extended(states, states, self.reach)

    def _state(self, place: Place | None) -> int:
        self.places.append(place)
        self.free.append([])
        return len(self.places) - 1

    def _lay(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if part is None:
                star = self._state(None)
                self.stars |= 1 << star
                self.free[star].append(star + 1)
            elif isinstance(part, tuple):
                fork = self._state(None)
                ends = []
                for alternative in part:
                    self.free[fork].append(len(self.places))
                    self._lay(alternative)
                    ends.append(self._state(None))
                for end in ends:
                    self.free[end].append(len(self.places))
            else:
                self._state(part)

    def _reachable(self, reading: bool) -> list[int]:
        sets = [0] * len(self.places)
        for state in reversed(range(len(sets))):
            targets = [*self.free[state]]
            if reading and self.places[state] is not None:
                targets.append(state + 1)
            sets[state] = 1 << state
            for target in targets:
                sets[state] |= sets[target]
        return sets


class _Walk:
    """An automaton without the three names that no segment has."""

    __slots__ = ("back", "end", "onward", "stays")

    def __init__(self, automaton: Automaton) -> None:
        edges: dict[Node, list[tuple[Node, Place | None]]] = {}
        waiting: list[Node] = [(_NOTHING, 0)]
        while waiting:
            node = waiting.pop()
            if node not in edges:
                edges[node] = list(_edges(automaton, node))
                waiting += [target for target, _ in edges[node]]
        # In this order every edge leads forward: reading never undoes what has been read.
        order = {node: index for index, node in enumerate(sorted(edges))}
        self.onward: list[list[Step]] = [[] for _ in order]
        self.back: list[list[Step]] = [[] for _ in order]
        for node, targets in edges.items():
            for target, place in targets:
                self.onward[order[node]].append((order[target], place))
                self.back[order[target]].append((order[node], place))
        self.stays = [
            read == _NAME and automaton.stars >> state & 1 for read, state in sorted(edges)
        ]
        self.end = order.get((_NAME, automaton.end))


def common_word(one: Automaton, other: Automaton) -> str | None:
    """Returns a name that both automata accept, or None; never ``, `.` or `..`."""
    walk = one.walk
    together = [0] * len(walk.onward)
    together[0] = other.ahead[0]
    for node, states in enumerate(together):
        if not states:
            continue
        if walk.stays[node]:
            states = together[node] = other.flooded(states)
        for target, place in walk.onward[node]:
            together[target] |= states if place is None else other.after(states, place)
    if walk.end is None or not together[walk.end] >> other.end & 1:
        return None
    return _spelled(walk, other, together)


def _edges(automaton: Automaton, node: Node) -> Iterator[tuple[Node, Place | None]]:
    read, state = node
    for target in automaton.free[state]:
        yield (read, target), None
    star = automaton.stars >> state & 1
    place = ANY_CHAR if star else automaton.places[state]
    if place is None or (star and read == _NAME):
        return
    target = state if star else state + 1
    if read >= _DOTS:
        yield (_NAME, target), place
        return
    if common_char(place, ".") is not None:
        yield (read + 1, target), "."
    other = _without_dot(place)
    if other is not None:
        yield (_NAME, target), other


def _without_dot(place: Place) -> Place | None:
    if isinstance(place, str):
        return None if place == "." else place
    ranges = []
    for low, high in place.ranges:
        if low <= DOT <= high:
            ranges += [(low, DOT - 1), (DOT + 1, high)]
        else:
            ranges.append((low, high))
    left = Chars(tuple(ends for ends in ranges if ends[0] <= ends[1]), place.folded)
    return left if sample_char(left) is not None else None


def _spelled(walk: _Walk, other: Automaton, together: list[int]) -> str:
    """Reads a word from the sets, backwards: every pair except the first has a predecessor.

    Each step moves one of the two back and neither forward, so there are no more steps than
    states.
    """
    letters = []
    assert walk.end is not None
    node, state = walk.end, other.end
    while (node, state) != (0, 0):
        node, state, letter = next(
            step
            for step in _steps_back(walk, other, node, state)
            if together[step[0]] >> step[1] & 1
        )
        letters.append(letter)
    return "".join(reversed(letters))


def _steps_back(
    walk: _Walk, other: Automaton, node: int, state: int
) -> Iterator[tuple[int, int, str]]:
    for source in other.sources[state]:
        yield node, source, ""
    before = other.places[state - 1] if state else None
    for source, place in walk.back[node]:
        if place is None:
            yield source, state, ""
            continue
        if before is not None:
            letter = common_char(place, before)
            if letter is not None:
                yield source, state - 1, letter
        if other.stars >> state & 1:
            yield source, state, sample_char(place) or ""
    if walk.stays[node] and before is not None:
        yield node, state - 1, sample_char(before) or ""


def _extended(states: int, waiting: int, onward: list[int]) -> int:
    """Returns the states and all those reachable from the waiting ones, lowest first."""
    while waiting:
        lowest = waiting & -waiting
        more = onward[lowest.bit_length() - 1]
        states |= more
        waiting &= ~more
    return states
