"""What is kept of a run of checks."""

from __future__ import annotations

import os

import pytest

from queenbee.checks.check import MAX_CHECKS, Check, CheckResult, Command, Output
from queenbee.checks.verification import (
    EvidenceOfRun,
    Subject,
    slug,
    verification_record,
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
