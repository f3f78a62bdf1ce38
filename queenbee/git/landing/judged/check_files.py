"""What a branch changes of the check itself: its settings, what sets up the checkout in which it
runs, the files that it runs, workflows, Definitions of Done, and the agents that judge.

What the check's command says (`command_reads`), and where hosts, clients and git look for what they
run. A test that the check runs is not of the check.
"""

from __future__ import annotations

import json
import os
import posixpath
from typing import TYPE_CHECKING

from queenbee.core.text import named, suggested
from queenbee.git.landing.judged.client_files import EVERY, is_of_client
from queenbee.git.landing.judged.command_reads import read_by, with_links
from queenbee.git.landing.judged.settings_read import is_setting
from queenbee.git.landing.refusals import SHOWN, NotLanded
from queenbee.git.upstream import LFS_SETTINGS
from queenbee.services.writing.seeing import note_typed
from queenbee.store import safe_open
from queenbee.store.droids.agent_callers import is_by_agent
from queenbee.store.trust import Proposal
from queenbee.store.whole_files import keep, recall

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from queenbee.store.trust import Trust

_FOLDERS = (
    *(".github/workflows/", ".github/actions/", ".gitea/workflows/", ".forgejo/workflows/"),
    *(".circleci/", ".buildkite/", ".woodpecker/", ".semaphore/", ".azure-pipelines/"),
    *(".husky/", ".githooks/", ".beads/hooks/"),
    # Clients run hooks and servers that these name, and agents of `.claude/` judge sprint beads.
    *(each for each in EVERY if each.endswith("/")),
)
_LEFTHOOK = tuple(
    f"{folder}{name}."
    for folder in ("", ".config/")
    for name in ("lefthook", ".lefthook", "lefthook-local", ".lefthook-local")
)
_FILES = frozenset({
    ".gitlab-ci.yml", ".travis.yml", ".drone.yml", ".drone.yaml", ".woodpecker.yml", "Jenkinsfile",
    "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", "appveyor.yml",
    ".cirrus.yml", ".pre-commit-config.yaml", "prek.toml", ".overcommit.yml", "hk.pkl",
    ".simple-git-hooks.json", ".worktreeinclude", LFS_SETTINGS,
    *(each for each in EVERY if not each.endswith("/")),
})  # fmt: skip
_ATTRIBUTES = ".gitattributes"
"""Says which filter gives a check other bytes than the commit has, and how conflicts are hidden."""
SHOWN_CHECK = "queenbee-land-check"
"""The file, in the git directory of a worktree, that says which change of the check was told."""
_KEY_CHARS = 32

ACCEPTED = "accepted check"
"""The kind under which it is remembered that a person has accepted such a change."""


class CheckGuarded(NotLanded):
    """A landing that changes the check, and waits for a person."""

    code = "check_guarded"
    is_new: bool = False


def check_files(
    commands: Sequence[str], changed: Collection[str], tree: str = "", folders: Sequence[str] = ()
) -> list[str]:
    """Returns those of the changed files that checks run, workflows, hooks, and files of agents;
    also all in these `folders`. Links are followed as they are in `tree`.
    """
    reads = [read_by(each) for each in commands]
    linked = {way for each in reads for way in each.linked(tree)}
    others = {*_FILES}
    if tree and any(each.has_settings for each in reads):
        others.update(each for each in safe_open.names_in(tree) if is_setting(each))
    wanted = linked | {each for name in others for each in with_links(tree, name)}
    begins = (*_FOLDERS, *_LEFTHOOK, *(f"{each}/" for each in folders))
    inside = {way for each in begins for way in with_links(tree, f"{each}*")}
    behind = tuple(each[:-1] for each in inside if each.endswith("*"))
    return sorted(
        each
        for each in changed
        if each in wanted | inside  # A file or link in place of a folder, too.
        or each.startswith(behind)
        or is_of_client(each)
        or posixpath.basename(each) == _ATTRIBUTES
        or any(read.has(each) for read in reads)
    )


def refuse_unaccepted(
    trust: Trust, git_dir: str, blobs: Mapping[str, str], last: str, *, accepts: str | None
) -> None:
    """Refuses a change of the check that no person has accepted: these files with these blobs, upon
    the `last` commit of the target that changed them. So one that was taken back asks again.

    A person accepts what they were shown, by its key: nothing in the worktree says what that was.
    Raises `CheckGuarded`; its `is_new` says whether this change is told for the first time.
    """
    path, files = os.path.join(git_dir, SHOWN_CHECK), dict(blobs)
    what = json.dumps([last, files], sort_keys=True)
    change = Proposal(ACCEPTED, what, origin="queen land")
    key = change.key[:_KEY_CHARS]
    if accepts == key and not is_by_agent(trust.layout):
        note_typed(trust.layout, [change])
        return
    if any(each["key"] == change.key for each in trust.seen()):
        return
    is_new = recall(path) != files
    keep(path, files)
    listed = [*files]
    raise CheckGuarded(
        f"this branch changes the check: {named(listed, SHOWN)}; nothing was landed, it waits for "
        "a person",
        hint=f"a person looks at it and types: {suggested('cd', trust.layout.tree)} && "
        f"queen land --accept-check {key}",
        files=listed,
        is_new=is_new,
    )
