"""Plans and sessions made into issues, while others write to the tracker too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from bead_files import PLAN
from hives import QuickQueen, commit_file, exported, git, write_lines

from queenbee import Hive
from queenbee.documents.plans.plan_import import InvalidPlan
from queenbee.documents.reconcile import usual_prefix
from queenbee.errors import InvalidInput
from queenbee.workflows import imports
from queenbee.workflows.imports import repository_path


@pytest.fixture
def plan(repo: Path) -> str:
    (repo / "accounts.md").write_text(PLAN)
    return str(repo / "accounts.md")


def import_beside(
    module: ModuleType, hive: Hive, plan: str, meanwhile: Callable[[], object]
) -> None:
    """Imports a plan while something else happens just before its turn at writing."""
    turn = hive.transaction

    def late() -> object:
        hive.transaction = turn  # type: ignore[method-assign]
        meanwhile()
        return turn()

    hive.transaction = late  # type: ignore[method-assign, assignment]
    module.import_plan_file(hive, plan)


def test_what_another_import_did_is_not_done_again(
    hive: Hive, reviewer: Hive, plan: str, beads: Path
) -> None:
    import_beside(imports, hive, plan, lambda: imports.import_plan_file(reviewer, plan))
    assert len(exported(beads / "issues.jsonl")) == 3


def test_what_another_program_wrote_meanwhile_is_kept(hive: Hive, plan: str, beads: Path) -> None:
    tracker = beads / "issues.jsonl"
    foreign = {"id": "qb-1", "title": "foreign"}
    import_beside(imports, hive, plan, lambda: write_lines(tracker, foreign))
    rows = exported(tracker)
    assert rows[0] == foreign
    assert {row["id"].partition("-")[0] for row in rows[1:]} == {"qb"}


@pytest.mark.parametrize(
    ("ids", "prefix"),
    [
        ([], "bd"),
        ([""], "bd"),
        (["plain"], "bd"),
        (["qb-1", "qb-2", "x-1"], "qb"),
        (["my-long-prefix-a1b2.3"], "my-long-prefix"),
    ],
)
def test_ids_begin_as_most_of_the_trackers_do(ids: list[str], prefix: str) -> None:
    assert usual_prefix(ids) == prefix


def test_a_path_outside_the_repository_has_no_name_in_it(
    hive: Hive, repo: Path, tmp_path: Path
) -> None:
    assert repository_path(hive, str(repo / "a" / ".." / "b.md")) == "b.md"
    assert repository_path(hive, str(repo / "..x.md")) == "..x.md"
    for path in (tmp_path / "b.md", repo / ".." / "b.md"):
        with pytest.raises(InvalidInput, match="outside the repository"):
            repository_path(hive, str(path))


@pytest.mark.parametrize("noun", ["issue", "plan"])
@pytest.mark.parametrize("of", ["file", "folder"])
def test_a_link_of_a_clone_imports_nothing_from_outside(
    quick: QuickQueen, repo: Path, tmp_path: Path, noun: str, of: str
) -> None:
    """Nor does a file of the repository within a folder that is such a link."""
    secret = tmp_path / "home" / "tasks.md"
    secret.parent.mkdir()
    secret.write_text(f"- [ ] my secret\n\n{PLAN}")
    (repo / "linked").symlink_to(secret if of == "file" else secret.parent)
    (repo / "own.md").write_text(secret.read_text())
    (repo / "inside").symlink_to("own.md")
    names = {"linked" if of == "file" else "linked/tasks.md", "linked" if noun == "issue" else ""}
    for name in filter(None, names):
        done = quick(noun, "import", name, as_="human")
        assert (done.code, "outside the working tree" in done.err) == (7, True), done
    assert quick("issue", "list", "--json", as_="human").json == []
    assert quick(noun, "import", "inside", "--dry-run", as_="human").code == 0


def test_an_import_changes_no_other_issue(hive: Hive, plan: str, beads: Path) -> None:
    write_lines(beads / "issues.jsonl", {"id": "qb-1", "title": "older", "status": "open"})
    before = hive.issues.get("qb-1")
    imports.import_plan_file(hive, plan)
    assert hive.issues.get("qb-1") == before
    assert hive.issues.get("qb-1").priority == before.priority == 2


def renumber(plan: str) -> None:
    """Inserts a sprint 1.1 and gives the old one, with its annotation, the number 1.2."""
    text = Path(plan).read_text().replace("### Sprint 1.1: Setup", "### Sprint 1.2: Setup")
    new = "### Sprint 1.1: Review\n\n- Review the design\n\n### Sprint 1.2: Setup"
    Path(plan).write_text(text.replace("### Sprint 1.2: Setup", new))


def test_a_claimed_bead_keeps_its_sprint_until_the_change_is_accepted(
    hive: Hive, plan: str, beads: Path
) -> None:
    bead = imports.import_plan_file(hive, plan).ids["1.1"]
    imports.annotate_plan_file(hive, plan)
    hive.assignments.claim(bead)
    renumber(plan)
    before = exported(beads / "issues.jsonl")
    with pytest.raises(InvalidPlan, match=rf"{bead} \(claimed\) was made from sprint 1\.1"):
        imports.import_plan_file(hive, plan)
    assert exported(beads / "issues.jsonl") == before
    found = imports.import_plan_file(hive, plan, imports.PlanImport(accept=True))
    assert (found.ids["1.2"], found.ids["1.1"] != bead) == (bead, True)


def test_a_claim_while_the_rows_are_made_counts(hive: Hive, reviewer: Hive, plan: str) -> None:
    bead = imports.import_plan_file(hive, plan).ids["1.1"]
    imports.annotate_plan_file(hive, plan)
    renumber(plan)
    with pytest.raises(InvalidPlan, match="claimed"):
        import_beside(imports, hive, plan, lambda: reviewer.assignments.claim(bead))


def test_a_copy_of_a_plan_does_not_take_its_beads(hive: Hive, plan: str, repo: Path) -> None:
    imports.import_plan_file(hive, plan)
    imports.annotate_plan_file(hive, plan)
    copy = repo / "copy.md"
    copy.write_text(Path(plan).read_text())
    with pytest.raises(InvalidPlan, match=r"the bead of sprint 1\.1 in accounts\.md"):
        imports.import_plan_file(hive, str(copy))
    Path(plan).unlink()
    assert {change.kind for change in imports.import_plan_file(hive, str(copy)).changes} == {
        "update"
    }


def test_annotating_does_not_undo_a_renumbering(hive: Hive, plan: str) -> None:
    bead = imports.import_plan_file(hive, plan).ids["1.1"]
    imports.annotate_plan_file(hive, plan)
    renumber(plan)
    text = Path(plan).read_text()
    with pytest.raises(InvalidInput, match=rf"sprint 1\.2 names {bead}, the bead of sprint 1\.1"):
        imports.annotate_plan_file(hive, plan)
    assert Path(plan).read_text() == text
    found = imports.import_plan_file(hive, plan)
    assert imports.annotate_plan_file(hive, plan).beads == found.ids


def test_beads_start_from_the_repositorys_default_branch(hive: Hive, repo: Path) -> None:
    git(repo, "branch", "-m", "trunk")
    (repo / "plan.md").write_text(PLAN)
    imports.import_plan_file(hive, str(repo / "plan.md"))
    (row, *_) = exported(repo / ".beads" / "issues.jsonl")
    assert row["metadata"]["source_branch"] == "trunk"
    assert row["metadata"]["branch"] == "sprint/1-1-setup"


LIST = "Key,Name,State,Points\nT-1,Pay,Open,3\nT-2,Ship,Parked,\n"
MAPPED = ("--map", "Name=title", "--map", "Parked=deferred")


def test_a_list_says_what_it_was_taken_for_and_what_was_not_understood(
    quick: QuickQueen, repo: Path
) -> None:
    (repo / "work.csv").write_text(LIST)
    refused = quick("issue", "import", "work.csv", as_="ui")
    assert (refused.code, "it has key, name, state, points" in refused.err) == (2, True)
    shown = quick("issue", "import", "work.csv", *MAPPED, as_="ui").out.splitlines()
    assert shown[:2] == ["list, 2 issues", "warning work.csv: not imported: points (1)"]
    assert shown[-1] == "2 added, 0 updated, 0 kept"
    again = quick("issue", "import", "work.csv", *MAPPED, "--json", as_="ui").json
    assert again["source"] == "list, 2 issues"
    assert {each["action"] for each in again["changes"]} == {"keep"}
    (repo / "work.csv").write_text(LIST.replace("T-1,Pay,Open,3\n", ""))
    said = quick("issue", "import", "work.csv", *MAPPED, as_="ui").out
    assert "is no longer in the document; it is not changed" in said
    quick("issue", "import", "work.csv", *MAPPED, "--complete", as_="ui")
    states = {each["title"]: each["status"] for each in quick("issue", "list", "--json").json}
    assert states == {"Pay": "closed", "Ship": "deferred"}


def test_an_issue_with_a_credential_is_named_and_nothing_is_imported(
    quick: QuickQueen, repo: Path
) -> None:
    token = "ghp_" + "a1B2" * 9
    (repo / "work.csv").write_text(f"title,key,notes\nPay,T-1,\nShip,T-2,{token}\n")
    refused = quick("issue", "import", "work.csv", as_="ui")
    assert (refused.code, "list:T-2: the notes seem" in refused.err) == (2, True)
    assert quick("issue", "list", "--json").json == []


def test_our_own_export_comes_back_whole(quick: QuickQueen, repo: Path, tmp_path: Path) -> None:
    write_lines(
        repo / ".beads" / "issues.jsonl",
        {"id": "qb-1", "title": "A", "status": "closed", "close_reason": "c", "notes": "n"},
        {"id": "qb-2", "title": "B", "status": "open", "issue_type": "epic", "dependencies": [
            {"issue_id": "qb-2", "depends_on_id": "qb-1", "type": "blocks"}]},
        {"id": "qb-3-wisp-1", "title": "C", "status": "open", "issue_type": "task"},
    )  # fmt: skip
    listed = quick("issue", "list", "--format", "json").out
    ready = quick("issue", "ready", "--json").json
    (tmp_path / "other").mkdir()
    other = QuickQueen(tmp_path / "other")
    git(tmp_path / "other", "init", "-q")
    other("init")
    assert other("issue", "import", "-", stdin=listed, as_="ui").code == 0
    assert other("issue", "list", "--format", "json").out == listed
    assert other("issue", "ready", "--json").json == ready


def test_a_folder_is_read_and_a_list_is_never_half_imported(quick: QuickQueen, repo: Path) -> None:
    folder = repo / ".taskmaster" / "tasks"
    folder.mkdir(parents=True)
    task = '{"id": %d, "title": "T%d", "status": "pending", "dependencies": [%d]}'
    circle = ", ".join(task % each for each in ((1, 1, 2), (2, 2, 1)))
    (folder / "tasks.json").write_text(f'{{"master": {{"tasks": [{circle}]}}}}')
    refused = quick("issue", "import", ".taskmaster", as_="ui")
    assert (refused.code, "wait for each other" in refused.err) == (2, True)
    assert quick("issue", "list", "--json").json == []
    (folder / "tasks.json").write_text(f'{{"master": {{"tasks": [{task % (1, 1, 0)}]}}}}')
    shown = quick("issue", "import", ".taskmaster", as_="ui").out
    assert shown.startswith("Task Master file, 1 issue\n")
    assert "neither in the list nor here: master/0" in shown


def test_open_issues_go_to_their_assignees_that_are_droids_if_it_is_said(
    quick: QuickQueen, repo: Path
) -> None:
    lines = ["A,1,ui,open,", "B,2,eve,open,", "C,3,ui,closed,", "D,4,ui,open,2"]
    (repo / "work.csv").write_text("\n".join(["title,key,assignee,state,blocked by", *lines, ""]))
    quick("msg", "send", "api", "hello", as_="ui")
    found = quick("issue", "import", "work.csv", "--json", as_="api").json["changes"]
    assert quick("issue", "assignments", "--json", as_="api").json == []
    given = quick("issue", "import", "work.csv", "--assign", "--json", as_="api").json
    (held,) = quick("issue", "assignments", "--json", as_="api").json
    assert (held["issue_id"], held["droid"]) == (found[0]["id"], "ui")
    said = given["findings"][0]["message"]
    assert said.startswith("not assigned: eve: it is no droid here (1), ui: "), said


@pytest.mark.parametrize("link", ["TODO.md", "backlog"])
def test_a_link_of_a_clone_to_what_git_ignores_is_not_imported(
    repo: Path, quick: QuickQueen, link: str
) -> None:
    commit_file(repo, ".gitignore", "private/\n")
    (repo / "private").mkdir()
    (repo / "private" / "TODO.md").write_text("- [ ] private words\n")
    (repo / link).symlink_to("private/TODO.md" if link == "TODO.md" else "private")
    refused = quick("issue", "import", "TODO.md" if link == "TODO.md" else "backlog/TODO.md")
    assert (refused.code, "private/TODO.md, which git ignores" in refused.err) == (2, True), refused
    assert "private words" not in quick("issues").out
    assert quick("issue", "import", "private/TODO.md").code == 0


def test_a_plan_or_a_folder_that_is_such_a_link_is_not_imported_either(
    repo: Path, quick: QuickQueen
) -> None:
    commit_file(repo, ".gitignore", "private/\n")
    (repo / "private" / "backlog" / "tasks").mkdir(parents=True)
    (repo / "private" / "plan.md").write_text("## Phase 1: A\n\n### Sprint 1.1: B\n- words\n")
    (repo / "private" / "backlog" / "tasks" / "task-1 - words.md").write_text(
        "---\nid: task-1\ntitle: words\nstatus: To Do\n---\n"
    )
    (repo / "plan.md").symlink_to("private/plan.md")
    (repo / "backlog").symlink_to("private/backlog")
    (repo / "all").symlink_to("private")
    for words in (
        *(("plan", each, "plan.md") for each in ("check", "import")),
        *(("issue", "import", each) for each in ("backlog", "all")),
    ):
        refused = quick(*words)
        assert (refused.code, "which git ignores" in refused.err) == (2, True), refused
    assert "words" not in quick("issues").out
    assert quick("plan", "import", "private/plan.md").code == 0
    assert quick("issue", "import", "private/backlog").code == 0
