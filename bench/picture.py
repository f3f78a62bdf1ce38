"""`make picture`: the terminal picture of the README, drawn from a real run.

Two droids in worktrees of their own ask for work and for a file; eight lines, readable on a phone.
Every line is what the real `queen` answers. The SVG needs no font and no file from elsewhere. The
first command is there from the start, with its answer; each other one appears with its own, unless
the reader prefers no motion.
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
COLUMNS = 46
"""Characters in a row of the picture: on a phone of 390 px, each is 7 px wide."""
_GLYPH_PX, _ROW_PX, _EDGE_PX = 8.4, 22, 14
_PAIR_S = 1.2
"""From one command with its answer to the next."""
_COLORS = {"ui": "#ffb454", "api": "#73d0ff", "refused": "#ff9a8b"}
_STYLE = (
    ".later{animation:come .3s both}@keyframes come{from{opacity:0}to{opacity:1}}"
    "@media(prefers-reduced-motion:reduce){.later{animation:none}}"
)

STORY = (
    ("ui", "next", 0),
    ("api", "next", 0),
    ("ui", "reserve --keep src/cart.py", 1),
    ("api", "reserve src/cart.py", 0),
)
"""Who runs what, one after the other, and which line of the answer is shown, from 0."""


def main() -> None:
    """Plays the story and writes the picture."""
    with tempfile.TemporaryDirectory(prefix="queenbee-picture-") as folder:
        lines = list(played(Path(folder).resolve()))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(drawn(lines), encoding="utf-8")
    print(f"{PICTURE}: {len(lines)} lines")


def played(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the rows of the picture, each with its color: of a droid, of a refusal, or none."""
    env = own_environment() | {"COLUMNS": str(COLUMNS)}
    shop = folder / "shop"
    (shop / "src").mkdir(parents=True)
    (shop / "src" / "cart.py").write_text("total = 0\n")

    def run(droid: str, *words: str, cwd: Path = shop) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=cwd, env=env | {"QUEEN_DROID": droid}, capture_output=True, text=True
        )

    def made(*words: str, droid: str = "ann") -> None:
        run(droid, *words).check_returncode()

    made("git", "init", "-q", "-b", "main")
    made(*QUEEN, "init")
    made(*QUEEN, "config", "set", "land.check", "true")
    made(*QUEEN, "issue", "new", "Totals with tax", "--id", "shop-1", "--priority", "1")
    made(*QUEEN, "issue", "new", "Round the totals", "--id", "shop-2")
    made("git", "add", ".")
    made("git", "commit", "-qm", "a shop, with a hive")
    for droid in ("ui", "api"):
        made(*QUEEN, "worktree", "add", droid)
    for droid, words, shown in STORY:
        yield droid, f"{droid} $ queen {words}"
        done = run(droid, *QUEEN, *shlex.split(words), cwd=folder / f"shop-{droid}")
        lines = (done.stdout + done.stderr).splitlines()
        yield ("refused" if done.returncode else ""), lines[shown]


def drawn(lines: list[tuple[str, str]]) -> str:
    """Returns the rows as an SVG."""
    width, height = COLUMNS * _GLYPH_PX + 2 * _EDGE_PX, len(lines) * _ROW_PX + 2 * _EDGE_PX
    rows = []
    for row, (color, text) in enumerate(lines):
        y = _EDGE_PX + (row + 0.7) * _ROW_PX
        weight = ' font-weight="bold"' if color in ("ui", "api") else ""
        delay = f'class="later" style="animation-delay:{row // 2 * _PAIR_S:.1f}s" '
        rows.append(
            f'<text x="{_EDGE_PX}" y="{y:.0f}" fill="{_COLORS.get(color, "#e6e4dc")}"{weight} '
            f'{delay if row > 1 else ""}xml:space="preserve" '
            f'textLength="{len(text) * _GLYPH_PX:.0f}">{escape(text)}</text>'
        )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"',
            'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" role="img">',
            "<title>Two agents share one repository: what queen answers them</title>",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" rx="8" fill="#1f2430"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    main()
