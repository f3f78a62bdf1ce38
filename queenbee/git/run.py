"""Runs git, in two ways; the landing's commands and merges use the second.

`git`, `line` and `network` are for repositories that nobody vouches for. A repository's config can
name programs that git runs for a mere question, and whoever unpacks somebody's archive gets their
config with it: git is called so that it runs none of them, and no hook, which could stage more in
an index that is to land. In a hook, `GIT_DIR` and `GIT_INDEX_FILE` name the repository and the
index, so the environment is passed on.

`as_the_user` and `user_git` run git as the user would: with their hooks, filters and settings. What
these run may be anybody's code, so only `network` has the tokens of code hosts.

In no way does git take one object for another: what it shows here is what every clone gets.

Each git has a session of its own, without a terminal to ask at, and what it started ends with it.
None is started with Python's `subprocess`: importing that takes longer than most calls.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from queenbee.core.command_lines import git_line, no_dash
from queenbee.core.text import shell_word
from queenbee.errors import ExternalFailure, Unreadable
from queenbee.store.git_files.host_tokens import AGENT, NAMES, without_tokens
from queenbee.store.git_trees import git_tree, owners_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from queenbee.core.command_lines import CommandLine

QUIET = (
    "--no-pager",
    # Without this, `status` writes the index, and git then runs the hook `post-index-change`.
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "diff.external="),
    *("-c", "status.submoduleSummary=false"),
)
_AS_IT_IS = {
    # Whoever uses `git replace` sees other files than what is in the commit, and so would a check.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # There is no such file: of one that is empty, git says that it is deprecated.
    "GIT_GRAFT_FILE": os.path.join(os.devnull, "none"),
}
"""Has git read each object, and not what stands in its place in this clone."""
_ENVIRONMENT = {
    **_AS_IT_IS,
    # A partial clone fetches what it lacks, by any command that its config names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_PROTOCOLS = "file:git:http:https:ssh"
UPKEEP_LATER = {"gc.auto": "0", "maintenance.auto": "false"}
"""For what git need not tidy up after: whoever commits work does that."""
_NO_HOOKS = {"core.hooksPath": os.devnull, **UPKEEP_LATER}
_ABOUT_HOOKS = frozenset({"config", "rev-parse"})
"""What says where the hooks are, and runs none."""
_OF_A_CALLER = frozenset({
    "GIT_CONFIG",
    "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE",
    "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
    "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE",
    "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
})  # fmt: skip
"""What a hook or an alias says of its own repository."""
_SIGNED = frozenset({"commit", "commit-tree", "merge", "rebase"})
_SIGNS_NOTHING = frozenset({"--abort", "--ff-only", "--quit"})
_LAST_CHARS = 1_000
"""So much of what git said is in an error."""
_KILL, _PIPE, _TERM = 9, 13, 15
"""The numbers of signals: the module `signal` loads `enum`."""

TIMED_OUT = 124
_GRACE_S = 2.0
_LONGEST = 240
"""So many times its timeout git takes at most: a remote could say something for ever."""
_MOST_SAID_BYTES = 2**24
"""What a remote says is kept in memory; its progress is a hundred bytes a second."""
_TOLD_BYTES = 2**12
"""The last of what it says tells how much of a transfer is on the way."""
_SLOWEST_BYTES_S = 2**14
_FIRST_LOOK_S, _STILL_S = 0.5, 2.0
"""A git that sleeps so long is stuck: while it waits for a lock, it wakes every second."""
_BUFFERED_BYTES = 2**22
"""So much of what git wrote can still be on the way, unseen: in buffers of git, ssh and the kernel.
Linux lets one connection have 4 MiB by default."""


class NotTrusted(ExternalFailure):
    """Git refuses to work in a repository that belongs to another user."""

    code = "external"


class TooSlow(ExternalFailure):
    """Git did not answer in time, and was ended."""

    code = "external"


def git(
    *arguments: str,
    cwd: str,
    stdin: bytes = b"",
    config: Mapping[str, str] | None = None,
    repository: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> bytes:
    """Returns what git prints. Raises `ExternalFailure` if it fails or is not installed.

    `config` overrides the repository's own. `repository` holds the variables that name the
    repository, tree and index that are meant, in place of a calling hook's. After `limit_s`, or as
    soon as git does nothing any more, it is ended, and `TooSlow` raised: it would wait for ever for
    a FIFO in place of a `.gitignore`.
    """
    hooks = {} if arguments[0] in _ABOUT_HOOKS else {"core.hooksPath": os.devnull}
    env = quiet_environment({**hooks, **(config or {})}, repository)
    try:
        status, out, err = _run((*QUIET, *arguments), cwd, env, _OfFiles(limit_s), stdin)
    except _GivenUp as reason:
        raise TooSlow(f"git did not answer in {cwd}: {reason}", program="git") from None
    if status != 0:
        raise _failure(arguments[0], cwd, status, err)
    return out


def line(
    *arguments: str,
    cwd: str,
    repository: Mapping[str, str] | None = None,
    limit_s: float | None = None,
) -> str | None:
    """Returns the one line that git prints, or None if it fails or prints nothing.

    Raises `NotTrusted` and `TooSlow`, which are no answers to any question.
    """
    try:
        said = git(*arguments, cwd=cwd, repository=repository, limit_s=limit_s)
        return os.fsdecode(said).rstrip("\n") or None
    except (NotTrusted, TooSlow):
        raise
    except ExternalFailure:
        return None


def names_in(listed: bytes) -> list[str]:
    """Returns the names in what git lists with `-z`."""
    return [os.fsdecode(each) for each in listed.split(b"\0") if each]


OWNERS = ("system", "global", "local")
"""The scopes of settings that count where the owner of a machine decides: no variable, no `git -c`,
and no settings of one worktree.
"""


def settings(wanted: str, *, cwd: str) -> list[tuple[str, str, str]]:
    """Returns the settings of git whose names match a pattern, in git's order, each with its scope,
    such as `local` or `command`. In an agent's environment, no variable adds or hides one. Raises
    `ExternalFailure`.
    """
    env = owners_environment(quiet_environment(None, {}))
    how = ("config", "-z", "--show-scope", "--get-regexp", wanted)
    status, out, err = _run((*QUIET, *how), cwd, env, _Patience())
    if status > 1:  # 1: there are none.
        raise _failure("config", cwd, status, err)
    said = [os.fsdecode(each) for each in out.split(b"\0")]
    pairs = zip(said[::2], (each.partition("\n") for each in said[1::2]), strict=False)
    return [(scope, name, value) for scope, (name, _, value) in pairs]


def network(
    *arguments: str,
    cwd: str,
    timeout_s: float,
    most_s: float = float("inf"),
    stdin: bytes = b"",
    config: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Returns the exit status of a git that may talk to a remote, and its two outputs, without
    what they say of its progress.

    It runs what the user's config names for that, as `git fetch` does, but no hook, and asks
    nobody. Only protocols that carry data are allowed: `ext::` would run a command that a remote's
    address names. The status is 124 if it said nothing for `timeout_s`, or took longer than
    `most_s`: with `--progress`, a slow transfer goes on. Raises `NotTrusted`.
    """
    env = quiet_environment({**_NO_HOOKS, **(config or {})}, {})
    del env["GIT_NO_LAZY_FETCH"]
    env |= {name: value for name, value in os.environ.items() if name in NAMES}
    env |= {"GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL", _PROTOCOLS)}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    patience = _Patience(min(most_s, _LONGEST * timeout_s), timeout_s)
    try:
        status, out, err = _run((*QUIET, *arguments), cwd, env, patience, stdin)
    except _GivenUp as reason:
        return TIMED_OUT, "", str(reason)
    if status != 0 and b"safe.directory" in err:
        raise _failure(arguments[0], cwd, status, err)
    return status, out.decode(errors="replace"), without_progress(err)


