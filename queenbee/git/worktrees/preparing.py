"""Makes a worktree usable: copies files that git ignores, and runs the command of the set-up there.

In this order, under a lock of the worktree:

1. The stamp goes: a call that is killed leaves none, and the next one begins anew.
2. What the command of such a call has started is ended.
3. The copies. What is there stays.
4. The command, if it has not run yet with this text and these lock files.
5. The stamp: the hash of both, as they were before the command ran.

A command that came from elsewhere runs only after somebody here has seen it. ADR 0041, ADR 0046.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queenbee._hashing import sha256
from queenbee.checks.consent import Consent, SeenCommand, typed_command
from queenbee.checks.noted_process import GRACE_S, end_left, forget, noted_line
from queenbee.checks.processes import Interrupts, Program, run_process
from queenbee.core.text import mentioned, one_line, quotation, some, suggested
from queenbee.core.timestamps import format_duration
from queenbee.errors import Busy, Conflict, ExternalFailure, NotFound, QueenError
from queenbee.git.run import OWNERS, as_the_user, environment_of_user, git, settings
from queenbee.git.trees.elsewhere import refuse_elsewhere
from queenbee.git.trees.submodules import links, repository_of
from queenbee.git.worktrees.copying import copies, copy, included, select
from queenbee.git.worktrees.slots import known_variables, variables
from queenbee.store import safe_open
from queenbee.store.droids.identity import VARIABLES
from queenbee.store.git_files.host_tokens import for_a_landing
from queenbee.store.git_trees import config_files, config_value, git_tree, owners_environment
from queenbee.store.lock import LongLock
from queenbee.store.trust import Trust, of_setting
from queenbee.store.whole_files import forget_old, keep, recall, take_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from queenbee.checks.processes import ProcessResult
    from queenbee.store.git_trees import GitTree
    from queenbee.store.layout import Layout
    from queenbee.store.trust import Proposal

    Ask = Callable[[Sequence[Proposal]], bool | None]

SETTING = "worktree.setup"
MACHINE = "queenbee.setup"
"""The setting of git that holds the command of a repository on this machine, in place of ours."""
LOCK_FILES = (
    "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock",
    "bun.lockb", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt",
    "Gemfile.lock", "composer.lock", "mix.lock", ".gitmodules",
)  # fmt: skip
"""What says which dependencies a tree needs, of the package managers that are known."""
_STAMP, _LOCK, _PROCESS = "queenbee-setup", "queenbee-setup.lock", "queenbee-setup.process"
_AGAIN: dict[str, str] = {}
_ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "POETRY_ACTIVE", "INIT_CWD")
"""What says that something of another worktree is in use: `poetry install` would install there."""
_LOCK_FILE_BYTES = 1 << 26
_COPIED, _MOST_COPIED_BYTES = "queenbee-copied", 1 << 24
_UNREADABLE = "unreadable"
_LEAST_BYTES = 16
"""What is shorter is equal by chance."""
_LOGS = "setup"
_MOST_LOGS, _LOGS_KEPT_S = 64, 30 * 86400.0
_LAST_LINES, _LINE_CHARS = 10, 200
_TELL_EVERY_S = 10
_SHOWN = 5


class SetupFailed(ExternalFailure):
    """The set-up of a worktree failed; `output` has its last lines, `log` names the file with the
    rest, and `worktree` is where.
    """

    code = "setup_failed"
    worktree: str = ""
    output: str = ""
    log: str | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done in a worktree."""

    worktree: str
    command: str
    """Empty if none is set."""
    runs: bool
    """Whether the command has not run there yet, with these lock files."""
    copies: Sequence[str]
    left_out: Sequence[str]
    """Why files are not copied, in sentences."""
    variables: Mapping[str, str]


def seen_setup(layout: Layout, ask: Ask | None = None) -> SeenCommand | None:
    """Returns the command of the set-up, or None if none is set. Raises `Untrusted` if nobody on
    this machine has seen it, and `ask` does not let it run.
    """
    own = _machine_command(layout)
    if own:
        return typed_command(own)
    said = layout.settings.worktree_setup
    Consent(Trust(layout), ask).require(of_setting(SETTING, said))
    return typed_command(said) if said else None


