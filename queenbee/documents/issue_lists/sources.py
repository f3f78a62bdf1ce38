"""Where lists of issues come from: by what each source is recognized, and its own words.

Pure. A source is a row of the table below. `fields` gives for each of our fields the source's names
for it, in lower case, the first that says something counts; a list of names is `a | b`. What is
named neither there nor in `skipped` is reported as not imported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

FIELDS = (
    "key", "url", "title", "description", "acceptance_criteria", "design", "notes", "state",
    "reason", "priority", "issue_type", "labels", "assignee", "parent", "children", "blocked_by",
    "blocks", "links", "comments", "created_at", "updated_at", "closed_at", "dropped_at",
    "archived_at", "due_at",
)  # fmt: skip
"""What a list can say of an issue. `reason` is why it is closed, `dropped_at` when it was canceled,
and `links` are dependencies with their kinds."""
STATUSES = ("open", "in_progress", "in_review", "blocked", "deferred", "closed")
WHOLE = "beads"
"""The source whose entries are rows as they are, with their ids."""


@dataclass(frozen=True)
class Source:
    """What one source calls things."""

    name: str
    said: str
    """What a list of it is called."""
    fields: Mapping[str, str]
    marks: tuple[str, ...] = ()
    """Names that a list of it has, all of one of these; `tab` is what separates its columns."""
    ref: str = ""
    """What stands in `external_ref` before the key of an issue that has no address."""
    skipped: str = ""
    """A pattern of names that say nothing about the work."""
    priorities: Mapping[str, int | None] = field(default_factory=dict)
    """Its own words and numbers, if they are not those of all."""

    def names(self, of: str) -> list[str]:
        """Returns its names for one of our fields."""
        return [each for each in self.fields.get(of, "").split(" | ") if each]

    def skips(self, name: str) -> bool:
        """Returns whether a name says nothing about the work."""
        return bool(self.skipped) and re.fullmatch(self.skipped, name) is not None


_USUAL = {
    "title": "title", "description": "description | body", "labels": "labels",
    "created_at": "created_at | createdat | created | created at | created at (utc)",
    "updated_at": "updated_at | updatedat | updated | last modified | updated at (utc)",
    "closed_at": "closed_at | closedat | completedat | resolved | resolutiondate | "
    "completed at | closed at (utc)",
    "due_at": "due_date | due date | duedate",
}  # fmt: skip
"""What most sources call things."""
_PREPARED = {each: each for each in FIELDS}
"""The names that the readers of files and boards give."""

SOURCES = (
    Source(
        "linear", "Linear export", ref="linear:",
        marks=(
            "id | team | title | project id", "id | team | title | cycle name",
            "identifier | title",
        ),
        fields={
            **_USUAL, "key": "identifier | id", "url": "url", "state": "status | state",
            "priority": "priority", "assignee": "assignee", "parent": "parent issue | parent",
            "children": "children", "blocked_by": "blocked by", "blocks": "blocks",
            "links": "relations | inverserelations", "comments": "comments",
            "closed_at": "completed | completedat", "dropped_at": "canceled | canceledat",
            "archived_at": "archived | archivedat",
        },
        skipped=r"uuid|id|creator|started(at)?|triaged(at)?|team|cycle (number|name|start|end)|"
        r"project id|project milestone id|time in status \(minutes\)|sla status|branchname|number|"
        r"sortorder|prioritylabel|archived|slug\w*|\w*userid|identifier",
        priorities={"0": None, "1": 0, "2": 1, "3": 2, "4": 3},
    ),
    Source(
        "jira", "Jira export", ref="jira:",
        marks=(
            "summary | issue key", "summary | issuekey", "summary | work item key",
            "summary | key", "key | fields",
        ),
        fields={
            **_USUAL, "key": "issue key | issuekey | work item key | key", "title": "summary",
            "state": "status | status category", "reason": "resolution", "priority": "priority",
            "issue_type": "issue type | work item type | work type | issuetype",
            "assignee": "assignee", "links": "issuelinks", "comments": "comment",
            "parent": "parent key | parent | parent id | custom field (epic link)",
            "children": "subtasks", "blocked_by": "inward issue link (blocks)",
            "blocks": "outward issue link (blocks)",
        },
        skipped=r"issue id|id|self|expand|key|project.*|assignee id|reporter.*|creator.*|watche.*|"
        r"votes|last viewed|lastviewed|status category( changed)?|statuscategory\w*|parent summary|"
        r"workratio|work ratio|avatar\w*|fields|custom field \(rank\)|custom field \(development\)|"
        r"parent|parent id|workitem id|work item id",
    ),
    Source(
        "gitlab", "GitLab export", ref="gitlab:#",
        marks=("iid | title", "issue id | url | title"),
        fields={
            **_USUAL, "key": "iid | issue id", "url": "web_url | weburl | url", "state": "state",
            "issue_type": "issue_type | type",
            "assignee": "assignees | assignee username | assignee",
        },
        skipped=r"id|project_id|author|author username|closed_by|_links|links|references|"
        r"imported\w*|user_notes_count|\w*votes|merge_requests_count|confidential|locked|discussion_locked|"
        r"has_tasks|time_stats|task_status|task_completion_status|subscribed|moved_to_id|severity|"
        r"blocking_issues_count|service_desk_reply_to|assignee|assignee username|type|iid|"
        r"time spent|epic_iid|start_date",
    ),
    Source(
        "gitea", "Gitea export", ref="gitea:#",
        marks=("number | original_author", "number | pin_order", "index | title"),
        fields={
            **_USUAL, "key": "number | index", "url": "html_url | url", "state": "state",
            "assignee": "assignees | assignee",
        },
        skipped=r"id|url|user|original_author\w*|ref|is_locked|comments|repository|pin_order|kind|"
        r"author\w*|assignee|owner|repo|time_estimate|assets|pull_request",
    ),
    Source(
        "github-projects", "GitHub project",
        marks=("content | title", "tab | title"),
        fields={
            **_USUAL, "key": "number", "url": "url", "state": "status", "priority": "priority",
            "assignee": "assignees", "parent": "parent issue",
        },
        ref="github-project:", skipped=r"id|content|repository|type|linked pull requests|reviewers",
    ),
    Source(
        "github", "GitHub list", ref="gh-",
        marks=("number | title",),
        fields={
            **_USUAL, "key": "number", "url": "html_url | url", "state": "state | status",
            "reason": "statereason | state_reason", "priority": "priority",
            "issue_type": "issuetype | issue_type | type", "assignee": "assignees | assignee",
            "parent": "parent", "children": "subissues", "blocked_by": "blockedby",
            "blocks": "blocking", "comments": "comments",
        },
        skipped=r"id|node_id|\w*_url|author|author_?association|user|reactions|reactiongroups|closed|"
        r"locked|active_lock_reason|performed_via_github_app|score|ispinned|subissuessummary|"
        r"sub_issues_summary|issue_dependencies_summary|closed_by|url|assignee|pull_request|"
        r"projectcards|closedbypullrequestsreferences|draft|pinned_comment",
    ),
    Source(
        "asana", "Asana export", ref="asana:",
        marks=("task id | name",),
        fields={
            **_USUAL, "key": "task id", "title": "name", "description": "notes", "labels": "tags",
            "assignee": "assignee", "parent": "parent task", "blocks": "blocking (dependencies)",
            "blocked_by": "blocked by (dependencies)",
        },
        skipped=r"assignee email|projects|start date",
    ),
    Source("trello", "Trello board", _PREPARED, ref="trello:"),
    Source("taskmaster", "Task Master file", _PREPARED, ref="taskmaster:"),
    Source(
        "backlog.md", "Backlog.md folder", {**_PREPARED, "closed_at": "completed_date"},
        ref="backlog:", skipped="reporter|ordinal",
    ),
    Source("spec-kit", "spec-kit tasks", _PREPARED, ref="spec-kit:"),
    Source("kiro", "Kiro tasks", _PREPARED, ref="kiro:"),
    Source("todo.txt", "todo.txt", _PREPARED, ref="todo:"),
    Source("markdown", "Markdown check list", _PREPARED, ref="markdown:"),
    Source(
        WHOLE, "Beads export", {},
        marks=(
            "id | title | status | priority | issue_type | created_at",
            "id | title | status | issue_type | dependencies",
        ),
    ),
    Source(
        "list", "list", ref="list:",
        fields={
            **_USUAL, "key": "key | id", "url": "url | external_ref | link",
            "state": "status | state", "priority": "priority", "issue_type": "issue_type | type",
            "assignee": "assignee | assignees", "reason": "close_reason", "parent": "parent",
            "blocked_by": "blocked_by | blocked by | depends_on", "notes": "notes",
        },
    ),
)  # fmt: skip
BY_NAME = {each.name: each for each in SOURCES}


def plain(word: str) -> str:
    """Returns a word of a state, a priority or a type as the tables have it."""
    return re.sub(r"[\s_-]+", " ", word.strip().casefold().replace("\u2019", "'"))


def _table(rows: Mapping[str, str]) -> dict[str, str]:
    return {word: ours for ours, words in rows.items() for word in words.split(" | ")}


STATES = _table({
    "open": "open | opened | reopened | new | todo | to do | backlog | unstarted | not started | "
    "triage | pending | ready | selected for development",
    "in_progress": "in progress | started | doing | indeterminate | active | wip",
    "in_review": "in review | review | code review",
    "blocked": "blocked | on hold",
    "deferred": "deferred | icebox | someday",
    "closed": "closed | done | completed | complete | resolved | finished | fixed",
})  # fmt: skip
"""Our status for the words that sources begin with."""
DROPPED = frozenset(_table({
    "closed": "canceled | cancelled | duplicate | won't do | wont do | won't fix | wontfix | "
    "not planned | cannot reproduce | invalid | declined | abandoned | obsolete | rejected | "
    "archived | incomplete | known error | not a bug",
}))  # fmt: skip
"""Words for an issue that nobody will do: it is closed with this reason."""
PRIORITIES: Mapping[str, int | None] = {
    word: number
    for number, words in {
        0: "urgent | highest | critical | blocker | immediate | p0 | 0 | showstopper",
        1: "high | major | p1 | 1",
        2: "medium | normal | moderate | p2 | 2",
        3: "low | minor | p3 | 3",
        4: "lowest | trivial | p4 | 4",
        None: "no priority | none | unset | ",
    }.items()
    for word in words.split(" | ")
}
TYPES = _table({
    "bug": "bug | incident | defect",
    "feature": "feature | enhancement | story | user story | new feature | improvement | wish | "
    "feature request",
    "epic": "epic | initiative",
    "chore": "chore",
    "task": "task | issue | sub task | subtask | technical task | test | documentation | spike",
})  # fmt: skip
