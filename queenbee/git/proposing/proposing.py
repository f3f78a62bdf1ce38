"""Proposes work: a branch of its own at the remote, and a pull request for it.

Each step can be done again: a push says which commits of ours it may replace, and whoever asks for
a pull request first looks for the one that is there. So nothing is done twice after a kill, or
after an answer that never came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from queenbee.core.command_lines import no_dash
from queenbee.core.reviews.pull_requests import OPEN
from queenbee.core.text import mentioned, named, one_line, shell_word, suggested
from queenbee.errors import Conflict, InvalidInput, Unreachable
from queenbee.git.hosts.client import Client
from queenbee.git.hosts.repository import GITEA, GITLAB, Repository
from queenbee.git.proposing.pushed import Pushed
from queenbee.git.proposing.standing import keep_lacking
from queenbee.git.run import is_ancestor, line, network
from queenbee.git.upstream import Ran, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queenbee.core.reviews.pull_requests import PullRequest
    from queenbee.core.reviews.review import Review
    from queenbee.git.proposing.host import Host
    from queenbee.store.layout import Layout

T = TypeVar("T", bound=Ran)
PROPOSES = "pr"
_MOST_TITLE, _MOST_REASON = 200, 4_000


class ForeignCommits(Conflict):
    """The branch at the remote has commits that were not pushed from here."""

    code = "foreign_commits"


def upstream_of(layout: Layout) -> Upstream:
    """Returns the branch at the host that is to have the work. Raises `InvalidInput` if work lands
    on a branch of this repository.
    """
    upstream = Upstream.of_target(layout)
    if upstream is None:
        raise InvalidInput(
            "a pull request is for the branch of a remote, and work lands on one of here",
            hint="queen config set land.target origin/main, or as your remote and branch are named",
        )
    return upstream


def host_of(layout: Layout, again: str = "queen land") -> Host:
    """Returns the client of the host that has the target, whose hints say what to do `again`.
    Raises `InvalidInput`.
    """
    upstream = upstream_of(layout)
    repository = Repository.of_remote(upstream.tree, upstream.remote)
    remote = upstream.proposed_on("").remote
    fork = repository.fork(upstream.tree, remote) if remote != upstream.remote else ""
    client = Client(repository, again)
    if repository.kind == GITLAB:
        from queenbee.git.proposing.gitlab import GitLab  # noqa: PLC0415 - start-up

        return GitLab(client, fork)
    if repository.kind == GITEA:
        from queenbee.git.proposing.gitea import Gitea  # noqa: PLC0415 - start-up

        return Gitea(client, fork)
    from queenbee.git.proposing.github import GitHub  # noqa: PLC0415 - start-up

    return GitHub(client, fork)


@dataclass(frozen=True, slots=True)
class Proposing:
    """Proposes one commit after the other on one branch."""

    upstream: Upstream
    branch: str
    issues: Sequence[str | None]
    review: Review | None = None
    """The pull request that there is, and was proposed from here."""

    def push(self, run: Callable[..., T], tree: str, commit: str) -> str:
        """Pushes a commit that a tree has, in place of what was pushed before it; returns the
        branch that keeps what it lacks of that, or nothing. Raises `ForeignCommits`, `Unreachable`,
        and `Conflict` with the words of a remote that refuses, or where the branch is the target.
        """
        self._refuse_target()
        there = self._there()
        if there == commit:
            return ""
        pushed = Pushed(self.upstream.tree)
        own = pushed.commits(self.branch, self.issues)
        is_ours = self.review is not None or there in own
        if there not in ("", *own[-1:]) and not (
            is_ours and is_ancestor(there, commit, cwd=self.upstream.tree)
        ):
            fetch = suggested("git fetch", self.head.remote, self.branch)
            raise ForeignCommits(
                f"{named([self.head.name])} has commits that were not pushed from here: "
                f"{there[:10]}; nothing was proposed",
                hint=f"{fetch} && git merge FETCH_HEAD, then queen land"
                if self.review is not None
                else f"git branch -m {shell_word(f'{self.branch}-2')}, then queen land",
                commit=there,
            )
        layout = self.upstream.layout
        kept = keep_lacking(layout, self.branch, there, commit) if there in own else ""
        pushed.note(self.branch, commit, self.issues)
        done = self.head.push(run, tree, commit, there)
        if done.status != 0 and self._there() != commit:
            Pushed(self.upstream.tree).take_back(self.branch, commit)  # Others note meanwhile.
            raise Conflict(
                f"{named([self.head.name])} cannot be pushed: {' '.join(done.said.split())}",
                hint="do what it asks for, then queen land; to push to a fork: "
                "git config remote.pushDefault REMOTE",
            )
        return kept

    @property
    def head(self) -> Upstream:
        """The branch at the remote that has it, which may be a fork."""
        return self.upstream.proposed_on(self.branch)

    def _refuse_target(self) -> None:
        if (self.head.remote, self.branch) == (self.upstream.remote, self.upstream.branch):
            raise Conflict(
                f"{named([self.branch])} is the target: a pull request is from another branch",
                hint=f"git branch -m {shell_word(f'{self.branch}-work')}, then queen land",
            )

    def _there(self) -> str:
        """Returns the commit that the remote has on the branch, or nothing."""
        remote = self.head.remote
        asked = ("ls-remote", "--heads", "--", remote, f"refs/heads/{self.branch}")
        timeout_s = self.upstream.layout.settings.sync_timeout_s
        status, said, err = network(*asked, cwd=self.upstream.tree, timeout_s=timeout_s)
        if status != 0:
            raise Unreachable(
                f"{named([remote])} does not answer: {' '.join(err.split())}",
                hint="queen land, once it answers",
            )
        return said.partition("\t")[0].strip()

    def open(
        self, host: Host, commit: str, *, title: str, body: str, is_draft: bool
    ) -> PullRequest:
        """Returns the pull request for the branch, which was pushed with a commit: the open one, or
        one that was merged with it since; it opens one if there is neither.
        """
        answer = host.look([], [self.branch])
        base = self.upstream.branch
        for each in answer.by_branch.get(self.branch, ()):
            if each.base == base and (each.state == OPEN or each.head == commit):
                return each
        made = {"title": one_line(title, _MOST_TITLE), "body": body, "is_draft": is_draft}
        return host.open(answer, branch=self.branch, base=base, **made)  # type: ignore[arg-type]


def body_of(issues: Sequence[str], reason: str | None, template: str = "") -> str:
    """Returns what a pull request says: why, the repository's template, and its issues on lines
    that `queen` knows again. Of us it has nothing that closes an issue of the host.
    """
    named_issues = "\n".join(f"Queen-Issue: {one_line(x, _MOST_TITLE)}" for x in issues)
    said = [(reason or "").strip()[:_MOST_REASON], template.strip(), named_issues]
    return "\n\n".join(filter(None, said)) + "\n"


def subject_of(tree: str, commit: str) -> str:
    """Returns the subject of the last commit that is no merge: a title where there is no issue."""
    how = ("log", "-1", "--no-merges", "--format=%s", no_dash(commit), "--")
    return line(*how, cwd=tree, repository={}) or mentioned(commit[:10])