def prepare(  # noqa: PLR0913 - by name
    layout: Layout,
    tree: str,
    *,
    env: Mapping[str, str],
    tell: Callable[[str], None],
    ask: Ask | None = None,
    interrupts: Interrupts | None = None,
    again: bool = False,
) -> None:
    """Makes the worktree at `tree` usable, whatever the last one who tried has left. What is done
    already is not done again, unless `again` says so.

    Safe for processes: the second waits for the first. Raises `SetupFailed`, `Untrusted`, and
    `KeyboardInterrupt` after a request to end; then the next call begins anew.
    """
    refuse_elsewhere(tree)
    place = _Place(layout, tree)
    place.get_submodules(tell)
    if place.is_prepared and not again:
        return
    command = seen_setup(layout, ask)
    wait_s = layout.settings.worktree_setup_timeout_s + GRACE_S
    with LongLock(place.file(_LOCK), holder="queen worktree setup", timeout_s=wait_s):
        if place.is_prepared and not again:  # By somebody else, meanwhile.
            return
        stamp = place.stamp
        before = recall(place.file(_STAMP), 1 << 16)
        with suppress(FileNotFoundError):
            safe_open.unlink(place.file(_STAMP))
        end_left(place.file(_PROCESS))
        place.copy(tell)
        is_done = isinstance(before, dict) and before.get("command") == stamp["command"]
        if command is not None and (again or not is_done):
            with interrupts or Interrupts() as requests:
                place.run(command, env, tell, requests)
        keep(place.file(_STAMP), stamp)


def end_setup(tree: str, git_dir: str) -> None:
    """Ends the set-up that a killed call has left in a worktree. Raises `Conflict` if one is under
    way.
    """
    lock = LongLock(os.path.join(git_dir, _LOCK), holder="queen worktree remove", timeout_s=0)
    try:
        with lock:
            end_left(os.path.join(git_dir, _PROCESS))
    except Busy as error:
        note = error.details.get("holder")
        known = note if isinstance(note, dict) else {}
        who = f"{known.get('holder', 'somebody')} (process {known.get('pid', 'unknown')})"
        raise Conflict(
            f"{who} is at work in {mentioned(tree)}; nothing was removed",
            hint="the same again once that has ended",
        ) from error


def is_prepared(layout: Layout, tree: str) -> bool:
    """Returns whether `prepare` would do nothing: this reads a few files."""
    return _Place(layout, tree).is_prepared


def prepare_again(git_dir: str) -> None:
    """Has the next set-up of a worktree run, whatever it rests on, also one that only gets its
    submodules.
    """
    with suppress(FileNotFoundError):
        safe_open.unlink(os.path.join(git_dir, _STAMP))
    keep(os.path.join(git_dir, _STAMP), _AGAIN)


def setup_key(layout: Layout) -> str:
    """Returns a text that is another one when the settings of the set-up are."""
    said = layout.settings
    command = _machine_command(layout) or said.worktree_setup
    return _hash(json.dumps([command, said.worktree_copy, said.worktree_stamp]).encode())


def planned(layout: Layout, tree: str, *, again: bool = False) -> Plan:
    """Returns what `prepare` would do. Raises `ExternalFailure` if git fails."""
    place = _Place(layout, tree)
    main = place.main
    found = select(main, place.here.tree, place.patterns) if main is not None else None
    before = recall(place.file(_STAMP), 1 << 16)
    is_done = isinstance(before, dict) and before.get("command") == place.stamp["command"]
    return Plan(
        place.here.tree,
        place.command,
        bool(place.command) and (again or not is_done),
        found.files if found is not None else [],
        found.left_out if found is not None else [],
        known_variables(layout, tree),
    )


def may_have_copies(layout: Layout, tree: str) -> bool:
    """Returns whether anything was copied in this repository, or would be."""
    place = _Place(layout, tree)
    return bool(place.patterns or place.copies())


def copied(
    layout: Layout, tree: str, paths: Sequence[str], changed: Iterable[str] = ()
) -> list[str]:
    """Returns those of new files of a worktree that were copied into it, or would be by now, also
    under other names; and those of changed files that have the content of one. Raises `NotFound`
    outside of git, and `ExternalFailure`.
    """
    place = _Place(layout, tree)
    known = place.copies().intersection(paths) | place.renamed({*paths, *changed})
    if place.main is not None and place.patterns:
        known.update(copies(place.main, place.patterns, paths))
    return sorted(known)


