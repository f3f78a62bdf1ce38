"""Runs git; no other module does.

In a hook, `GIT_DIR` and `GIT_INDEX_FILE` name the repository and the index, so the environment is
passed on. A repository's config can name programs that git runs for a mere question, and whoever
unpacks somebody's archive gets their config with it. Git is called so that it runs none of them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from queenbee.core.text import shell_word
from queenbee.errors import ExternalFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from typing import IO


_QUIET = (
    "--no-pager",
    # Without this, `status` writes the index, and git then runs the hook `post-index-change`.
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "diff.external="),
    *("-c", "status.submoduleSummary=false"),
)
_ENVIRONMENT = {
    # A partial clone fetches what it lacks, by any command that its config names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


TIMED_OUT = 124
_GRACE_S = 2
_LOOK_S = 0.5
"""How often it is looked whether git said anything."""
_LONGEST = 240
"""So many times its timeout git takes at most: a remote could say something for ever."""
_SLOWEST_BYTES_S = 2**14
_BUFFERED_BYTES = 2**22
"""So much of what git wrote can still be on the way, unseen: in buffers of git, ssh and the kernel.
Linux lets one connection have 4 MiB by default."""
_PROTOCOLS = "file:git:http:https:ssh"
_NO_HOOKS = {
    "core.hooksPath": os.devnull,
    "gc.auto": "0",
    "maintenance.auto": "false",
}


class NotTrusted(ExternalFailure):
    """Git refuses to work in a repository that belongs to another user."""

    code = "external"


class TooSlow(ExternalFailure):
    """Git did not answer in time, and was killed."""

    code = "external"


_LAST_CHARS = 1_000
"""So much of what git said is in an error."""
_OF_A_CALLER = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE",
    "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
    "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
})  # fmt: skip
"""What a hook or an alias says of its own repository."""


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
    repository, tree and index that are meant, in place of a calling hook's. After `limit_s`, git
    is killed, and `TooSlow` raised: it waits for ever for a FIFO in place of a `.gitignore`.
    """
    import subprocess  # noqa: PLC0415 - start-up

    env = _environment(config, repository)
    command = ["git", *_QUIET, *arguments]
    try:
        if limit_s is None:
            done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, env=env)
        else:
            done = _within(limit_s, command, cwd=cwd, stdin=stdin, env=env)
    except OSError as error:
        raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
    if done.returncode != 0:
        if b"safe.directory" in done.stderr:
            raise _not_trusted(cwd, done.returncode)
        said = done.stderr.decode(errors="backslashreplace").strip().splitlines()
        raise ExternalFailure(
            f"git {arguments[0]} failed: {said[-1] if said else done.returncode}",
            program="git",
            status=done.returncode,
        )
    return done.stdout


def _not_trusted(cwd: str, status: int) -> NotTrusted:
    return NotTrusted(
        f"git refuses to work in {cwd}, because it belongs to another user",
        hint=f"if you trust it: git config --global --add safe.directory {shell_word(cwd)}",
        program="git",
        status=status,
    )


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
    import signal  # noqa: PLC0415 - start-up
    import subprocess  # noqa: PLC0415 - start-up

    env = _environment({**_NO_HOOKS, **(config or {})}, {})
    del env["GIT_NO_LAZY_FETCH"]
    env |= {"GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL", _PROTOCOLS)}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        with _readable(stdin) as given:
            process = subprocess.Popen(
                ["git", *_QUIET, *arguments],
                cwd=cwd,
                env=env,
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Its own session: no terminal to ask at, and one group to end.
                start_new_session=True,
            )
    except OSError as error:
        raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
    try:
        out, err = _while_it_goes_on(process, timeout_s, most_s)
    except BaseException as error:
        # Asked to end, git removes its locks; killed, it would leave them to whoever comes next.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            return TIMED_OUT, "", f"no answer within {error.timeout:g} s"
        raise
    if process.returncode != 0 and b"safe.directory" in err:
        raise _not_trusted(cwd, process.returncode)
    return process.returncode, out.decode(errors="replace"), without_progress(err)


