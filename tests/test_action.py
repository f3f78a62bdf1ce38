"""The GitHub action: its steps, run as the runner runs them, with hostile names everywhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hives import COMMAND, QuickQueen, commit_file, git, write_lines
from pages import ROOT
from ruamel.yaml import YAML

ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {each["name"]: each for each in ACTION["runs"]["steps"]}
CHECKS, REPORT, COMMENT, VERDICT = list(STEPS)[1:]
pytestmark = pytest.mark.slow
HOSTILE = "$(touch pwned)`touch pwned`;touch pwned\n::error::x\n\"'&&touch pwned"


class Runner:
    """What GitHub's runner does for a step: environment, files, a shell that stops at an error."""

    def __init__(self, tree: Path, temp: Path) -> None:
        self.tree = tree
        self.temp = temp
        self.known = {
            "github.action_path": str(ROOT),
            "github.sha": git(tree, "rev-parse", "HEAD").strip(),
            "github.repository": "you/shop",
            "github.event.pull_request.number": "7",
            "github.token": "secret",
        }
        for name, given in ACTION["inputs"].items():
            self.known[f"inputs.{name}"] = self.value(str(given.get("default", "")))
        self.log = ""
        self.env = {"GITHUB_OUTPUT": str(temp / "output"), "RUNNER_TEMP": str(temp)}
        self.env["GITHUB_STEP_SUMMARY"] = str(temp / "summary.md")
        program = temp / "queenbee" / "bin" / "queen"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
        program.chmod(0o755)

    def value(self, text: str) -> str:
        """Returns a text with its expressions: names, of several the first that is not empty."""

        def of(match: re.Match[str]) -> str:
            names = [each.strip() for each in match[1].split("||")]
            return next(filter(None, (self.known.get(name, "") for name in names)), "")

        return re.sub(r"\$\{\{(.*?)\}\}", of, text)

    def given(self, **inputs: str) -> Runner:
        self.known.update({f"inputs.{name.replace('_', '-')}": one for name, one in inputs.items()})
        return self

    def run(self, name: str) -> int:
        """Runs one step; returns its exit status."""
        step = STEPS[name]
        env = {key: self.value(str(each)) for key, each in step["env"].items()}
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.tree,
            env={**os.environ, **self.env, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        self.log += done.stdout.decode(errors="replace")
        for line in self.read("output").splitlines():
            key, _, one = line.partition("=")
            self.known[f"steps.{step.get('id')}.outputs.{key}"] = one
        return done.returncode

    def check(self) -> bool:
        """Runs the steps that always run; returns whether the action passes."""
        assert self.run(CHECKS) == 0, self.log
        assert self.run(REPORT) == 0, self.log
        return self.run(VERDICT) == 0

    def read(self, name: str) -> str:
        path = self.temp / name
        return path.read_text() if path.exists() else ""

    @property
    def summary(self) -> str:
        return self.read("summary.md")

    def commands(self) -> list[str]:
        """Returns the commands that the runner takes from the log."""
        taken, until = [], None
        for line in self.log.splitlines():
            command = line.strip()
            if until is not None:
                until = None if command == f"::{until}::" else until
            elif command.startswith("::stop-commands::"):
                until = command.removeprefix("::stop-commands::")
            elif command.startswith("::") or "##[" in command:
                taken.append(command)
        assert until is None
        return taken


@pytest.fixture
def runner(repo: Path, quick: QuickQueen, tmp_path: Path) -> Runner:
    """A pull request with one commit, in a repository with a hive."""
    quick("init")
    write_lines(repo / ".beads" / "issues.jsonl", {"id": "qb-1", "title": "Cart", "status": "open"})
    quick("claim", "qb-1", as_="ui")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "the hive")
    base = git(repo, "rev-parse", "HEAD").strip()
    commit_file(repo, "src/a.py", "a = 1\n")
    found = Runner(repo, tmp_path / "runner")
    found.known["github.event.pull_request.base.sha"] = base
    found.known["github.event.pull_request.head.sha"] = found.known["github.sha"]
    return found


def test_no_value_from_outside_is_in_a_script():
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
        assert "uses" not in step


def test_a_sound_pull_request_passes_and_is_reported(runner):
    assert runner.check(), runner.log
    assert runner.summary.startswith("<!-- QueenBee report -->\nRecords: **passed**")
    assert "Held files: **passed**" in runner.summary
    assert "| `qb-1` | `Cart` | `ui` |" in runner.summary
    assert Path(runner.known["steps.report.outputs.path"]).read_text().startswith("<!doctype html>")
    assert runner.known["steps.checks.outputs.passed"] == "true"


