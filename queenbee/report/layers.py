"""Places for the nodes of a graph in layers: what waits stands right of what it waits for.

Pure. Layers by the longest way, and in each layer the order in which few edges cross (the mean
place of the neighbours, a few times in both directions), after Sugiyama.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.documents.graphs import invert, sort_by_need

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Graph = Mapping[str, Sequence[str]]

_SWEEPS = 4


def layers(graph: Graph) -> list[list[str]]:
    """Returns the nodes layer by layer, each layer from top to bottom.

    Every node stands in a later layer than those it waits for; in a circle, one edge leads back.
    """
    layer_of: dict[str, int] = {}
    for node in sort_by_need(graph):
        known = [layer_of[need] for need in graph[node] if need in layer_of]
        layer_of[node] = max(known, default=-1) + 1
    found: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for node in graph:
        found[layer_of[node]].append(node)
    followers = invert(graph)
    for _ in range(_SWEEPS):
        _sort(found[1:], found, graph)
        _sort(found[-2::-1], found, followers)
    return found


def _sort(some: Sequence[list[str]], every: Sequence[list[str]], neighbours: Graph) -> None:
    """Sorts layers, one after the other, by the mean place of each node's neighbours."""
    for layer in some:
        place = {node: number for each in every for number, node in enumerate(each)}

        def mean(node: str, place: Mapping[str, int] = place) -> float:
            near = [place[each] for each in neighbours[node] if each in place]
            return sum(near) / len(near) if near else place[node]

        layer.sort(key=mean)
