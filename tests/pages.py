r"""Pages of the documentation: their examples, run where a reader would run them.

A ```` ```console ```` block holds commands (`$ command`, further lines of it after `> `) and what
they print; a ```` ```python ```` block is a program, and a ```` ```text ```` block right after it
is what that prints. All examples of a page run in one shell, from top to bottom, in an empty home
directory that the page calls `/home/you`.

What must vary may vary: an id stands for any id, and for the same one wherever it stands again,
also in a later command, and so does the short end of one, of four characters with a digit and a
letter among them; an instant, a length of time and the width of a column for any other;
`...` for any text, and on a line of its own for any lines.

    python tests/pages.py docs/scripting.md      prints the page with what is printed today
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "scripts"
HOME = "/home/you"
ULID = r"[0-9A-HJKMNP-TV-Z]{26}"
_ID = re.compile(rf"\bq[a-z]-{ULID}\b")
_SHORT = re.compile(r"(?<![\w.:+-])(?=[A-Z]*\d)(?=\d*[A-Z])[0-9A-HJKMNP-TV-Z]{4}(?![\w.:+-])")
_INSTANT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_DURATION = re.compile(r"\b\d+(?:\.\d+ s|(?:[dhms]|ms)(?: \d\d[hms])?)\b")
_BLANKS = re.compile(r"[ \t]{2,}")
_END = "--end-of-step--"
_TIMEOUT_S = 60
_GIT = {"user.name": "You", "user.email": "you@example.com", "init.defaultBranch": "main"}


class Step:
    """One command or program of a page, and the lines that the page says it prints."""

    def __init__(self, kind: str, source: str, line: int) -> None:
        self.kind = kind
        self.source = source
        self.line = line
        """Where it stands in the page, from 1."""
        self.printed: list[str] | None = None
        """None for a program of which the page does not say."""
        self.printed_at = line
        """Before which line of the page, from 0, the first of them stands or would stand."""

    def __repr__(self) -> str:
        return f"line {self.line}: {self.source}"


def fences(page: Path) -> list[tuple[str, list[str], int]]:
    """Returns the fenced blocks of a page: language, lines, and the number of the first line."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [
        (token.info.strip(), token.content.splitlines(), token.map[0] + 2)
        for token in tokens
        if token.type == "fence" and token.map is not None
    ]


def steps(page: Path) -> list[Step]:
    """Returns what the page says to run, in order."""
    found: list[Step] = []
    program: Step | None = None
    for language, lines, first in fences(page):
        if language == "text" and program is not None:
            program.printed, program.printed_at = lines, first - 1
        program = None
        if language == "python":
            program = Step("program", "\n".join(lines), first)
            found.append(program)
        elif language == "console":
            found += _commands(lines, first)
    return found


def _commands(lines: list[str], first: int) -> list[Step]:
    found: list[Step] = []
    for number, line in enumerate(lines, start=first):
        if line.startswith("$ "):
            step = Step("command", line[2:], number)
            step.printed, step.printed_at = [], number
            found.append(step)
            continue
        assert found, f"line {number}: a console block begins with a command"
        step = found[-1]
        assert step.printed is not None
        if line.startswith("> ") and not step.printed:
            step.source += "\n" + line[2:]
            step.printed_at = number
        else:
            step.printed.append(line)
    return found


