"""What `make docs` does beyond mkdocs: pages from outside this folder, and the command reference.

The README becomes the first page. Links between the files of the repository are
rewritten to where they are on the site; what is not on it is linked in the repository.
"""

from __future__ import annotations

import io
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from html import escape, unescape
from importlib import import_module
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from queenbee.cli.main import queen
from queenbee.store.creating import in_toml
from queenbee.store.settings import SETTINGS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from api_page import PUBLIC, names_of  # noqa: E402

FROM_ROOT = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
}
_WIDE = {"comparison.md"}
"""Pages with a table that needs the room of their contents."""
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^( {0,3}```.*?^ {0,3}```[^\n]*$)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r'<div class="highlight">(.*?)</div>', re.DOTALL)
_PROMPT = '<span class="gp">'
_PRINTED = re.compile(r'<span class="g[op]">.*?</span>|<[^>]+>', re.DOTALL)
_MENDED = {
    'data-md-component="source"': "",
    'data-md-component="search" role="dialog"': (
        'data-md-component="search" role="dialog" aria-label="Search"'
    ),
    "<pre><span></span><code>": '<pre><span></span><code tabindex="0">',
    "<table>": '<div class="wide" tabindex="0"><table>',
    "</table>": "</table></div>",
}
"""Text of the theme's pages, and what stands there instead."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    pages = {
        "commands.md": "".join(_command_pages()),
        "settings.md": "".join(_settings()),
        "library.md": "".join(_library()),
    }
    for source, page in FROM_ROOT.items():
        pages[page] = _relinked((ROOT / source).read_text(encoding="utf-8"), source, config)
    for name, content in pages.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page that is a file of this folder; gives wide tables more room."""
    if page.file.src_uri in _WIDE:
        page.meta["hide"] = ["toc"]
    if page.file.generated_by:
        return markdown
    return _relinked(markdown, f"docs/{page.file.src_uri}", config)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lets the button that copies an example copy its commands only."""
    return _EXAMPLE.sub(_copying_commands, html)


def _copying_commands(block: re.Match[str]) -> str:
    if _PROMPT not in block[1]:
        return block[0]
    lines = unescape(_PRINTED.sub("", block[1])).splitlines()
    commands = escape("\n".join(line for line in lines if line.strip()))
    return f'<div class="highlight" data-copy="{commands}">{block[1]}</div>'


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Keeps the theme from asking the code host for stars and forks; names its search, and lets
    the keyboard scroll a wide example or table.
    """
    for theirs, ours in _MENDED.items():
        output = output.replace(theirs, ours)
    return output


def _relinked(text: str, source: str, config: MkDocsConfig) -> str:
    """Returns the text of a file of the repository with its links as they are on the site."""
    here = posixpath.dirname(_page_of(source) or source)

    def replaced(link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        page = _page_of(path)
        if page is None:
            kind = "tree" if (ROOT / path).is_dir() else "blob"
            return f"{config.repo_url}/{kind}/main/{path}{anchor}"
        return posixpath.relpath(page, here or ".") + anchor

    parts = _FENCE.split(text)
    return "".join(
        part if part.lstrip().startswith("```") else _LINK.sub(replaced, part) for part in parts
    )


def _page_of(path: str) -> str | None:
    """Returns where a file of the repository is on the site, or None if it is not on it."""
    if path in FROM_ROOT:
        return FROM_ROOT[path]
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    return None


def _command_pages() -> Iterator[str]:
    """Yields what `--help` prints for each command, in the order of `queen --help`."""
    os.environ["COLUMNS"] = "88"
    yield "# Commands\n\nThis is what `--help` prints for each command.\n"
    yield from _described(queen, click.Context(queen, info_name="queen"), 2)


def _described(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    with redirect_stdout(io.StringIO()):
        text = command.get_help(context)
    yield f"\n{'#' * level} `{context.command_path}`\n\n```text\n{text}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                below = click.Context(inner, info_name=name, parent=context)
                yield from _described(inner, below, min(level + 1, 4))


def _settings() -> Iterator[str]:
    """Yields a table of all settings, from the rows in the code."""
    yield "# Settings\n\nThey are in `.beads/queen.toml`; `queen config` changes them.\n\n"
    yield "| setting | values | default | meaning |\n|---|---|---|---|\n"
    for each in SETTINGS:
        default = in_toml(each.default)
        yield f"| `{each.name}` | {each.type.allowed} | `{default}` | {each.sentence} |\n"


def _library() -> Iterator[str]:
    """Yields the reference of the library: each public name once, from its docstring."""
    yield "# The library\n\nYou can rely on these names; everything else may change.\n"
    listed: set[str] = set()
    for package, heading in PUBLIC.items():
        yield f"\n## {heading}\n"
        for name in names_of(package):
            value = getattr(import_module(package), name)
            module = getattr(value, "__module__", package)
            if not hasattr(import_module(module), name):  # an alias, such as of a dict
                module = package
            home = f"{module}.{name}"
            if home not in listed:
                listed.add(home)
                yield f"\n::: {home}\n"
