"""Charts of the benchmarks, as SVG, by matplotlib (the `bench` extra)."""

from __future__ import annotations

import os


def growth(series: dict[str, list[tuple[int, float]]], folder: str) -> None:
    """Writes growth.svg: how the cost of an inbox grows with the number of messages."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    os.makedirs(folder, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, points in series.items():
        sizes, ratios = zip(*[(max(size, 1), ratio) for size, ratio in points], strict=True)
        axes.plot(sizes, ratios, marker="o", label=name)
    axes.set_xscale("symlog")
    axes.set_yscale("log")
    axes.set_xlabel("messages in the hive")
    axes.set_ylabel("whole process, in multiples of `import click`")
    axes.axhline(1, color="grey", linewidth=0.5)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(os.path.join(folder, "growth.svg"), metadata={"Date": None})
