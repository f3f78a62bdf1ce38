"""The hive's settings: `.beads/queen.toml`, shared by everybody through git.

`docs/format.md`, section "Settings".
"""

from __future__ import annotations

import os

from queenbee.core.leases import DEFAULT_TTL_S, MAX_TTL_S, MIN_TTL_S
from queenbee.core.timestamps import parse_duration_s
from queenbee.errors import InvalidInput, NotFound, Unreadable
from queenbee.store.documents import read_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAME = "queen.toml"

TEMPLATE = """\
# QueenBee's settings for this repository; every line is optional.

# droids = "auto"        # "strict": only names in .factory/droids/; "off": any name;
#                        # "auto": strict if that folder lists any
# issues = "auto"        # "strict": only ids in issues.jsonl; "off": any id;
#                        # "auto": strict if the file exists
# close_on_complete = true  # whether queen complete closes the tracker's issue too
# ttl = "2h"             # how long a reservation lasts by default
# quiet_after = "15m"    # a droid that shows no sign of life for so long can be nudged
# durability = "synced"  # "buffered": do not wait for the disk
# lock_timeout = "10s"   # how long a command waits for the lock
# gate_results = 10      # how many results a phase gate keeps for each rule; 0: all
# rotate_at = "4MiB"     # at this size, a ledger's closed records move to .beads/archive/;
#                        # "off": only when you run queen rotate
# archive_after = "1d"   # how long a record must be closed before it moves
#
# [hook]
# reserve = "auto"       # how queen-hook leases the files that agents edit: "auto", "exclusive",
#                        # "shared" or "off"; docs/enforcement.md
# ignore = []            # patterns, as in .gitignore, of files that it does not lease
# stop = "remind"        # "off": an agent may stop while it has an issue or owes an answer
#
# [land]
# check = ""             # the shell command that must pass before queen land lands anything
# check_timeout = "1h"   # how long it may take
# strategy = "merge"     # "rebase": put your commits on top; "squash": make one commit of them
# union = []             # files that everybody appends to, as in .gitignore: where both sides
#                        # only added lines, queen land keeps both
# keep_turn = "10m"      # how long your turn waits for you to resolve a conflict
#
# [sync]
# remote = "origin"      # the git remote that queen sync exchanges records with
# branch = "queenbee/hive"  # the branch there that holds them, and no code
# ledgers = "code"       # "branch": only that branch has the ledgers; queen sync setup sets it
# when = "manual"        # "write": what is written is pushed after the answer; "read": and
#                        # commands first fetch what is older than max_age
# max_age = "30s"        # how old what was fetched may be, with when = "read"
# confirm = "local"      # "remote": grants count once the remote has them, as with --confirm
# timeout = "30s"        # how long to wait for a remote that says nothing
# clock_skew = "2h"      # how far apart the clocks of two machines may be
#
# [engine]               # written by queen engine use; docs/machines.md
# kind = "files"         # "postgres": the hive is in the database that QUEEN_DATABASE_URL names
# hive = ""              # its name there
# hook = "warn"          # what queen-hook does with an edit if the database cannot be reached:
#                        # let it pass with a warning, or "refuse" it
"""

AUTO, EXCLUSIVE, SHARED, OFF = "auto", "exclusive", "shared", "off"
"""How the edit hook leases what agents edit."""
_UNITS = {"KiB": 1024, "MiB": 1024 * 1024}
_DAY_S = 86_400


class Setting:
    """One setting: its name in the file, its attribute in `Settings`, and its allowed values.

    `reserve` in the table `[hook]` has the name `hook.reserve` and the attribute `hook_reserve`.
    """

    __slots__ = ("allowed", "attribute", "default", "name")

    def __init__(self, name: str, default: object, allowed: str, *, unit: str = "") -> None:
        self.name = name
        self.default = default
        self.allowed = allowed
        """The allowed values, for a hint."""
        self.attribute = name.replace(".", "_") + unit

    def read(self, value: object) -> object:
        """Returns the meaning of a value in the file, or None if it is not allowed."""
        raise NotImplementedError


class _Choice(Setting):
    __slots__ = ("choices",)

    def __init__(self, name: str, default: str, *others: str) -> None:
        self.choices = (default, *others)
        super().__init__(name, default, " or ".join(f'"{each}"' for each in self.choices))

    def read(self, value: object) -> object:
        return value if value in self.choices else None


class _Duration(Setting):
    __slots__ = ("least_s", "most_s")

    def __init__(self, name: str, default_s: float, least_s: int, most_s: int) -> None:
        self.least_s, self.most_s = least_s, most_s
        allowed = f'a duration such as "2h", from {least_s} to {most_s} seconds'
        super().__init__(name, default_s, allowed, unit="_s")

    def read(self, value: object) -> object:
        try:
            seconds = parse_duration_s(value) if isinstance(value, str) else -1
        except InvalidInput:
            return None
        return seconds if self.least_s <= seconds <= self.most_s else None


class _Flag(Setting):
    __slots__ = ()

    def __init__(self, name: str, *, default: bool) -> None:
        super().__init__(name, default, "true or false")

    def read(self, value: object) -> object:
        return value if isinstance(value, bool) else None


class _Number(Setting):
    __slots__ = ("most",)

    def __init__(self, name: str, default: int, most: int) -> None:
        self.most = most
        super().__init__(name, default, f"a whole number from 0 to {most}")

    def read(self, value: object) -> object:
        return value if type(value) is int and 0 <= value <= self.most else None


class _Patterns(Setting):
    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(name, (), 'a list of patterns as in .gitignore, such as ["dist/"]')

    def read(self, value: object) -> object:
        lines = value if isinstance(value, list) else [value]
        is_text = all(isinstance(each, str) and not set(each) & {"\n", "\0"} for each in lines)
        return tuple(lines) if isinstance(value, list) and is_text else None


