"""Finds the files of a hive: the ledgers, the untracked state, and the worktree's identity.

It starts no git process. `docs/format.md`, section "Places"; ADR 0005.
"""

from __future__ import annotations

import os

from queenbee.core.text import shell_word, suggested
from queenbee.errors import NoHive, StoreError, Unreadable
from queenbee.store import machine, safe_open
from queenbee.store import settings as settings_file
from queenbee.store.git_trees import (
    GitTree,
    config_says,
    git_tree,
    name_in_index,
    upward,
    whole,
)

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from queenbee.store.settings import Settings

BEADS = ".beads"
_STATE, _PRIVATE = "queenbee", "queenbee-private"
"""Folders in the git directory that all worktrees share: agents in a sandbox write in the first."""
OUTSIDE = "QUEEN_ALLOW_OUTSIDE"
"""The environment variable that allows a hive outside the repository it is used from."""


class Layout:
    """Every path that QueenBee owns, and how they were found."""

    def __init__(
        self,
        beads_dir: str,
        state_dir: str,
        settings: Settings,
        how: list[str],
        *,
        home: GitTree | None,
        here: GitTree | None,
    ) -> None:
        self.beads_dir = beads_dir
        self.state_dir = state_dir
        self.private_dir: str = _in_git(_PRIVATE, beads_dir, home) if home else state_dir
        """The notes after which QueenBee changes worktrees, branches and processes: in git's own
        folder, where agents in a sandbox do not write; outside git, the state directory.
        """
        self.settings = settings
        self.how = how
        """One sentence for each step that led here."""
        self.common_dir: str | None = home.common_dir if home else None
        """The git directory that all worktrees of the hive's repository share; None outside git."""
        self.tree: str = here.tree if here else self.root
        """The top of the tree that patterns are relative to, for this working directory."""
        self.worktree: str | None = os.path.basename(here.tree) if here and here.linked else None
        """The name of the linked worktree that we are in, or None in the main one."""
        self.identity_path: str = (
            os.path.join(here.git_dir, "queenbee-droid")
            if here
            else os.path.join(beads_dir, ".queenbee", "droid")
        )
        self.git_dir: str | None = here.git_dir if here else None
        """The git directory of the working tree that we are in; None outside git."""
        self.tree_id_paths: tuple[str, ...] = tree_id_paths(state_dir, self.git_dir, self.worktree)
        """Where the id of this working tree may be; the first that can be written has it."""
        self._name_files()
        anchors = [home.tree, home.common_dir] if home else [self.root]
        self._anchors = [(path, _identity(path)) for path in anchors]
        for path, identity in self._anchors:
            if identity is not None:
                safe_open.anchor(path, identity)

    def _name_files(self) -> None:
        beads_dir, state_dir = self.beads_dir, self.state_dir
        self.lock_path: str = os.path.join(state_dir, "lock")
        self.memory_path: str = os.path.join(state_dir, "hive.sqlite3")
        """This clone's memory: every line, and what each record folds to."""
        self.issues_path: str = os.path.join(beads_dir, "issues.jsonl")
        self.remote_dir: str = os.path.join(state_dir, "remote")
        self.presence_dir: str = os.path.join(state_dir, "droids")
        self.sessions_dir: str = os.path.join(state_dir, "sessions")
        self.queue_dir: str = os.path.join(state_dir, "queue")
        self.engine_path: str = os.path.join(state_dir, "engine")
        """The note that the hive's lines are kept elsewhere than in files."""
        self.droids_dir: str = os.path.join(self.root, ".factory", "droids")
        """The folder that may list who works here."""

    def refuse_if_moved(self) -> None:
        """Raises `Unreadable` if the repository was moved, replaced or deleted since it was found.

        An open hive would otherwise acknowledge writes into folders that it makes anew.
        """
        for path, identity in self._anchors:
            if _identity(path) != identity:
                raise safe_open.moved(path)

    def refuse_if_elsewhere(self) -> None:
        """Raises `StoreError` if the hive's lines are kept in a database, not in files.

        The settings are a file that git replaces: a checkout of an old branch names no database.
        """
        if safe_open.is_there(self.engine_path):
            raise StoreError(
                "this repository's hive is in a database, and .beads/queen.toml says that it is in "
                "files; nothing was read or written",
                hint="if the team went back to files, or to do so: queen hive engine use files; "
                "otherwise restore [engine] in .beads/queen.toml (git checkout, git pull)",
            )

    @property
    def root(self) -> str:
        """The directory that holds `.beads/`."""
        return os.path.dirname(self.beads_dir)

    def ledger_path(self, kind: str) -> str:
        """Returns the tracked file of a kind of record."""
        return os.path.join(self.beads_dir, f"queen_{kind}.jsonl")

    def journal_path(self, kind: str) -> str:
        """Returns the file in which versions up to 0.2 recorded lines of a kind."""
        return os.path.join(self.state_dir, "journal", f"{kind}.jsonl")

    def verdicts_path(self, kind: str) -> str:
        """Returns the disposable file of verdicts for a kind of record."""
        return os.path.join(self.state_dir, f"{kind}.verdicts.json")

    def may_have_waiters(self) -> bool:
        """Returns whether somebody may be waiting in the queue; without one, this costs 3 µs."""
        return bool(safe_open.names_in(self.queue_dir))

    def exists(self) -> bool:
        """Returns whether there is a hive here.

        A checkout of a branch without ledgers removes `.beads/`, but not the memory.
        """
        return os.path.isdir(self.beads_dir) or any(
            os.path.exists(path)
            for path in (self.memory_path, os.path.join(self.state_dir, "journal"))
        )


