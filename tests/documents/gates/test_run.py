"""Gates are found, made, run and checked; what cannot be read is never passed."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
import threading

import pytest

from queenbee.checks import CheckRunner
from queenbee.documents.gates.gate import add_rule, history, new_gate, validate_gate
from queenbee.documents.gates.run import gate_checks, run_gate
from queenbee.documents.gates.store import (
    GateMissing,
    check_gate,
    create_gate,
    find_gate,
    list_gates,
    update_gate,
)
from queenbee.documents.json_documents import write_object
from queenbee.errors import Conflict, InvalidInput, NotFound, Unreadable

NOW_MS = 1_763_217_020_000
FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures" / "gates"


class Yard:
    """A project with its gates, and the records that the ledger would have got."""

    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.folder = os.path.join(self.root, ".claude", "state", "validation")
        self.records = []
        self.now_ms = NOW_MS

    def runner(self, **more):
        settings = {
            "cwd": self.root,
            "env": {"PATH": os.environ["PATH"]},
            "evidence_dir": os.path.join(self.root, ".beads", "evidence"),
            "record": self.record,
            "now_ms": self.tick,
        }
        return CheckRunner(**(settings | more))

    def record(self, record):
        self.records.append(record)
        return record

    def tick(self):
        self.now_ms += 1
        return self.now_ms

    def make(self, *commands, workflow="wf", phase="one", **rule):
        rules = [
            {"rule_id": f"r{number}", "rule_type": "test_pass", "rule_config": {"command": command}}
            | rule
            for number, command in enumerate(commands, 1)
        ]
        document = new_gate(
            workflow_id=workflow, phase_id=phase, phase_name="One", now_ms=NOW_MS, rules=rules
        )
        return create_gate(self.folder, document)

    def run(self, on_progress=None, **more):
        return run_gate(self.folder, "wf", "one", self.runner(on_progress=on_progress), **more)

    def check(self, **more):
        return check_gate(self.folder, "wf", "one", **more)

    def gate(self):
        return find_gate(self.folder, "wf", "one").document

    def write(self, name, data):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path


@pytest.fixture
def yard(tmp_path):
    return Yard(tmp_path)


def test_a_gate_is_written_where_the_document_has_it(yard):
    path = yard.make("true").path
    assert path == f"{yard.root}/.claude/state/validation/phase_wf_one.json"


def test_a_gate_is_found_by_its_content_whatever_its_file_is_called(yard):
    path = yard.write("test_phase_validation.json", (FIXTURES / "new-gate.json").read_bytes())
    assert find_gate(yard.folder, "wf_20251115_143022", "phase_2_write_tests").path == path


def test_a_file_that_is_not_a_gate_is_skipped(yard):
    yard.make("true")
    yard.write("validation_schema.json", b'{"$schema": "x", "type": "object"}')
    yard.write("phase_wf_one_validation.json", b'{"workflow_id": "wf", "phase_id": "one"}')
    yard.write("gate_invocations.log", b"not json")
    gates, problems = list_gates(yard.folder)
    assert ([gate.key for gate in gates], problems) == ([("wf", "one")], [])


def test_a_second_gate_of_a_phase_is_refused(yard):
    yard.make("true")
    with pytest.raises(Conflict, match="already exists"):
        yard.make("true")


def test_a_gate_does_not_overwrite_a_file_that_has_its_name(yard):
    yard.make("true", workflow="a_b", phase="c")
    with pytest.raises(Conflict, match="already exists"):
        yard.make("true", workflow="a", phase="b_c")


def test_a_gate_whose_ids_make_no_file_name_is_refused(yard):
    with pytest.raises(InvalidInput, match="too long"):
        yard.make("true", workflow="w" * 150, phase="p" * 150)


def test_a_gate_that_passes_lets_the_next_phase_begin(yard):
    yard.make("true", "true")
    assert not yard.check().passed
    done = yard.run()
    assert done.verdict.passed
    assert yard.check().passed
    status = yard.gate()["status"]
    assert (status["current_status"], status["passed_count"], status["total_count"]) == (
        "passed",
        2,
        2,
    )


def test_all_rules_run_though_the_first_fails(yard):
    yard.make("exit 1", "exit 2", "true")
    yard.run()
    results = yard.gate()["validation_execution"]["results"]
    assert [result["status"] for result in results] == ["failed", "failed", "passed"]
    assert [error["context"]["rule_id"] for error in yard.gate()["status"]["errors"]] == [
        "r1",
        "r2",
    ]


def test_a_gate_on_disk_stays_valid_and_exact(yard):
    yard.make("exit 1", "true")
    assert validate_gate(yard.gate()) == []
    yard.run()
    assert validate_gate(yard.gate()) == []


def test_a_run_is_recorded_with_its_evidence(yard):
    yard.make("echo out")
    yard.run()
    (record,) = yard.records
    assert (record["subject_kind"], record["subject_id"]) == ("gate", "wf/one")
    assert (record["attempt"], record["verdict"]) == (1, "passed")
    evidence = record["results"][0]["evidence"]
    details = yard.gate()["validation_execution"]["results"][0]["details"]
    assert details["evidence"] == evidence
    with open(os.path.join(yard.root, ".beads", evidence)) as file:
        assert "out\n" in file.read()


def test_results_have_ids_as_the_document_writes_them(yard):
    yard.make("true", "exit 1")
    yard.run()
    ids = [result["result_id"] for result in yard.gate()["validation_execution"]["results"]]
    uuid = r"[0-9a-f]{8}_[0-9a-f]{4}_4[0-9a-f]{3}_[89ab][0-9a-f]{3}_[0-9a-f]{12}"
    assert len(set(ids)) == 2
    assert all(re.fullmatch(f"res_{uuid}", one) for one in ids)
    assert re.fullmatch(f"err_{uuid}", yard.gate()["status"]["errors"][0]["error_id"])


def test_a_retry_after_a_failure_is_a_new_attempt_that_history_keeps(yard):
    yard.make("test -e fixed")
    assert yard.run().verdict.status == "failed"
    with open(os.path.join(yard.root, "fixed"), "w"):
        assert yard.run().verdict.status == "passed"
    assert [(one["attempt"], one["status"]) for one in history(yard.gate())] == [
        (1, "failed"),
        (2, "passed"),
    ]
    assert [record["attempt"] for record in yard.records] == [1, 2]
    assert len(yard.gate()["validation_execution"]["results"]) == 2


def test_a_gate_that_has_passed_is_not_run_again(yard):
    yard.make("touch again")
    yard.run()
    os.unlink(os.path.join(yard.root, "again"))
    with pytest.raises(Conflict):
        yard.run()
    assert not os.path.exists(os.path.join(yard.root, "again"))


def test_a_gate_is_in_progress_while_its_rules_run_and_no_lock_is_held(yard):
    path = yard.make(f"cp {yard.folder}/phase_wf_one.json seen; test ! -e locked").path

    @contextlib.contextmanager
    def lock():
        lockfile = os.path.join(yard.root, "locked")
        with open(lockfile, "x"):
            yield
        os.unlink(lockfile)

    assert yard.run(lock=lock).verdict.passed
    with open(os.path.join(yard.root, "seen")) as file:
        assert json.load(file)["status"]["current_status"] == "in_progress"
    assert os.path.exists(path)


def test_a_rule_added_while_the_gate_runs_is_waited_for(yard):
    yard.make("true")
    late = {"rule_id": "late", "rule_type": "test_pass", "rule_config": {"command": "true"}}

    def on_progress(progress):
        if progress.event == "finished":
            update_gate(yard.folder, "wf", "one", lambda gate: add_rule(gate, late))

    assert yard.run(on_progress=on_progress).verdict.status == "in_progress"
    assert yard.run().verdict.passed


def test_the_results_of_a_run_that_another_overtook_are_not_part_of_the_gate(yard):
    yard.make("true")

    def on_progress(progress):
        if progress.event == "started":
            yard.run()

    with pytest.raises(Conflict, match="another run ended attempt"):
        yard.run(on_progress=on_progress)
    assert len(yard.gate()["validation_execution"]["results"]) == 1
    assert len(yard.records) == 2


def test_many_runs_at_once_leave_one_verdict_and_a_whole_file(yard):
    yard.make("true")
    lock = threading.Lock()

    def run():
        with contextlib.suppress(Conflict):
            yard.run(lock=lambda: lock)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert yard.check().passed
    assert validate_gate(yard.gate()) == []
    assert len(yard.gate()["validation_execution"]["results"]) == 1


def test_a_gate_without_rules_is_not_run_and_not_passed(yard):
    yard.make()
    with pytest.raises(InvalidInput, match="has no rules to run"):
        yard.run()
    assert not yard.check().passed


def test_a_rule_of_a_later_version_keeps_the_gate_from_passing(yard):
    path = yard.make("true").path
    document = yard.gate() | {"schema_version": "1.1"}
    document["validation_config"]["rules"].append(
        {"rule_id": "new", "rule_type": "coverage", "rule_config": {}}
    )
    write_object(path, document)
    assert yard.run().verdict.blocking == ("new: skipped: not run: the type 'coverage' is unknown",)
    assert yard.records[0]["verdict"] == "failed"


def test_rules_are_described_without_being_run(yard):
    yard.make("touch ran")
    assert [check.name for check in gate_checks(yard.gate())] == ["r1"]
    assert not os.path.exists(os.path.join(yard.root, "ran"))


def test_a_number_of_results_is_kept_as_asked(yard):
    yard.make("exit 1")
    for _ in range(4):
        yard.run(max_results_per_rule=3)
    assert len(yard.gate()["validation_execution"]["results"]) == 3
    assert len(history(yard.gate())) == 4


def test_a_missing_gate_is_not_passed(yard):
    with pytest.raises(GateMissing, match="no gate of 'wf', 'one'"):
        yard.check()


def test_a_missing_gate_may_be_allowed(yard):
    assert yard.check(allow_missing=True).passed


def test_a_missing_gate_is_not_run(yard):
    with pytest.raises(NotFound):
        yard.run()


CORRUPT = {
    "torn": b'{"schema_version": "1.0", "meta',
    "empty": b"",
    "not UTF-8": b"\xff{}",
    "a key twice": b'{"metadata": {"workflow_id": "wf", "workflow_id": "wf"}}',
    "deep": b"[" * 100_000,
    "another major version": b'{"schema_version": "2.0", "metadata": '
    b'{"workflow_id": "wf", "phase_id": "one"}}',
    "half a gate": b'{"schema_version": "1.0", "metadata": '
    b'{"workflow_id": "wf", "phase_id": "one"}}',
}


@pytest.mark.parametrize("data", CORRUPT.values(), ids=CORRUPT)
@pytest.mark.parametrize("allow_missing", [False, True], ids=["strict", "allow-missing"])
def test_a_corrupt_gate_is_not_passed_even_where_a_missing_one_is(data, allow_missing, yard):
    yard.write("phase_wf_one.json", data)
    with pytest.raises(Unreadable):
        yard.check(allow_missing=allow_missing)


def test_a_gate_of_ten_megabytes_is_judged(yard):
    path = yard.make("true").path
    yard.run()
    write_object(path, yard.gate() | {"notes": "x" * 10_000_000})
    assert yard.check().passed


def test_a_gate_of_seventeen_megabytes_is_not_passed(yard):
    path = yard.make("true").path
    yard.run()
    write_object(path, yard.gate() | {"notes": "x" * 17_000_000})
    with pytest.raises(Unreadable, match="larger than"):
        yard.check()


def test_a_corrupt_file_of_another_phase_does_not_matter(yard):
    yard.make("true")
    yard.run()
    yard.write("phase_wf_two.json", b"{torn")
    assert yard.check().passed


@pytest.mark.parametrize(
    "name", ["phase_other_one.json", "phase_wf_one_more.json", "one.json", "phase_one.json"]
)
@pytest.mark.parametrize("data", [b"{torn", b"[]", b'{"one": 1}'], ids=["torn", "list", "foreign"])
def test_a_bad_file_spoils_only_its_own_gate(yard, name, data):
    yard.write(name, data)
    with pytest.raises(GateMissing):
        yard.check()
    assert yard.check(allow_missing=True).passed
    yard.make("true")
    yard.run()
    assert yard.check().passed


def test_a_gate_in_two_files_is_not_passed(yard):
    path = yard.make("true").path
    yard.run()
    with open(path, "rb") as file:
        yard.write("copy.json", file.read())
    with pytest.raises(Unreadable, match="in more than one file"):
        yard.check()


def test_a_gate_with_a_false_status_is_not_passed(yard):
    path = yard.make("exit 1").path
    yard.run()
    document = yard.gate()
    document["status"] |= {"current_status": "passed", "passed_count": 1, "failed_count": 0}
    write_object(path, document)
    assert not yard.check().passed


def test_control_c_keeps_what_was_found_and_leaves_the_gate_in_progress(yard):
    yard.make("true", "kill -INT $PPID; sleep 60", "touch third")
    script = """
        import os, sys, time
        from queenbee.checks import CheckRunner
        from queenbee.documents.gates.run import run_gate
        root, folder = sys.argv[1:]
        runner = CheckRunner(
            cwd=root, env=dict(os.environ),
            evidence_dir=os.path.join(root, ".beads", "evidence"),
            record=lambda record: print(record["verdict"], flush=True) or record,
            now_ms=lambda: time.time_ns() // 1_000_000,
        )
        try:
            run_gate(folder, "wf", "one", runner)
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), yard.root, yard.folder],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (driver.stdout, driver.stderr) == ("interrupted\nstopped\n", "")
    results = yard.gate()["validation_execution"]["results"]
    assert [result["status"] for result in results] == ["passed", "skipped", "skipped"]
    assert yard.gate()["status"]["current_status"] == "in_progress"
    assert not os.path.exists(os.path.join(yard.root, "third"))