def user_git(
    *arguments: str,
    cwd: str,
    repository: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
    on_tick: Callable[[float], None] | None = None,
) -> tuple[int, bytes, bytes]:
    """Runs git as the user would, with their hooks, filters and settings, in the worktree at `cwd`;
    returns its exit status and its two outputs. Raises `ExternalFailure` if it is not installed.

    `repository` holds variables as those of `git`, such as another index, and `config` overrides
    their settings. `on_tick` is called about once a second, with the seconds that git has taken.
    """
    # Else git's look into a submodule writes the index there, and that runs a hook of its settings.
    looks = {"GIT_OPTIONAL_LOCKS": "0"}
    env = {**environment_of_hooks(arguments, cwd), **looks, **(repository or {})}
    said = {"core.fsmonitor": "false"} | dict(config or {})
    patience = _Patience() if on_tick is None else _Watched(on_tick)
    return _run(arguments, cwd, configured(env, said), patience)


def is_ancestor(before: str, after: str, *, cwd: str) -> bool:
    """Returns whether a commit comes before another, or is the same; False for what is none. A git
    that fails is asked once more: it need not be for want of a commit.
    """
    asked = ("merge-base", "--is-ancestor", no_dash(before), no_dash(after))
    status = user_git(*asked, cwd=cwd)[0]
    return (status if status in (0, 1) else user_git(*asked, cwd=cwd)[0]) == 0