@pytest.mark.thorough
def test_a_fresh_clone_has_what_is_committed(runner, quick, tmp_path):
    quick("reserve", "src/**", as_="api")
    git(runner.tree, "add", ".")
    git(runner.tree, "commit", "-qm", "a lease")
    git(tmp_path, "clone", "-q", str(runner.tree), "clone")
    runner.tree = tmp_path / "clone"
    assert not runner.check()
    assert "Records: **passed**" in runner.summary
    assert "src/a.py: held by api" in runner.summary
    assert git(runner.tree, "status", "--porcelain") == ""


class TestTheHoldersPullRequest:
    """A droid reserves a file in its worktree, commits, and proposes its branch."""

    @pytest.fixture(autouse=True)
    def proposed(self, runner, tmp_path):
        main = QuickQueen(runner.tree)
        main("worktree", "add", "api")
        tree = runner.tree.parent / f"{runner.tree.name}-api"
        QuickQueen(tree)("reserve", "src/**", as_="api")
        commit_file(tree, "src/b.py", "b = 1\n")
        git(runner.tree, "add", ".")
        git(runner.tree, "commit", "-qm", "the records")
        git(tree, "merge", "-q", "main")
        git(tmp_path, "clone", "-q", "--branch", "api", str(runner.tree), "clone")
        runner.tree = tmp_path / "clone"
        runner.known["github.event.pull_request.head.sha"] = "HEAD"
        runner.known["github.event.pull_request.head.repo.full_name"] = "you/shop"
        runner.known["github.head_ref"] = "api"

    def test_passes(self, runner):
        assert runner.check(), runner.log

    def test_of_a_branch_of_that_name_in_a_fork_does_not(self, runner):
        runner.known["github.event.pull_request.head.repo.full_name"] = "they/shop"
        assert not runner.check()
        assert "src/b.py: held by api" in runner.summary

    @pytest.mark.thorough
    def test_of_another_branch_does_not(self, runner):
        runner.known["github.head_ref"] = "ui"
        assert not runner.check()

    def test_of_the_branch_that_queen_land_proposes_passes(self, runner):
        lease = {"pattern": "docs/**", "droid": "api", "issue_id": "qb-1", "branch": "api"}
        with (runner.tree / ".beads" / "queen_reservations.jsonl").open("a") as file:
            later = {"id": "resv-01KB8G0000000000000000000A", "created_at": "2026-11-01T00:00:00Z",
                     "expires_at": "2099-01-01T00:00:00Z", "status": "active"}  # fmt: skip
            file.write(json.dumps(later | lease) + "\n")
        runner.known["github.head_ref"] = "api-qb-1"
        assert runner.check(), runner.log


class TestHeldFiles:
    @pytest.fixture(autouse=True)
    def held(self, quick):
        quick("reserve", "src/**", "--reason", "a refactoring", as_="api")

    def test_a_held_file_fails_it_and_is_named(self, runner):
        assert not runner.check()
        assert "Held files: **failed**" in runner.summary
        assert "    \x20\x20src/a.py: held by api, src/**" in runner.summary

    @pytest.mark.thorough
    def test_it_can_be_a_warning(self, runner):
        assert runner.given(held="warn").check()
        assert "src/a.py: held by api" in runner.summary

    @pytest.mark.thorough
    def test_the_holders_own_commits_pass(self, runner):
        assert runner.given(droid="api").check()
        assert not runner.given(droid="ui").check()

    @pytest.mark.thorough
    def test_only_the_commits_of_the_range_count(self, runner):
        assert runner.given(range="HEAD..HEAD").check()

    def test_a_range_that_is_not_there_fails_it(self, runner):
        runner.known["github.event.pull_request.base.sha"] = "a" * 40
        assert not runner.check()
        assert "is not a range of commits" in runner.summary

    @pytest.mark.thorough
    def test_without_a_range_it_is_said_that_nothing_was_checked(self, runner):
        runner.known["github.event.pull_request.base.sha"] = "0" * 40
        assert runner.check()
        assert "Held files: not checked" in runner.summary


