"""`python -m bench.hook_managers`: lands in repositories that use the usual managers of git hooks.

Each tool is installed from its registry (npm or PyPI), in a repository of its own with two
worktrees, which `[worktree] setup` prepares. Both land a file that is badly formatted; the second
landing needs a merge. A third has a message that rules refuse. Prints a Markdown table of what
happened; needs node, npm and the network.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

from bench.demo import QUEEN, own_environment
from queenbee.git.hooks import HOOKS, PRE_COMMIT, SNIPPETS

UGLY = {"js": "const  a = {b:1}\n", "py": "a = {'b':1}\n"}
FINE = {"js": "const a = { b: 1 };\n", "py": 'a = {"b": 1}\n'}
_COMMITLINT = ("@commitlint/cli", "@commitlint/config-conventional")
_RULES = {
    "commitlint.config.mjs": "export default {extends: ['@commitlint/config-conventional']};\n"
}
_LINT_STAGED = {".lintstagedrc.json": '{"*.js": "prettier --write"}\n'}
_CHECK_MESSAGE = 'npx --no -- commitlint --edit "$1"\n'
_NPM = ("--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error")
_LEFTHOOK = """\
pre-commit:
  jobs:
    - run: queen guard check --staged
    - run: npx prettier --write {staged_files}
      glob: "*.js"
      stage_fixed: true
commit-msg:
  jobs:
    - run: npx --no -- commitlint --edit {1}
"""
_PRE_COMMIT = """\
default_install_hook_types: [pre-commit, commit-msg, pre-merge-commit]
repos:
- repo: local
  hooks:
  - {id: ruff-format, name: ruff format, language: system, entry: RUFF format, types: [python]}