def _while_it_goes_on(
    process: subprocess.Popen[bytes], timeout_s: float, most_s: float
) -> tuple[bytes, bytes]:
    """Returns the outputs of a git, for which it waits as long as that says something new.

    Raises `TimeoutExpired`, with the time that was too long.
    """
    import subprocess  # noqa: PLC0415 - start-up

    began_s = heard_s = time.monotonic()
    end_s = began_s + min(most_s, _LONGEST * timeout_s)
    silent_s, known = timeout_s, 0
    while True:
        until_s = min(heard_s + silent_s, end_s)
        look_s = max(0.0, min(_LOOK_S, until_s - time.monotonic()))
        try:
            return process.communicate(timeout=look_s)
        except subprocess.TimeoutExpired as error:
            now_s = time.monotonic()
            err = error.stderr or b""
            said = len(error.stdout or b"") + len(err)
            if said > known:
                known, heard_s, silent_s = said, now_s, timeout_s + _on_the_way_s(err)
            elif now_s >= heard_s + silent_s:
                raise subprocess.TimeoutExpired("git", silent_s) from None
            if now_s >= end_s:
                raise subprocess.TimeoutExpired("git", end_s - began_s) from None


def _readable(data: bytes) -> IO[bytes]:
    """Returns a file with this content: a pipe would need somebody who writes to it."""
    if not data:
        return open(os.devnull, "rb")
    import tempfile  # noqa: PLC0415 - start-up

    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(data)
    file.seek(0)
    return file


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


def without_progress(said: bytes) -> str:
    """Returns what git said without its progress, which ends in a carriage return or in "done."."""
    lines = (line.rpartition("\r")[2] for line in said.decode(errors="replace").split("\n"))
    return "\n".join(line for line in lines if not line.rstrip().endswith(", done."))


def _within(
    limit_s: float, command: list[str], *, cwd: str, stdin: bytes, env: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    """Runs git, and kills it after so many seconds with all that it started."""
    import signal  # noqa: PLC0415 - start-up
    import subprocess  # noqa: PLC0415 - start-up

    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(stdin, timeout=limit_s)
        except BaseException as error:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                what = f"git did not answer within {limit_s:g}s in {cwd}"
                raise TooSlow(what, program="git") from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class Objects:
    """Reads objects of a repository through one git that runs until it is closed.

    To start a git for each takes longer than what it is asked. Used as a context manager.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._git: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Objects:
        return self

    def __exit__(self, *_: object) -> None:
        process, self._git = self._git, None
        if process is None:
            return
        process.kill()
        for each in (process.stdin, process.stdout):
            with suppress(OSError):  # It may have ended before it read the last question.
                each.close()  # type: ignore[union-attr]
        process.wait()

    def read(self, name: str, most_bytes: int | None = None) -> tuple[str, str, bytes] | None:
        """Returns the id, type and content of an object; None if there is none of this name.

        Raises `TooLarge` if it has more than `most_bytes`, and `ExternalFailure`.
        """
        process = self._git or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(os.fsencode(name) + b"\n")
            process.stdin.flush()
        except OSError as error:
            raise ExternalFailure("git cat-file ended", program="git") from error
        said = process.stdout.readline()
        fields = said.split()
        if said.endswith((b" missing\n", b" ambiguous\n")):
            return None
        if len(fields) != 3 or not fields[2].isdigit():
            raise ExternalFailure(f"git cat-file failed: {os.fsdecode(said)}", program="git")
        size_bytes = int(fields[2])
        if most_bytes is not None and size_bytes > most_bytes:
            self.__exit__()
            raise TooLarge(size_bytes)
        data = process.stdout.read(size_bytes + 1)
        if len(data) != size_bytes + 1:
            raise ExternalFailure("git cat-file ended", program="git")
        return fields[0].decode(), fields[1].decode(), data[:-1]

    def _start(self) -> subprocess.Popen[bytes]:
        import subprocess  # noqa: PLC0415 - start-up

        pipe = subprocess.PIPE
        try:
            self._git = subprocess.Popen(
                ["git", *_QUIET, "cat-file", "--batch"],
                cwd=self._cwd,
                env=_environment({}, {}),
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
        return self._git


class TooLarge(Exception):
    """An object has so many bytes that it is not read."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


def brief(
    *arguments: str,
    cwd: str,
    stdin: bytes = b"",
    config: Mapping[str, str] | None = None,
    repository: Mapping[str, str] | None = None,
) -> tuple[int, bytes]:
    """Returns git's exit status and what it prints, for the edit hook: to import `subprocess`
    takes longer than the call. `stdin` is no longer than a pipe takes at once.
    """
    if not hasattr(os, "posix_spawnp"):
        try:
            return 0, git(*arguments, cwd=cwd, stdin=stdin, config=config, repository=repository)
        except ExternalFailure as error:
            status = error.details.get("status")
            return status if isinstance(status, int) else 255, b""
    questions, answers = os.pipe(), os.pipe()
    try:
        with open(questions[1], "wb") as question:
            question.write(stdin)
        silence = os.open(os.devnull, os.O_WRONLY)
        try:
            pid = os.posix_spawnp(
                "git",
                ["git", "-C", cwd, *_QUIET, *arguments],
                _environment(config, repository),
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, questions[0], 0),
                    (os.POSIX_SPAWN_DUP2, answers[1], 1),
                    (os.POSIX_SPAWN_DUP2, silence, 2),
                ],
            )
        finally:
            os.close(silence)
            os.close(answers[1])
    except OSError as error:
        os.close(answers[0])
        raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
    finally:
        os.close(questions[0])
    with open(answers[0], "rb") as answer:
        said = answer.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


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


