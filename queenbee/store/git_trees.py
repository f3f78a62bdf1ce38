"""A working tree of git, its settings and what it tracks, as git's own files say.

No git process runs. Git delivers nothing into its own directory, so links there are followed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from queenbee.core.names import is_of_agent
from queenbee.core.text import shell_word
from queenbee.errors import Unreadable
from queenbee.store import safe_open

TYPE_CHECKING = False  # Spares the 9 ms that typing takes.
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_INCLUDES = 10
"""As deep as git follows the files that its configuration includes."""
_BLANKS = " \t\r\n"
"""What git takes for blanks in its configuration, and no other character."""
_entries: dict[bytes, Sequence[tuple[str, str, str]]] = {}
"""What the texts of some config files say."""
_MOST_ENTRIES = 8
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b", "\n": ""}


class GitTree:
    """One working tree, as git's own files describe it."""

    __slots__ = ("common_dir", "git_dir", "main_tree", "tree")

    def __init__(self, tree: str, git_dir: str, common_dir: str, main_tree: str | None) -> None:
        self.tree: str = tree
        """The top of this working tree."""
        self.git_dir: str = git_dir
        """This worktree's own git directory."""
        self.common_dir: str = common_dir
        """The git directory that all worktrees share."""
        self.main_tree: str | None = main_tree
        """The top of the main worktree; None with a bare main repository."""

    @property
    def linked(self) -> bool:
        """Whether this is a linked worktree."""
        return self.git_dir != self.common_dir


def git_tree(start: str) -> GitTree | None:
    """Returns the git working tree that holds `start`, or None outside git.

    Raises `Unreadable` for a `.git` file that leads nowhere.
    """
    for folder in upward(start):
        dot_git = os.path.join(folder, ".git")
        if os.path.isdir(dot_git):
            # Git takes no notice of what is none either, and looks further up.
            # A path of a hive has no links; git delivers no .git, so only its owner made one.
            own = safe_open.real_path(dot_git) if os.path.islink(dot_git) else dot_git
            if _is_git_dir(own):
                return _git_tree(folder, own)
            continue
        if os.path.isfile(dot_git):
            target = whole(dot_git)
            if target.startswith("gitdir:"):
                git_dir = safe_open.real_path(
                    os.path.join(folder, target.removeprefix("gitdir:").lstrip(" "))
                )
                if not _is_git_dir(git_dir):
                    # Git refuses to work here too; a lock made in a directory that is gone
                    # would be shared with nobody.
                    is_there = os.path.isdir(git_dir)
                    why = "is no git directory" if is_there else "does not exist"
                    raise Unreadable(
                        f"{dot_git} leads to {git_dir}, which {why}",
                        hint="in a container, mount that at this path; if the repository was "
                        f"moved, there: git worktree repair {shell_word(folder)}",
                        path=dot_git,
                    )
                return _git_tree(folder, git_dir)
    return None


def _is_git_dir(path: str) -> bool:
    """Returns whether git would take a folder for a git directory, also of a linked worktree."""
    has = (os.path.lexists(os.path.join(path, each)) for each in ("objects", "commondir"))
    return os.path.lexists(os.path.join(path, "HEAD")) and any(has)


def linked_trees_since(common_dir: str, since_ms: int) -> int:
    """Returns for how many linked worktrees git has written since then: made, checked out, added
    or committed there. One that is locked, as the checkout of landings is, does not count.
    """
    with suppress(OSError), os.scandir(os.path.join(common_dir, "worktrees")) as found:
        free = (each for each in found if not os.path.lexists(os.path.join(each.path, "locked")))
        return sum(each.stat().st_mtime * 1000 > since_ms for each in free)
    return 0


def folds_case(common_dir: str | None) -> bool:
    """Returns whether git says that this file system does not tell upper from lower case."""
    return common_dir is not None and config_says(common_dir, "ignorecase")


def composes_names(common_dir: str) -> bool:
    """Returns whether git says that this file system takes the composed and the decomposed form of
    a character, such as `é`, for one name.
    """
    return config_says(common_dir, "precomposeunicode")


def _git_tree(tree: str, git_dir: str) -> GitTree:
    pointer = os.path.join(git_dir, "commondir")
    common_dir = git_dir
    if os.path.isfile(pointer):
        common_dir = safe_open.real_path(os.path.join(git_dir, whole(pointer)))
    main_tree = tree if common_dir == git_dir else _main_tree(common_dir)
    return GitTree(tree, git_dir, common_dir, main_tree)


NOTE = "queenbee-main"
"""The file beside git's own that says where the main worktree is, if git does not."""


def is_bare(common_dir: str) -> bool:
    """Returns whether git says that a repository has no main worktree."""
    return config_says(common_dir, "bare")


def leads_to(tree: str, git_dir: str) -> bool:
    """Returns whether the `.git` of a folder is, or names, this git directory."""
    dot_git = os.path.join(tree, ".git")
    try:
        if os.path.isfile(dot_git):
            dot_git = os.path.join(tree, whole(dot_git).removeprefix("gitdir:").lstrip(" "))
    except Unreadable:
        return False
    return os.path.realpath(dot_git) == git_dir


