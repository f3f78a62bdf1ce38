"""What a check finds, in which order checks run, and what reaches them."""

from __future__ import annotations

import os

import pytest

from queenbee.checks import (
    Check,
    Command,
    ContentMatch,
    Expectation,
    FileExists,
    Pattern,
    Script,
    describe,
    run_checks,
)
from queenbee.checks.content import MAX_BYTES

ENV = {"PATH": os.environ["PATH"]}


def command(text, name="it", **more):
    return Check(name, Command(text), **more)


def run_one(check, cwd, env=ENV):
    (result,) = run_checks([check], cwd=str(cwd), env=env)
    return result


def contains(path, *patterns, **more):
    wanted = tuple(
        pattern if isinstance(pattern, Pattern) else Pattern(pattern) for pattern in patterns
    )
    return Check("it", ContentMatch(path, wanted), **more)


@pytest.mark.parametrize(
    ("text", "expect", "status", "reason"),
    [
        pytest.param("true", {}, "passed", "exit code 0, as expected", id="exit-0"),
        pytest.param("exit 3", {"exit_code": 3}, "passed", "exit code 3", id="expected-exit-3"),
        pytest.param("exit 1", {}, "failed", "exit code 1, expected 0", id="exit-1"),
        pytest.param(
            "true", {"exit_code": 1}, "failed", "exit code 0, expected 1", id="no-failure"
        ),
        pytest.param("kill -9 $$", {}, "failed", "ended by SIGKILL", id="killed"),
        pytest.param("kill -9 $$", {"exit_code": 137}, "passed", "SIGKILL", id="as-a-shell-says"),
        pytest.param("nonsense-command", {}, "failed", "exit code 127", id="unknown-command"),
        pytest.param("echo a.b", {"stdout_contains": "a.b"}, "passed", "", id="stdout-has-it"),
        pytest.param("echo axb", {"stdout_contains": "a.b"}, "failed", "'a.b'", id="is-literal"),
        pytest.param(
            "echo x >&2", {"stdout_contains": "x"}, "failed", "standard output", id="wrong-stream"
        ),
        pytest.param("echo x >&2", {"stderr_contains": "x"}, "passed", "", id="stderr-has-it"),
        pytest.param(
            "echo x; exit 1",
            {"stdout_contains": "x"},
            "failed",
            "exit code 1",
            id="text-but-exit-1",
        ),
        pytest.param("true", {"stdout_contains": ""}, "passed", "", id="the-empty-text"),
        pytest.param("echo a | tr a b", {"stdout_contains": "b"}, "passed", "", id="a-pipe"),
        pytest.param(
            "sleep 300 & echo up && true", {"stdout_contains": "up"}, "passed", "", id="background"
        ),
        pytest.param("printf 'a\\0b'", {"stdout_contains": "a\0b"}, "passed", "", id="nul-output"),
        pytest.param("true\0", {}, "failed", "cannot be started", id="nul-in-the-command"),
        pytest.param("printf '\\377'", {"stdout_contains": "x"}, "failed", "", id="not-utf8"),
    ],
)
def test_a_command_passes_by_its_exit_code_and_its_output(text, expect, status, reason, tmp_path):
    result = run_one(command(text, expect=Expectation(**expect)), tmp_path)
    assert (result.status, reason in result.reason) == (status, True), result.reason


def test_everything_wrong_with_one_command_is_reported(tmp_path):
    expect = Expectation(stdout_contains="out", stderr_contains="err")
    assert run_one(command("exit 1", expect=expect), tmp_path).reason == (
        "exit code 1, expected 0; standard output does not contain 'out'; "
        "standard error does not contain 'err'"
    )


def test_a_command_runs_in_its_own_folder_below_that_of_the_run(tmp_path):
    (tmp_path / "sub").mkdir()
    result = run_one(command("pwd", cwd="sub"), tmp_path)
    assert result.stdout.text() == f"{tmp_path}/sub\n"