def as_the_user(
    *arguments: str,
    cwd: str,
    repository: Mapping[str, str] | None = None,
    config: Mapping[str, str] | None = None,
) -> bytes:
    """Runs git as `user_git` does; returns what it said besides its answer, such as warnings.

    Raises `ExternalFailure`, which ends with what git said.
    """
    status, out, err = user_git(*arguments, cwd=cwd, repository=repository, config=config)
    if status != 0:
        said = os.fsdecode(out + err).strip()[-_LAST_CHARS:]
        raise ExternalFailure(
            f"git {arguments[0]} failed: {said or status}", program="git", status=status
        )
    return err


def environment_of_user(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns an environment, by default ours, without what a calling hook or alias says of its own
    repository.
    """
    given = os.environ if env is None else env
    env = {name: value for name, value in given.items() if name not in _OF_A_CALLER}
    return {**env, **_AS_IT_IS}


def environment_of_hooks(arguments: Sequence[str], cwd: str) -> dict[str, str]:
    """Returns our environment for a git that may run hooks and filters: without tokens of hosts;
    with an ssh-agent only if it signs with a key of one; and with what `queenbee.env` names.
    """
    env, here = environment_of_user(), None
    with suppress(Unreadable):  # Git says so.
        here = git_tree(cwd)
    given = without_tokens(env, here.common_dir if here is not None else cwd)
    agent = {name: env[name] for name in AGENT & env.keys()}
    if agent.keys() - given.keys() and _signs_by_ssh(arguments, cwd):
        given |= agent
    return given


def _signs_by_ssh(arguments: Sequence[str], cwd: str) -> bool:
    if _SIGNED.isdisjoint(arguments[:1]) or not _SIGNS_NOTHING.isdisjoint(arguments):
        return False
    ask = partial(line, "config", cwd=cwd, repository={})
    return ask("gpg.format") == "ssh" and ask("--type=bool", "commit.gpgSign") == "true"


_TEXT_MERGE = "git merge-file -q %A %O %B"
"""In place of each merge driver: git's own merge. Without a command, git would fail."""


def without_programs(
    cwd: str, repository: Mapping[str, str] | None = None, *, limit_s: float | None = None
) -> dict[str, str]:
    """Returns the config for commands that read files of the tree and merge them, so that none of
    the programs runs that the repository's config names as filters or merge drivers.
    """
    ask = ("config", "--null", "--name-only", "--get-regexp", r"^(filter|merge)\.")
    try:
        named = names_in(git(*ask, cwd=cwd, repository=repository, limit_s=limit_s))
    except ExternalFailure as error:
        if error.details.get("status") != 1:  # 1: there are none.
            raise
        named = []
    config: dict[str, str] = {}
    for driver in dict.fromkeys(key.rpartition(".")[0] for key in named):
        if driver.startswith("filter."):
            values = {"clean": "", "smudge": "", "process": "", "required": "false"}
            config |= {f"{driver}.{key}": value for key, value in values.items()}
        elif driver.startswith("merge."):
            config[f"{driver}.driver"] = _TEXT_MERGE
    return config


def without_progress(said: bytes) -> str:
    """Returns what git said without its progress, which ends in a carriage return or in "done."."""
    lines = (line.rpartition("\r")[2] for line in said.decode(errors="replace").split("\n"))
    return "\n".join(line for line in lines if not line.rstrip().endswith(", done."))


class _GivenUp(Exception):
    """Git takes too long, or a remote says more than anybody has to say."""


class _Patience:
    """How long a git is waited for: `limit_s` in all, and `silent_s` as long as it says nothing.

    Of one that may be silent only for so long, what it says is bounded, too.
    """

    pid: int
    """That of the git."""

    def __init__(self, limit_s: float | None = None, silent_s: float | None = None) -> None:
        self._limit_s = limit_s
        self._timeout_s = self._silent_s = silent_s
        self._began_s = self._heard_s = time.monotonic()
        self._said, self._last = 0, b""

    def hear(self, data: bytes) -> None:
        """Takes note of what git said. Raises `_GivenUp` if that is too much."""
        self._said += len(data)
        self._heard_s = time.monotonic()
        if self._timeout_s is not None:
            self._last = (self._last + data)[-_TOLD_BYTES:]
            self._silent_s = self._timeout_s + _on_the_way_s(self._last)
            if self._said > _MOST_SAID_BYTES:
                raise _GivenUp("it says too much")

    def left_s(self) -> float | None:
        """Returns how long to wait for more; None for as long as it takes. Raises `_GivenUp`."""
        now_s = time.monotonic()
        waits = [
            (since_s + most_s - now_s, most_s)
            for since_s, most_s in (
                (self._began_s, self._limit_s),
                (self._heard_s, self._silent_s),
            )
            if most_s is not None
        ]
        left_s, most_s = min(waits, default=(None, 0.0))
        if left_s is not None and left_s <= 0:
            raise _GivenUp(f"no answer within {most_s:g} s")
        return left_s


class _OfFiles(_Patience):
    """Waits for a git that only reads and writes files, as long as it does something."""

    def __init__(self, limit_s: float | None) -> None:
        super().__init__(limit_s)
        self._next_s = self._began_s + _FIRST_LOOK_S
        self._done: object = None

    def hear(self, data: bytes) -> None:
        """Takes note that it does something."""
        super().hear(data)
        self._done = None

    def left_s(self) -> float:
        """Returns how long to wait until the next look. Raises `_GivenUp`."""
        left_s, now_s = super().left_s(), time.monotonic()
        if now_s >= self._next_s:
            from queenbee.store.droids.asleep import if_asleep  # noqa: PLC0415 - start-up

            before, self._done = self._done, if_asleep(self.pid)
            if self._done is not None and self._done == before:
                raise _GivenUp("it waits for a file, perhaps a FIFO")
            self._next_s = now_s + _STILL_S
        wait_s = self._next_s - now_s
        return wait_s if left_s is None else min(wait_s, left_s)


class _Watched(_Patience):
    """Waits for as long as it takes, and says every second how long that is."""

    def __init__(self, on_tick: Callable[[float], None]) -> None:
        super().__init__()
        self._on_tick = on_tick
        self._next_s = self._began_s + 1.0

    def left_s(self) -> float:
        """Returns how long to wait for more until the next second has passed."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + 1.0
            self._on_tick(now_s - self._began_s)
        return max(0.0, self._next_s - now_s)


class _Process:
    """A git that was started, and the pipes of what it says."""

    def __init__(self, command: CommandLine, env: Mapping[str, str], stdin: bytes) -> None:
        given = _readable(stdin)
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        self._said: dict[int, list[bytes]] = {out: [], err: []}
        ends = enumerate((given, to_out, to_err))
        actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in ends]
        # Python ignores SIGPIPE; a hook's `yes | head` would go on for ever.
        how: Mapping[str, Any] = {"file_actions": actions, "setsigdef": (_PIPE,)}
        try:
            try:
                self.pid = os.posix_spawnp(command[0], command, env, **how, setsid=True)
            except NotImplementedError:  # Not on every system.
                self.pid = os.posix_spawnp(command[0], command, env, **how, setpgroup=0)
        except (OSError, ValueError) as error:  # A name with a NUL is a `ValueError`.
            self.close()
            why = error.strerror if isinstance(error, OSError) else error
            raise ExternalFailure(f"git cannot be run: {why}", program="git") from error
        finally:
            for end in (given, to_out, to_err):
                os.close(end)

    def listen(self, patience: _Patience) -> tuple[bytes, bytes]:
        """Returns what it says on its two outputs, to their end. Raises `_GivenUp`."""
        poll = select.poll()
        for end in self._said:
            poll.register(end, select.POLLIN)
        silent: set[int] = set()
        while len(silent) < 2:
            left_s = patience.left_s()
            for end, _ in poll.poll(None if left_s is None else left_s * 1000 + 1):
                data = os.read(end, 1 << 16)
                self._said[end].append(data)
                patience.hear(data)
                if not data:
                    poll.unregister(end)
                    silent.add(end)
        out, err = (b"".join(each) for each in self._said.values())
        return out, err

    def wait(self) -> int:
        """Returns its exit status."""
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # The host of this library ignores its children.
            return 0

    def end(self) -> None:
        """Ends it with all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            # Asked to end, git removes its locks; killed, it would leave them to who comes next.
            os.killpg(self.pid, _TERM)
            with suppress(_GivenUp):
                self.listen(_Patience(_GRACE_S))
            os.killpg(self.pid, _KILL)
        self.wait()

    def close(self) -> None:
        """Closes the pipes."""
        for end in self._said:
            os.close(end)


def _run(
    arguments: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    patience: _Patience,
    stdin: bytes = b"",
) -> tuple[int, bytes, bytes]:
    """Returns the exit status of a git and its two outputs. Raises `_GivenUp`, and
    `ExternalFailure` if it cannot be run.
    """
    process = _Process(git_line(cwd, arguments), env, stdin)
    patience.pid = process.pid
    try:
        out, err = process.listen(patience)
        return process.wait(), out, err
    except BaseException:
        process.end()
        raise
    finally:
        process.close()


def _readable(data: bytes) -> int:
    """Returns a descriptor of this content: a pipe would need somebody who writes to it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY)
    import tempfile  # noqa: PLC0415 - start-up

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        return os.dup(file.fileno())


def _on_the_way_s(said: bytes) -> float:
    """Returns how long what git has written may take to arrive over a slow link."""
    end = said.rfind(b"B | ")  # "Writing objects:  45% (9/20), 1.20 MiB | 80.00 KiB/s"
    number, _, unit = said[:end].rpartition(b", ")[2].partition(b" ")
    scale = {b"Ki": 2**10, b"Mi": 2**20, b"Gi": 2**30}.get(unit)
    if end < 0 or scale is None:
        return 0.0
    try:
        return min(float(number) * scale, _BUFFERED_BYTES) / _SLOWEST_BYTES_S
    except ValueError:
        return 0.0


def _failure(command: str, cwd: str, status: int, err: bytes) -> ExternalFailure:
    if b"safe.directory" in err:
        return NotTrusted(
            f"git refuses to work in {cwd}, because it belongs to another user",
            hint=f"if you trust it: git config --global --add safe.directory {shell_word(cwd)}",
            program="git",
            status=status,
        )
    said = err.decode(errors="backslashreplace").strip().replace("\n\t", " ").splitlines()
    return ExternalFailure(
        f"git {command} failed: {said[-1] if said else status}", program="git", status=status
    )


def quiet_environment(
    config: Mapping[str, str] | None, repository: Mapping[str, str] | None
) -> dict[str, str]:
    """Returns the environment of a git that runs no programs, and needs no tokens."""
    user = os.environ if repository is None else environment_of_user()
    env = {**user, **_ENVIRONMENT, **(repository or {})}
    env = {name: value for name, value in env.items() if name not in NAMES}
    return configured(env, config or {})


def configured(env: dict[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """Adds settings to an environment of git, and returns it."""
    # Not `-c`, which takes what follows the first "=" of a name for the value.
    said = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(said) if said.isdecimal() else 0
    for number, (key, value) in enumerate(config.items(), first):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
        env["GIT_CONFIG_COUNT"] = str(number + 1)
    return env
