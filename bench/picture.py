"""`make picture`: the terminal picture of the README, drawn from a real run.

Two droids in worktrees of their own work through three issues. Every line is what the real `queen`
answers; the SVG needs no font and no file from elsewhere.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from bench.demo import QUEEN, own_environment

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "terminal.svg"
COLUMNS = 92
"""Characters in a row of the picture; longer lines are wrapped."""
_GLYPH_PX, _ROW_PX, _EDGE_PX = 8.4, 19, 16
_COLORS = {"ui": "#ffb454", "api": "#73d0ff", "refused": "#f28779"}

STORY = (
    ("ui", "next"),
    ("api", "next"),
    ("ui", "reserve 'src/cart/**' --issue shop-1 --reason 'moves to src/basket'"),
    ("api", "check src/cart/total.py"),
    ("api", "msg send ui 'May I round in total.py when you are done?'"),
    ("ui", "complete shop-1 --reason 'tax is in' --next"),
)
"""Who runs what, one after the other."""


def main() -> None:
    """Plays the story and writes the picture."""
    with tempfile.TemporaryDirectory(prefix="queenbee-picture-") as folder:
        lines = list(played(Path(folder).resolve()))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(lines), encoding="utf-8")
    print(f"{PICTURE}: {len(lines)} lines")


def played(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the rows of the picture, each with its color: of a droid, of a refusal, or none."""
    env = own_environment()
    shop = folder / "shop"
    (shop / "src" / "cart").mkdir(parents=True)
    (shop / "src" / "cart" / "total.py").write_text("total = 0\n")

    def run(droid: str, *words: str, cwd: Path = shop) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=cwd, env=env | {"QUEEN_DROID": droid}, capture_output=True, text=True
        )

    def made(*words: str) -> None:
        run("ann", *words).check_returncode()

    made("git", "init", "-q", "-b", "main")
    made(*QUEEN, "init")
    made(*QUEEN, "config", "set", "land.check", "true")
    made(*QUEEN, "issue", "new", "Totals with tax", "--id", "shop-1", "--priority", "1",
         "--description", "In src/cart/total.py.")  # fmt: skip
    made(*QUEEN, "issue", "new", "Totals in the API", "--id", "shop-2", "--depends-on", "shop-1")
    made(*QUEEN, "issue", "new", "A page for errors", "--id", "shop-3")
    made("git", "add", ".")
    made("git", "commit", "-qm", "a shop, with a hive")
    for droid in ("ui", "api"):
        made(*QUEEN, "worktree", "add", droid)
    for droid, words in STORY:
        yield droid, f"{droid} $ queen {words}"
        done = run(droid, *QUEEN, *shlex.split(words), cwd=folder / f"shop-{droid}")
        for line in (done.stdout + done.stderr).splitlines():
            shown = line.replace(f"{folder}/", "")
            for begin in range(0, max(1, len(shown)), COLUMNS):
                yield "refused" if done.returncode else "", shown[begin : begin + COLUMNS]
        yield "", ""


def drawn(lines: list[tuple[str, str]]) -> str:
    """Returns the rows as an SVG."""
    width, height = COLUMNS * _GLYPH_PX + 2 * _EDGE_PX, len(lines) * _ROW_PX + 2 * _EDGE_PX
    rows = []
    for row, (color, text) in enumerate(lines):
        if not text:
            continue
        y = _EDGE_PX + (row + 0.75) * _ROW_PX
        weight = ' font-weight="bold"' if color in ("ui", "api") else ""
        fill = _COLORS.get(color, "#cccac2")
        rows.append(
            f'<text x="{_EDGE_PX}" y="{y:.0f}" fill="{fill}"{weight} xml:space="preserve" '
            f'textLength="{len(text) * _GLYPH_PX:.0f}">{escape(text)}</text>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"',
            'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" role="img">',
            "<title>Two agents share one repository: what queen answers them</title>",
            '<rect width="100%" height="100%" rx="8" fill="#1f2430"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    main()