def test_a_missing_working_directory_is_named(tmp_path):
    result = run_one(command("true", cwd="gone"), tmp_path)
    assert result.reason == f"the working directory {tmp_path}/gone does not exist"


def test_only_the_allow_list_and_what_a_check_names_reach_it(tmp_path):
    env = ENV | {
        "HOME": "/home/me",
        "LC_ALL": "C",
        "VIRTUAL_ENV": "/venv",
        "API_TOKEN": "secret",
        "LD_PRELOAD": "/evil.so",
        "NAMED": "let through",
    }
    check = command("env", environment={"NAMED": None, "ADDED": "here", "ABSENT": None})
    lines = run_one(check, tmp_path, env).stdout.text().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    expected = {"HOME": "/home/me", "LC_ALL": "C", "VIRTUAL_ENV": "/venv", "ADDED": "here"}
    assert {name: seen.get(name) for name in expected} == expected
    assert seen["NAMED"] == "let through"
    assert {"API_TOKEN", "LD_PRELOAD", "ABSENT"} & set(seen) == set()


def test_a_script_runs_with_its_arguments_and_without_a_shell(tmp_path):
    script = tmp_path / "check.sh"
    script.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    script.chmod(0o755)
    result = run_one(Check("it", Script("./check.sh", ("a b", "$HOME", "*"))), tmp_path)
    assert (result.status, result.stdout.text()) == ("passed", "a b|$HOME|*|")


@pytest.mark.parametrize(
    ("mode", "content", "reason"),
    [
        pytest.param(0o644, "#!/bin/sh\n", "Permission denied", id="not-executable"),
        pytest.param(0o755, "#!/no/such/shell\n", "No such file", id="missing-interpreter"),
        pytest.param(0o755, "\x7fnonsense", "Exec format error", id="not-a-program"),
    ],
)
def test_a_script_that_cannot_be_started_fails_with_the_reason(mode, content, reason, tmp_path):
    script = tmp_path / "check.sh"
    script.write_text(content)
    script.chmod(mode)
    result = run_one(Check("it", Script(str(script))), tmp_path)
    assert (result.status, reason in result.reason) == ("failed", True), result.reason


