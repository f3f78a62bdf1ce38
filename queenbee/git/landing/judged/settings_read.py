"""Which files look like settings of a program of which nobody here knows what it reads."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_OPERATORS = frozenset("();<>|&")
_RESERVED = frozenset({
    "if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time",
})  # fmt: skip
_PASSES = frozenset({
    "sh", "bash", "dash", "zsh", "env", "nice", "timeout", "exec", "command", "nohup", "xargs",
    "npx", "bunx", "pnpx", "python", "python3", "py",
})  # fmt: skip
"""Programs that begin another one, which is named after their options."""
_HARMLESS = frozenset({
    "cd", "echo", "printf", "true", "false", ":", "test", "[", "[[", "exit", "set", "export",
    "unset", "for", "done", "fi", "case", "esac", "return", "trap", "wait", ".", "source", "cp",
    "mv", "mkdir", "rm", "ls", "cat", "cmp", "diff", "grep", "touch", "which", "git", "pip",
    "pip3",
})  # fmt: skip
_RUNS = frozenset(("uv run", "npm exec", "pnpm exec", "yarn exec"))
_IS_OPTION = re.compile(r"-.*|\w+=.*|[\d.]+[smhd]?", re.DOTALL)
"""An option, a variable that is set, or a number, as of `timeout`."""
_DOTFILES = re.compile(
    r"\.(git.*|ds_store|mailmap|editorconfig|.*ignore|all-contributorsrc|"
    r"(github|gitlab|gitea|forgejo|beads|vscode|idea|changeset|devcontainer)/.*)"
)
"""Those that no check reads, or that are looked for by themselves."""
_LOCKS = re.compile(r".*[-.]lock\..*|.*\.lock|npm-shrinkwrap\.json")
_SETTINGS = re.compile(
    r"(\..*|gradle/.*|mise-tasks/.*|mise/tasks/.*)"
    r"|[^/]*(file|rc|\.(config|settings|workspace)\.[^/]*|-project|\.project)"
    r"|[^/]*\.(toml|ini|cfg|conf|json|json5|jsonc|ya?ml|xml|dist|properties|props|targets|config|runsettings"
    r"|bazel|build|cmake|exs|gradle|kts|mk|nix|pkl|rc|sbt)"
    r"|workspace|sconstruct|cmakelists\.txt|package\.swift|build\.zig"
    r"|(conftest|dodo|fabfile|manage|noxfile|setup|sitecustomize|tasks)\.py"
)


def is_unknown(command: str, known: Collection[str]) -> bool:
    """Returns whether a shell command starts a program that is not one of those that are known."""
    try:
        return any(each not in known and each not in _HARMLESS for each in _programs(command))
    except ValueError:  # A quote that is not closed.
        return True


def is_setting(path: str) -> bool:
    """Returns whether a file looks like settings in the folder from which its path is."""
    wanted, *others = _SETTINGS, _DOTFILES, _LOCKS
    folded = path.lower()
    return bool(wanted.fullmatch(folded)) and not any(each.fullmatch(folded) for each in others)


def _programs(command: str) -> Iterator[str]:
    """Yields what a shell command starts, as far as its words say; also what is within quotes."""
    text = command.replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    begins, before = True, ""
    for word in lexer:
        if _OPERATORS.issuperset(word):
            begins = begins or not {"<", ">"} & set(word)
        elif word != text and len(word.split()) > 1 and (begins or {"$", "`"} & set(word)):
            yield from _programs(word)
            begins = False
        elif begins and word.startswith("-m") and len(word) > len("-m"):
            yield word[2:].partition(".")[0]  # As in `python -mNAME`.
            begins = False
        elif begins and word not in _RESERVED and not _IS_OPTION.fullmatch(word):
            before = word.rpartition("/")[2]
            begins = before in _PASSES
            if not begins:
                yield before
        elif f"{before} {word}" in _RUNS:
            begins = True