def is_at_home(git_dir: str, common_dir: str) -> bool:
    """Returns whether the git directory of a linked worktree names the repository that has it."""
    try:
        said = os.path.join(git_dir, whole(os.path.join(git_dir, "commondir")))
        return os.path.samefile(said, common_dir)
    except (OSError, Unreadable):
        return False


def _main_tree(common_dir: str) -> str | None:
    """Returns the top of the main worktree, whose `.git` is or names this directory; None if there
    is none, or nobody says where: then it is not guessed.

    Git says it in `core.worktree` for a submodule, and nowhere for `git init --separate-git-dir`.
    """
    if is_bare(common_dir):
        return None
    said = _said_main(common_dir)
    beside = os.path.dirname(common_dir) if os.path.basename(common_dir) == ".git" else None
    tree = said or beside
    if tree is None or not leads_to(tree, common_dir):
        return None
    return tree if said or not _is_empty(tree, common_dir) else None


def _said_main(common_dir: str) -> str | None:
    for name in ("config.worktree", "config"):
        said = config_value(os.path.join(common_dir, name), "core", "worktree")
        if said:
            return safe_open.real_path(os.path.join(common_dir, said))
    note = os.path.join(common_dir, NOTE)
    return whole(note) or None if os.path.isfile(note) else None


def _is_empty(tree: str, git_dir: str) -> bool:
    """Returns whether a folder has nothing but a `.git`, in whose index are files: they are in a
    folder elsewhere, with a link to this one.
    """
    try:
        if os.listdir(tree) != [".git"]:
            return False
        with open(os.path.join(git_dir, "index"), "rb") as file:
            return int.from_bytes(file.read(12)[8:], "big") > 0
    except OSError:
        return False


def upward(start: str, here: GitTree | None = None) -> list[str]:
    """Returns the folder and those above it, not past the top of the git working tree."""
    folders = [start]
    while folders[-1] != os.path.dirname(folders[-1]):
        if here is not None and folders[-1] == here.tree:
            break
        folders.append(os.path.dirname(folders[-1]))
    return folders


def whole(path: str) -> str:
    """Returns what git says in a file that is a path, which may have several lines."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read(65_536).rstrip("\r\n")
    except OSError as error:
        raise Unreadable(f"{path} cannot be read: {error.strerror}", path=path) from error


def config_says(common_dir: str, name: str, git_dir: str = "") -> bool:
    """Returns whether git's config files set a boolean of `core` to true, for the main worktree, or
    that of a git directory.

    Git moves `core.bare` to `config.worktree` when worktrees have their own settings.
    """
    value = "false"
    for place in ((common_dir, "config"), (git_dir or common_dir, "config.worktree")):
        value = config_value(os.path.join(*place), "core", name) or value
    return value.lower() in ("true", "yes", "on", "1")


def owners_environment(env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns an environment in which an agent has no say in which settings git reads."""
    if not any(name.startswith("GIT_CONFIG") for name in env):
        return env
    from queenbee.store.callers.agent_above import is_agent  # noqa: PLC0415 - start-up

    if not (is_of_agent(env) or is_agent()):
        return env
    return {name: value for name, value in env.items() if not name.startswith("GIT_CONFIG")}


def config_files(common_dir: str | None, env: Mapping[str, str]) -> list[str]:
    """Returns the files of git's config, the repository's first, as `git config` finds them."""
    home = env.get("HOME")
    own = env.get("XDG_CONFIG_HOME") or (os.path.join(home, ".config") if home else None)
    inner = ("config.worktree", "config") if common_dir is not None else ()
    files = [os.path.join(common_dir or "", name) for name in inner]
    if env.get("GIT_CONFIG_GLOBAL"):
        files.append(env["GIT_CONFIG_GLOBAL"])
    else:
        files += [os.path.join(home, ".gitconfig")] if home else []
        files += [os.path.join(own, "git", "config")] if own else []
    if not env.get("GIT_CONFIG_NOSYSTEM"):
        files.append("/etc/gitconfig")
    return files


def config_value(
    path: str, section: str, name: str, *, includes: int = _MOST_INCLUDES
) -> str | None:
    """Returns a value in one of git's config files or in those that it includes, or None.

    Section, as `config_entries` says it, and name in lower case; a file that is included on a
    condition is not read.
    """
    value = None
    for current, key, said in config_entries(path):
        if key == name and current == section:
            value = said
        elif key == "path" and current == "include" and includes:
            beside = os.path.join(os.path.dirname(path), os.path.expanduser(said))
            value = config_value(beside, section, name, includes=includes - 1) or value
    return value