@pytest.mark.parametrize(
    ("path", "file_type", "status"),
    [
        pytest.param("here.txt", "file", "passed", id="a-file"),
        pytest.param("folder", "file", "failed", id="a-folder-is-no-file"),
        pytest.param("folder", "directory", "passed", id="a-folder"),
        pytest.param("here.txt", "directory", "failed", id="a-file-is-no-folder"),
        pytest.param("folder", "any", "passed", id="anything"),
        pytest.param("pipe", "any", "passed", id="a-pipe-is-something"),
        pytest.param("pipe", "file", "failed", id="a-pipe-is-no-file"),
        pytest.param("gone.txt", "file", "failed", id="missing"),
        pytest.param("here.txt/below", "any", "failed", id="below-a-file"),
        pytest.param("dangling", "any", "failed", id="dangling-link"),
        pytest.param("loop", "any", "failed", id="link-to-itself"),
        pytest.param("a\0b", "any", "failed", id="nul"),
        pytest.param("x" * 5000, "any", "failed", id="five-thousand-characters"),
        pytest.param("\ud800", "any", "failed", id="half-a-surrogate-pair"),
    ],
)
def test_a_file_exists_or_not(path, file_type, status, tmp_path):
    (tmp_path / "here.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert run_one(Check("it", FileExists(path, file_type)), tmp_path).status == status


def test_an_existing_file_is_described(tmp_path):
    path = tmp_path / "here.txt"
    path.write_text("12345")
    path.chmod(0o640)
    os.utime(path, (1_763_217_020, 1_763_217_020))
    result = run_one(Check("it", FileExists(str(path))), tmp_path)
    assert result.reason == f"File {path} exists"
    assert result.details == {
        "file_size_bytes": 5,
        "file_modified_at": "2025-11-15T14:30:20.000Z",
        "permissions": "rw-r-----",
    }


TEXT = "import os\n\n\nclass Calculator:\n    def add(a, b):\n        return a + b\n"


@pytest.mark.parametrize(
    ("patterns", "status"),
    [
        pytest.param(["def add\\(", "class Calculator"], "passed", id="both"),
        pytest.param(["def add\\(", "def subtract\\("], "failed", id="one-of-two"),
        pytest.param(["^class \\w+:$"], "passed", id="ends-of-a-line"),
        pytest.param([Pattern("def add(a, b)", literal=True)], "passed", id="plain-text"),
        pytest.param([Pattern("def .*", literal=True)], "failed", id="plain-text-is-no-pattern"),
        pytest.param(["CLASS"], "failed", id="case-matters"),
        pytest.param([Pattern("CLASS", case_sensitive=False)], "passed", id="case-does-not"),
        pytest.param(
            [Pattern("CLASS C", literal=True, case_sensitive=False)], "passed", id="plain-no-case"
        ),
        pytest.param(["Calculator:\\s+def"], "passed", id="across-lines"),
        pytest.param(["("], "failed", id="not-a-pattern"),
        pytest.param(["[[:alpha:]]("], "failed", id="not-a-pattern-of-python"),
        pytest.param(["a" * 100_000], "failed", id="too-long-a-pattern"),
        pytest.param(["x"] * 501, "failed", id="too-many-patterns"),
        pytest.param(["\0"], "failed", id="nul"),
        pytest.param(["\ud800"], "failed", id="half-a-surrogate-pair"),
    ],
)
def test_every_pattern_must_occur_in_the_file(patterns, status, tmp_path):
    (tmp_path / "calculator.py").write_text(TEXT)
    assert run_one(contains("calculator.py", *patterns), tmp_path).status == status


def test_matches_are_described_with_their_line(tmp_path):
    (tmp_path / "calculator.py").write_text(TEXT)
    result = run_one(contains("calculator.py", "def add\\(", "def gone\\("), tmp_path)
    assert result.details == {
        "matched_patterns": [
            {
                "pattern": "def add\\(",
                "line_number": 5,
                "matched_text": "    def add(a, b):",
            }
        ],
        "total_patterns": 2,
        "matched_count": 1,
        "missing_patterns": ["def gone\\("],
        "file_path": f"{tmp_path}/calculator.py",
    }
    assert result.reason == f"missing from {tmp_path}/calculator.py: 'def gone\\\\('"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"class A:\r\n    pass\r\n", id="crlf"),
        pytest.param(b"\xef\xbb\xbfclass A:\n", id="byte-order-mark"),
        pytest.param(b"\xff\xfe\x00\nclass A:\n\xff", id="not-utf8"),
        pytest.param(b"class A:", id="no-newline-at-the-end"),
    ],
)
def test_whole_lines_are_matched_in_any_text_file(data, tmp_path):
    (tmp_path / "a.py").write_bytes(data)
    assert run_one(contains("a.py", "^class A:$"), tmp_path).status == "passed"


def test_a_pattern_that_would_take_forever_ends_at_the_timeout(tmp_path):
    (tmp_path / "a.txt").write_text("a" * 200 + "!")
    result = run_one(contains("a.txt", "(a+)+$", timeout_s=0.5), tmp_path)
    assert (result.status, result.exit_code) == ("failed", None)
    assert result.reason == f"{tmp_path}/a.txt cannot be searched: timed out after 0.5 s"


def _one_byte_too_large(path):
    path.touch()
    os.truncate(path, MAX_BYTES + 1)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        pytest.param(lambda path: None, "No such file or directory", id="missing"),
        pytest.param(lambda path: path.mkdir(), "Is a directory", id="folder"),
        pytest.param(os.mkfifo, "not a regular file", id="pipe"),
        pytest.param(_one_byte_too_large, "larger than 16,777,216 bytes", id="too-large"),
    ],
)
def test_a_file_that_cannot_be_searched_fails_with_the_reason(prepare, reason, tmp_path):
    prepare(tmp_path / "a.txt")
    result = run_one(contains("a.txt", "x"), tmp_path)
    assert (result.status, reason in result.reason) == ("failed", True), result.reason