class _Size(Setting):
    __slots__ = ("most_bytes",)

    def __init__(self, name: str, default_bytes: int, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        most = f"{most_bytes // 2**20}MiB"
        allowed = f'"off", or a size such as "512KiB" or "4MiB", up to "{most}"'
        super().__init__(name, default_bytes, allowed, unit="_bytes")

    def read(self, value: object) -> object:
        if value == "off":
            return 0
        digits, unit = (value[:-3], value[-3:]) if isinstance(value, str) else ("", "")
        size = int(digits) * _UNITS.get(unit, 0) if digits.isascii() and digits.isdigit() else 0
        return size if 0 < size <= self.most_bytes else None


class _Text(Setting):
    __slots__ = ("most",)

    def __init__(self, name: str, default: str, most: int) -> None:
        self.most = most
        super().__init__(name, default, f"a text of at most {most} characters")

    def read(self, value: object) -> object:
        return value if isinstance(value, str) and len(value) <= self.most else None


SETTINGS = (
    _Choice("state", "git", "beads"),
    _Choice("droids", "auto", "strict", "off"),
    _Choice("issues", "auto", "strict", "off"),
    _Choice("durability", "synced", "buffered"),
    _Choice("hook.stop", "remind", "off"),
    _Duration("ttl", DEFAULT_TTL_S, MIN_TTL_S, MAX_TTL_S),
    _Duration("quiet_after", 15 * 60, 1, MAX_TTL_S),
    _Duration("lock_timeout", 10.0, 0, 3600),
    _Duration("archive_after", _DAY_S, 0, 3650 * _DAY_S),
    _Number("gate_results", 10, 10_000),
    _Flag("close_on_complete", default=True),
    _Size("rotate_at", 4 * 1024 * 1024, 64 * 1024 * 1024),
    _Choice("hook.reserve", AUTO, EXCLUSIVE, SHARED, OFF),
    _Patterns("hook.ignore"),
    _Text("land.check", "", 4096),
    _Duration("land.check_timeout", 3600, 1, _DAY_S),
    _Choice("land.strategy", "merge", "rebase", "squash"),
    _Patterns("land.union"),
    _Duration("land.keep_turn", 600, 0, _DAY_S),
    _Text("sync.remote", "origin", 255),
    _Text("sync.branch", "queenbee/hive", 255),
    _Choice("sync.ledgers", "code", "branch"),
    _Choice("sync.when", "manual", "write", "read"),
    _Duration("sync.max_age", 30, 0, _DAY_S),
    _Choice("sync.confirm", "local", "remote"),
    _Duration("sync.timeout", 30, 1, 3600),
    _Duration("sync.clock_skew", 7200, 0, 30 * _DAY_S),
    _Choice("engine.kind", "files", "postgres"),
    _Text("engine.hive", "", 200),
    _Choice("engine.hook", "warn", "refuse"),
)


class Settings:
    """The settings from the file, with defaults for the others."""

    state: str
    droids: str
    issues: str
    durability: str
    hook_stop: str
    ttl_s: int
    quiet_after_s: int
    lock_timeout_s: float
    archive_after_s: int
    gate_results: int
    close_on_complete: bool
    rotate_at_bytes: int
    """0 if ledgers are not rotated automatically."""
    hook_reserve: str
    hook_ignore: tuple[str, ...]
    land_check: str
    land_check_timeout_s: float
    land_strategy: str
    land_union: tuple[str, ...]
    land_keep_turn_s: float
    sync_remote: str
    sync_branch: str
    sync_ledgers: str
    sync_when: str
    sync_max_age_s: float
    sync_confirm: str
    sync_timeout_s: float
    sync_clock_skew_s: float
    engine_kind: str
    engine_hive: str
    engine_hook: str
    database: str
    """Where the database is, as libpq reads it, from the environment; it may hold a password."""

    def __init__(self, said: Mapping[str, object] | None = None, unknown: tuple[str, ...] = ()):
        for setting in SETTINGS:
            setattr(self, setting.attribute, (said or {}).get(setting.attribute, setting.default))
        self.database = str((said or {}).get("database", ""))
        self.unknown = unknown
        """Settings that this version does not know: kept, ignored, reported by doctor."""


def load(beads_dir: str, env: Mapping[str, str]) -> Settings:
    """Returns the settings of the hive in `beads_dir`; `QUEEN_DURABILITY` overrides the file's.

    Raises `Unreadable`, naming the setting at fault, for a file that is not TOML or has a value
    that is not allowed: guessing at shared settings would let two processes disagree.
    """
    path = os.path.join(beads_dir, FILE_NAME)
    values = _by_name(path, _read(path))
    said: dict[str, object] = {}
    for setting in SETTINGS:
        if setting.name in values:
            value = values.pop(setting.name)
            said[setting.attribute] = setting.read(value)
            if said[setting.attribute] is None:
                raise Unreadable(
                    f"{path}: {setting.name} cannot be {value!r}",
                    hint=f"set {setting.name} to {setting.allowed}",
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
    return Settings(said, unknown=tuple(sorted(values)))


def _by_name(path: str, values: Mapping[str, object]) -> dict[str, object]:
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


def _read(path: str) -> dict[str, object]:
    try:
        text = read_own(path).decode()
    except NotFound:
        return {}
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not UTF-8: {error}", path=path) from error
    # The file from `queen init` holds comments only: skipping tomllib then saves 10 ms.
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    import tomllib  # noqa: PLC0415 - start-up

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # Also huge numbers and deep nesting.
        raise Unreadable(
            f"{path} is not TOML: {error}", hint="correct the file, or delete it", path=path
        ) from error
