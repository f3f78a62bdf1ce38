"""What the commits say that a landing makes, and what a rule for commit messages makes of that."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest
from hives import Queen, QuickQueen, Ran, commit_file, git, write_lines

from queenbee import Hive
from queenbee.services.waiting.landing_turn import folder_of
from queenbee.store import waiting_line

CONVENTIONAL = r"""#!/bin/sh
# As commitlint: what git writes itself passes, all else needs a type, and lines have an end.
head -1 "$1" | grep -Eq "^Merge branch |^Merge .* into " && exit 0
head -1 "$1" | grep -Eq "^(feat|fix|chore)(\([a-z0-9-]+\))?: [a-z]" || {
    printf '\033[31m\342\234\226\033[0m   type may not be empty [type-empty]\n' >&2; exit 1; }
! grep -Eq "^.{101}" "$1"
"""


def hook(repo: Path, text: str, name: str = "commit-msg") -> None:
    path = repo / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def subjects(repo: Path, *wanted: str) -> list[str]:
    return git(repo, "log", "--format=%s", *wanted, "main").splitlines()


def body(repo: Path) -> str:
    return git(repo, "log", "-1", "--format=%b", "main").strip()


@pytest.fixture
def trees(quick: QuickQueen, repo: Path) -> list[Path]:
    """Two worktrees, each with an issue and a commit."""
    rows = [{"id": f"q-{n}", "title": f"Round {n}", "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    quick("config", "set", "land.check", "true")
    made = []
    for number, name in enumerate(("api", "ui"), 1):
        added = quick("worktree", "add", name, f"q-{number}", "--json", as_="boss")
        made.append(Path(added.json["path"]))
        commit_file(made[-1], f"{name}.txt", "x\n")
    return made


def land(quick: QuickQueen, trees: list[Path]) -> list[Ran]:
    return [quick("land", cwd=tree) for tree in trees]


def test_a_merge_keeps_gits_own_subject_and_has_the_issue_in_its_body(
    quick: QuickQueen, repo: Path, trees: list[Path]
) -> None:
    hook(repo, CONVENTIONAL)
    assert [each.code for each in land(quick, trees)] == [0, 0]
    assert (subjects(repo, "-1")[0], body(repo)) == ("Merge branch 'ui'", "* q-2: Round 2")
    assert git(repo, "log", "-1", "--format=%(trailers)").strip() == ""


@pytest.mark.slow
def test_several_at_once_have_a_subject_that_rules_know_as_gits(
    queen: Queen, quick: QuickQueen, repo: Path, trees: list[Path], tmp_path: Path
) -> None:
    added = quick("worktree", "add", "docs", "--json", as_="boss")
    trees.append(Path(added.json["path"]))
    commit_file(trees[2], "docs.txt", "x\n")
    hook(repo, CONVENTIONAL)
    go, began = tmp_path / "go", tmp_path / "began"
    check = f"touch {began}; while [ ! -e {go} ]; do sleep 0.05; done"
    folder, started = folder_of(Hive.open(repo, droid="api", env={}), "main"), []
    for tree in trees:
        started.append(queen.start("land", "--check", check, cwd=tree))
        until_s = time.monotonic() + 60
        while not (began.exists() and len(list(waiting_line.live(folder))) == len(started)):
            assert time.monotonic() < until_s
            time.sleep(0.02)
    go.touch()
    done = [(each.communicate(timeout=60), each.returncode) for each in started]
    assert [code for _, code in done] == [0, 0, 0], done
    listed = git(repo, "log", "--first-parent", "--format=%s%n%b%x00", "main").split("\0")
    (several,) = (each.strip() for each in listed if "branches" in each)
    issue = r"( \(q-\d: Round \d\))?"  # `docs` has none; who is checked together may differ.
    *first, last = names = re.findall(r"'(\w+)'", several.partition("\n")[0])
    assert first
    assert {*names} <= {"api", "ui", "docs"}
    quoted = ", ".join(f"'{each}'" for each in first)
    form = f"Merge branches {quoted} and '{last}' into main"
    form += "".join(rf"\n\* {each}{issue}" for each in names)
    assert re.fullmatch(form, several), several
    assert "q-" in several


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("chore({id}): land {title}", "chore(q-2): land Round 2"),
        ("fix: {subject} of {droid}", "fix: Merge branch 'ui' of ui"),
        ("AB-1 {branch}", "AB-1 ui"),
    ],
)
def test_a_template_says_what_merges_say(
    quick: QuickQueen, repo: Path, trees: list[Path], template: str, said: str
) -> None:
    quick("config", "set", "land.merge_message", template)
    assert [each.code for each in land(quick, trees)] == [0, 0]
    assert subjects(repo, "-1") == [said]


def test_a_squashed_commit_has_the_form_of_the_repository(
    quick: QuickQueen, repo: Path, trees: list[Path]
) -> None:
    commit_file(trees[0], "more.txt", "x\n")
    git(trees[0], "commit", "--amend", "-qm", "feat: " + "long " * 30)
    hook(repo, CONVENTIONAL)
    quick("config", "set", "land.strategy", "squash")
    refused = quick("land", cwd=trees[0])
    assert (refused.code, "type may not be empty [type-empty]" in refused.err) == (5, True), refused
    assert "queen config set land.message" in refused.err
    assert "x1b" not in refused.err
    quick("config", "set", "land.message", "chore({id}): land {title}")
    assert quick("land", cwd=trees[0]).code == 0
    assert "chore(q-1): land Round 1" in subjects(repo)


def test_a_form_that_is_set_in_a_worktree_counts_at_once(
    quick: QuickQueen, repo: Path, trees: list[Path]
) -> None:
    set_ = ("config", "set", "land.merge_message", "chore({id}): land {title}")
    assert quick(*set_, cwd=trees[1]).code == 0
    assert [each.code for each in land(quick, trees)] == [0, 0]
    assert subjects(repo, "-1") == ["chore(q-2): land Round 2"]


@pytest.mark.parametrize("strategy", ["merge", "squash"])
def test_each_commit_that_a_landing_makes_is_signed_off(
    quick: QuickQueen, repo: Path, trees: list[Path], strategy: str
) -> None:
    quick("config", "set", "land.strategy", strategy)
    quick("config", "set", "land.signoff", "true")
    hook(repo, '#!/bin/sh\ngrep -q "^Signed-off-by: " "$1"\n')
    for tree in trees:
        (tree / f"new-{tree.name}.txt").write_text("x\n")
        assert quick("land", "-m", "a rate", cwd=tree).code == 0
    since = git(repo, "log", "--format=%(trailers:key=Signed-off-by)%x00", "-5", "main")
    made = [each.strip() for each in since.split("\0")]
    who = git(repo, "var", "GIT_COMMITTER_IDENT").rpartition(">")[0]
    assert made[0] == f"Signed-off-by: {who}>"


@pytest.mark.parametrize("name", ["land.message", "land.merge_message"])
@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("chore({scope}): {title}", "there is no {scope}"),
        ("chore: {title", "a brace has no other"),
        ("chore: {title.__class__}", "there is no {title.__class__}"),
        ("chore\x07", "a line of at most 200 characters"),
    ],
)
def test_a_template_with_an_unknown_name_is_refused_by_name(
    quick: QuickQueen, repo: Path, name: str, template: str, said: str
) -> None:
    refused = quick("config", "set", name, template)
    assert (refused.code, said in refused.err) == (2, True), refused
    key = name.partition(".")[2]
    (repo / ".beads" / "queen.toml").write_text(f"[land]\n{key} = {json.dumps(template)}\n")
    refused = quick("msg", "send", "api", "hello", as_="ui")
    assert said.partition("a line")[0] in refused.err, refused
    assert name in refused.err


@pytest.mark.parametrize("begin", ["--amend", "-F /etc/passwd", "#", "$(", "`"])
def test_a_template_of_a_clone_is_text_and_nothing_else(
    quick: QuickQueen, repo: Path, trees: list[Path], tmp_path: Path, begin: str
) -> None:
    text = f"{begin} $(touch ran) `touch ran`; touch ran {{title}}"
    for number, (name, way) in enumerate((("message", "squash"), ("merge_message", "merge"))):
        said = {name: text, "strategy": way, "check": "true"}
        lines = [f"{key} = {json.dumps(each)}" for key, each in said.items()]
        commit_file(repo, ".beads/queen.toml", "\n".join(["[land]", *lines, ""]))
        done = quick("land", cwd=trees[number])
        assert done.code == 0, done
    made = subjects(repo)
    said = f"{begin.lstrip('-')} $(touch ran) `touch ran`; touch ran "
    assert {f"{said}records", f"{said}Round 2"} <= {*made}
    assert not list(tmp_path.rglob("ran"))


@pytest.mark.parametrize("line_break", ["\n", "\r", "\u2028", "\x00"])
def test_a_template_of_a_clone_has_one_line(
    quick: QuickQueen, repo: Path, trees: list[Path], line_break: str
) -> None:
    template = json.dumps(f"chore: x{line_break}Co-authored-by: a <a@b.c>")
    settings = f'[land]\ncheck = "true"\nmerge_message = {template}\n'
    commit_file(repo, ".beads/queen.toml", settings)
    quick("land", cwd=trees[0])
    wanted = "--format=%(trailers:key=Co-authored-by)"
    assert git(repo, "log", "-1", wanted, "main").strip() == ""


def test_a_title_is_one_line_and_adds_no_name_and_no_trailer(
    quick: QuickQueen, repo: Path, trees: list[Path]
) -> None:
    title = "{droid} \x1b[31mred\x07\n\nCo-authored-by: a <a@b.c>\r" + "long " * 60
    rows = [{"id": f"q-{n}", "title": title, "status": "open"} for n in (1, 2)]
    write_lines(repo / ".beads" / "issues.jsonl", *rows)
    quick("config", "set", "land.merge_message", "chore({id}): land {title}")
    assert [each.code for each in land(quick, trees)] == [0, 0]
    said = git(repo, "log", "-1", "--format=%B", "main")
    assert said.startswith("chore(q-2): land {droid} ")
    assert re.search(r"[\x00-\x09\x0b-\x1f]", said) is None
    assert max(map(len, said.splitlines())) <= 100
    wanted = "--format=%(trailers:key=Co-authored-by)"
    assert git(repo, "log", "-1", wanted, "main").strip() == ""


FORMATTER = """#!/bin/sh
# As pre-commit with a formatter: mends what is staged, and refuses the commit if it had to.
changed=0
for each in $(git diff --cached --name-only --diff-filter=d -- '*.txt'); do
    grep -q ' $' "$each" && sed -i 's/ *$//' "$each" && changed=1
