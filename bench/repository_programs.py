"""`python -m bench.repository_programs`: lands in repositories that use other programs of git.

Git LFS, gpg, and bubblewrap in place of a container. Prints a Markdown table of what happened; a
program that is not on the PATH is skipped.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from bench.demo import QUEEN
from bench.hook_managers import Tool, World, why

_LARGE = 6 * 2**20
_KEY = ("--batch", "--passphrase", "", "--quick-generate-key", "shop@example.invalid")


def git_lfs(root: Path) -> tuple[str, str]:
    """A file that is too large for git, and that a filter makes small."""
    world = World(root, Tool("git-lfs", (), {".gitattributes": "*.bin filter=lfs diff=lfs -text\n"},
                             "git lfs install --local", "bin"))  # fmt: skip
    world.make()
    tree = world.repo.parent / "shop-api"
    (tree / "large.bin").write_bytes(b"x" * _LARGE)
    done = world.run(*QUEEN, "land", "-m", "a large file", cwd=tree)
    stored = int(
        world.must("git", "cat-file", "-s", "main:large.bin") if not done.returncode else 0
    )
    there = world.repo / "large.bin"
    is_whole = there.exists() and there.stat().st_size == _LARGE
    return "a file of 6 MiB, `land -m`", (
        f"landed: git stores {stored} bytes, and the main worktree has "
        f"{'all of it' if is_whole else 'only the pointer'}"
        if not done.returncode
        else why(done)
    )


def gpg(root: Path) -> tuple[str, str]:
    """Signed commits, of `-m`, of a merge and of the records."""
    world = World(root, Tool("gpg", (), {}, "git config commit.gpgSign true", "txt"))
    home = root / "gnupg"
    home.mkdir(mode=0o700)
    world.tool.env["GNUPGHOME"] = str(home)
    world.must("gpg", *_KEY, cwd=root)
    world.must("git", "init", "-q", "-b", "main")
    world.must("git", "config", "user.email", "shop@example.invalid")
    world.must("git", "config", "user.signingKey", "shop@example.invalid")
    world.make()
    for name in ("api", "ui"):
        tree = world.repo.parent / f"shop-{name}"
        (tree / f"{name}.txt").touch()
        done = world.run(*QUEEN, "land", "-m", f"feat: the {name}", cwd=tree)
        if done.returncode:
            return "two landings", why(done)
    signs = world.must("git", "log", "--format=%G?", "main").split()
    return (
        "two landings",
        f"{sum(each in 'GU' for each in signs)} of {len(signs)} commits are signed",
    )


def bubblewrap(root: Path) -> tuple[str, str]:
    """The repository in a namespace of its own, at its path and at another."""
    world = World(root, Tool("bubblewrap", (), {}, "true", "txt"))
    world.make()
    tree = world.repo.parent / "shop-api"
    (tree / "n.txt").touch()
    same = ("bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--unshare-uts", "--proc", "/proc")
    done = world.run(*same, *QUEEN, "land", "-m", "feat: it", cwd=tree)
    there = "/mnt/elsewhere"
    moved = (*same, "--tmpfs", "/mnt", "--bind", str(root), there, "--tmpfs", str(root),
             "--chdir", f"{there}/shop-ui")  # fmt: skip
    (world.repo.parent / "shop-ui" / "m.txt").touch()
    other = world.run(*moved, *QUEEN, "land", "-m", "feat: more", cwd=root)
    world.must("git", "worktree", "prune")
    is_kept = "shop-ui" in world.must("git", "worktree", "list")
    return "a landing at its own path; at another", (
        f"{'landed' if not done.returncode else why(done)}; "
        f"{'landed' if not other.returncode else why(other)}"
        f"{'' if is_kept else '; the worktree is lost'}"
    )


def main() -> None:
    """Prints the table."""
    print("| program | what was done | what happened |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="programs-") as folder:
        for name, tried in (("git-lfs", git_lfs), ("gpg", gpg), ("bwrap", bubblewrap)):
            told = tried(Path(folder) / name) if shutil.which(name) else ("", "not installed here")
            print(f"| {tried.__name__.replace('_', ' ')} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