def test_nothing_of_the_checked_project_gets_into_the_search(tmp_path):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('imported')")
    (tmp_path / "a.txt").write_text("x")
    env = ENV | {"PYTHONPATH": str(tmp_path)}
    check = contains("a.txt", "x", environment={"PYTHONPATH": None})
    assert run_one(check, tmp_path, env).status == "passed"


def test_no_check_starts_when_no_time_is_left(tmp_path):
    left = iter([5.0, 5.0, 0.0])
    checks = [command("true"), command("touch second")]
    results = run_checks(checks, cwd=str(tmp_path), env=ENV, time_left=lambda: next(left))
    assert [result.status for result in results] == ["passed", "skipped"]
    assert results[1].reason == "not run: no time is left"
    assert not (tmp_path / "second").exists()


def test_a_check_ends_when_the_time_of_the_whole_does(tmp_path):
    results = run_checks(
        [command("sleep 60", timeout_s=50)], cwd=str(tmp_path), env=ENV, time_left=lambda: 0.3
    )
    assert results[0].status == "failed"
    assert results[0].reason.endswith("no time is left")


def test_progress_tells_the_start_and_the_result_of_each(tmp_path):
    told = []
    checks = [command("true", "one"), command("exit 1", "two")]
    run_checks(checks, cwd=str(tmp_path), env=ENV, on_progress=told.append)
    assert [(progress.event, progress.name, progress.number) for progress in told] == [
        ("started", "one", 1),
        ("finished", "one", 1),
        ("started", "two", 2),
        ("finished", "two", 2),
    ]
    assert [progress.result.status for progress in told[1::2]] == ["passed", "failed"]


def test_a_description_shows_every_kind_before_anything_runs(tmp_path):
    checks = [
        command("touch ran && true", "Build", timeout_s=120),
        command("x", "Text", expect=Expectation(2, "out", "err"), cwd="sub"),
        command("y", "Env", environment={"TOKEN": None, "LD_PRELOAD": "./a.so"}),
        Check("Script", Script("/bin/check", ("--strict",)), timeout_s=60),
        Check("File", FileExists("a.py")),
        Check("Any", FileExists("b", "any")),
        contains("a.py", "def add\\("),
    ]
    assert describe(checks) == [
        "1. Build: sh -c touch ran && true (expects exit code 0, within 120 s)",
        (
            "2. Text: sh -c x (expects exit code 2, standard output with 'out', "
            "standard error with 'err', within 300 s, in sub)"
        ),
        ("3. Env: sh -c y (expects exit code 0, within 300 s) with TOKEN, LD_PRELOAD='./a.so'"),
        "4. Script: run /bin/check --strict (expects exit code 0, within 60 s)",
        "5. File: a file exists at a.py",
        "6. Any: anything exists at b",
        "7. it: a.py contains 'def add\\\\('",
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_description_gives_a_terminal_nothing_to_obey():
    evil = "\x1b[2J"
    check = command("echo \x1b]0;pwned\x07\r\n", f"na{evil}me", environment={evil: evil})
    (line,) = describe([check])
    assert line.isprintable()


def test_a_command_runs_in_the_shell_that_it_names(tmp_path):
    text = '[[ "$BASH_VERSION" ]] && echo bash'
    result = run_one(Check("it", Command(text, "bash")), tmp_path)
    assert (result.status, result.stdout.text()) == ("passed", "bash\n")
    assert run_one(Check("it", Command(text)), tmp_path).stdout.text() == ""


def test_powershell_gets_its_own_options():
    assert [*Command("Get-Item x", "pwsh").argv] == [
        "pwsh",
        "-NoProfile",
        "-NonInteractive",
        "-Command",
        "Get-Item x",
    ]


def test_a_shell_that_is_not_installed_is_named(tmp_path):
    result = run_one(Check("it", Command("true", "no-such-shell")), tmp_path)
    assert (result.status, "no-such-shell" in result.reason) == ("failed", True)
