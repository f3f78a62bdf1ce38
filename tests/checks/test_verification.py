"""What is kept of a run of checks."""

from __future__ import annotations

import os

import pytest

from queenbee.checks.check import MAX_CHECKS, Check, CheckResult, Command, Output
from queenbee.checks.verification import (
    FAILURES_MAX_CHARS,
    EvidenceOfRun,
    Subject,
    failures_text,
    missing_evidence,
    result_record,
    slug,
    verification_record,
    write_failures,
)
from queenbee.errors import Unwritable
from queenbee.store.codec import MAX_LINE_BYTES, encode

START_MS = 1_763_217_020_000


def result(status="failed", reason="exit code 1, expected 0", name="It", stdout=b""):
    output = Output(stdout, b"", len(stdout))
    return CheckResult(Check(name, Command("true")), status, reason, 1, 0.5, output)


def written(folder, subject_id, results):
    evidence = EvidenceOfRun(folder, subject_id, START_MS)
    for one in results:
        evidence.add(one)
    return evidence.paths


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Build succeeds", "Build-succeeds"),
        ("../../etc/passwd", "-..-etc-passwd"),
        ("..", "-"),
        ("", "-"),
        ("a/b\0c", "a-b-c"),
        ("漢字", "--"),
        ("x" * 500, "x" * 60),
    ],
)
def test_a_name_becomes_a_file_name_that_stays_in_its_folder(text, name):
    assert slug(text) == name


def test_evidence_of_hostile_names_stays_in_its_folder(tmp_path):
    results = [result(name="../../escape"), result(name="/etc/passwd")]
    paths = written(str(tmp_path / "evidence"), "../../bead", results)
    inside = os.path.realpath(tmp_path / "evidence") + os.sep
    assert all(os.path.realpath(tmp_path / path).startswith(inside) for path in paths)
    assert len(list((tmp_path / "evidence").rglob("*.log"))) == 2


@pytest.mark.parametrize("char", ["x", "\x01", "\U0001f41d", "\ud800"])
def test_the_record_of_the_most_checks_of_the_worst_kind_fits_a_line(char, tmp_path):
    results = [result(name=char * 3000, reason=char * 5000) for _ in range(MAX_CHECKS)]
    record = verification_record(
        Subject("bead", "x" * 200, 1),
        (START_MS, START_MS),
        "failed",
        results,
        [f"evidence/{'x' * 60}/20261122T043756.404Z/{'x' * 70}.log"] * MAX_CHECKS,
    )
    assert len(encode({"id": "qv-1", **record})) < MAX_LINE_BYTES


def test_evidence_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "evidence").write_text("not a folder")
    with pytest.raises(Unwritable):
        written(str(tmp_path / "evidence"), "gt-1", [result()])


def test_failures_are_kept_though_no_run_has_written_evidence_before(tmp_path):
    path = write_failures(str(tmp_path / "evidence"), "gt-1", "half a pair: \ud800")
    with open(path) as file:
        assert file.read() == "half a pair: ?"
    assert (tmp_path / "evidence" / ".gitignore").read_text() == "*\n"


def test_evidence_is_missing_when_its_file_is_gone_or_empty(tmp_path):
    folder = str(tmp_path / "evidence")
    results = [result(name="a"), result(name="b"), result(name="c"), result("skipped", name="d")]
    paths = written(folder, "gt-1", results)
    kept = [result_record(*pair) for pair in zip(results, paths, strict=True)]
    os.unlink(tmp_path / paths[0])
    os.truncate(tmp_path / paths[1], 0)
    assert missing_evidence(kept, folder) == ["a", "b", "d"]


def test_only_what_failed_is_handed_on():
    results = [result("passed", name="A"), result(name="B", stdout=b"why\n"), result("skipped")]
    assert failures_text(results) == ("## B\nexit code 1, expected 0\n\nstandard output:\nwhy\n")


def test_the_end_of_a_long_output_is_handed_on():
    text = failures_text([result(stdout=b"x" * 10_000 + b"the end")])
    assert (text.endswith("the end\n"), len(text) < 3_000) == (True, True)


def test_the_failures_handed_on_are_bounded():
    results = [result(name=f"{number}" * 5_000) for number in range(100)]
    assert len(failures_text(results)) == FAILURES_MAX_CHARS