class _Place:
    """A worktree, and what is to be done there."""

    def __init__(self, layout: Layout, tree: str) -> None:
        here = git_tree(tree)
        if here is None:
            raise NotFound(f"{tree} is not in git", hint="queen worktree list")
        self._layout = layout
        self.here: GitTree = here
        self.main = here.main_tree if here.linked else None
        """Where files are copied from, or None."""
        self.command = _machine_command(layout) or layout.settings.worktree_setup
        self.patterns = self._patterns()
        self._copied = os.path.join(here.common_dir, _COPIED)
        """The folder that says what was copied into each worktree, also into those that are gone:
        branches go from one worktree to another.
        """

    def file(self, name: str) -> str:
        """Returns the path of a file of ours, in the worktree's own git directory."""
        return os.path.join(self.here.git_dir, name)

    @property
    def is_prepared(self) -> bool:
        """Whether nothing is to be done."""
        before = recall(self.file(_STAMP), 1 << 16)
        if not self.command and not self.patterns:
            return bool(before != _AGAIN)
        return bool(before == self.stamp)

    @property
    def stamp(self) -> dict[str, str]:
        """What the set-up rests on: the command with the lock files, and the patterns."""
        files = [*(self._layout.settings.worktree_stamp or LOCK_FILES)]
        held = [[name, _hash_of(self.here.tree, name)] for name in files] if self.command else []
        modules = self._submodules() if any(name == ".gitmodules" and x for name, x in held) else ""
        return {
            "command": _hash(json.dumps([self.command, held, modules]).encode()),
            "copies": _hash(json.dumps(self.patterns).encode()),
        }

    def copies(self) -> set[str]:
        """Returns the files that were copied in this repository."""
        paths = (os.path.join(self._copied, each) for each in safe_open.names_in(self._copied))
        said = (recall(path, _MOST_COPIED_BYTES) for path in paths)
        return {str(path) for each in said if isinstance(each, list) for path in each}

    def renamed(self, paths: Iterable[str]) -> set[str]:
        """Returns those of some files that have the content of one that was copied."""
        tree, tops = self.here.tree, (self.here.tree, self.main or self.here.tree)
        sizes = {path: size for path in paths if (size := _size_of(tree, path)) >= _LEAST_BYTES}
        theirs = {
            _hash_of(top, each)
            for each in (self.copies() if sizes else ())
            for top in tops
            if _size_of(top, each) in sizes.values()
        }
        theirs -= {"", _UNREADABLE}
        return {path for path in sizes if theirs and _hash_of(tree, path) in theirs}

    def _remember_copies(self, files: Sequence[str]) -> None:
        path = os.path.join(self._copied, os.path.basename(self.here.git_dir))
        before = recall(path, _MOST_COPIED_BYTES)
        safe_open.make_folder(self._copied)
        keep(path, sorted({*files, *map(str, before if isinstance(before, list) else ())}))

    def get_submodules(self, tell: Callable[[str], None]) -> None:
        """Has git fetch the submodules that the main worktree has and this one lacks; says which
        are missing if it cannot.
        """
        lacking = [
            each
            for each in (links(self.here.tree) if self.main is not None else ())
            if repository_of(os.path.join(self.here.tree, each)) is None
            and repository_of(os.path.join(str(self.main), each)) is not None
        ]
        if not lacking:
            return
        how = ("submodule", "--quiet", "update", "--init", "--recursive", "--")
        try:
            as_the_user(*how, *(f"./{each}" for each in lacking), cwd=self.here.tree)
            tell(f"fetched the submodules {some([mentioned(each) for each in lacking], _SHOWN)}")
        except ExternalFailure as error:
            way = f"{suggested('git -C', self.here.tree)} submodule update --init --recursive"
            said = one_line(error.message, _LINE_CHARS)
            tell(f"its submodules are not there: {said}; try: {way}")

    def copy(self, tell: Callable[[str], None]) -> None:
        """Copies what is missing, and says what is not copied."""
        if self.main is None or not self.patterns:
            return
        found = select(self.main, self.here.tree, self.patterns)
        self._remember_copies(found.files)
        problems = [*found.left_out, *copy(self.main, self.here.tree, found.files)]
        if found.files:
            tell(f"copied {some([mentioned(each) for each in found.files], _SHOWN)}")
        if problems:
            tell(f"not copied: {some(problems, _SHOWN, '; ')}")

    def run(
        self,
        command: SeenCommand,
        env: Mapping[str, str],
        tell: Callable[[str], None],
        interrupts: Interrupts,
    ) -> None:
        """Runs the command at the top of the worktree. Raises `SetupFailed`."""
        tree, settings_ = self.here.tree, self._layout.settings
        told = [0]

        def on_tick(spent_s: float, last: str) -> None:
            if spent_s >= told[0] + _TELL_EVERY_S:
                told[0] = int(spent_s)
                text = one_line(last, _LINE_CHARS)
                tell(f"still at the set-up, {format_duration(spent_s)}: {text}")

        tell(f"setting up {mentioned(tree)}: {one_line(command, _LINE_CHARS)}")
        note = self.file(_PROCESS)
        limit_s = settings_.worktree_setup_timeout_s
        ran = run_process(
            Program(noted_line(command, note), tree, self._environment(env), limit_s),
            on_tick=on_tick,
            interrupts=interrupts,
        )
        forget(note)
        log = self._logged(ran)
        if ran.ended == "interrupted":
            raise KeyboardInterrupt("interrupted while setting up")
        if ran.exit_code != 0:
            raise _failed(ran, tree, command, log, tell)
        tell(f"set up in {format_duration(ran.duration_s)}")

    def _patterns(self) -> list[str]:
        if self.main is None:
            return []
        said = self._layout.settings.worktree_copy
        return [*said, *included(self.main), *_hooks_pattern(self.here.common_dir)]

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Returns what a check gets, and nothing that leads to another worktree's packages."""
        given = for_a_landing(environment_of_user(env), self.here.common_dir)
        left_out = {*VARIABLES, *_ACTIVE}
        own = {name: value for name, value in given.items() if name not in left_out}
        return {**own, **variables(self._layout, self.here.tree)}

    def _logged(self, ran: ProcessResult) -> str:
        """Keeps what the command printed, at most `CAP_BYTES`, and returns where."""
        folder = os.path.join(self._layout.state_dir, _LOGS)
        path = os.path.join(folder, f"{os.path.basename(self.here.tree)}.log")
        with suppress(OSError, QueenError):
            safe_open.make_folder(folder)
            forget_old(folder, most=_MOST_LOGS, kept_s=_LOGS_KEPT_S)
            take_name(path, ran.stdout.data() or ran.problem.encode(), durable=False)
        return path

    def _submodules(self) -> str:
        """Returns at which commits this tree has its submodules."""
        with suppress(ExternalFailure):
            listed = git("ls-files", "--stage", "-z", cwd=self.here.tree, repository={})
            links = [each for each in listed.split(b"\0") if each.startswith(b"160000")]
            return _hash(b"\0".join(links))
        return ""


