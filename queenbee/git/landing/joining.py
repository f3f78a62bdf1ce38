"""Brings the target into a branch, and gives the branch the history that the target is to get.

Whatever the strategy, every commit that the target had stays on its first-parent line: a merge has
the target as its first parent, and the branch as its second.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.command_lines import no_dash
from queenbee.core.text import named, quotation, suggested
from queenbee.errors import ExternalFailure
from queenbee.git.changes import merge_heads
from queenbee.git.contents.landing_messages import About, other_message
from queenbee.git.contents.running_hooks import HOOK_BY_ALIAS, HOOK_BY_GIT, runs_hooks
from queenbee.git.landing import arrivals, settings_merge
from queenbee.git.landing.commands import (
    ACTION,
    AMONG_OTHERS,
    RAW,
    contents,
    git,
    line,
)
from queenbee.git.landing.committing import secret_message, take_back
from queenbee.git.landing.conflicts import Joins, Unmerged, with_markers
from queenbee.git.landing.moving import healing
from queenbee.git.landing.refusals import SHOWN, NotLanded, Unresolved, why_refused
from queenbee.git.landing.work import MERGE, PROPOSED, REBASE, SQUASH
from queenbee.git.run import names_in
from queenbee.git.trees.in_memory import merged_in_memory
from queenbee.services.writing.secrets import redacted
from queenbee.store import safe_open

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from queenbee.git.landing.checkout import Checkout
    from queenbee.git.landing.commands import Commands, Done
    from queenbee.git.landing.conflicts import Joined
    from queenbee.git.landing.place import Place
    from queenbee.git.landing.work import Offer, Rules
    from queenbee.git.objects import Objects

    Author = Mapping[str, str]
    """The variables that name the author of a commit."""

_MERGE_TARGET = 3
"""In a merge, the target is "theirs"; in a rebase it is what the commits are put on: "ours"."""
_REBASE_TARGET = 2
_MOST_SHOWN = 80


class Joining:
    """One way to bring a branch and its target together."""

    def __init__(self, place: Place, rules: Rules, subject: str | None):
        self._place = place
        self._commands: Commands = place.commands
        self._strategy = rules.strategy
        self._signs = rules.signs
        self.judge_by(rules)
        self._messages = rules.messages
        self._about = About(place.branch, subject or "", self._commands.droid)
        self.target: str = ""
        """The commit of the target that was brought into the branch."""
        self.joined: list[Joined] = []
        """The conflicts that needed nobody, in the order in which they were met."""
        self.is_one: bool = False
        """Whether the commits of the branch become one, because its merges changed files."""
        self._made: dict[str, Top] = {}
        """The commits that were made here."""

    def judge_by(self, rules: Rules) -> None:
        """Joins conflicts by these rules from here on."""
        self.joins: Joins = Joins(rules.union, rules.join, bool(rules.check))

    def bring(self) -> None:
        """Merges the target into the branch, or rebases that, if it lacks something.

        A branch with merges is merged, whatever the strategy: a rebase would drop what a merge
        itself changed, such as how somebody resolved its conflicts.

        Raises `Unresolved` for a conflict, which it leaves to be resolved, and `NotLanded`.
        """
        place, target = self._place, self._place.tip()
        self.target = target
        if not self._lacks_any(place.head()):
            return
        if self._strategy == REBASE and place.is_linear(target):
            self._rebase(target)
        else:
            name = self._about.branch if self._strategy != PROPOSED else place.target_name
            self._merge(target, self._about._replace(branch=name))

    def _lacks_any(self, head: str) -> bool:
        """Returns whether a commit lacks something that the target has."""
        return bool(arrivals.log(self._place.common_dir, f"{head}..{self.target}", "--"))

    def join(self, checkout: Checkout, head: str) -> str:
        """Returns the commit to land: that of a branch, on top of the target. Raises as `bring`."""
        self.target, self.is_one = checkout.tip(), False
        is_rebased = self._strategy == REBASE and checkout.is_linear(self.target, head)
        is_new = self._lacks_any(head)
        if is_rebased or self._strategy == PROPOSED or not is_new:
            checkout.go_to(head)
            self.bring()
        else:
            checkout.go_to(self.target)
            self._merge(head, self._about)
        if is_rebased:
            return checkout.head()
        settings_merge.mend(self._commands, checkout.tree, self.target)
        top = self.top(checkout.head())
        self.is_one = self._strategy == REBASE and not self._replayed(top)
        if self._strategy == SQUASH:
            self._squash(top, self._own_commits(f"{self.target}..HEAD"))
        elif self.is_one:
            own = git("rev-list", "--reverse", no_dash(f"{self.target}..HEAD"), cwd=checkout.tree)
            self._squash(top, own.decode().split()[: -1 if is_new else None])
        elif self._strategy == MERGE and self.target not in (top.commit, *top.parents[:1]):
            # A commit between them would be a step of the target that nobody checked.
            self._put_first(top)
        return checkout.head()

    def put_upon(self, landed: str, head: str) -> None:
        """Puts what was committed since `head` upon the commit that it has landed as, in the
        worktree, whose droid waits for it. Raises as `bring`.
        """
        self._rebase(landed, since=head)

    def replayed(self, landed: str, head: str, now: str) -> str:
        """Returns the commits from `head` to `now`, put upon the one that `head` has landed as. It
        changes no worktree: somebody may be working there. Raises `Unresolved` for a conflict that
        no rule joins, and `NotLanded`.
        """
        onto = landed
        wanted = ("rev-list", "--reverse", no_dash(f"{head}..{now}"), "--")
        for commit in git(*wanted, cwd=self._place.tree).decode().split():
            onto = self._replay(self.top(commit), onto)
        return onto

    def _replay(self, top: Top, onto: str) -> str:
        """Returns a commit put upon another one; that one if it has the same already."""
        place = self._place
        # Git merges from what both sides come from: so a side is made that comes from the parent.
        how = ("commit-tree", no_dash(f"{onto}^{{tree}}"), "-mside", f"-p{top.parents[0]}")
        made = self._commands(*how, cwd=place.tree)
        if made.status != 0:
            raise _refused("git cannot make a commit", made)
        side = made.said.split()[-1]
        files, listed = merged_in_memory(place.tree, side, top.commit)
        if not files:
            what = f"git cannot put {top.commit[:10]} upon {onto[:10]} in memory"
            raise Unresolved(what, hint="queen land")
        message = top.message
        if listed:
            unmerged = Unmerged(place.tree, _REBASE_TARGET, onto, listed)
            if left := unmerged.left(self.joins):
                raise place.conflict(left)
            files = unmerged.joined_in(files, self.joins)
            self.joined += unmerged.joined
            message += _paragraph(unmerged.joined)
        trees = (place.commit(each, "tree") for each in (onto, top.commit, top.parents[0]))
        there, own, before = trees
        if files == there and own != before:
            return onto
        return self.commit(files, [onto], message, top.author)

    def conflicts_with(self, target: str) -> list[str]:
        """Returns the files that a merge of the target would leave to the actor."""
        tree = self._place.tree
        _, listed = merged_in_memory(tree, "HEAD", target)
        return Unmerged(tree, _MERGE_TARGET, target, listed).left(self.joins) if listed else []

    def add(self, before: str, offer: Offer) -> bool:
        """Merges another branch into the commit of this worktree, as a commit of its own; returns
        False where that cannot be done: then it is to be put right again.
        """
        place, known = self._place, len(self.joined)
        about = about_offer(offer)
        try:
            self._merge(offer.head, about, is_own=False)
            commits = self._own_commits(f"{before}..{offer.head}")
            if self._strategy != SQUASH or not commits:
                return True
            said = self._squashed(commits, about, self.joined[known:])
            message = self._by_hook(said, "land.message")
            self._commit(place.head(), [before], message, self.top(commits[0]).author)
        except NotLanded:
            self._commands.stop_if_asked()
            return False
        return True

    def message_of_all(self, offers: Sequence[Offer]) -> str:
        """Returns what the commit says that lands this branch with those, as the hook leaves it.
        Raises `NotLanded`.
        """
        abouts = [self._about, *map(about_offer, offers)]
        return self._by_hook(self._messages.merges(abouts, self._place.target_name))

    def finish(self) -> None:
        """Commits what the actor resolved. Raises `Unresolved` if something is still open."""
        place = self._place
        if not place.is_merging and not place.is_rebasing:
            return
        stage = _REBASE_TARGET if place.is_rebasing else _MERGE_TARGET
        unmerged = Unmerged(place.tree, stage)
        if left := unmerged.files:
            raise unmerged.not_added(left) or place.conflict(left)
        if place.is_rebasing:
            if self._commands.step.name:  # What git commits now, nobody can make again.
                self._commands.step.write(self._commands.step.name, **{healing.CONTINUED: True})
            self._go_on_rebasing(self._commands("rebase", "--continue", cwd=place.tree))
            return
        sides = [place.head(), *merge_heads(place.git_dir)]
        if marked := self._left_markers(sides):
            where = named([*marked.values()], SHOWN)
            raise Unresolved(
                f"added, but the markers of a conflict are still in {where}",
                hint="resolve them, git add, then queen land --continue; or queen land --abort",
                files=[*marked],
            )
        path = os.path.join(place.git_dir, "MERGE_MSG")
        message = safe_open.read(path) if safe_open.is_there(path) else b""
        done = self._commit_merge()
        if done.status != 0:
            raise _refused("the merge cannot be committed", done)
        if refusal := self._secret_message():
            take_back(place.tree, sides, place.head())
            safe_open.write(path, message)
            raise refusal

    def _left_markers(self, sides: Sequence[str]) -> dict[str, str]:
        """Returns what somebody resolved with the markers of a conflict left, as `with_markers`."""
        tree = self._place.tree
        first, *others = [
            contents(git("diff-index", "--cached", *RAW, no_dash(each), "--", cwd=tree))
            for each in sides
        ]
        resolved = {path for path in first if all(path in each for each in others)}
        return with_markers(tree, {path: first[path] for path in resolved})

    def _secret_message(self) -> NotLanded | None:
        """Returns the refusal for the message of the last commit, if that looks like a secret."""
        if self._place.store.allow_secrets:
            return None
        return secret_message(self.top(self._place.head()).message)

    def abort(self) -> bool:
        """Takes an unfinished merge or rebase back, and keeps what somebody has done there; returns
        whether there was one.
        """
        place = self._place
        if not place.is_merging and not place.is_rebasing:
            return False
        what = "rebase" if place.is_rebasing else "merge"
        if place.is_own and healing.is_touched(self._commands.step, place.own):
            healing.keep_touched(place.own, place.tell)
        done = self._commands(what, "--abort", cwd=place.tree, to_the_end=True)
        if done.status != 0:
            raise _refused(f"the {what} cannot be taken back", done)
        return True

    def _merge(self, commit: str, about: About, *, is_own: bool = True) -> None:
        """Merges a commit. Raises `NotLanded`, also for what hooks make of the message."""
        before = self._place.head()
        self._merged(commit, self._fit(self._messages.merge(about)), is_own=is_own)
        is_made = self._place.head() not in (before, commit)
        if is_made and (refusal := self._secret_message()):
            self._commands("reset", "--keep", no_dash(before), cwd=self._place.tree)
            raise refusal

    def _merged(self, commit: str, message: str, *, is_own: bool) -> None:
        place, is_target = self._place, commit == self.target
        stage = _MERGE_TARGET if is_target else _REBASE_TARGET
        if place.is_own:
            place.refuse_overwriting(commit)
        self._commands.wait_for_index(place.git_dir)
        name = "merge" if is_own else AMONG_OTHERS
        self._commands.step.write(name, before=place.head(), after=commit)
        how = ("--no-edit", "--commit", "--no-squash", "--no-stat", f"--message={message}")
        way = ("--ff" if is_own else "--no-ff", no_dash(commit))
        done = self._commands("merge", *how, *way, cwd=place.tree)
        if done.status == 0:
            return
        if self._resolve(stage):
            done = self._commit_merge()
        elif place.is_merging and (changed := self._not_added()):  # By a hook of the merge.
            done = self._with_changed(changed)
        if done.status == 0:
            return
        if place.is_merging:  # A hook refused it: nothing is left half merged.
            self._commands("merge", "--abort", cwd=place.tree, to_the_end=True)
        self._commands.stop_if_asked()
        hint = f"git status; if a hook refuses the message: {other_message('land.merge_message')}"
        if line("merge-base", "HEAD", no_dash(commit), cwd=place.tree) is None:
            onto = suggested("git rebase --onto", place.target, "FIRST_COMMIT_OF_YOURS^")
            hint = f"they have no commit in common; if its history was replaced: {onto}"
        raise _refused(f"{place.target} cannot be merged", done, hint)

    def _commit_merge(self) -> Done:
        """Commits a merge whose files are in the index; once more with what a hook has changed, if
        that is why it refuses.
        """
        # Without an editor, git keeps its comments on the conflicts in the message.
        how = ("commit", "--no-edit", "--cleanup=strip")
        tree, before = self._place.tree, self._not_added()
        done = self._commands(*how, cwd=tree)
        changed = self._not_added() - before if done.status != 0 else set()
        return self._with_changed(changed) if changed else done

    def _with_changed(self, changed: Collection[str]) -> Done:
        """Commits a merge with files that a hook has changed."""
        tree = self._place.tree
        self._commands("--literal-pathspecs", "add", "--", *sorted(changed), cwd=tree)
        return self._commands("commit", "--no-edit", "--cleanup=strip", cwd=tree)

    def _not_added(self) -> set[str]:
        """Returns the tracked files that differ from the index."""
        how = ("diff-files", "--name-only", "-z")
        return set(names_in(git(*how, cwd=self._place.tree)))

    def _rebase(self, target: str, since: str | None = None) -> None:
        place = self._place
        onto = (no_dash(target),) if since is None else (f"--onto={target}", no_dash(since))
        if place.is_own:
            place.refuse_overwriting(target, replays=True)
        self._commands.wait_for_index(place.git_dir)
        self._commands.step.write("rebase", before=place.head(), after=target)
        done = self._commands("rebase", *onto, cwd=place.tree)
        self._go_on_rebasing(done)

    def _go_on_rebasing(self, done: Done) -> None:
        """Resolves what can be resolved, commit by commit, until the rebase is done."""
        place = self._place
        while done.status != 0:
            if not place.is_rebasing or not self._resolve(_REBASE_TARGET):
                self.abort()  # Something else stopped it.
                self._commands.stop_if_asked()
                raise _refused(f"the branch cannot be rebased on {place.target}", done)
            done = self._commands("rebase", "--continue", cwd=place.tree)

    def _replayed(self, top: Top) -> bool:
        """Rebases a branch with merges; returns False, and takes it back, where that meets a
        conflict that somebody has resolved in a merge, or makes other files than the merges did.
        """
        place, known = self._place, [*self.joined]
        self.joined.clear()
        with suppress(Unresolved):
            self._rebase(self.target)
            if place.commit("HEAD", "tree") == place.commit(top.commit, "tree"):
                return True
        self.joined[:] = known
        if place.is_rebasing:
            self._commands("rebase", "--abort", cwd=place.tree, to_the_end=True)
        how = ("-c", f"core.hooksPath={os.devnull}", "checkout", "-q", "--force", "--detach")
        done = self._commands(*how, no_dash(top.commit), "--", cwd=place.tree)
        if done.status != 0:
            raise _refused("git cannot take a rebase back", done)
        return False

    def _resolve(self, target_stage: int) -> bool:
        """Returns whether git stopped at conflicts, which are resolved now. Raises `Unresolved` for
        those that are left to the actor.
        """
        unmerged = Unmerged(self._place.tree, target_stage, self._place.other_side)
        left = unmerged.join(self._commands, self.joins)
        self.joined += unmerged.joined
        self._say_in_message(unmerged.joined)
        settings = settings_merge.PATH
        if settings in left and settings_merge.resolve(
            self._commands, self._place.tree, target_stage
        ):
            left.remove(settings)
        if left:
            if self._place.is_own:
                self._commands.step.write("conflict")
            kept = self.joins.keeps_both
            offered = [each for each in unmerged.only_added() if each in left and not kept(each)]
            raise self._place.conflict(left, union=offered)
        return bool(unmerged.files)

    def _say_in_message(self, joined: Sequence[Joined]) -> None:
        """Adds to the message of the commit that git is about to make what was joined."""
        name = "rebase-merge/message" if self._place.is_rebasing else "MERGE_MSG"
        path = os.path.join(self._place.git_dir, name)
        if joined and os.path.exists(path):
            safe_open.write(path, _paragraph(joined).encode(errors="surrogateescape"), os.O_APPEND)

    def _put_first(self, top: Top) -> None:
        """Makes the target the first parent of the branch's last commit.

        A merge of the target that nobody else has is replaced by the same one with its parents
        exchanged; else a merge is added.
        """
        target = self.target
        if top.parents[1:] == [target] and not self._is_published(top.commit):
            self._commit(top.commit, [target, top.parents[0]], top.message, top.author)
        else:
            message = self._by_hook(self._messages.merge(self._about))
            self._commit(top.commit, [target, top.commit], message)

    def again(self, commit: str, files: str, target: str, tip: str) -> str:
        """Makes a commit on a target once more, with another tree, and on what that target is now;
        where others may have it, a merge of it. Returns what it made.
        """
        top = self.top(commit)
        parents = [tip, *top.parents[1:]] if tip != target else top.parents
        if self._is_published(commit):
            message = self._by_hook(self._messages.merge(self._about))
            return self.commit(files, [parents[0], commit], message)
        return self.commit(files, parents, top.message, top.author)

    def top(self, commit: str) -> Top:
        """Returns what a commit says."""
        return self._made.get(commit) or Top.of(self._place.objects, commit)

    def _is_published(self, commit: str) -> bool:
        asked = ("for-each-ref", "--count=1", "--contains", no_dash(commit), "refs/remotes")
        return line(*asked, cwd=self._place.tree) is not None

    def _squash(self, top: Top, commits: Sequence[str]) -> None:
        """Makes one commit of the branch's, with the target as its parent."""
        if not commits or top.parents == [self.target]:
            return
        said = self._squashed(commits, self._about, self.joined)
        message = self._by_hook(said, "land.message")
        self._commit(top.commit, [self.target], message, self.top(commits[0]).author)

    def _own_commits(self, wanted: str) -> list[str]:
        """Returns the commits of a range that are no merges, the oldest first."""
        how = ("rev-list", "--reverse", "--no-merges", no_dash(wanted))
        return git(*how, cwd=self._place.tree).decode().split()

    def _squashed(self, commits: Sequence[str], about: About, joined: Sequence[Joined]) -> str:
        tree = self._place.tree
        if len(commits) == 1:
            said = git("show", "-s", "--format=%B", no_dash(commits[0]), cwd=tree).decode(
                errors="replace"
            )
            return self._messages.signed_off(said.rstrip("\n") + _paragraph(joined))
        subjects = git("show", "-s", "--format=* %s", *map(no_dash, commits), "--", cwd=tree)
        listed = subjects.decode(errors="replace").rstrip("\n") + _paragraph(joined)
        return self._messages.squashed(about, listed)

    def _fit(self, message: str) -> str:
        """Returns a message that is to be in git for good: a row or a branch may be named by a
        secret.
        """
        return message if self._place.store.allow_secrets else redacted(message)

    def _by_hook(self, message: str, setting: str = "land.merge_message") -> str:
        """Returns a message as the repository's hook leaves it. Raises `NotLanded` if that refuses
        it, with the setting that changes it.
        """
        import tempfile  # noqa: PLC0415 - start-up

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "MESSAGE")
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(self._fit(message).rstrip("\n") + "\n")
            run = HOOK_BY_GIT if runs_hooks() else HOOK_BY_ALIAS
            done = self._commands(*run, "commit-msg", "--", path, cwd=self._place.tree)
            if done.status != 0:
                first = quotation(message.split("\n", 1)[0], _MOST_SHOWN)
                what = f"the hook commit-msg refuses {first}, which landing would commit"
                raise _refused(what, done, other_message(setting))
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                made = file.read()
        refusal = None if self._place.store.allow_secrets else secret_message(made)
        if refusal is not None:
            raise refusal
        return made

    def _commit(
        self, head: str, parents: Sequence[str], message: str, author: Author | None = None
    ) -> None:
        """Replaces the branch's last commit by one with the same files and other parents."""
        self.move(self.commit(head, parents, message, author), head)

    def move(self, commit: str, before: str) -> None:
        """Moves the checkout, which is on no branch, to a commit with the same files."""
        how = ("update-ref", "--no-deref", "-m", ACTION, "HEAD", no_dash(commit), no_dash(before))
        done = self._commands(*how, cwd=self._place.tree, to_the_end=True)
        if done.status != 0:
            raise _refused(f"git cannot move to {commit[:10]}", done)

    def commit(
        self, head: str, parents: Sequence[str], message: str, author: Author | None = None
    ) -> str:
        """Makes a commit with the files of another one, or of a tree; returns it."""
        import tempfile  # noqa: PLC0415 - start-up

        tree = self._place.tree
        message = message if author else self._fit(message)  # Else it is somebody's own.
        options = [f"-p{parent}" for parent in parents]
        if self._signs:
            options.append("-S")
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(message.rstrip("\n") + "\n")
            file.flush()
            done = self._commands(
                *("commit-tree", no_dash(f"{head}^{{tree}}"), *options, f"-F{file.name}"),
                cwd=tree,
                env=author,
            )
        if done.status != 0:
            raise _refused("git cannot make the commit", done)
        made = done.said.split()[-1]
        self._made[made] = Top(made, list(parents), author or {}, message)
        return made