def as_the_user(*arguments: str, cwd: str) -> str:
    """Runs git as the user would, with their hooks, filters and settings, in the worktree at `cwd`;
    returns what it printed. Raises `ExternalFailure`, which has that at its end.
    """
    import subprocess  # noqa: PLC0415 - start-up

    env = environment_of_user()
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise ExternalFailure(f"git cannot be run: {error.strerror}", program="git") from error
    said = os.fsdecode(done.stdout).strip()
    if done.returncode != 0:
        raise ExternalFailure(
            f"git {arguments[0]} failed: {said[-_LAST_CHARS:] or done.returncode}",
            program="git",
            status=done.returncode,
        )
    return said


def environment_of_user() -> dict[str, str]:
    """Returns the environment without what a calling hook or alias says of its own repository."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_CALLER}


def without_filters(cwd: str) -> dict[str, str]:
    """Returns the config for commands that read files of the tree: git would pass each through the
    programs that the repository's config names as filters.
    """
    names = line("config", "--null", "--name-only", "--get-regexp", r"^filter\.", cwd=cwd) or ""
    drivers = dict.fromkeys(name.rpartition(".")[0] for name in names.split("\0") if name)
    return {key: value for each in drivers for key, value in _without_filter(each).items()}


_TEXT_MERGE = "git merge-file -q %A %O %B"
"""In place of each merge driver: git's own merge. Without a command, git would fail."""


def without_programs(
    cwd: str, repository: Mapping[str, str], *, limit_s: float | None = None
) -> tuple[dict[str, str], str]:
    """Returns the config for commands that read files and merge them, so that neither filters nor
    merge drivers run; and a digest of what else decides how git reads a file.
    """
    wanted = r"^(filter|merge|core)\."
    try:
        ask = ("config", "--null", "--get-regexp", wanted)
        said = git(*ask, cwd=cwd, repository=repository, limit_s=limit_s)
    except ExternalFailure as error:
        if error.details.get("status") != 1:  # 1: there are none.
            raise
        said = b""
    config: dict[str, str] = {}
    for entry in said.split(b"\0"):
        key = os.fsdecode(entry.partition(b"\n")[0])
        driver = key.rpartition(".")[0]
        if key.startswith("filter.") and driver != "filter":
            config |= _without_filter(driver)
        elif key.startswith("merge.") and driver != "merge":
            config |= {f"{driver}.driver": _TEXT_MERGE}
    return config, said.hex()


def _without_filter(driver: str) -> dict[str, str]:
    values = {"clean": "", "smudge": "", "process": "", "required": "false"}
    return {f"{driver}.{key}": value for key, value in values.items()}


def _environment(
    config: Mapping[str, str] | None, repository: Mapping[str, str] | None
) -> dict[str, str]:
    env = {**os.environ, **_ENVIRONMENT, **_overriding(config or {})}
    if repository is not None:
        env = {name: value for name, value in env.items() if name not in _OF_A_CALLER}
        env.update(repository)
    return env


def _overriding(config: Mapping[str, str]) -> dict[str, str]:
    # Not `-c`, which takes what follows the first "=" of a name for the value.
    said = os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(said) if said.isdecimal() else 0
    found = {"GIT_CONFIG_COUNT": str(first + len(config))} if config else {}
    for number, (key, value) in enumerate(config.items(), first):
        found[f"GIT_CONFIG_KEY_{number}"], found[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return found