def config_entries(path: str) -> Sequence[tuple[str, str, str]]:
    """Returns the section, such as `core` or `remote.origin`, the name and the value of each
    setting in one of git's config files, in order; nothing of one that cannot be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            data = file.read()
    except OSError:
        return ()
    if data not in _entries:  # A landing asks some hundred times.
        if len(_entries) >= _MOST_ENTRIES:
            _entries.clear()
        # Not as `utf-8-sig`: Python loads that when it is first used, which may be without a
        # descriptor left to open it.
        text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        _entries[data] = [*_entries_in(text.replace("\r\n", "\n"))]
    return _entries[data]


def _entries_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields the same of a text.

    Git writes what a tree says into them, such as the address of a submodule: where a line or a
    value ends is decided as git does. Source: "git-config" in git's documentation.
    """
    section, at = "", 0
    while at < len(text):
        end = text.find("\n", at) % (len(text) + 1)
        line = text[at:end].lstrip(_BLANKS)
        if line.startswith("["):
            section, rest = _section(line)
            at = end - len(rest)
            continue
        key, equals, _ = line.partition("=")
        value, at = "true", end + 1
        if equals and not line.startswith(("#", ";")):
            value, at = _value_at(text, end - len(line) + len(key) + 1)
        yield section, key.strip(_BLANKS).lower(), value


def _section(line: str) -> tuple[str, str]:
    """Returns the section whose header a line begins with, and the rest of the line."""
    name, quote, _ = line[1:].partition('"')
    if "]" in name or not quote:
        name, _, rest = line[1:].partition("]")
        return name.lower(), rest
    inner, at = "", len(name) + 2
    while line[at : at + 1] not in ('"', ""):
        at += line[at] == "\\"
        inner += line[at : at + 1]
        at += 1
    return f"{name.strip(_BLANKS).lower()}.{inner}", line[at + 2 :]


def _value_at(text: str, at: int) -> tuple[str, int]:
    """Returns the value that begins here, and where its last line ends."""
    value, size, quoted = "", 0, False
    while at < len(text) and text[at] != "\n":
        char = text[at]
        if char in "#;" and not quoted:
            at = text.find("\n", at) % (len(text) + 1)
            break
        if char == "\\":
            at += 1
            value += _ESCAPED.get(text[at : at + 1], text[at : at + 1])
        elif char == '"':
            quoted = not quoted
        elif value or quoted or char not in _BLANKS:
            value += char
        if quoted or char not in _BLANKS:  # Those at the end do not count.
            size = len(value)
        at += 1
    return value[:size], at


def name_in_index(git_dir: str, begin: str) -> str | None:
    """Returns a name in git's index that begins so, or None; with a final NUL, a whole name.

    1 ms for 30,000 files. In an index that cannot be read, there is none.
    """
    wanted = os.fsencode(begin)
    for data in _indexes(git_dir):
        if data[4:8] == b"\0\0\0\4":
            names = iter(_compressed(data, git_dir))
        else:
            names = _names_at(data, wanted)
        found = next((name for name in names if f"{os.fsdecode(name)}\0".startswith(begin)), None)
        if found is not None:
            return os.fsdecode(found)
    return None


def _indexes(git_dir: str) -> Iterator[bytes]:
    """Yields the content of the index; if it is split, most of the names are in another file."""
    try:
        for name in os.listdir(git_dir):
            if name == "index" or name.startswith("sharedindex."):
                yield _read(os.path.join(git_dir, name))
    except OSError:
        return


def _names_at(data: bytes, wanted: bytes) -> Iterator[bytes]:
    """Yields the names that begin where an index holds these bytes."""
    at = data.find(wanted)
    while at >= 0:
        name = data[at : data.find(b"\0", at)]
        if _begins(data, at, len(name)):
            yield name
        at = data.find(wanted, at + 1)


def _begins(data: bytes, at: int, size: int) -> bool:
    """Returns whether the name of an entry begins here: its length stands in the flags before it,
    two bytes, or four if they say so. Source: "gitformat-index" in git's documentation.
    """
    near, far = (int.from_bytes(data[at - back : at - back + 2], "big") for back in (2, 4))
    length = min(size, 0xFFF)
    is_extended = far & 0x4000 and far & 0xFFF == length
    return bool(is_extended) or (not near & 0x4000 and near & 0xFFF == length)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _compressed(data: bytes, git_dir: str) -> list[bytes]:
    """Returns the names in an index of version 4, where each says how much it shares with the one
    before. Source: "gitformat-index" in git's documentation.
    """
    try:
        sha256 = b"sha256" in _read(os.path.join(git_dir, "config"))
    except OSError:
        sha256 = False
    fixed = 40 + (32 if sha256 else 20) + 2
    names, name, at = list[bytes](), b"", 12
    try:
        for _ in range(int.from_bytes(data[8:12], "big")):
            extended = data[at + fixed - 2] & 0x40
            at += fixed + (2 if extended else 0)
            byte = data[at]
            cut = byte & 0x7F
            while byte & 0x80:
                at += 1
                byte = data[at]
                cut = (cut + 1) << 7 | byte & 0x7F
            end = data.index(b"\0", at + 1)
            name = name[: len(name) - cut] + data[at + 1 : end]
            names.append(name)
            at = end + 1
    except (IndexError, ValueError):
        pass  # Damaged: git refuses it too.
    return names
