"""What the commits say that a landing makes itself: merges, squashed commits, records.

A merge has git's own subject, which rules for commit messages know as one (commitlint ignores it);
what it is for is in the body. `[land] message` and `merge_message` are templates for a
repository that wants something else. Titles and branches are somebody's text: one line each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from queenbee.core.text import filled, one_line, shell_word, shortened, suggested
from queenbee.git.run import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queenbee.store.settings import Settings

_MOST_CHARS = 100
"""Of a line, where a template is set: more is what commitlint's usual rules refuse."""
_MOST_TITLE = 200
_MOST_SUBJECT = 72
"""A merge of branches whose names take more says how many they are."""
_TRAILERS = ("Signed-off-by: ", "Co-authored-by: ", "Change-Id: ")
RECORDS = "records"


def other_message(setting: str) -> str:
    """Returns the command that gives commits another message, for a repository whose hook refuses
    theirs.
    """
    return (
        f"{suggested('queen config set', setting, 'chore({id}): land {title}')}, in the form "
        "that the hook wants"
    )


def commit_options(settings: Settings, subject: str) -> str:
    """Returns the options of a `git commit` by hand, with a subject of the form that is set."""
    text = _whole(settings.land_message, About("").named(subject), "")
    return f"-m {shell_word(text)}{' -s' * settings.land_signoff}"


class About(NamedTuple):
    """What a commit is for: a branch, the line of its issue (`qb-1: Title`), and who did it."""

    branch: str
    issue: str = ""
    droid: str = ""

    @property
    def id(self) -> str:
        """The id of the issue; empty if there is none."""
        return self.issue.partition(": ")[0]

    def named(self, subject: str) -> dict[str, str]:
        """Returns what the names in a template stand for."""
        title = self.issue.partition(": ")[2]
        return {
            "subject": subject,
            "id": self.id,
            "title": title or subject,
            "droid": self.droid,
            "branch": self.branch,
        }


@dataclass(frozen=True, slots=True)
class Messages:
    """The templates of a repository; without one, commits say what git or QueenBee says."""

    template: str = ""
    """Of commits but merges."""
    merge_template: str = ""
    signs_off: bool = False
    """Whether each gets a `Signed-off-by`: the Developer Certificate of Origin."""
    tree: str = field(default="", compare=False)
    """The worktree in which the commits are made."""

    @classmethod
    def of(cls, settings: Settings, tree: str) -> Messages:
        """Returns those that the settings say."""
        return cls(settings.land_message, settings.land_merge_message, settings.land_signoff, tree)

    def merge(self, about: About) -> str:
        """Returns what the merge of a branch says."""
        # A line of its own that begins with an id would be a trailer, such as another's sign-off.
        body = f"* {one_line(about.issue)}" if about.issue else ""
        return self._merge(f"Merge branch '{about.branch}'", about, body)

    def merges(self, abouts: Sequence[About], target: str) -> str:
        """Returns what the commit says that has the merges of several branches."""
        *others, last = (f"'{each.branch}'" for each in abouts)
        # Rules for messages know "into" as git's own; "Merge branches" alone they do not.
        subject = f"Merge branches {', '.join(others)} and {last} into {target}"
        if len(subject) > _MOST_SUBJECT:
            subject = f"Merge {len(abouts)} branches into {target}"
        lines = (f"* {each.branch}{each.issue and f' ({each.issue})'}" for each in abouts)
        droids = dict.fromkeys(each.droid for each in abouts)
        # Its title is the subject: those of the issues are in the body.
        ids = ", ".join(each.id for each in abouts if each.id)
        of_all = About(", ".join(each.branch for each in abouts), ids, ", ".join(droids))
        return self._merge(subject, of_all, "\n".join(map(one_line, lines)))

    def squashed(self, about: About, subjects: str) -> str:
        """Returns what the one commit says that stands for several, whose subjects are listed."""
        subject = one_line(about.issue, _MOST_TITLE) or f"Squash branch '{about.branch}'"
        return self.signed_off(_whole(self.template, about.named(subject), subjects))

    def records(self, target: str, droid: str) -> str:
        """Returns what a commit of records says."""
        return self.signed_off(_whole(self.template, About(target, droid=droid).named(RECORDS), ""))

    def work(self, issue_id: str, title: str, droid: str) -> str:
        """Returns what the commit says that is made for an agent which makes none."""
        branch = line("symbolic-ref", "--short", "--quiet", "HEAD", cwd=self.tree) or ""
        about = About(branch, f"{issue_id}: {title}", droid)
        return self.signed_off(_whole(self.template, about.named(title), ""))

    def signed_off(self, message: str) -> str:
        """Returns a message with the `Signed-off-by` of who commits, if that is wanted."""
        who = line("var", "GIT_COMMITTER_IDENT", cwd=self.tree) if self.signs_off else None
        if who is None:
            return message
        trailer = f"Signed-off-by: {who.rpartition('>')[0]}>"
        lines = message.rstrip().split("\n")
        if trailer in lines:
            return message
        between = [] if lines and lines[-1].startswith(_TRAILERS) else [""]
        return "\n".join([*lines, *between, trailer]) + "\n"

    def _merge(self, subject: str, about: About, body: str) -> str:
        return self.signed_off(_whole(self.merge_template, about.named(subject), body))


def _whole(template: str, named: Mapping[str, str], body: str) -> str:
    subject = named["subject"]
    if template:
        subject = shortened(filled(template, named), _MOST_CHARS) or subject
        body = "\n".join(shortened(each, _MOST_CHARS) for each in body.splitlines())
    return f"{subject}\n\n{body}" if body else subject