def discover(
    cwd: str, env: Mapping[str, str], *, beads_dir: str | None = None, must_exist: bool = True
) -> Layout:
    """Returns the layout of the hive that `cwd` belongs to.

    In this order: `beads_dir`, `BEADS_DIR`, the first `.beads/` from `cwd` upward, the top of
    the git working tree. Raises `NoHive` if there is none and one is needed, and
    `Unreadable` if `.beads` is not a directory or leads out of the repository.
    """
    cwd = safe_open.real_path(cwd)
    here = git_tree(cwd)
    beads, how = _find_beads(cwd, env, here, beads_dir)
    beads, how = _follow_redirect(beads, how, env, here)
    if os.path.lexists(beads) and not os.path.isdir(beads):
        raise Unreadable(
            f"{beads} is not a directory",
            hint="move it away, then run: queen init",
            path=beads,
        )
    layout = _layout(beads, how, env, here)
    if must_exist and not layout.exists():
        raise NoHive(f"there is no hive here: {beads} does not exist", hint="queen init")
    named = beads_dir or env.get("BEADS_DIR")
    if must_exist and named and not _looks_like_a_hive(beads):
        raise NoHive(
            f"{beads} is not a hive: it has no {settings_file.FILE_NAME}, no issues and no ledger",
            hint=f"to make it one: {suggested('queen init', beads_dir=beads)}",
        )
    return layout


def governing(
    cwd: str, env: Mapping[str, str], *, beads_dir: str | None = None
) -> Iterator[Layout]:
    """Yields the layouts of every hive that governs files in `cwd`, the nearest first.

    Those are the hive that `discover` finds, which is the one to write to, and every hive above it
    within the repository: a `.beads/` in a folder does not end the leases of the whole. Raises as
    `discover` does.
    """
    nearest = discover(cwd, env, beads_dir=beads_dir)
    yield nearest
    cwd = safe_open.real_path(cwd)
    here = git_tree(cwd)
    if beads_dir or env.get("BEADS_DIR") or here is None:
        return
    seen = {nearest.beads_dir}
    for folder in upward(cwd, here)[1:]:
        at = folder
        if here.linked and here.main_tree is not None:
            at = os.path.join(here.main_tree, os.path.relpath(folder, here.tree))
        if os.path.lexists(os.path.join(at, BEADS)):
            layout = discover(folder, env)
            if layout.beads_dir not in seen:
                seen.add(layout.beads_dir)
                yield layout


