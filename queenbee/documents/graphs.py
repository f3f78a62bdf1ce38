"""Graphs of "waits for": their order, their cycles, and two languages to show them in.

Pure. A graph maps each node to the nodes that it waits for. Nodes that only others name are
ignored here; the code that built the graph reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from queenbee.core.text import one_line

Graph = Mapping[str, Sequence[str]]

MAX_CYCLES = 20
"""Cycles reported at once: if there are more, fix one and check again."""


@dataclass(frozen=True)
class Node:
    """A node to show: its name, a title, and a remark such as `merge`."""

    name: str
    title: str = ""
    remark: str = ""


def find_cycles(graph: Graph) -> list[tuple[str, ...]]:
    """Returns cycles such that every node on a cycle is on one of them, `MAX_CYCLES` at most.

    Each begins at its smallest node, and each node in it waits for the next.
    """
    waiting = {node: _needs(graph, node) for node in graph}
    _peel(graph, waiting)
    tangled = {node: sorted(needs) for node, needs in waiting.items()}
    cycles: list[tuple[str, ...]] = []
    covered: set[str] = set()
    for node in sorted(tangled):
        if node not in covered and len(cycles) < MAX_CYCLES:
            cycle = _shortest_cycle(tangled, node)
            if cycle is not None:
                covered.update(cycle)
                cycles.append(cycle)
    return cycles


def sort_by_need(graph: Graph) -> list[str]:
    """Returns each node after all those it waits for; nodes behind a cycle come last."""
    waiting = {node: _needs(graph, node) for node in graph}
    return [*_peel(graph, waiting), *waiting]


def invert(graph: Graph) -> dict[str, list[str]]:
    """Returns for each node the nodes that wait for it."""
    followers: dict[str, list[str]] = {node: [] for node in graph}
    for node in graph:
        for need in _needs(graph, node):
            followers[need].append(node)
    return followers


def ancestors(graph: Graph, nodes: Iterable[str]) -> set[str]:
    """Returns everything that one of these nodes waits for, directly or through others."""
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        for need in graph.get(waiting.pop(), ()):
            if need not in found:
                found.add(need)
                waiting.append(need)
    return found


def render_mermaid(graph: Graph, nodes: Sequence[Node]) -> str:
    """Returns the graph as a Mermaid flowchart, which GitHub shows within a Markdown page."""
    names = {node.name: f"n{index}" for index, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        label = _label(node).replace("#", "#35;").replace('"', "#quot;")
        label = label.replace("<", "#lt;").replace(">", "#gt;")
        lines.append(f'  {names[node.name]}["{label}"]')
    lines += [f"  {names[need]} --> {names[name]}" for need, name in _edges(graph, names)]
    return "\n".join(lines) + "\n"


def render_dot(graph: Graph, nodes: Sequence[Node], name: str = "plan") -> str:
    """Returns the graph in the language of Graphviz."""
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node.name)} [label={_quoted(_label(node))}];" for node in nodes]
    shown = {node.name: node.name for node in nodes}
    lines += [f"  {_quoted(need)} -> {_quoted(node)};" for need, node in _edges(graph, shown)]
    return "\n".join([*lines, "}"]) + "\n"


def _needs(graph: Graph, node: str) -> set[str]:
    return {need for need in graph[node] if need in graph}


def _peel(graph: Graph, waiting: dict[str, set[str]]) -> list[str]:
    """Returns the nodes that can be ordered, in order, and removes them from `waiting`."""
    followers = invert(graph)
    ordered = [node for node, needs in waiting.items() if not needs]
    for node in ordered:
        del waiting[node]
        for follower in followers[node]:
            waiting[follower].discard(node)
            if not waiting[follower]:
                ordered.append(follower)
    return ordered


def _shortest_cycle(graph: Graph, start: str) -> tuple[str, ...] | None:
    came_from: dict[str, str] = {}
    waiting = [start]
    for node in waiting:
        for need in graph[node]:
            if need == start:
                path = [node]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return tuple(reversed(path))
            if need not in came_from:
                came_from[need] = node
                waiting.append(need)
    return None


def _label(node: Node) -> str:
    remark = f" ({node.remark})" if node.remark else ""
    return one_line(f"{node.name} {node.title}".strip() + remark)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _edges(graph: Graph, shown: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for node in shown:
        for need in graph.get(node, ()):
            if need in shown:
                yield need, node