class TestGates:
    @pytest.fixture(autouse=True)
    def gate(self, quick):
        quick("gate", "new", "-w", "shop", "-p", "phase_1")
        quick("gate", "add-rule", "-w", "shop", "-p", "phase_1", "--exists", "src/a.py")

    def test_a_gate_that_has_not_passed_fails_it(self, runner):
        assert not runner.given(gates="shop/phase_1").check()
        assert "Gate: **failed**" in runner.summary

    @pytest.mark.thorough
    def test_its_rules_can_be_run_here(self, runner):
        assert runner.given(gates="shop/phase_1", run_gates="true").check()
        assert "Gate, run here: **passed**" in runner.summary

    def test_its_commands_are_listed_and_trusted_for_this_job_alone(self, asking, runner):
        self.bring_a_rule(runner)
        assert runner.given(gates="shop/phase_2", run_gates="true").check()
        assert "Commands let run: **passed**" in runner.summary
        assert "    touch ran" in runner.summary
        assert (runner.tree / "ran").exists()
        assert not asking.exists()

    def test_its_commands_never_run_for_a_fork_in_a_job_with_secrets(self, asking, runner):
        self.bring_a_rule(runner)
        runner.known["github.event_name"] = "pull_request_target"
        assert not runner.given(gates="shop/phase_2", run_gates="true").check()
        assert not (runner.tree / "ran").exists()

    @staticmethod
    def bring_a_rule(runner):
        """Has a gate come with the pull request."""
        quick = QuickQueen(runner.tree)
        gate = ("--workflow", "shop", "--phase", "phase_2")
        quick("gate", "new", *gate)
        quick("gate", "add-rule", *gate, "--test", "true")
        (file,) = (runner.tree / ".claude" / "state" / "validation").glob("*phase_2*.json")
        file.write_text(file.read_text().replace('"true"', '"touch ran"'))
        shutil.rmtree(os.environ["XDG_STATE_HOME"])

    def test_only_gates_that_are_named_count(self, runner):
        assert runner.check()
        assert not runner.given(gates="shop/phase_2").check()
        assert not runner.given(gates="nothing").check()


def test_records_that_are_not_sound_fail_it(runner):
    with (runner.tree / ".beads" / "queen_messages.jsonl").open("a") as file:
        file.write("<<<<<<< ours\n")
    assert not runner.check()
    assert "Records: **failed**" in runner.summary


def test_a_repository_without_a_hive_fails_it(runner, tmp_path):
    (tmp_path / "plain").mkdir()
    runner.tree = tmp_path / "plain"
    assert runner.run(CHECKS) == 0
    assert runner.known["steps.checks.outputs.passed"] == "false"


@pytest.mark.parametrize(
    "name",
    ["range", "gates"]
    + [pytest.param(name, marks=pytest.mark.thorough)
       for name in ("droid", "since", "held", "sync", "run_gates")],
)  # fmt: skip
def test_no_input_is_run(runner, name):
    runner.given(**{name: HOSTILE})
    runner.run(REPORT if name == "since" else CHECKS)
    assert not list(runner.tree.rglob("pwned"))
    assert runner.commands() == []


def test_no_name_in_the_hive_is_run_or_is_a_command_of_the_runner(runner, quick):
    names = ["$(touch pwned)", "::error::x", "##[group]x", "`touch pwned`", "    x"]
    for name in names:
        commit_file(runner.tree, f"src/{name}", "x")
    runner.known["github.event.pull_request.head.sha"] = git(
        runner.tree, "rev-parse", "HEAD"
    ).strip()
    reason = "::error::x\n::add-mask::y ```\n<b>"
    quick("reserve", "src/**", "--reason", reason, as_="api")
    with (runner.tree / ".beads" / "queen_messages.jsonl").open("a") as file:
        file.write("::error::torn\n")
    quick("msg", "send", "ui", "::error::x", "--subject", "\n::error::y", as_="api")
    assert not runner.check()
    assert not list(runner.tree.rglob("pwned"))
    assert runner.commands() == []
    # What commands said is code: every line of it is indented.
    checks = runner.read("queenbee-checks.md")
    assert all(
        line.startswith("    ") or not line or re.fullmatch(r"[A-Z][a-z ]+: \*\*[a-z]+\*\*", line)
        for line in checks.splitlines()
    ), checks


def test_a_runner_that_takes_commands_meanwhile_is_noticed(runner, quick, monkeypatch):
    quick("reserve", "src/**", as_="api")
    commit_file(runner.tree, "src/##[group]x", "x")
    runner.known["github.event.pull_request.head.sha"] = "HEAD"
    open_to_commands = STEPS[CHECKS]["run"].replace('echo "::stop-commands::$token"', ":")
    monkeypatch.setitem(STEPS[CHECKS], "run", open_to_commands)
    runner.run(CHECKS)
    assert runner.commands()