def hives_above(folder: str, env: Mapping[str, str]) -> Iterator[Layout]:
    """Yields the layouts of every hive that governs files in `folder`, the nearest first.

    Beside those that `governing` yields, they are the hives of the repositories around it: a
    submodule is part of its superproject. Without any, yields nothing.
    """
    while True:
        try:
            yield from governing(folder, env)
        except NoHive:
            pass
        except Unreadable as error:
            dot_git = error.details.get("path")
            if not isinstance(dot_git, str) or os.path.basename(dot_git) != ".git":
                raise
            # A `.git` that leads nowhere ends no lease of the repository around it.
            folder = os.path.dirname(os.path.dirname(dot_git))
            continue
        above = _superproject(folder)
        if above is None or env.get("BEADS_DIR"):
            return
        folder = above


def _superproject(folder: str) -> str | None:
    """Returns the folder that holds the submodule that `folder` is in, or None."""
    here = git_tree(folder)
    above = os.path.dirname(here.tree) if here is not None else folder
    around = git_tree(above) if here is not None and above != here.tree else None
    if here is None or around is None:
        return None
    modules = os.path.join(around.git_dir, "modules", "")
    if here.git_dir.startswith(modules):
        return above
    # One that git has not absorbed keeps its own git directory.
    own = here.git_dir == os.path.join(here.tree, ".git")
    return above if own and os.path.lexists(os.path.join(around.tree, ".gitmodules")) else None


def working_directory() -> str:
    """Returns the working directory. Raises `NoHive` if it was removed."""
    try:
        return os.getcwd()
    except OSError as error:
        raise NoHive("the working directory no longer exists", hint="cd out of it") from error


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def tree_id_paths(
    state_dir: str, git_dir: str | None, linked: str | bool | None
) -> tuple[str, ...]:
    """Returns where the id of a working tree may be: `docs/format.md`, section "Places"."""
    own_name = f"worktree-{os.path.basename(git_dir)}" if git_dir and linked else "main"
    kept = os.path.join(state_dir, "trees", own_name)
    return (os.path.join(git_dir, "queenbee-tree"), kept) if git_dir else (kept,)


def _looks_like_a_hive(beads: str) -> bool:
    """Returns whether a folder may be a hive: a typo must not fill another one with ledgers."""
    if os.path.basename(beads) == BEADS or not os.path.isdir(beads):
        return True
    known = (settings_file.FILE_NAME, "issues.jsonl", ".queenbee")
    return any(name in known or name.startswith("queen_") for name in os.listdir(beads))


def _find_beads(
    cwd: str, env: Mapping[str, str], here: GitTree | None, beads_dir: str | None
) -> tuple[str, list[str]]:
    if beads_dir:
        return safe_open.real_path(os.path.join(cwd, beads_dir)), ["--beads-dir names it"]
    if env.get("BEADS_DIR"):
        beads = safe_open.real_path(os.path.join(cwd, env["BEADS_DIR"]))
        _refuse_outside(beads, "BEADS_DIR", env, here)
        return beads, ["the environment variable BEADS_DIR names it"]
    folder, how = _nearest(cwd, here)
    beads = os.path.join(folder, BEADS)
    if os.path.islink(beads):
        target = safe_open.real_path(beads)
        _refuse_outside(target, f"the symbolic link {beads}", env, here)
        return target, [how, f"{beads} is a symbolic link to {target}"]
    return beads, [how]


def _nearest(cwd: str, here: GitTree | None) -> tuple[str, str]:
    """Returns the folder that has a `.beads/` or should get one, and how it was found."""
    folders = upward(cwd, here)
    if here is not None and here.main_tree is not None and here.linked:
        # Look in the main worktree: the files of this branch do not matter.
        folders = [os.path.join(here.main_tree, os.path.relpath(f, here.tree)) for f in folders]
        folders = [os.path.normpath(folder) for folder in folders]
    found = next((f for f in folders if os.path.lexists(os.path.join(f, BEADS))), None)
    if here is None and found is None:
        return cwd, "no .beads/ here or above, and no git repository"
    how = "the nearest .beads/, here or above" if found else "the top of the git working tree"
    if here is None:
        how = f"{how}, outside git"
    elif here.linked and here.main_tree is not None:
        how = f"a linked worktree shares the .beads/ of the main one ({here.main_tree})"
    return found or folders[-1], how


