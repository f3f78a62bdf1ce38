"""`queen report`: what happened in the hive, as one page or as Markdown."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from queenbee.cli.app import command, invocation
from queenbee.cli.terminal import say
from queenbee.core.text import printable
from queenbee.core.timestamps import parse_since_ms
from queenbee.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from queenbee.library.hive import Hive
    from queenbee.report.values import Report

_MARKDOWN = (".md", ".markdown")


class _Text:
    """A report as text for standard output; as JSON its values."""

    def __init__(self, report: Report, text: str) -> None:
        self.text = text
        self._report = report

    def to_dict(self) -> dict[str, object]:
        return self._report.to_dict()


def _show(value: _Text | Mapping[str, object]) -> None:
    if isinstance(value, _Text):
        click.echo(value.text, nl=False)
    else:
        say(f"{printable(str(value['path']))}: {value['size_bytes']:,} bytes")


@command(show=_show, example="queen report -o report.html\nqueen report --format md --since 1d")
@click.option("-o", "--output", metavar="FILE", help="Write to this file; default: standard output")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md"]),
    help="One HTML page, or Markdown; default: from FILE's name, or html",
)
@click.option("--since", metavar="7d|TIME", help="Only what happened since then")
def report(
    hive: Hive, output: str | None, form: str | None, since: str | None
) -> _Text | dict[str, object]:
    """Report what happened, as a page of HTML or as Markdown

    The plan, who had what when, waits, conflicts of grants, checks of beads and gates, threads. The
    page is one file that needs no network. FILE must be new, empty or an earlier report; anything
    else is left alone. With --json, prints what the report says.
    """
    from queenbee.report.as_markdown import markdown  # noqa: PLC0415 - start-up
    from queenbee.report.gathering import gather  # noqa: PLC0415 - start-up
    from queenbee.report.page import page  # noqa: PLC0415 - start-up
    from queenbee.report.saving import save  # noqa: PLC0415 - start-up

    to_file = output not in (None, "-")
    if form is None:
        is_markdown = to_file and str(output).lower().endswith(_MARKDOWN)
        form = "md" if is_markdown else "html"
        if not to_file and sys.stdout.isatty() and not invocation().json:
            raise InvalidInput(
                "a terminal does not show HTML",
                hint="queen report -o report.html, or queen report --format md",
            )
    since_ms = parse_since_ms(since, hive.now_ms()) if since is not None else None
    found = gather(hive, since_ms=since_ms)
    text = (markdown if form == "md" else page)(found)
    if not to_file:
        return _Text(found, text)
    save(str(output), text)
    size_bytes = len(text.encode(errors="backslashreplace"))
    return {"path": output, "format": form, "size_bytes": size_bytes}
