"""Places in the graph: layers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queenbee.report.layers import layers

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
    assert sorted(node for layer in found for node in layer) == sorted(NODES)
    assert all(found)


@given(FORWARD)
def test_what_waits_is_in_a_later_layer(graph):
    layer_of = {node: number for number, layer in enumerate(layers(graph)) for node in layer}
    assert all(layer_of[need] < layer_of[node] for node in graph for need in graph[node])


def test_edges_that_need_not_cross_do_not():
    graph = {"a": [], "b": [], "c": ["b"], "d": ["a"]}
    first, second = layers(graph)
    assert [first.index("a"), first.index("b")] == [second.index("d"), second.index("c")]


def test_an_empty_graph_has_no_layers():
    assert layers({}) == []
