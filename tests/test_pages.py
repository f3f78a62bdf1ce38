"""The checker of the documentation's examples: what it lets vary, and what it finds."""

from __future__ import annotations

import pytest
from pages import differences, rewritten, steps

ULID = "01KE9V6PX3T2MZ8Y4C7W5A1B9D"
OTHER = "01KE9V7A4B6N8Q0R2S4T6V8W0X"


@pytest.fixture
def page(tmp_path):
    """Writes a page and returns its path."""

    def written(*lines: str):
        path = tmp_path / "page.md"
        path.write_text("\n".join(lines) + "\n")
        return path

    return written


@pytest.fixture
def run(page, tmp_path):
    """Returns what differs between a page and what its examples print."""
    folder = tmp_path / "run"
    folder.mkdir()
    return lambda *lines: differences(page(*lines), folder)


def console(*lines: str) -> tuple[str, ...]:
    return ("```console", *lines, "```")


def test_what_is_printed_as_the_page_says_is_no_difference(run):
    assert (
        run(*console("$ echo one; echo two", "one", "two", "$ true", "$ echo three", "three")) == []
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("$ echo one", "two"),
        ("$ echo one",),
        ("$ true", "one"),
        ("$ echo one; echo two", "one"),
        ("$ echo one >&2",),
        ("$ (exit 3)", "$ echo $?", "0"),
        (f"$ echo qm-{ULID}", f"qa-{ULID}"),
        (f"$ echo qm-{ULID} qm-{OTHER}", f"qm-{OTHER} qm-{OTHER}"),
        ("$ echo 5 apples", "6 apples"),
    ],
)
def test_what_is_printed_otherwise_is_a_difference(run, lines):
    assert len(run(*console(*lines))) == 1


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (f"qm-{ULID}", f"qm-{OTHER}"),
        (f"qm-{ULID} qm-{OTHER}", f"qm-{OTHER} qm-{ULID}"),
        ("2026-11-22T02:15:44.015Z", "2024-12-14T10:30:00Z"),
        ("held for 1h 59m", "held for 2h"),
        ("3s ago", "12s ago"),
        ("a  wide     table", "a wide table"),
        ("whatever it says", "what...says"),
        ("one\\ntwo\\nthree", "one\n...\nthree"),
        ("one", "one\n..."),
        ("in $HOME/shop", "in /home/you/shop"),
    ],
)
def test_what_must_vary_may_vary(run, printed, shown):
    assert run(*console(f'$ printf "%b\\n" "{printed}"', *shown.split("\n"))) == []


def test_an_id_of_the_page_stands_for_the_real_one_in_a_later_command(run):
    shown = f"qm-{OTHER}"
    lines = (
        f"$ echo qm-{ULID[:25]}E",
        shown,
        f"$ test {shown} = qm-{ULID[:25]}E && echo same",
        "same",
    )
    assert run(*console(*lines)) == []


def test_an_id_that_stands_again_must_be_the_same_one(run):
    lines = (f"$ echo qm-{ULID}", f"qm-{OTHER}", f"$ echo qm-{ULID[:25]}E", f"qm-{OTHER}")
    assert len(run(*console(*lines))) == 1


def test_a_command_goes_on_in_the_lines_after_it(run):
    assert run(*console("$ cat <<'END'", "> one", "> two", "> END", "one", "two")) == []


def test_the_blocks_of_a_page_share_folder_and_variables(run):
    first = console("$ mkdir shop && cd shop && export NAME=ui")
    assert run(*first, "", *console("$ pwd; echo $NAME", "/home/you/shop", "ui")) == []


def test_a_program_prints_the_block_of_text_behind_it(run):
    program = ("```python", "print(6 * 7)", "```")
    assert run(*program, "prints", "```text", "42", "```") == []


def test_a_program_that_prints_otherwise_is_a_difference(run):
    assert len(run("```python", "print(6 * 7)", "```", "```text", "43", "```")) == 1


def test_a_program_that_fails_is_a_difference(run):
    assert len(run("```python", "raise SystemExit('no')", "```")) == 1


def test_a_command_that_reads_does_not_swallow_the_next_one(run):
    assert run(*console("$ cat", "$ echo still here", "still here")) == []


def test_a_page_is_rewritten_with_what_is_printed_today(page, tmp_path):
    path = page("# A", *console("$ echo new", "old", "older", "$ echo same", "same"), "B")
    folder = tmp_path / "run"
    folder.mkdir()
    expected = ["# A", *console("$ echo new", "new", "$ echo same", "same"), "B", ""]
    assert rewritten(path, folder).split("\n") == expected


def test_other_languages_are_not_run(page):
    assert steps(page("```sh", "exit 1", "```", "```json", "{}", "```")) == []