def about_offer(offer: Offer) -> About:
    """Returns what the commits are for that bring an offered branch."""
    return About(offer.branch, offer.subject or "", offer.droid)


def _paragraph(joined: Sequence[Joined]) -> str:
    said = [f"- {sentence}" for each in joined for sentence in each.sentences()]
    return "\n".join(["", "", *said, ""]) if said else ""


class Top(NamedTuple):
    """The last commit of a branch."""

    commit: str
    parents: list[str]
    author: Author
    message: str

    @classmethod
    def of(cls, objects: Objects, commit: str) -> Top:
        """Raises `ExternalFailure` if there is no such commit."""
        found = objects.read(commit)
        if found is None or found[1] != "commit":
            raise ExternalFailure(f"git has no commit {commit}", program="git")
        head, _, body = found[2].partition(b"\n\n")
        # Lines that begin with a space continue a signature.
        said = [each.partition(b" ") for each in head.split(b"\n") if not each.startswith(b" ")]
        fields = {name: value for name, _, value in said}
        encoding = fields.get(b"encoding", b"utf-8")
        who, _, date = _text(fields.get(b"author", b""), encoding).rpartition("> ")
        name, _, email = who.partition("<")
        author = {
            "GIT_AUTHOR_NAME": name.strip(),
            "GIT_AUTHOR_EMAIL": email,
            "GIT_AUTHOR_DATE": f"@{date}",
        }
        parents = [value.decode() for name, _, value in said if name == b"parent"]
        return cls(found[0], parents, author, _text(body, encoding))


def _text(data: bytes, encoding: bytes) -> str:
    with suppress(LookupError, UnicodeError):
        return data.decode(encoding.decode("ascii"), "surrogateescape")
    return data.decode(errors="surrogateescape")


def _refused(what: str, done: Done, hint: str = "git status") -> NotLanded:
    return NotLanded(*why_refused(what, done.said, done.status), hint=hint)