done
[ $changed = 0 ] || { echo 'files were modified by this hook' >&2; exit 1; }
"""


class TestHooksThatChangeFiles:
    @pytest.fixture
    def tree(self, quick: QuickQueen, repo: Path, trees: list[Path]) -> Path:
        hook(repo, FORMATTER, "pre-commit")
        (trees[0] / "new.txt").write_text("x  \n")
        return trees[0]

    def test_the_commit_is_made_once_more_with_what_they_changed(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        done = quick("land", "-m", "feat: a rate", cwd=tree)
        assert done.code == 0, done
        assert "a hook changed new.txt and refused the commit; committing once more" in done.out
        assert git(repo, "show", "main:new.txt") == "x\n"
        assert git(tree, "status", "--porcelain") == ""

    def test_a_second_refusal_is_told_word_for_word_and_stages_nothing(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        more = "printf '\\033[31mE501\\033[0m line too long\\n'; [ ! -e bad.txt ]\n"
        hook(repo, FORMATTER + more, "pre-commit")
        (tree / "bad.txt").write_text("x\n")
        git(tree, "add", "bad.txt")
        before, head = git(tree, "diff", "--cached", "--raw"), git(tree, "rev-parse", "HEAD")
        refused = quick("land", "-m", "feat: a rate", cwd=tree)
        assert refused.code == 5
        assert "a hook changed new.txt, and with that too the commit was refused" in refused.err
        assert "E501 line too long" in refused.err
        assert git(tree, "diff", "--cached", "--raw") == before
        assert git(tree, "rev-parse", "HEAD") == head

    def test_one_that_always_changes_them_is_tried_twice(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        count = tmp_path / "count"
        hook(repo, f"#!/bin/sh\necho >> {count}\necho >> new.txt\nexit 1\n", "pre-commit")
        assert quick("land", "-m", "feat: a rate", cwd=tree).code == 5
        assert len(count.read_text().splitlines()) == 2

    def test_one_that_refuses_and_changes_nothing_is_tried_once(
        self, quick: QuickQueen, repo: Path, tree: Path, tmp_path: Path
    ) -> None:
        count = tmp_path / "count"
        hook(repo, f"#!/bin/sh\necho >> {count}\nexit 1\n", "pre-commit")
        refused = quick("land", "-m", "feat: a rate", cwd=tree)
        assert (refused.code, "status 1" in refused.err) == (5, True), refused
        assert len(count.read_text().splitlines()) == 1

    def test_what_they_add_is_searched_for_secrets(
        self, quick: QuickQueen, repo: Path, tree: Path
    ) -> None:
        key = "ghp_" + "a1B2" * 9
        script = f"#!/bin/sh\n[ -e key ] && exit 0\necho {key} > key\nexit 1\n"
        hook(repo, script, "pre-commit")
        refused = quick("land", "-m", "feat: a rate", cwd=tree)
        assert (refused.code, "looks like a secret: key" in refused.err) == (5, True), refused
        assert git(tree, "diff", "--cached", "--name-only") == ""

    def test_a_merge_too_is_made_once_more(
        self, quick: QuickQueen, repo: Path, trees: list[Path]
    ) -> None:
        assert quick("land", cwd=trees[0]).code == 0
        script = FORMATTER.replace(
            "$(git diff --cached --name-only --diff-filter=d -- '*.txt')", "*.txt"
        )
        hook(repo, script, "pre-merge-commit")
        commit_file(trees[1], "new.txt", "x  \n")
        done = quick("land", cwd=trees[1])
        assert done.code == 0, done
        assert git(repo, "show", "main:new.txt") == "x\n"
        assert subjects(repo, "-1") == ["Merge branch 'ui'"]


class TestRecords:
    @pytest.fixture
    def tracked(self, quick: QuickQueen, repo: Path, trees: list[Path]) -> list[Path]:
        """The worktrees of a hive whose records git has."""
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "a hive")
        for tree in trees:
            git(tree, "rebase", "-q", "main")
        return trees

    def test_a_hook_that_refuses_them_is_told_with_what_helps(
        self, quick: QuickQueen, repo: Path, tracked: list[Path]
    ) -> None:
        hook(repo, CONVENTIONAL)
        done = quick("land", cwd=tracked[0])
        assert done.code == 0, done
        said = "the records are not committed: ✖ type may not be empty [type-empty]; try: queen"
        assert said in done.out, done
        assert ".beads/" in git(repo, "status", "--porcelain")
        assert git(repo, "diff", "--cached", "--name-only") == ""
        quick("config", "set", "land.message", "chore({id}): {title}")
        git(repo, "commit", "-qm", "chore: settings", "--", ".beads/queen.toml")
        done = quick("land", cwd=tracked[1])
        assert (done.code, "not committed" in done.out) == (0, False), done
        assert subjects(repo, "-1") == ["chore: records"]
        assert git(repo, "status", "--porcelain") == ""

    def test_they_are_signed_off_too(
        self, quick: QuickQueen, repo: Path, tracked: list[Path]
    ) -> None:
        quick("config", "set", "land.signoff", "true")
        assert quick("land", cwd=tracked[0]).code == 0
        said = git(repo, "log", "-1", "--format=%s%n%(trailers:key=Signed-off-by)", "main")
        assert said.startswith("records\nSigned-off-by: ")


def test_a_key_that_does_not_sign_is_named(
    quick: QuickQueen, repo: Path, trees: list[Path]
) -> None:
    git(repo, "config", "commit.gpgSign", "true")
    git(repo, "config", "gpg.program", "false")
    (trees[0] / "new.txt").write_text("x\n")
    refused = quick("land", "-m", "feat: a rate", cwd=trees[0])
    assert (refused.code, "or the key that signs, then the same" in refused.err) == (5, True)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["the commit", "a merge"])
def test_a_key_that_waits_for_its_passphrase_is_named_after_a_while(
    queen: Queen, repo: Path, trees: list[Path], tmp_path: Path, what: str
) -> None:
    """The program that signs waits, as gpg does for pinentry, until the key is unlocked."""
    unlocked, program = tmp_path / "unlocked", tmp_path / "gpg"
    program.write_text(
        f"#!/bin/sh\nwhile [ ! -e {unlocked} ]; do sleep 0.1; done\n"
        "cat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    program.chmod(0o755)
    more = ["-m", "feat: a rate"] if what == "the commit" else []
    if not more:
        assert queen("land", cwd=trees[1]).code == 0
    git(repo, "config", "gpg.program", str(program))
    git(repo, "config", "commit.gpgSign", "true")
    (trees[0] / "new.txt").write_text("x\n") if more else None
    started = queen.start("land", *more, cwd=trees[0])
    assert started.stdout is not None
    lines = []
    timer = threading.Timer(40, unlocked.touch)  # Else a test that fails would wait for ever.
    timer.start()
    for line in started.stdout:
        lines.append(line)
        if "gpg waits for the passphrase of the key that signs it" in line:
            break
    timer.cancel()
    unlocked.touch()
    lines.append(started.communicate(timeout=60)[0])
    assert started.returncode == 0, lines
    assert "echo | gpg --clearsign" in "".join(lines)
    for each in git(repo, "rev-list", "-2" if more else "-1", "main").split():
        assert "gpgsig " in git(repo, "cat-file", "commit", each)
