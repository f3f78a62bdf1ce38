"""Places in the graph: layers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queenbee.report.drawing import Bend, layers, route

NODES = [f"n{number}" for number in range(9)]
GRAPHS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8))).map(
    lambda pairs: {
        node: [NODES[need] for number, need in pairs if NODES[number] == node] for node in NODES
    }
)
FORWARD = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8))).map(
    lambda pairs: {
        node: [NODES[a] for a, b in pairs if a < b and NODES[b] == node] for node in NODES
    }
)


@given(GRAPHS)
def test_every_node_has_one_place(graph):
    found = layers(graph)
    places = [place for layer in found for place in layer]
    assert sorted(place for place in places if isinstance(place, str)) == sorted(NODES)
    assert len(set(places)) == len(places)
    assert all(found)


@given(FORWARD)
def test_what_waits_is_in_a_later_layer(graph):
    layer_of = {node: number for number, layer in enumerate(layers(graph)) for node in layer}
    assert all(layer_of[need] < layer_of[node] for node in graph for need in graph[node])


@given(FORWARD)
def test_an_edge_has_a_place_in_every_layer_between_its_ends(graph):
    found = layers(graph)
    layer_of = {place: number for number, layer in enumerate(found) for place in layer}
    for node in graph:
        for need in graph[node]:
            passed = [layer_of[place] for place in route(need, node, layer_of)]
            assert passed == list(range(layer_of[need], layer_of[node] + 1))


def test_a_long_edge_does_not_run_behind_a_box():
    graph = {"a": [], "b": ["a"], "c": ["a", "b"]}
    assert layers(graph) == [["a"], ["b", Bend("a", "c", 1)], ["c"]]


def test_edges_that_need_not_cross_do_not():
    graph = {"a": [], "b": [], "c": ["b"], "d": ["a"]}
    first, second = layers(graph)
    assert [first.index("a"), first.index("b")] == [second.index("d"), second.index("c")]


def test_an_empty_graph_has_no_layers():
    assert layers({}) == []