def _follow_redirect(
    beads: str, how: list[str], env: Mapping[str, str], here: GitTree | None
) -> tuple[str, list[str]]:
    redirect = os.path.join(beads, "redirect")
    if not os.path.isfile(redirect):
        return beads, how
    target = _first_line(redirect)
    if not target:
        return beads, [*how, f"{redirect} does not name a path"]
    # As Beads does: relative to the directory that holds .beads, and one hop only.
    if "\0" in target:
        raise Unreadable(
            f"{redirect} does not name a path", hint="correct it, or remove it", path=redirect
        )
    beads = safe_open.real_path(os.path.join(os.path.dirname(beads), target))
    if not os.path.isdir(beads):
        raise Unreadable(
            f"{redirect} leads to {beads}, which is not a directory",
            hint="correct the path in it, or remove the file",
            path=redirect,
        )
    _refuse_outside(beads, redirect, env, here)
    return beads, [*how, f"{redirect} leads to {beads}"]


def _layout(beads: str, how: list[str], env: Mapping[str, str], here: GitTree | None) -> Layout:
    settings: Settings | None = None
    home = git_tree(os.path.dirname(beads))
    if home is not None:
        _refuse_sparse(beads, home)
    own = os.path.join(beads, ".queenbee")
    shared = own if home is None else _in_git(_STATE, beads, home)
    try:
        settings = settings_file.load(beads, env, shared)
    except Unreadable as error:
        if not os.path.isdir(beads):
            raise
        problem = error
    state_dir = own
    if home is None:
        how = [*how, "outside git, the state is kept in .beads/.queenbee/"]
    elif _keeps_state_in_beads(beads, home, settings):
        _refuse_two_states(home)
        _refuse_tracked(own, home)
        how = [*how, f"as {machine.CHOOSE} says, the state is kept in .beads/.queenbee/"]
    else:
        state_dir = shared
    if settings is None:
        settings = settings_file.instead(state_dir, env, problem)
    else:
        settings_file.keep_good(state_dir, settings)
    return Layout(beads, state_dir, settings, how, home=home, here=here)


def _keeps_state_in_beads(beads: str, home: GitTree, settings: Settings | None) -> bool:
    """Returns whether this machine chose that. Raises `Unreadable` if only the clone did."""
    chosen = machine.chosen_state(home.common_dir)
    if chosen is None and settings is not None and settings.state == "beads":
        path = os.path.join(beads, settings_file.FILE_NAME)
        raise Unreadable(
            f'{path} says state = "beads", which only this machine may choose',
            hint=f"to agree: {machine.CHOOSE} beads; to keep the state in the git directory: "
            f"{machine.CHOOSE} git",
            path=path,
            setting="state",
        )
    return chosen == "beads"


def _refuse_two_states(home: GitTree) -> None:
    """Raises `Unreadable` if another worktree has its own state: two locks let two droids win."""
    if not home.linked and home.common_dir == os.path.join(home.tree, ".git"):
        return  # The linked worktrees of this one use its .beads/.
    worktrees = os.path.join(home.common_dir, "worktrees")
    if home.linked or (os.path.isdir(worktrees) and os.listdir(worktrees)):
        raise Unreadable(
            f"the state cannot be in .beads/: {home.common_dir} has no main worktree beside it, so "
            "each worktree has a .beads/ of its own",
            hint=f"{machine.CHOOSE} git",
            path=home.common_dir,
        )


