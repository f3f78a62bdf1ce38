"""The hive's settings: `.beads/queen.toml`, shared by everybody through git.

The last text that could be read is kept in the state directory, where no clone and no branch puts a
file; it counts while `queen.toml` cannot be read. `docs/format.md`, section "Settings"; ADR 0035.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.text import names_in_braces, visible
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput, NotFound, QueenError, Unreadable
from queenbee.store import safe_open
from queenbee.store.whole_files import keep, read_own, recall, take_name
from queenbee.version import FORMAT

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FILE_NAME = "queen.toml"

AUTO, EXCLUSIVE, SHARED, OFF = "auto", "exclusive", "shared", "off"
"""How the edit hook leases what agents edit."""
CLIENTS = ("claude", "codex", "gemini", "opencode", "copilot", "qwen", "kilo")
"""The clients that `queen start` knows."""
_UNITS = {"KiB": 1024, "MiB": 1024 * 1024}


class Type:
    """What a setting may be."""

    __slots__ = ("allowed", "fault", "read", "unit")

    def __init__(
        self,
        allowed: str,
        read: Callable[[Any], object],
        unit: str = "",
        fault: Callable[[object], str] = lambda _: "",
    ) -> None:
        self.allowed: str = allowed
        """In words, for a hint and for the documentation."""
        self.read: Callable[[Any], object] = read
        """Returns the meaning of a value in the file, or None if it is not allowed."""
        self.unit: str = unit
        """What the meaning is in: the end of the attribute's name."""
        self.fault: Callable[[object], str] = fault
        """Returns what is wrong with a value that is not allowed, if more can be said of it."""


def _choice(*words: str) -> Type:
    *others, last = (f'"{word}"' for word in words)
    allowed = f"{', '.join(others)} or {last}"
    return Type(allowed, lambda value: value if value in words else None)


def _duration(least: str, most: str) -> Type:
    least_s, most_s = parse_duration_s(least), parse_duration_s(most)

    def read(value: object) -> int | None:
        try:
            seconds = parse_duration_s(value) if isinstance(value, str) else -1
        except InvalidInput:
            return None
        return seconds if least_s <= seconds <= most_s else None

    return Type(f'a duration, "{least}" to "{most}"', read, "_s")


def _number(least: int, most: int) -> Type:
    # True is an int, but no number.
    return Type(
        f"a number, {least} to {most}",
        lambda value: value if type(value) is int and least <= value <= most else None,
    )


_MOST_DIGITS = 20
_MOST_CHARS = 200
"""Of a template."""
_MOST_DOTS = 1_000
"""In a key: reading it takes the square of them."""


def _size(most: str) -> Type:
    def size(value: object) -> int:
        digits, unit = (value[:-3], value[-3:]) if isinstance(value, str) else ("", "")
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
        return int(digits) * _UNITS.get(unit, 0) if is_number else 0

    def read(value: object) -> int | None:
        return 0 if value == "off" else size(value) if 0 < size(value) <= size(most) else None

    return Type(f'a size, "1KiB" to "{most}", or "off"', read, "_bytes")


def _text(most: int) -> Type:
    return Type(
        f"a text of at most {most} characters",
        lambda value: value if isinstance(value, str) and len(value) <= most else None,
    )


def _template(*names: str) -> Type:
    """A text of one line, with names in braces."""

    def read(value: object) -> str | None:
        if not isinstance(value, str) or len(value) > _MOST_CHARS or not visible(value):
            return None
        wanted = names_in_braces(value)
        return value if wanted is not None and {*wanted} <= {*names} else None

    def fault(value: object) -> str:
        wanted = names_in_braces(value) if isinstance(value, str) else []
        if wanted is None:
            return "a brace has no other"
        unknown = [each for each in wanted if each not in names]
        return f"there is no {{{unknown[0]}}}" if unknown else ""

    *others, last = (f"{{{name}}}" for name in names)
    allowed = f"a line of at most {_MOST_CHARS} characters, with {', '.join(others)} or {last}"
    return Type(allowed, read, fault=fault)


