"""Places for the nodes of a graph in layers: what waits stands right of what it waits for.

Pure. An edge that passes a layer has a bend in it. In each layer, nodes and bends are in an order
in which few edges cross: by the mean place of the neighbours, a few times in both directions
(Sugiyama).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from queenbee.documents.graphs import sort_by_need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Graph = Mapping[str, Sequence[str]]

_SWEEPS = 4


class Bend(NamedTuple):
    """Where the edge from `need` to `node` passes a layer."""

    need: str
    node: str
    layer: int


Place = str | Bend


def layers(graph: Graph) -> list[list[Place]]:
    """Returns nodes and bends layer by layer, each layer from top to bottom.

    Every node stands in a later layer than those it waits for; in a circle, one edge leads back,
    and has no bends.
    """
    layer_of: dict[Place, int] = {}
    for node in sort_by_need(graph):
        known = [layer_of[need] for need in graph[node] if need in layer_of]
        layer_of[node] = max(known, default=-1) + 1
    found: list[list[Place]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in graph:
        found[layer_of[node]].append(node)
    before: dict[Place, list[Place]] = {}
    for node in graph:
        for need in dict.fromkeys(graph[node]):
            way = route(need, node, layer_of)
            for bend in way[1:-1]:
                assert isinstance(bend, Bend)
                found[bend.layer].append(bend)
            for left, right in pairwise(way):
                before.setdefault(right, []).append(left)
    after = _inverted(before)
    for _ in range(_SWEEPS):
        _sort(found, range(1, len(found)), before)
        _sort(found, range(len(found) - 2, -1, -1), after)
    return found


def route(need: str, node: str, layer_of: Mapping[Place, int]) -> list[Place]:
    """Returns the places an edge leads through: both nodes, and a bend in each layer between."""
    between = range(layer_of[need] + 1, layer_of[node])
    return [need, *(Bend(need, node, layer) for layer in between), node]


def _inverted(before: Mapping[Place, Sequence[Place]]) -> dict[Place, list[Place]]:
    after: dict[Place, list[Place]] = {}
    for right, lefts in before.items():
        for left in lefts:
            after.setdefault(left, []).append(right)
    return after


def _sort(
    found: Sequence[list[Place]], order: Sequence[int], neighbours: Mapping[Place, Sequence[Place]]
) -> None:
    """Sorts layers, one after the other, by the mean place of the neighbours."""
    rank = {place: number for layer in found for number, place in enumerate(layer)}

    def mean(place: Place) -> float:
        near = [rank[each] for each in neighbours.get(place, ())]
        return sum(near) / len(near) if near else rank[place]

    for number in order:
        found[number].sort(key=mean)
        rank.update((place, number) for number, place in enumerate(found[number]))