def _refuse_sparse(beads: str, home: GitTree) -> None:
    """Raises `Unreadable` if git tracks a hive that a sparse checkout leaves out: without its
    settings and issues, it would be another one, and what it gets would be half of it.
    """
    if not safe_open.is_there(os.path.join(home.git_dir, "info", "sparse-checkout")):
        return
    if not config_says(home.common_dir, "sparsecheckout", home.git_dir):
        return
    name = os.path.relpath(beads, home.tree)
    wanted = [f"{name}/{each}\0" for each in (settings_file.FILE_NAME, "issues.jsonl")]
    if not os.path.isdir(beads):
        wanted = [f"{name}/"]
    for each in wanted:
        path = each.rstrip("/\0")
        there = os.path.join(home.tree, path)
        if not safe_open.is_there(there) and name_in_index(home.git_dir, each) is not None:
            is_cone = config_says(home.common_dir, "sparsecheckoutcone", home.git_dir)
            lacking = name if is_cone else path
            add = f"sparse-checkout add {shell_word(lacking)}"
            raise Unreadable(
                f"the sparse checkout of {home.tree} leaves out {there}",
                hint=f"{suggested('git -C', home.tree)} {add}",
                path=there,
            )


def _refuse_tracked(state_dir: str, home: GitTree) -> None:
    found = name_in_index(home.git_dir, f"{os.path.relpath(state_dir, home.tree)}/")
    if found is not None:
        raise Unreadable(
            f"git tracks {found}, but the state of a hive belongs to one machine",
            hint=f"{suggested('git rm -r --cached', os.path.dirname(found))}, then look into it",
            path=os.path.join(home.tree, found),
        )


def _in_git(folder: str, beads: str, home: GitTree) -> str:
    """Returns the directory inside the git directory for what belongs to the hive at `beads`.

    A hive that is not at the top of its tree has its own directory: two hives must never share
    a memory.
    """
    shared = os.path.join(home.common_dir, folder)
    name = os.path.relpath(beads, home.tree)
    return shared if name == BEADS else os.path.join(shared, "at", name)


def _refuse_outside(beads: str, what: str, env: Mapping[str, str], here: GitTree | None) -> None:
    if here is None or env.get(OUTSIDE) == "1":
        return
    trees = [here.tree, *([here.main_tree] if here.main_tree else [])]
    there = git_tree(os.path.dirname(beads))
    if there is not None and there.common_dir == here.common_dir:
        trees.append(there.tree)
    around = [each for each in trees if os.path.commonpath([beads, each]) == each]
    if around:
        _refuse_git_dir(beads, max(around, key=len), what, here)
        return
    raise Unreadable(
        f"{what} leads to {beads}, outside this repository",
        hint=f"if that is intended, set {OUTSIDE}=1",
        path=beads,
    )


def _refuse_git_dir(beads: str, tree: str, what: str, here: GitTree) -> None:
    """Refuses a hive that is in a git directory, or has it: clients would be allowed to write hooks
    there. A worktree may be in one.
    """
    is_within = ".git" in os.path.relpath(beads, tree).lower().split(os.sep)
    for git_dir in (here.common_dir, here.git_dir):
        above = os.path.commonpath([beads, git_dir])
        # A worktree in a git directory is none of its own.
        is_within |= above == beads or (above == git_dir and len(git_dir) > len(tree))
    if is_within:
        raise Unreadable(
            f"{what} leads to {beads}, where git keeps its own files",
            hint=f"name another folder in it, or remove it; if that is intended, set {OUTSIDE}=1",
            path=beads,
        )


def _first_line(path: str) -> str:
    """Returns the first line that is neither blank nor a comment."""
    lines = whole(path).split("\n")
    return next((line.strip() for line in lines if line.strip() and line.lstrip()[0] != "#"), "")


def note_engine(layout: Layout, hive: str) -> None:
    """Notes that the hive's lines are in a database, under this name."""
    safe_open.write(layout.engine_path, f"postgres {hive}\n".encode())


def noted_hive(layout: Layout) -> str:
    """Returns the name of the hive in the database, or "" if none was noted."""
    try:
        kind, _, hive = safe_open.read(layout.engine_path, 4096).decode().strip().partition(" ")
    except (OSError, Unreadable, ValueError):
        return ""
    return hive if kind == "postgres" else ""