def _lines(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    is_text = all(isinstance(each, str) and not set(each) & {"\n", "\0"} for each in value)
    return tuple(value) if is_text else None


def _branch_name() -> Type:
    def read(value: object) -> str | None:
        if value == "" or not isinstance(value, str):
            return "" if value == "" else None
        import re  # noqa: PLC0415 - start-up

        named = re.fullmatch(r"(?![-/.])[^\x00-\x20\x7f~^:?*\[\\]{1,255}(?<![/.])", value)
        return value if named and ".." not in value else None

    return Type("the name of a branch", read)


_OF_GIT = ("unfinished", "refs", "heads", "tags", "remotes", "origin")
"""First parts of branches that mean something else."""


def _branch_pattern() -> Type:
    """The name of a branch with `{droid}`, which may be any name of one."""
    is_name = _branch_name().read

    def read(value: object) -> str | None:
        if value == "" or not isinstance(value, str):
            return "" if value == "" else None
        name = value.replace("{droid}", "x")
        parts = name.split("/")
        is_part = all(each and each[0] != "." and not each.endswith(".lock") for each in parts)
        is_free = parts[0] not in _OF_GIT and "@{" not in name and not {"{", "}"} & {*name}
        return value if is_name(name) and "{droid}" in value and is_part and is_free else None

    return Type("the name of a branch with {droid} in it, such as agents/{droid}", read)


_FLAG = Type("true or false", lambda value: value if isinstance(value, bool) else None)
_PATTERNS = Type("a list of patterns, as in .gitignore", _lines)
_LINES = Type("a list of texts", _lines)
_MESSAGE = _template("subject", "id", "title", "droid", "branch")


class Setting:
    """One setting, as a row of `SETTINGS`.

    `reserve` in the table `[hook]` has the name `hook.reserve` and the attribute `hook_reserve`.
    """

    __slots__ = ("attribute", "default", "name", "sentence", "type")

    def __init__(self, name: str, type_: Type, default: object, sentence: str) -> None:
        self.name: str = name
        self.type: Type = type_
        self.default: object = default
        """As in the file."""
        self.sentence: str = sentence
        self.attribute: str = name.replace(".", "_") + type_.unit
        """Its name in `Settings`."""

    def faulty(self, value: object) -> str:
        """Returns a value that is not allowed, with what is wrong with it as far as that is known,
        for a sentence.
        """
        fault = self.type.fault(value)
        return f"{value!r}: {fault}" if fault else repr(value)


SETTINGS = (
    Setting("format", _number(0, FORMAT), FORMAT,
            "the version of the format; a QueenBee that knows only smaller ones refuses the file"),
    Setting("state", _choice("git", "beads"), "git",
            "where locks and memory are; beads also needs: git config queenbee.state beads"),
    Setting("droids", _choice("auto", "strict", "off"), "auto",
            "strict: only names in .factory/droids/; off: any name; auto: strict if it lists any"),
    Setting("issues", _choice("auto", "strict", "off"), "auto",
            "strict: only ids in the tracker; off: any id; auto: strict if there is one"),
    Setting("close_on_complete", _FLAG, True,
            "whether queen complete closes the tracker's issue too"),
    Setting("ttl", _duration("1s", "30d"), "2h", "how long a lease lasts by default"),
    Setting("quiet_after", _duration("1s", "30d"), "15m",
            "a droid that shows no sign of life for so long can be nudged"),
    Setting("ask_after", _duration("1s", "30d"), "3m",
            "the same for one that has an issue while another droid waits for one"),
    Setting("answer_within", _duration("1s", "1d"), "1m",
            "how long a nudged droid has to answer before others may take over"),
    Setting("durability", _choice("synced", "buffered"), "synced",
            "buffered: do not wait for the disk before a write is acknowledged"),
    Setting("lock_timeout", _duration("0s", "1h"), "30s", "how long a writer waits for the lock"),
    Setting("gate_results", _number(0, 10_000), 10,
            "how many results a phase gate keeps for each rule; 0: all"),
    Setting("bead_shell", _choice("sh", "bash", "zsh", "pwsh", "powershell"), "sh",
            "the shell of verifiers that name none"),
    Setting("rotate_at", _size("64MiB"), "4MiB",
            "at this size, closed records move to the archive; off: only with queen hive rotate"),
    Setting("archive_after", _duration("0s", "3650d"), "1d",
            "how long a record must be closed before it moves there"),
    Setting("hook.reserve", _choice(AUTO, EXCLUSIVE, SHARED, OFF), AUTO,
            "how the edit hook leases what agents edit; off: not at all"),
    Setting("hook.ignore", _PATTERNS, [], "files that it does not lease; they may be tracked"),
    Setting("hook.stop", _choice("remind", "off"), "remind",
            "off: an agent may stop while it has an issue or owes an answer"),
    Setting("land.target", _branch_name(), "",
            "the branch on which work lands, also of a remote: origin/main; "
            "by default, that of the main worktree"),
    Setting("land.push", _FLAG, False,
            "whether each landing on a branch of this repository is pushed to its remote"),
    Setting("land.by", _choice("merge", "pr"), "merge",
            "pr: work is proposed as a pull request, and has landed once that is merged"),
    Setting("land.merge", _choice("person", "auto"), "person",
            "auto: queen merges a pull request as soon as the host lets it"),
    Setting("land.method", _choice("merge", "squash", "rebase"), "merge",
            "how it does so"),
    Setting("land.draft", _FLAG, False, "whether pull requests are opened as drafts"),
    Setting("land.reviewers", _LINES, [],
            "whose review a pull request asks for: logins, or teams such as org/web"),
    Setting("land.labels", _LINES, [], "labels that a pull request gets"),
    Setting("land.rounds", _number(0, 100), 3,
            "how often an agent is told to mend a pull request before a person is"),
    Setting("land.check", _text(4096), "",
            "the shell command that must pass before queen land lands anything"),
    Setting("land.check_timeout", _duration("1s", "1d"), "1h", "how long that check may take"),
    Setting(
        "land.patience",
        _duration("1s", "1d"),
        "8m",
        "when queen land returns by itself, and the landing goes on",
    ),
    Setting("land.guard_check", _FLAG, False,
            "whether a landing that changes the check waits for a person: land --accept-check"),
    Setting("land.strategy", _choice("merge", "rebase", "squash"), "merge",
            "rebase: put your commits on top; squash: make one commit of them"),
    Setting("land.batch", _number(0, 100), 16,
            "how many branches may land with one check; 1: each alone"),
    Setting("land.jobs", _number(0, 64), 1,
            "how many checks run side by side, to find who made one fail"),
    Setting("land.recheck", _FLAG, True,
            "whether the check runs again on files that it passed on last"),
    Setting("land.join", _choice("on", "all", "off"), "on",
            "which conflicts are joined without you; all: also of old branches; off: none"),
    Setting("land.union", _PATTERNS, [],
            "more files that everybody appends to, besides change logs: both additions are kept"),
    Setting("land.records", _FLAG, True,
            "whether queen land commits the records and the tracker with what lands"),
    Setting("land.message", _MESSAGE, "",
            "the subject of squashed commits, of records and of what programs make"),
    Setting("land.merge_message", _MESSAGE, "",
            "the subject of merges; by default git's own, such as Merge branch 'api'"),
    Setting("land.signoff", _FLAG, False,
            "whether commits that queen land makes have a Signed-off-by, as the DCO asks"),
    Setting("worktree.setup", _text(4096), "",
            "the shell command that makes a new worktree usable, such as npm ci"),
    Setting("worktree.setup_timeout", _duration("1s", "1d"), "30m",
            "how long that command may take"),
    Setting("worktree.copy", _PATTERNS, [],
            "ignored files to copy from the main worktree, besides those in .worktreeinclude"),
    Setting("worktree.stamp", _LINES, [],
            "files after whose change it runs again; by default, known lock files at the top"),
    Setting("team.agent", _choice(*CLIENTS, ""), "",
            "the client that queen start runs; by default, the only one that is installed"),
    Setting("team.agents", _LINES, [], 'other clients for some names: ["ui=codex", "api=claude"]'),
    Setting("team.size", _number(1, 64), 3, "how many agents queen start runs"),
    Setting("team.prune", _FLAG, False,
            "whether queen start removes at its end the worktrees of its agents whose work has "
            "landed, as queen worktree prune does"),
    Setting("team.branch", _branch_pattern(), "",
            "which branches agents get, such as agents/{droid}; by default, their names"),
    Setting("team.args", _LINES, [],
            "options for the client; queen start asks before it uses them for the first time"),
    Setting("sync.remote", _text(255), "origin",
            "the git remote that queen sync exchanges records with"),
    Setting("sync.branch", _text(255), "queenbee/hive",
            "the branch there that holds them, and no code"),
    Setting("sync.ledgers", _choice("code", "branch"), "code",
            "branch: only that branch has the ledgers; queen sync setup sets it"),
    Setting("sync.when", _choice("manual", "write", "read"), "manual",
            "write: pushes what is written; read: also fetches what is older than max_age"),
    Setting("sync.max_age", _duration("0s", "1d"), "30s",
            "how old what was fetched may be, with when = read"),
    Setting("sync.confirm", _choice("local", "remote"), "local",
            "remote: grants count once the remote has them, as with --confirm"),
    Setting("sync.timeout", _duration("1s", "1h"), "30s",
            "how long to wait for a remote that says nothing; a slow transfer goes on"),
    Setting("sync.clock_skew", _duration("0s", "30d"), "2h",
            "how far apart the clocks of two machines may be"),
    Setting("host.issues", _choice("off", "pull", "both"), "off",
            "pull: queen start and queen sync bring the issues of the code host; "
            "both: and close there what was completed here"),
    Setting("engine.kind", _choice("files", "postgres"), "files",
            "where the lines are; queen hive engine use writes this table"),
    Setting("engine.hive", _text(200), "", "the name of the hive in the database"),
    Setting("engine.hook", _choice("warn", "refuse"), "warn",
            "refuse: no edit passes while the database cannot be reached; warn: it does"),
)  # fmt: skip
"""Whatever is said of a setting is in its row: the file that `queen init` writes, the check of a
value, the default, and the page of all settings that `make docs` makes come from it."""
JUDGING = (
    *("land.check", "land.check_timeout", "land.guard_check", "land.recheck"),
    *("land.join", "land.union"),
)
"""The settings that count once the target has them: they decide about checks, and what is joined
without anybody.
"""
AT_ONCE = ("land.message", "land.merge_message", "land.signoff")
"""Those of landing that are set for all branches at once: a hook that refuses what a landing says
would keep them from landing.
"""


class Settings:
    """The settings from the file, with defaults for the others."""

    format: int
    state: str
    droids: str
    issues: str
    durability: str
    hook_stop: str
    ttl_s: int
    quiet_after_s: int
    ask_after_s: int
    answer_within_s: int
    lock_timeout_s: float
    archive_after_s: int
    gate_results: int
    bead_shell: str
    close_on_complete: bool
    rotate_at_bytes: int
    """0 if ledgers are not rotated automatically."""
    hook_reserve: str
    hook_ignore: tuple[str, ...]
    land_target: str
    land_push: bool
    land_by: str
    land_merge: str
    land_method: str
    land_draft: bool
    land_reviewers: tuple[str, ...]
    land_labels: tuple[str, ...]
    land_rounds: int
    land_check: str
    land_check_timeout_s: float
    land_patience_s: float
    land_guard_check: bool
    land_strategy: str
    land_batch: int
    land_jobs: int
    land_recheck: bool
    land_join: str
    land_union: tuple[str, ...]
    land_records: bool
    land_message: str
    land_merge_message: str
    land_signoff: bool
    worktree_setup: str
    worktree_setup_timeout_s: float
    worktree_copy: tuple[str, ...]
    worktree_stamp: tuple[str, ...]
    team_agent: str
    team_agents: tuple[str, ...]
    team_size: int
    team_prune: bool
    team_branch: str
    """A name with `{droid}`, or empty."""
    team_args: tuple[str, ...]
    sync_remote: str
    sync_branch: str
    sync_ledgers: str
    sync_when: str
    sync_max_age_s: float
    sync_confirm: str
    sync_timeout_s: float
    sync_clock_skew_s: float
    host_issues: str
    engine_kind: str
    engine_hive: str
    engine_hook: str
    database: str
    """Where the database is, as libpq reads it, from the environment; it may hold a password."""

    by_note = True
    """Whether the note of what the text says counts in this process, which spares 10 ms: it is in
    the state, where others may write, so not in one that acts for a person."""

    def __init__(self, said: Mapping[str, object] | None = None, unknown: tuple[str, ...] = ()):
        self.database = ""
        for setting in SETTINGS:
            setattr(self, setting.attribute, setting.type.read(setting.default))
        vars(self).update(said or {})
        self.unknown = unknown
        """Settings that this version does not know: kept, ignored, reported by doctor."""
        self.text = b""
        """What they were read from."""
        self.problem: Unreadable | None = None
        """Why the file cannot be read, while the last good settings count in its place."""
        self.is_known = True
        """Whether they are what the team set, now or last."""
        self.parsed: dict[str, object] | None = None
        """What the text says, if it had to be parsed for that."""

    def refuse_guesses(self) -> None:
        """Raises `Unreadable` if these are defaults in place of settings that were never readable
        here: a guess could write, or look for leases, where the team does not.
        """
        if self.problem is not None and not self.is_known:
            raise self.problem


def load(beads_dir: str, env: Mapping[str, str], state_dir: str | None = None) -> Settings:
    """Returns the settings of the hive in `beads_dir`; `QUEEN_DURABILITY` overrides the file's. A
    text that `keep_good` has kept in `state_dir` is not parsed again, where that counts.

    Raises `Unreadable`, naming the setting at fault, for a file that is not TOML or has a value
    that is not allowed: guessing at shared settings would let two processes disagree.
    """
    path = os.path.join(beads_dir, FILE_NAME)
    try:
        text = read_own(path)
    except NotFound:
        text = b""
    kept = None
    if text and state_dir is not None and Settings.by_note:
        kept = recall(_parsed_path(state_dir))
    if isinstance(kept, list) and kept[:1] == [text.decode(errors="replace")]:
        return loaded(path, text, env, kept[1] if isinstance(kept[-1], dict) else None)
    return loaded(path, text, env)


def loaded(
    path: str, text: bytes, env: Mapping[str, str], parsed: Mapping[str, object] | None = None
) -> Settings:
    """Returns the settings that a text says, as `load` does. Raises as it does."""
    values = _parsed(path, text) if parsed is None else parsed
    found = Settings(*_said(path, values, env))
    found.text = text
    found.parsed = dict(values) if text and parsed is None else None
    return found


def is_readable(text: str) -> bool:
    """Returns whether these settings can be used."""
    try:
        loaded(FILE_NAME, text.encode(), {})
    except QueenError:
        return False
    return True


def last_good_path(state_dir: str) -> str:
    """Returns where the last good text of the settings is kept."""
    return os.path.join(state_dir, "last-good.toml")


def _parsed_path(state_dir: str) -> str:
    return os.path.join(state_dir, "settings.json")


def keep_good(state_dir: str, settings: Settings) -> None:
    """Keeps the text of settings that could be read, in a hive that has a state directory, and what
    it says: to parse it takes 10 ms. Never fails.
    """
    text = settings.text
    with suppress(OSError, QueenError):
        if _last_good(state_dir) != text and os.path.isdir(state_dir):
            take_name(last_good_path(state_dir), text, durable=False)
    if settings.parsed is not None and os.path.isdir(state_dir):
        with suppress(TypeError, ValueError):  # A date, say, in a setting that nobody knows.
            keep(_parsed_path(state_dir), [text.decode(), settings.parsed])


def instead(state_dir: str, env: Mapping[str, str], problem: Unreadable) -> Settings:
    """Returns the settings that count while the file has this problem: the last good ones, or the
    defaults, with which nothing may be written.
    """
    found = Settings()
    found.is_known = False
    with suppress(OSError, QueenError):
        text = _last_good(state_dir)
        if text is not None:
            found = loaded(last_good_path(state_dir), text, env)
    found.problem = problem
    return found


def _last_good(state_dir: str) -> bytes | None:
    with suppress(OSError, QueenError):
        return safe_open.read(last_good_path(state_dir))
    return None


def _said(
    path: str, parsed: Mapping[str, object], env: Mapping[str, str]
) -> tuple[dict[str, object], tuple[str, ...]]:
    values = by_name(path, parsed)
    said: dict[str, object] = {}
    for setting in SETTINGS:
        if setting.name in values:
            value = values.pop(setting.name)
            said[setting.attribute] = setting.type.read(value)
            if said[setting.attribute] is None:
                raise Unreadable(
                    f"{path}: {setting.name} cannot be {setting.faulty(value)}",
                    hint=f"queen config set {setting.name} VALUE, which is {setting.type.allowed}",
                    path=path,
                    setting=setting.name,
                )
    durability = env.get("QUEEN_DURABILITY")
    if durability:
        if durability not in ("synced", "buffered"):
            raise InvalidInput(
                f"QUEEN_DURABILITY cannot be {durability!r}", hint="set it to synced or buffered"
            )
        said["durability"] = durability
    if said.get("engine_kind") == "postgres" or env.get("QUEEN_DATABASE_URL"):
        service = env.get("PGSERVICE")
        said["database"] = env.get("QUEEN_DATABASE_URL") or (service and f"service={service}") or ""
    return said, tuple(sorted(values))


def by_name(path: str, values: Mapping[str, object]) -> dict[str, object]:
    """Returns the values by the names of settings: those of a table that has some, one by one."""
    tables = {setting.name.partition(".")[0] for setting in SETTINGS if "." in setting.name}
    found: dict[str, object] = {}
    for name, value in values.items():
        if name not in tables:
            found[name] = value
        elif isinstance(value, dict):
            found.update({f"{name}.{key}": each for key, each in value.items()})
        else:
            raise Unreadable(
                f"{path}: {name} cannot be {value!r}",
                hint=f"write a table: [{name}]",
                path=path,
                setting=name,
            )
    return found


def _parsed(path: str, data: bytes) -> dict[str, object]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise not_toml(path, error) from error
    return toml_of(path, text)


def toml_of(path: str, text: str) -> dict[str, object]:
    """Returns what a text in TOML says. Raises `Unreadable`, also if a key has too many parts."""
    import tomllib  # noqa: PLC0415 - start-up

    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _MOST_DOTS and line.partition("=")[0].count(".") > _MOST_DOTS:
            raise not_toml(path, ValueError(f"a key with thousands of parts (at line {number})"))
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Also huge numbers and deep nesting.
        raise not_toml(path, error) from error


def not_toml(path: str, error: Exception) -> Unreadable:
    """Returns the refusal of a text that is not TOML, with the line at fault if that is known."""
    what = "UTF-8" if isinstance(error, UnicodeDecodeError) else "TOML"
    _, _, after = str(error).partition("at line ")
    digits = after[: len(after) - len(after.lstrip("0123456789"))]
    return Unreadable(
        f"{path} is not {what}: {error}",
        hint="queen doctor --fix, or correct the file",
        path=path,
        line=int(digits) if digits else None,
    )