class Shell:
    """One bash in an empty home, fed one command at a time."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=self.home,
            env=_environment(self.home, _shims(folder / "bin")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Shell:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        self._bash.wait()
        for stream in (self._bash.stdin, self._bash.stdout):
            assert stream is not None
            stream.close()

    def run(self, step: Step) -> list[str]:
        """Returns the lines that a step prints, on both streams."""
        source = step.source
        if step.kind == "program":
            path = self._folder / f"line_{step.line}.py"
            path.write_text(source, encoding="utf-8")
            source = f"python3 {path}"
        # In a group, so that no command reads the commands that follow as its input; and the
        # status goes on to the next one, which may be `echo $?`.
        script = (
            f"{{ {source}\n}} </dev/null\n__status=$?; printf '\\n%s\\n' {_END}; (exit $__status)\n"
        )
        guard = threading.Timer(_TIMEOUT_S, self._kill)
        guard.start()
        try:
            assert self._bash.stdin is not None and self._bash.stdout is not None
            self._bash.stdin.write(script)
            self._bash.stdin.flush()
            lines = []
            while (line := self._bash.stdout.readline()) != f"{_END}\n":
                assert line, f"{step}\nended the shell, or took longer than {_TIMEOUT_S} s: {lines}"
                lines.append(line.removesuffix("\n"))
        finally:
            guard.cancel()
        if lines and not lines[-1]:
            lines.pop()
        return [line.replace(str(self.home), HOME) for line in lines]

    def _kill(self) -> None:
        try:
            os.killpg(self._bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


class Names:
    """The ids that a page shows, each with the one that stood in its place when it was run."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def in_command(self, source: str) -> str:
        """Returns the command with the ids of this run."""
        for ids in (_ID, _SHORT):
            source = ids.sub(lambda found: self._real.get(found[0], found[0]), source)
        return source

    def on_page(self, lines: list[str]) -> list[str]:
        """Returns what was printed with the ids of the page, where it has them."""
        shown = {real: name for name, real in self._real.items()}
        ids = re.compile("|".join([_ID.pattern, *map(re.escape, shown)]))
        return [ids.sub(lambda found: shown.get(found[0], found[0]), line) for line in lines]

    def agree(self, shown: list[str], printed: list[str]) -> bool:
        """Returns whether the page shows what was printed, as far as that must not vary."""
        fresh: list[str] = []

        def id_pattern(name: str) -> str:
            if name in self._real:
                return re.escape(self._real[name])
            if name in fresh:
                return rf"(?P=id{fresh.index(name)})"
            fresh.append(name)
            ids = f"{name[:2]}-{ULID}" if "-" in name else "[0-9A-HJKMNP-TV-Z]{4,6}"
            return rf"(?P<id{len(fresh) - 1}>{ids})"

        pattern = "".join(
            "(?:.*\n)*?" if line.strip() == "..." else _pattern(line, id_pattern) + "\n"
            for line in shown
        )
        text = "".join(f"{_plain(line)}\n" for line in printed)
        match = re.fullmatch(pattern, text)
        if match is not None:
            self._real.update((name, match[f"id{number}"]) for number, name in enumerate(fresh))
        return match is not None


def differences(page: Path, folder: Path) -> list[str]:
    """Returns what the page shows and what was printed instead, for each step that differs."""
    found = []
    for step, printed, agrees in _run(page, folder):
        if not agrees:
            shown = "\n".join(step.printed or [])
            found.append(f"{step}\n--- the page:\n{shown}\n--- printed:\n" + "\n".join(printed))
    return found


def rewritten(page: Path, folder: Path) -> str:
    """Returns the page with what is printed today, wherever it shows something else."""
    lines = page.read_text(encoding="utf-8").split("\n")
    moved = 0
    for step, printed, agrees in _run(page, folder):
        if not agrees and step.printed is not None:
            begin = step.printed_at + moved
            lines[begin : begin + len(step.printed)] = printed
            moved += len(printed) - len(step.printed)
    return "\n".join(lines)


def _run(page: Path, folder: Path) -> list[tuple[Step, list[str], bool]]:
    names, results = Names(), []
    with Shell(folder) as shell:
        for step in steps(page):
            shown = step.printed
            step.source = names.in_command(step.source)
            printed = shell.run(step)
            agrees = names.agree([] if shown is None else shown, printed)
            results.append((step, names.on_page(printed), agrees))
    return results


def _plain(text: str) -> str:
    """Returns the text with one word for every instant and length of time, and single blanks."""
    text = _DURATION.sub("<time>", _INSTANT.sub("<instant>", text))
    return _BLANKS.sub(" ", text).rstrip()


def _pattern(line: str, id_pattern: object) -> str:
    assert callable(id_pattern)
    parts = []
    for part in _plain(line).split("..."):
        begin, pattern = 0, ""
        for found in re.finditer(f"{_ID.pattern}|{_SHORT.pattern}", part):
            pattern += re.escape(part[begin : found.start()]) + id_pattern(found[0])
            begin = found.end()
        parts.append(pattern + re.escape(part[begin:]))
    return ".*?".join(parts)


def _environment(home: Path, bin_folder: Path) -> dict[str, str]:
    settings = {
        f"GIT_CONFIG_{word}_{number}": pair[index]
        for number, pair in enumerate(_GIT.items())
        for index, word in enumerate(("KEY", "VALUE"))
    }
    return {
        "HOME": str(home),
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(_GIT)),
        **settings,
    }


def _shims(folder: Path) -> Path:
    """Makes the project's commands, and `python3`, those of this interpreter."""
    folder.mkdir()
    for name, script in {"python3": "", **{path.name: path for path in SCRIPTS.iterdir()}}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        path.chmod(0o755)
    return folder


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        sys.stdout.write(rewritten(Path(sys.argv[1]), Path(name)))
