"""Every tree of a repository finds the same hive, without asking git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hives import Queen, commit_file, git, write_lines
from raw_files import remembered

from queenbee import Hive
from queenbee.errors import NoHive, Unreadable
from queenbee.store.git_trees import folds_case, git_tree
from queenbee.store.layout import OUTSIDE, discover


def found(cwd, env=None, **more):
    return discover(str(cwd), env or {}, must_exist=False, **more)


@pytest.fixture
def linked(repo):
    """A linked worktree of `repo`, beside it."""
    git(repo, "worktree", "add", "-q", "-b", "feature", "../linked")
    return repo.parent / "linked"


@pytest.fixture
def bare(tmp_path):
    """A bare repository with two worktrees and no main one."""
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    seed = tmp_path / "seed"
    git(tmp_path, "clone", "-q", "bare.git", "seed")
    commit_file(seed, "README.md", "a repository\n")
    git(seed, "push", "-q", "origin", "HEAD:main")
    for name in ("one", "two"):
        git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", name, f"../{name}", "main")
    return tmp_path


class TestInAMainWorktree:
    @pytest.mark.parametrize("below", [".", "src", "src/deep"])
    def test_the_first_beads_upward_is_the_hive(self, repo, below):
        (repo / "src" / "deep").mkdir(parents=True)
        assert found(repo / below).beads_dir == str(repo / ".beads")

    def test_the_state_is_in_the_git_directory(self, repo):
        places = found(repo)
        assert places.state_dir == str(repo / ".git" / "queenbee")
        assert places.identity_path == str(repo / ".git" / "queenbee-droid")

    def test_without_any_beads_it_is_at_the_top(self, repo):
        (repo / ".beads").rmdir()
        (repo / "src").mkdir()
        assert found(repo / "src").beads_dir == str(repo / ".beads")

    def test_beads_above_the_repository_are_not_its_own(self, repo):
        (repo / ".beads").rmdir()
        (repo.parent / ".beads").mkdir()
        assert found(repo).beads_dir == str(repo / ".beads")

    def test_a_link_in_the_way_leads_to_the_same_hive(self, repo, tmp_path):
        (tmp_path / "way").symlink_to(repo)
        assert found(tmp_path / "way").beads_dir == str(repo / ".beads")

    def test_a_missing_hive_is_an_error_that_suggests_init(self, repo):
        (repo / ".beads").rmdir()
        with pytest.raises(NoHive) as refused:
            discover(str(repo), {})
        assert refused.value.hint == "queen init"

    def test_with_a_separate_git_directory_the_state_is_there(self, tmp_path):
        git(tmp_path, "init", "-q", "--separate-git-dir", "elsewhere.git", "tree")
        assert found(tmp_path / "tree").state_dir == str(tmp_path / "elsewhere.git" / "queenbee")
        assert found(tmp_path / "tree").beads_dir == str(tmp_path / "tree" / ".beads")

    def test_a_submodule_has_its_own_hive(self, repo, tmp_path):
        git(tmp_path, "init", "-q", "library")
        commit_file(tmp_path / "library", "lib.py")
        git(
            repo,
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            "../library",
            "sub",
        )
        places = found(repo / "sub")
        assert places.beads_dir == str(repo / "sub" / ".beads")
        assert places.state_dir == str(repo / ".git" / "modules" / "sub" / "queenbee")


class TestInALinkedWorktree:
    def test_the_hive_is_the_main_ones(self, repo, linked):
        assert found(linked).beads_dir == str(repo / ".beads")
        assert found(linked).state_dir == found(repo).state_dir

    def test_the_hive_is_the_main_ones_even_where_the_branch_has_one(self, repo, linked):
        (linked / ".beads").mkdir()
        assert found(linked).beads_dir == str(repo / ".beads")

    def test_a_hive_in_a_folder_is_the_same_folders_in_the_main_one(self, repo, linked):
        (repo / "sub" / ".beads").mkdir(parents=True)
        (linked / "sub").mkdir()
        assert found(linked / "sub").beads_dir == str(repo / "sub" / ".beads")

    def test_patterns_are_relative_to_the_worktree_one_is_in(self, linked):
        assert found(linked).tree == str(linked)

    def test_each_worktree_has_its_own_identity(self, repo, linked):
        assert found(linked).identity_path != found(repo).identity_path
        assert found(linked).worktree == "linked"
        assert found(repo).worktree is None

    def test_inside_the_main_one_it_is_the_same(self, repo):
        git(repo, "worktree", "add", "-q", "-b", "inner", ".worktrees/inner")
        assert found(repo / ".worktrees" / "inner").beads_dir == str(repo / ".beads")

    def test_of_a_repository_whose_core_bare_is_false_in_a_file_of_its_own(self, repo, linked):
        git(repo, "config", "extensions.worktreeConfig", "true")
        git(repo, "config", "--unset", "core.bare")
        git(repo, "config", "--worktree", "core.bare", "false")
        assert found(linked).beads_dir == str(repo / ".beads")

    def test_what_one_writes_the_other_reads(self, repo, linked):
        Hive.open(linked, droid="ui", env={}).messages.send("api", "from the worktree")
        assert Hive.open(repo, droid="api", env={}).messages.inbox()[0].from_ == "ui"


class TestWithABareMainRepository:
    def test_the_hive_is_the_worktrees_own_and_the_state_is_shared(self, bare):
        one, two = found(bare / "one"), found(bare / "two")
        assert one.beads_dir == str(bare / "one" / ".beads")
        assert two.beads_dir == str(bare / "two" / ".beads")
        assert one.state_dir == two.state_dir == str(bare / "bare.git" / "queenbee")

    def test_what_one_writes_the_other_reads_at_once(self, bare):
        (bare / "one" / ".beads").mkdir()
        Hive.open(bare / "one", droid="ui", env={}).messages.send("api", "hello")
        assert Hive.open(bare / "two", droid="api", env={}).messages.inbox()[0].body == "hello"

    def test_what_one_writes_is_in_the_other_ones_ledger_after_its_next_write(self, bare):
        for name in ("one", "two"):
            (bare / name / ".beads").mkdir()
        ui = Hive.open(bare / "one", droid="ui", env={})
        api = Hive.open(bare / "two", droid="api", env={})
        sent = ui.messages.send("api", "hello")[0]
        api.messages.mark_read([sent.id])
        text = (bare / "two" / ".beads" / "queen_messages.jsonl").read_text()
        assert text.count(sent.id) == 2

    @pytest.mark.parametrize("extension", [False, True])
    def test_that_is_named_dot_git_it_is_the_same(self, tmp_path, extension):
        git(tmp_path, "init", "-q", "--bare", "project/.git")
        project = tmp_path / "project"
        tree = git(project, "hash-object", "-t", "tree", "/dev/null", "-w").strip()
        commit = git(project, "commit-tree", "-m", "first", tree).strip()
        git(project, "branch", "main", commit)
        if extension:
            git(project, "config", "extensions.worktreeConfig", "true")
            git(project, "config", "--unset", "core.bare")
            git(project, "config", "--worktree", "core.bare", "true")
        git(project, "worktree", "add", "-q", "tree", "main")
        assert found(project / "tree").beads_dir == str(project / "tree" / ".beads")
        assert found(project / "tree").state_dir == str(project / ".git" / "queenbee")


class TestOutsideGit:
    def test_the_state_is_hidden_beside_the_ledgers(self, tmp_path):
        (tmp_path / ".beads").mkdir()
        (tmp_path / "src").mkdir()
        places = found(tmp_path / "src")
        assert places.beads_dir == str(tmp_path / ".beads")
        assert places.state_dir == str(tmp_path / ".beads" / ".queenbee")

    def test_without_any_beads_it_is_where_one_is(self, tmp_path):
        assert found(tmp_path).beads_dir == str(tmp_path / ".beads")

    def test_messages_are_sent(self, tmp_path):
        (tmp_path / ".beads").mkdir()
        Hive.open(tmp_path, droid="ui", env={}).messages.send("api", "hello")
        assert (tmp_path / ".beads" / ".queenbee" / ".gitignore").read_text() == "*\n"


class TestARedirect:
    @pytest.fixture
    def other(self, repo):
        (repo / "other" / ".beads").mkdir(parents=True)
        return repo / "other" / ".beads"

    @pytest.mark.parametrize(
        "text",
        [
            "other/.beads\n",
            "# moved\n\n  \nother/.beads\n",
            "  other/.beads  \nignored\n",
            "other/.beads",
        ],
    )
    def test_is_followed_from_the_folder_that_holds_beads(self, repo, other, text):
        (repo / ".beads" / "redirect").write_text(text)
        assert found(repo).beads_dir == str(other)

    def test_is_followed_for_one_hop_only(self, repo, other):
        (repo / ".beads" / "redirect").write_text("other/.beads")
        (other / "redirect").write_text("../.beads")
        assert found(repo).beads_dir == str(other)

    def test_without_a_path_is_ignored(self, repo):
        (repo / ".beads" / "redirect").write_text("# nothing\n")
        assert found(repo).beads_dir == str(repo / ".beads")

    def test_that_leads_nowhere_is_refused(self, repo):
        (repo / ".beads" / "redirect").write_text("gone/.beads")
        with pytest.raises(Unreadable, match="not a directory"):
            found(repo)

    def test_out_of_the_repository_is_refused_unless_allowed(self, repo, tmp_path):
        (tmp_path / "outside" / ".beads").mkdir(parents=True)
        (repo / ".beads" / "redirect").write_text("../outside/.beads")
        with pytest.raises(Unreadable, match="outside this repository") as refused:
            found(repo)
        assert OUTSIDE in refused.value.hint
        assert found(repo, {OUTSIDE: "1"}).beads_dir == str(tmp_path / "outside" / ".beads")

    @pytest.mark.parametrize("path", [".git/hooks", ".git", ".", "sub/.GIT/x"])
    def test_into_the_git_directory_or_around_it_is_refused(self, repo, path):
        (repo / "sub" / ".GIT" / "x").mkdir(parents=True)
        (repo / ".beads" / "redirect").write_text(path)
        with pytest.raises(Unreadable, match="where git keeps its own files") as refused:
            found(repo)
        assert OUTSIDE in refused.value.hint

    def test_into_a_separate_git_directory_is_refused(self, repo):
        git(repo, "init", "-q", f"--separate-git-dir={repo / 'kept'}")
        (repo / ".beads" / "redirect").write_text("kept/hooks")
        with pytest.raises(Unreadable, match="where git keeps its own files"):
            found(repo)

    def test_within_a_worktree_that_is_in_a_git_directory_is_followed(self, bare):
        git(bare / "bare.git", "worktree", "add", "-q", "-b", "in", "in", "main")
        tree = bare / "bare.git" / "in"
        (tree / "other").mkdir()
        (tree / ".beads").mkdir()
        (tree / ".beads" / "redirect").write_text("other")
        assert found(tree).beads_dir == str(tree / "other")

    def test_in_the_main_worktree_leads_the_linked_one_too(self, repo, other, linked):
        (repo / ".beads" / "redirect").write_text("other/.beads")
        assert found(linked).beads_dir == str(other)

    def test_to_another_repository_shares_that_ones_lock(self, repo, tmp_path):
        git(tmp_path, "init", "-q", "second")
        (tmp_path / "second" / ".beads").mkdir()
        (repo / ".beads" / "redirect").write_text("../second/.beads")
        places = found(repo, {OUTSIDE: "1"})
        assert places.lock_path == found(tmp_path / "second").lock_path


class TestNamedByHand:
    def test_the_environment_comes_before_the_folder(self, repo):
        (repo / "other").mkdir()
        assert found(repo, {"BEADS_DIR": "other/.beads"}).beads_dir == str(
            repo / "other" / ".beads"
        )

    def test_the_option_comes_before_the_environment(self, repo):
        env = {"BEADS_DIR": "other/.beads"}
        assert found(repo, env, beads_dir="third/.beads").beads_dir == str(
            repo / "third" / ".beads"
        )

    def test_the_environment_leads_out_of_the_repository_only_where_allowed(self, repo, tmp_path):
        env = {"BEADS_DIR": str(tmp_path / "outside" / ".beads")}
        with pytest.raises(Unreadable, match="BEADS_DIR"):
            found(repo, env)
        assert found(repo, {**env, OUTSIDE: "1"}).beads_dir == env["BEADS_DIR"]

    def test_the_option_needs_no_further_permission(self, repo, tmp_path):
        outside = str(tmp_path / "outside" / ".beads")
        assert found(repo, beads_dir=outside).beads_dir == outside

    def test_what_was_found_says_why(self, repo, linked):
        assert "--beads-dir" in found(repo, beads_dir=".beads").how[0]
        assert "BEADS_DIR" in found(repo, {"BEADS_DIR": ".beads"}).how[0]
        assert "linked worktree" in found(linked).how[0]


class TestInPlaceOfBeads:
    def test_a_file_is_refused(self, repo):
        (repo / ".beads").rmdir()
        (repo / ".beads").write_text("")
        with pytest.raises(Unreadable, match="not a directory"):
            found(repo)

    def test_a_link_within_the_repository_is_followed(self, repo):
        (repo / ".beads").rename(repo / "real")
        (repo / ".beads").symlink_to("real")
        assert found(repo).beads_dir == str(repo / "real")

    def test_a_link_out_of_the_repository_is_refused_unless_allowed(self, repo, tmp_path):
        (repo / ".beads").rename(tmp_path / "outside")
        (repo / ".beads").symlink_to(tmp_path / "outside")
        with pytest.raises(Unreadable, match="symbolic link"):
            found(repo)
        assert found(repo, {OUTSIDE: "1"}).beads_dir == str(tmp_path / "outside")

    def test_a_link_to_itself_is_refused(self, repo):
        (repo / ".beads").rmdir()
        (repo / ".beads").symlink_to(".beads")
        with pytest.raises(Unreadable):
            found(repo)


class TestABrokenRepository:
    def test_a_git_file_that_leads_nowhere_is_refused_and_nothing_is_made_there(self, tmp_path):
        (tmp_path / ".git").write_text("gitdir: gone/.git/worktrees/x\n")
        with pytest.raises(Unreadable) as refused:
            found(tmp_path)
        assert str(refused.value.hint).endswith(f"there: git worktree repair {tmp_path}")
        assert not (tmp_path / "gone").exists()

    @pytest.mark.parametrize("text", ["", "no gitdir\n", "\udcff\n"])
    def test_a_git_file_without_a_path_is_not_a_repository(self, tmp_path, text):
        (tmp_path / ".git").write_text(text, errors="surrogateescape")
        assert git_tree(str(tmp_path)) is None


class TestCase:
    @pytest.mark.parametrize(
        ("config", "folds"),
        [
            ("[core]\n\tignorecase = true\n", True),
            ("[core]\n\tignoreCase = yes ; as on a Mac\n", True),
            ("[core] ignorecase\n", True),
            ("[core]\n\tignorecase = false\n", False),
            ("[other]\n\tignorecase = true\n", False),
            ("[core]\n# ignorecase = true\n", False),
            ("", False),
        ],
    )
    def test_is_folded_where_git_says_so(self, tmp_path, config, folds):
        (tmp_path / "config").write_text(config)
        assert folds_case(str(tmp_path)) is folds

    def test_is_not_folded_outside_git(self):
        assert folds_case(None) is False


class TestWhereTheStateIs:
    @pytest.fixture
    def in_beads(self, repo):
        git(repo, "config", "queenbee.state", "beads")
        return repo

    def test_is_chosen_by_this_machine_for_all_worktrees(self, in_beads):
        assert found(in_beads).state_dir == str(in_beads / ".beads" / ".queenbee")

    def test_is_shared_with_linked_worktrees(self, in_beads):
        git(in_beads, "worktree", "add", "-q", "-b", "feature", "../linked")
        assert found(in_beads.parent / "linked").state_dir == found(in_beads).state_dir

    def test_is_ignored_by_git(self, in_beads):
        Hive.open(in_beads, droid="ui", env={}).messages.send("api", "hello")
        assert ".queenbee" not in git(in_beads, "status", "--porcelain", "-uall")

    def test_survives_a_clean(self, in_beads):
        hive = Hive.open(in_beads, droid="ui", env={})
        hive.messages.send("api", "hello")
        git(in_beads, "clean", "-qfd")
        assert Hive.open(in_beads, droid="api", env={}).messages.inbox()[0].body == "hello"

    def test_survives_a_checkout_of_a_branch_that_has_no_settings(self, in_beads):
        git(in_beads, "branch", "empty")
        (in_beads / ".beads" / "queen.toml").write_text('ttl = "1h"\n')
        git(in_beads, "add", ".beads")
        git(in_beads, "commit", "-qm", "a hive")
        Hive.open(in_beads, droid="ui", env={}).messages.send("api", "hello")
        git(in_beads, "add", ".beads")
        git(in_beads, "commit", "-qm", "a message")
        git(in_beads, "checkout", "-q", "empty")
        assert Hive.open(in_beads, droid="api", env={}).messages.inbox()[0].body == "hello"

    def test_is_not_chosen_by_a_clone(self, repo):
        (repo / ".beads" / "queen.toml").write_text('state = "beads"\n')
        with pytest.raises(Unreadable, match="only this machine may choose") as refused:
            found(repo)
        assert "git config queenbee.state beads" in refused.value.hint
        assert not (repo / ".beads" / ".queenbee").exists()
        for choice, place in (("git", ".git/queenbee"), ("beads", ".beads/.queenbee")):
            git(repo, "config", "queenbee.state", choice)
            assert found(repo).state_dir == str(repo / place)

    def test_is_not_chosen_by_a_state_that_a_clone_brings_along(self, repo):
        (repo / ".beads" / ".queenbee" / "journal").mkdir(parents=True)
        assert found(repo).state_dir == str(repo / ".git" / "queenbee")

    def test_that_git_tracks_is_refused(self, in_beads):
        Hive.open(in_beads, droid="ui", env={}).messages.send("api", "hello")
        git(in_beads, "add", "-f", ".beads/.queenbee/hive.sqlite3")
        for version in ("2", "4"):
            git(in_beads, "update-index", "--index-version", version)
            with pytest.raises(Unreadable, match=r"git tracks \.beads/\.queenbee/hive"):
                found(in_beads)
        git(in_beads, "update-index", "--split-index")
        with pytest.raises(Unreadable, match="git tracks"):
            found(in_beads)
        git(in_beads, "rm", "-rq", "--cached", ".beads/.queenbee")
        git(in_beads, "update-index", "--no-split-index")
        for each in (in_beads / ".git").glob("sharedindex.*"):
            each.unlink()
        for version in ("4", "2"):
            git(in_beads, "update-index", "--index-version", version)
            assert found(in_beads).state_dir == str(in_beads / ".beads" / ".queenbee")

    @pytest.mark.parametrize(
        "text",
        [
            "[queenbee]\n\tstate = beads\n",
            '[QueenBee] state="beads" ; here\n',
            "[queenbee]\nState=beads",
        ],
    )
    def test_is_read_as_git_reads_its_config(self, repo, text):
        with (repo / ".git" / "config").open("a") as config:
            config.write(f"[queenbeer]\n\tstate = git\n{text}")
        assert found(repo).state_dir == str(repo / ".beads" / ".queenbee")

    def test_that_this_machine_misspells_is_refused(self, repo):
        git(repo, "config", "queenbee.state", "bead")
        with pytest.raises(Unreadable, match=r"queenbee\.state cannot be 'bead'"):
            found(repo)

    def test_is_one_for_the_worktrees_of_a_bare_repository(self, repo):
        bare = repo.parent / "bare.git"
        git(repo.parent, "clone", "-q", "--bare", str(repo), str(bare))
        for name in ("one", "two"):
            git(bare, "worktree", "add", "-q", "-b", name, f"../{name}")
        places = [found(repo.parent / name).state_dir for name in ("one", "two")]
        assert places == [str(bare / "queenbee")] * 2
        git(bare, "config", "queenbee.state", "beads")
        for name in ("one", "two"):
            with pytest.raises(Unreadable, match=r"each worktree has a \.beads/ of its own"):
                found(repo.parent / name)

    def test_is_one_for_the_worktrees_of_a_separate_git_directory(self, repo):
        apart, elsewhere = repo.parent / "apart", repo.parent / "elsewhere.git"
        git(repo.parent, "clone", "-q", f"--separate-git-dir={elsewhere}", str(repo), str(apart))
        git(apart, "config", "queenbee.state", "beads")
        alone = found(apart).state_dir
        assert alone == str(apart / ".beads" / ".queenbee")
        git(apart, "worktree", "add", "-q", "-b", "two", "../two")
        for name in ("apart", "two"):
            with pytest.raises(Unreadable, match=r"each worktree has a \.beads/ of its own"):
                found(repo.parent / name)

    def test_that_cannot_be_written_refuses_writes_and_says_what_to_grant(self, repo, queen):
        sent = queen("msg", "send", "api", "hello", as_="ui")
        assert sent.code == 0
        for folder in (repo / ".git" / "queenbee", *(repo / ".git" / "queenbee").rglob("*")):
            folder.chmod(0o555 if folder.is_dir() else 0o444)
        refused = queen("msg", "send", "api", "again", as_="ui", unprivileged=True)
        assert refused.code == 7
        assert str(repo / ".git" / "queenbee") in refused.err
        assert "git config queenbee.state beads" in refused.err
        assert len(queen("msg", "inbox", "--json", as_="api", unprivileged=True).json) == 1

    def test_that_cannot_be_made_refuses_writes_and_leaves_reading(self, repo, queen):
        (repo / ".git").chmod(0o555)
        refused = queen("msg", "send", "api", "hello", as_="ui", unprivileged=True)
        assert refused.code == 7
        assert "queenbee" in refused.err
        assert queen("msg", "inbox", "--json", as_="api", unprivileged=True).json == []

    def test_beside_ledgers_that_cannot_be_written_refuses_writes(self, repo, queen):
        queen("msg", "send", "api", "hello", as_="ui")
        (repo / ".beads" / "queen_messages.jsonl").chmod(0o444)
        before = remembered(repo / ".git" / "queenbee", "messages")
        refused = queen("msg", "send", "api", "again", as_="ui", unprivileged=True)
        assert refused.code == 7
        assert remembered(repo / ".git" / "queenbee", "messages") == before


class TestASparseCheckout:
    """Of a main worktree that leaves the hive out: without its settings, it would be another."""

    @pytest.fixture
    def sparse(self, repo, quick):
        """A repository with a hive and a check, of which only `src` is checked out."""
        quick("init")
        quick("config", "set", "land.check", "false")
        issue = {"id": "qb-1", "title": "one", "status": "open"}
        write_lines(repo / ".beads" / "issues.jsonl", issue)
        (repo / "src").mkdir()
        commit_file(repo, "src/a.txt")
        git(repo, "add", "--all")
        git(repo, "commit", "-qm", "a hive")
        return repo

    @pytest.mark.parametrize(
        ("how", "cure"),
        [
            (("set", "src"), ".beads"),
            (("set", "--sparse-index", "src"), ".beads"),
            (("set", "--no-cone", "src"), ".beads"),
            (("set", "--no-cone", "/*", "!queen.toml"), ".beads/queen.toml"),
            (("set", "--no-cone", "/*", "!issues.jsonl"), ".beads/issues.jsonl"),
        ],
    )
    def test_is_named_before_half_a_hive_is_made(self, sparse, quick, tmp_path, how, cure):
        git(sparse, "worktree", "add", "-q", str(tmp_path / "ui"), "-b", "ui")
        git(sparse, "sparse-checkout", *how)
        before = sorted(sparse.rglob(".beads/*"))
        for words in (
            ("land", "-m", "x"),
            ("worktree", "add", "api", "qb-1"),
            ("init",),
            ("claim", "qb-1"),
        ):
            for place in (sparse, tmp_path / "ui"):
                refused = quick(*words, as_="ui", cwd=place)
                said = f"git -C {sparse} sparse-checkout add {cure}\n"
                assert (refused.code, said in refused.err) == (7, True), refused
        assert sorted(sparse.rglob(".beads/*")) == before
        git(sparse, "sparse-checkout", "add", cure)
        assert quick("config", "get", "land.check", cwd=sparse).out == "false\n"
        assert quick("claim", "qb-1", as_="ui", cwd=tmp_path / "ui").code == 0

    def test_that_has_it_is_as_any_other(self, sparse, quick):
        git(sparse, "sparse-checkout", "set", "src", ".beads")
        assert quick("claim", "qb-1", as_="ui").code == 0
        git(sparse, "sparse-checkout", "disable")
        (sparse / ".beads" / "queen.toml").unlink()
        assert quick("config", "get", "land.check").code == 0


class TestABranchWithoutAHive:
    @pytest.fixture
    def away(self, repo):
        """A repository with a message in its hive, on a branch that never had one."""
        git(repo, "branch", "empty")
        Hive.open(repo, droid="ui", env={}).messages.send("api", "hello")
        git(repo, "add", ".beads")
        git(repo, "commit", "-qm", "a hive")
        git(repo, "checkout", "-q", "empty")
        assert not (repo / ".beads").exists()
        return repo

    def test_still_shows_the_hive(self, away):
        assert Hive.open(away, droid="api", env={}).messages.inbox()[0].body == "hello"

    def test_is_written_to(self, away):
        Hive.open(away, droid="api", env={}).messages.send("ui", "and back")
        text = (away / ".beads" / "queen_messages.jsonl").read_text()
        assert text.count('"hello"') == 2  # Its subject and its body.

    def test_is_left_again_with_everything(self, away):
        Hive.open(away, droid="api", env={}).messages.send("ui", "and back")
        git(away, "checkout", "-qf", "main")
        assert Hive.open(away, droid="ui", env={}).messages.inbox()[0].body == "and back"


@pytest.mark.slow
def test_no_git_is_needed(repo, linked, tmp_path):
    (tmp_path / "nothing").mkdir()
    queen = Queen(linked)
    env = {"PATH": str(tmp_path / "nothing")}
    assert queen("msg", "send", "api", "hello", as_="ui", env=env).code == 0
    assert queen("reserve", "src/**", as_="ui", env=env).code == 0
    assert queen("doctor", env=env).code in (0, 1)
    assert queen("msg", "inbox", "--json", as_="api", env=env, cwd=repo).json[0]["body"] == "hello"


def test_no_process_is_spawned_to_find_the_hive(linked, monkeypatch):
    for name in ("Popen", "run"):
        monkeypatch.setattr(subprocess, name, pytest.fail)
    for name in ("posix_spawn", "posix_spawnp"):
        monkeypatch.setattr(os, name, pytest.fail)
    assert found(linked).worktree == "linked"


def test_beads_below_a_file_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unreadable, match="Not a directory"):
        found(tmp_path, beads_dir=str(tmp_path / "file" / ".beads"))


def test_a_folder_that_is_named_by_a_slip_is_not_filled_with_ledgers(repo):
    (repo / "src").mkdir()
    with pytest.raises(NoHive, match="src is not a hive") as refused:
        discover(str(repo), {}, beads_dir="src")
    assert "queen init --beads-dir" in refused.value.hint
    (repo / "src" / "queen.toml").touch()
    assert discover(str(repo), {}, beads_dir="src").beads_dir == str(repo / "src")


def test_a_link_that_is_replaced_at_that_moment_is_a_clear_error(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ".beads").rmdir()
    (repo / ".beads").symlink_to(tmp_path)

    def replaced(path: str, *more: object, **options: object) -> str:
        if path.endswith(".beads"):
            raise OSError(22, "Invalid argument", path)
        return real(path)

    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", replaced)
    with pytest.raises(Unreadable, match="changed while it was read"):
        discover(str(repo), {})