def _failed(
    ran: ProcessResult, tree: str, command: str, log: str, tell: Callable[[str], None]
) -> SetupFailed:
    """Tells the last lines, and returns the refusal."""
    lines = [each.rstrip() for each in (ran.problem or ran.stdout.text()).splitlines()]
    last = [one_line(each, _LINE_CHARS) for each in lines if each.strip()][-_LAST_LINES:]
    for each in last:
        tell(f"  {each}")
    after = format_duration(ran.duration_s)
    why = f"timed out after {after}" if ran.ended == "timed_out" else f"status {ran.exit_code}"
    said = f", after {quotation(last[-1], _LINE_CHARS)}" if last else ""
    return SetupFailed(
        f"the set-up of {mentioned(tree)} failed: {quotation(command, _LINE_CHARS)}: {why}{said}",
        hint=f"{suggested('cd', tree)} && queen worktree setup; all it printed is in {log}",
        program=command,
        status=ran.exit_code,
        output="\n".join(last),
        log=log,
        worktree=tree,
    )


def _machine_command(layout: Layout) -> str:
    """Returns the command that the owner of this machine has set; "" if there is none."""
    section, _, name = MACHINE.partition(".")
    files = config_files(layout.common_dir, owners_environment(os.environ))
    # Mostly there is none, and git need not be asked.
    if all(config_value(path, section, name) is None for path in files):
        return ""
    asked = settings(rf"^{section}\.{name}$", cwd=layout.tree)
    said = [value for scope, _, value in asked if scope in OWNERS]
    return said[-1] if said else ""


def _hooks_pattern(common_dir: str) -> list[str]:
    """Returns a pattern for the folder of git's hooks, if it is in the tree. husky has one that git
    ignores: in a new worktree, no hook would run.
    """
    files = config_files(common_dir, os.environ)
    found = (config_value(path, "core", "hookspath") for path in files)
    said = next((each for each in found if each is not None), "")
    folder = os.path.normpath(said)
    if not said or folder.startswith(("/", "~", os.pardir)) or folder == os.curdir:
        return []
    plain = "".join(f"\\{char}" if char in "\\*?[]!# " else char for char in folder)
    return [f"/{plain}/"]


def _size_of(tree: str, name: str) -> int:
    try:
        return os.lstat(os.path.join(tree, name)).st_size
    except OSError:
        return 0


def _hash_of(tree: str, name: str) -> str:
    """Returns the hash of a file; "" if there is none, and a word for what is no file."""
    path = os.path.normpath(os.path.join(tree, name))
    if not path.startswith(tree + os.sep):
        return ""
    try:
        return _hash(safe_open.read(path, _LOCK_FILE_BYTES))
    except FileNotFoundError:
        return ""
    except (OSError, QueenError):
        return _UNREADABLE


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