@pytest.mark.thorough
def test_an_answer_of_any_length_fits_into_a_comment(runner):
    issues = "".join(f"not json {'é' * 300}\n" for _ in range(900))
    (runner.tree / ".beads" / "issues.jsonl").write_text(issues)
    runner.check()
    assert len(runner.summary) < 65_536


def says(runner: Runner, text: str) -> None:
    """Makes every command of `queen` print this text and fail; its reports are long ones."""
    (runner.temp / "said").write_bytes(text.encode())
    program = runner.temp / "queenbee" / "bin" / "queen"
    line = "| `@team ü` |"
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = report ]; then\n'
        f"  {{ echo '<!-- QueenBee report -->'; yes '{line}' | head -c 59000; echo; }} > \"$3\"\n"
        f"  exit 0\nfi\ncat {runner.temp}/said\nexit 1\n"
    )


def test_many_long_answers_and_a_long_report_fit_into_a_comment(runner):
    says(runner, "x" * 20_000)
    runner.given(gates=" ".join(f"shop/phase_{number}" for number in range(12)))
    assert not runner.check()
    comment = runner.read("queenbee-report-comment.md")
    assert len(comment) < 65_536
    assert comment.startswith("<!-- QueenBee report -->")
    assert comment.endswith("\nThe rest is left out for want of room.\n")


def test_what_is_cut_is_cut_between_lines(runner):
    says(runner, "x" * 7_500)
    runner.check()
    rows = [each for each in runner.summary.splitlines() if each.startswith("|")]
    assert len(rows) > 1000
    assert {each.count("`") for each in rows} == {2}


def test_a_carriage_return_begins_no_line_of_a_comment(runner):
    says(runner, "one\r@team <img src=x>\n")
    runner.check()
    assert "\r" not in runner.read("queenbee-checks.md")


class TestInstalling:
    def wheel(self, folder: Path) -> Path:
        path = folder / "nothing-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("nothing.py", "")
            file.writestr(
                "nothing-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1\n"
            )
            file.writestr(
                "nothing-1.dist-info/WHEEL",
                "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            file.writestr("nothing-1.dist-info/RECORD", "")
        return path

    @pytest.mark.thorough
    def test_nothing_is_imported_from_the_repository(self, runner, tmp_path):
        for name in ("pip", "venv", "json", "sitecustomize"):
            (runner.tree / f"{name}.py").write_text("open('pwned', 'w').close()\n")
        runner.known["github.action_path"] = str(self.wheel(tmp_path))
        runner.given(python=sys.executable)
        assert runner.run("Install queen") == 0, runner.log
        assert not (runner.tree / "pwned").exists()
        assert list((runner.temp / "queenbee").rglob("nothing.py"))


class TestTheComment:
    @pytest.fixture(autouse=True)
    def gh(self, runner, tmp_path):
        """A `gh` that notes what it is asked, and knows the comment that a test gives it."""
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "gh"
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$*" >> {folder}/asked\n'
            f'case "$*" in *--jq*) cat {folder}/known 2>/dev/null || true;; esac\n'
            f"test ! -e {folder}/refuses\n"
        )
        program.chmod(0o755)
        runner.env["PATH"] = f"{folder}:{os.environ['PATH']}"
        assert runner.check()
        return folder

    @pytest.mark.thorough
    def test_the_first_one_is_new(self, runner, gh):
        assert runner.run(COMMENT) == 0
        (_, wrote) = (gh / "asked").read_text().splitlines()
        assert "--method POST repos/you/shop/issues/7/comments" in wrote
        assert wrote.endswith(f"body=@{runner.temp}/queenbee-report-comment.md")

    def test_a_later_one_replaces_it(self, runner, gh):
        (gh / "known").write_text("11\n12\n")
        assert runner.run(COMMENT) == 0
        assert "--method PATCH repos/you/shop/issues/comments/11 " in (gh / "asked").read_text()

    @pytest.mark.thorough
    def test_without_the_right_to_write_there_is_a_warning(self, runner, gh):
        (gh / "refuses").touch()
        assert runner.run(COMMENT) == 0
        assert len(runner.commands()) == 1
        assert runner.commands()[0].startswith("::warning::The comment could not be written")

    @pytest.mark.thorough
    def test_it_is_only_written_if_it_is_asked_for(self):
        assert STEPS[COMMENT]["if"] == "inputs.comment == 'true' && github.event.pull_request"
        assert ACTION["inputs"]["comment"]["default"] == "false"