""" + dedent(SNIPPETS[PRE_COMMIT])


@dataclass
class Tool:
    """A tool: its packages, its files, and how a repository begins to use it."""

    name: str
    packages: tuple[str, ...]
    files: Mapping[str, str]
    prepare: str = ""
    suffix: str = "js"
    has_rules: bool = True
    package: Mapping[str, object] = field(default_factory=dict)
    """More of `package.json`."""
    env: dict[str, str] = field(default_factory=own_environment)


TOOLS = (
    Tool("husky 9 with commitlint", ("husky@9", *_COMMITLINT),
         {".husky/commit-msg": _CHECK_MESSAGE, **_RULES}, "husky"),
    Tool("husky 9 with lint-staged (prettier)", ("husky@9", "lint-staged", "prettier"),
         {".husky/pre-commit": "npx lint-staged\n", **_LINT_STAGED}, "husky", has_rules=False),
    Tool("lefthook 2 with prettier and commitlint", ("lefthook@2", "prettier", *_COMMITLINT),
         {"lefthook.yml": _LEFTHOOK, **_RULES}, "lefthook install"),
    Tool("simple-git-hooks 2 with commitlint", ("simple-git-hooks@2", *_COMMITLINT), _RULES,
         "simple-git-hooks", package={"simple-git-hooks": {
             "commit-msg": _CHECK_MESSAGE.strip(), "preserveUnused": list(HOOKS)}}),
)  # fmt: skip


class World:
    """A repository with a tool."""

    def __init__(self, root: Path, tool: Tool) -> None:
        self.tool, self.repo = tool, root / "shop"
        # Hooks find the `queen` of this environment.
        tool.env["PATH"] = f"{Path(sys.executable).parent}:{tool.env['PATH']}"
        self.repo.mkdir(parents=True)

    def run(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a program, which may fail."""
        where = {"cwd": cwd or self.repo, "env": self.tool.env, "stdin": subprocess.DEVNULL}
        return subprocess.run(argv, capture_output=True, text=True, check=False, **where)

    def must(self, *argv: str, cwd: Path | None = None) -> str:
        """Runs a program that must not fail."""
        done = self.run(*argv, cwd=cwd)
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)}: {done.stdout}{done.stderr}")
        return done.stdout

    def make(self) -> None:
        """Makes the repository, with a hive and two worktrees."""
        tool = self.tool
        self.must("git", "init", "-q", "-b", "main")
        for name, text in tool.files.items():
            path = self.repo / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        (self.repo / ".gitignore").write_text("node_modules/\n")
        setup = ""
        if tool.suffix == "js":
            package = {"name": "shop", "private": True, "scripts": {"prepare": tool.prepare}}
            package |= tool.package
            (self.repo / "package.json").write_text(json.dumps(package))
            self.must("npm", "install", "--save-dev", *_NPM, *tool.packages)
            self.must("npm", "run", "prepare")
            # `npm ci` wants the packages of every platform in the lock.
            setup = f"npm install --no-save {' '.join(_NPM)}"
        else:
            self.must(*tool.prepare.split())
        self.must(*QUEEN, "init")
        self.run(*QUEEN, "guard", "install")
        self.must(*QUEEN, "config", "set", "land.check", "true")
        if setup:
            self.must(*QUEEN, "config", "set", "worktree.setup", setup)
        self.must("git", "add", "--all")
        self.must("git", "commit", "-qm", "chore: a shop")
        for name in ("api", "ui"):
            self.must(*QUEEN, "worktree", "add", name)

    def land(self, name: str, message: str) -> subprocess.CompletedProcess[str]:
        """Lands a badly formatted file from a worktree."""
        tree = self.repo.parent / f"shop-{name}"
        (tree / f"{name}.{self.tool.suffix}").write_text(UGLY[self.tool.suffix])
        return self.run(*QUEEN, "land", "-m", message, cwd=tree)

    def row(self) -> list[str]:
        """Returns what happened, for the table."""
        guarded = self._guarded()
        done = [self.land(name, f"feat: the {name}") for name in ("api", "ui")]
        path = f"api.{self.tool.suffix}"
        shown = self.run("git", "show", f"main:{path}").stdout
        is_fine = shown == FINE[self.tool.suffix]
        first = "landed" if done[0].returncode == 0 else why(done[0])
        if is_fine:
            again = "committing once more" in done[0].stdout + done[0].stderr
            first += ", formatted" + (" (committed once more)" if again else "")
        subject = self.must("git", "log", "-1", "--format=`%s`", "main").strip()
        second = f"landed: {subject}" if done[1].returncode == 0 else why(done[1])
        bad = ""
        if self.tool.has_rules:
            refused = self.land("api", "Bad")
            bad = "refused" if refused.returncode == 5 else f"status {refused.returncode}"
        return [self.tool.name, guarded, first, second, bad]

    def _guarded(self) -> str:
        """Returns whether git refuses a held file in a worktree, or what `guard status` says."""
        tree = self.repo.parent / "shop-ui"
        (tree / "held.txt").touch()
        self.must(*QUEEN, "--as", "api", "reserve", "held.txt")
        self.must("git", "add", "held.txt", cwd=tree)
        done = self.run("git", "commit", "-qm", "feat: what another holds", cwd=tree)
        self.must("git", "reset", "-q", "--hard", "main", cwd=tree)
        if "another droid holds" in done.stderr + done.stdout:
            return "refused"
        told = self.run(*QUEEN, "guard", "status", cwd=tree)
        return "not refused" + (", as `guard status` says" if told.returncode else "")


def why(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the exit status of a program, and what it said."""
    return f"status {done.returncode}: {' '.join((done.stdout + done.stderr).split())[:600]}"


def python_tool(root: Path) -> Tool:
    """Returns pre-commit with ruff, in an environment of its own."""
    folder = root / "python"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "pip"), "install", "-q", "pre-commit", "ruff"]
    subprocess.run(pip, check=True, capture_output=True)
    text = _PRE_COMMIT.replace("RUFF", str(folder / "bin" / "ruff"))
    prepare = f"{folder / 'bin' / 'pre-commit'} install"
    name = "pre-commit 4 with ruff format"
    return Tool(name, (), {".pre-commit-config.yaml": text}, prepare, "py", has_rules=False)


def main() -> None:
    """Prints the table."""
    print(
        "| tool | a held file | a badly formatted file, `land -m` | the next landing, a merge "
        "| a bad message |"
    )
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="hooks-") as folder:
        root = Path(folder)
        for number, tool in enumerate((*TOOLS, python_tool(root))):
            world = World(root / str(number), tool)
            world.make()
            print(f"| {' | '.join(world.row())} |", flush=True)


if __name__ == "__main__":
    main()
