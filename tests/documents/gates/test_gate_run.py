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

from queenbee.checks import CheckRunner, Consent
from queenbee.documents.gates.gate import add_rule, history, new_gate, validate_gate
from queenbee.documents.gates.gate_files import (
    GateMissing,
    check_gate,
    create_gate,
    find_gate,
    list_gates,
    update_gate,
)
from queenbee.documents.gates.gate_run import run_gate
from queenbee.documents.json_documents import write_object
from queenbee.errors import Busy, Conflict, InvalidInput, Unreadable, Unwritable

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
            "consent": Consent.at(self.root),
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


def test_a_gate_does_not_overwrite_a_file_that_has_its_name(yard):
    yard.make("true", workflow="a_b", phase="c")
    with pytest.raises(Conflict, match="already exists"):
        yard.make("true", workflow="a", phase="b_c")


def test_a_gate_whose_ids_make_no_file_name_is_refused(yard):
    with pytest.raises(InvalidInput, match="too long"):
        yard.make("true", workflow="w" * 150, phase="p" * 150)


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


def test_each_result_is_on_disk_with_its_evidence_before_the_next_rule_runs(yard):
    yard.make(f"echo out; cp {yard.folder}/phase_wf_one.json 1", "exit 1", "true")
    seen = []

    def on_progress(progress):
        if progress.event == "started":
            seen.append(yard.gate())

    yard.run(on_progress=on_progress)
    results = [gate["validation_execution"]["results"] for gate in seen]
    assert [[one["status"] for one in each] for each in results] == [
        [], ["passed"], ["passed", "failed"],
    ]  # fmt: skip
    assert [len(gate["status"]["errors"]) for gate in seen] == [0, 0, 1]
    assert all(validate_gate(gate) == [] for gate in seen)
    evidence = results[1][0]["details"]["evidence"]
    with open(os.path.join(yard.root, ".beads", evidence)) as file:
        assert "out\n" in file.read()
    times = [one["validated_at"] for one in yard.gate()["validation_execution"]["results"]]
    assert len(set(times)) == 3
    assert times == sorted(times)


def test_a_run_changes_only_the_bytes_of_its_fields(yard):
    path = pathlib.Path(yard.make("exit 1").path)
    text = json.dumps(json.loads(path.read_text()), indent=3)
    config = '"validation_config": {"rules" : [ {"rule_id": "r1", "rule_type": "test_pass", '
    config += '"rule_config": { "command": "exit 1" } } ]}'
    text = re.sub(r'"validation_config": \{.*?\]\s*\}', lambda _: config, text, flags=re.S)
    text = text.replace("{", '{\n   "x_float": 1.50,', 1).replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    yard.run()
    first = path.read_bytes().decode()
    yard.run()
    second = path.read_bytes().decode()

    assert second.startswith('\ufeff{\r\n   "x_float": 1.50,\r\n')
    assert config in second
    assert "\n" not in second.replace("\r\n", "")
    kept = first[first.index('"results"') : first.index('"rule_id": "r1"', first.index("results"))]
    assert kept in second


def test_looks_at_files_are_on_disk_before_the_next_program_runs(yard):
    yard.make("true")
    look = {"rule_type": "file_exists", "rule_config": {"file_path": "/"}}
    copy = f"cp {yard.folder}/phase_wf_one.json seen"
    last = {"rule_type": "test_pass", "rule_config": {"command": copy}}
    for number, rule in enumerate([look, look, last]):
        added = {"rule_id": f"more{number}", **rule}
        update_gate(yard.folder, "wf", "one", lambda gate, added=added: add_rule(gate, added))
    changes = []

    @contextlib.contextmanager
    def lock():
        changes.append(len(yard.gate()["validation_execution"]["results"]))
        yield

    yard.run(lock=lock)
    with open(os.path.join(yard.root, "seen")) as file:
        results = json.load(file)["validation_execution"]["results"]
    assert [one["rule_id"] for one in results] == ["r1", "more0", "more1"]
    assert changes == [0, 0, 1, 3, 4]


def test_a_gate_passes_only_after_the_record_of_its_run(yard):
    """Also if the rules after the last one of error severity are still to run."""
    yard.make("true")
    late = {"rule_id": "late", "rule_type": "test_pass", "rule_config": {"command": "true"}}
    update_gate(
        yard.folder, "wf", "one", lambda gate: add_rule(gate, late | {"severity": "warning"})
    )
    seen = []

    def record(record):
        seen.append(yard.check().status)
        return record

    run_gate(yard.folder, "wf", "one", yard.runner(record=record))
    assert seen == ["in_progress"]
    assert yard.check().passed
    assert len(yard.gate()["validation_execution"]["results"]) == 2


def test_a_gate_that_cannot_be_written_for_a_while_loses_no_result(yard):
    yard.make("exit 1", "true", "exit 1")
    turns = iter([None, Busy("later"), Unwritable("full"), None, None])

    @contextlib.contextmanager
    def lock():
        problem = next(turns)
        if problem is not None:
            raise problem
        yield

    assert yard.run(lock=lock).verdict.status == "failed"
    results = yard.gate()["validation_execution"]["results"]
    assert [one["rule_id"] for one in results] == ["r1", "r2", "r3"]
    assert len(yard.gate()["status"]["errors"]) == 2


def test_a_killed_run_leaves_what_it_did(yard):
    yard.make("echo out", "exit 1", "kill -KILL $PPID")
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), yard.root, yard.folder],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (driver.returncode, driver.stdout) == (-9, "")
    results = yard.gate()["validation_execution"]["results"]
    assert [result["status"] for result in results] == ["passed", "failed"]
    assert all(
        os.path.getsize(os.path.join(yard.root, ".beads", one["details"]["evidence"]))
        for one in results
    )
    assert yard.gate()["status"]["current_status"] == "in_progress"
    assert not yard.check().passed


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


def test_a_rule_of_a_later_version_keeps_the_gate_from_passing(yard):
    path = yard.make("true").path
    document = yard.gate() | {"schema_version": "1.1"}
    document["validation_config"]["rules"].append(
        {"rule_id": "new", "rule_type": "coverage", "rule_config": {}}
    )
    write_object(path, document)
    assert yard.run().verdict.blocking == ("new: skipped: not run: the type 'coverage' is unknown",)
    assert yard.records[0]["verdict"] == "failed"


DRIVER = """
        import os, sys, time
        from queenbee.checks import CheckRunner, Consent
        from queenbee.documents.gates.gate_run import run_gate
        root, folder = sys.argv[1:]
        runner = CheckRunner(
            cwd=root, env=dict(os.environ),
            evidence_dir=os.path.join(root, ".beads", "evidence"),
            record=lambda record: print(record["verdict"], flush=True) or record,
            now_ms=lambda: time.time_ns() // 1_000_000, consent=Consent.at(root),
        )
        try:
            run_gate(folder, "wf", "one", runner)
        except KeyboardInterrupt:
            print("stopped", flush=True)
"""


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


def test_a_broken_file_only_stands_for_the_phase_that_it_names_exactly(yard):
    """Phase `one` is neither `one_more` nor `one` of a workflow with a longer name."""
    yard.make("true")
    yard.run()
    for name in ("phase_wf_one_more.json", "phase_other_wf_one.json", "phone.json", "one.json"):
        yard.write(name, b"{torn")
    yard.write("phase_wf_two.json", b"[]")
    yard.write("notes.json", b'{"metadata": {"phase": "one"}}')
    yard.write("half.json", b'{"metadata": {"phase_id": "one", "workflow_id": 5}}')
    assert yard.check().passed
    with pytest.raises(GateMissing):
        check_gate(yard.folder, "other", "one")
    assert check_gate(yard.folder, "other", "one", allow_missing=True).passed
    create_gate(yard.folder, new_gate(workflow_id="x", phase_id="one", phase_name="", now_ms=0))
    with pytest.raises(Unreadable):
        check_gate(yard.folder, "wf", "two", allow_missing=True)


@pytest.mark.parametrize("name", ["phase_wf_one.json", "any-name.json"])
@pytest.mark.parametrize("allow_missing", [False, True], ids=["strict", "allow-missing"])
def test_a_gate_with_conflict_markers_is_not_passed_whatever_its_file_is_called(
    yard, name, allow_missing
):
    path = yard.make("true").path
    yard.run()
    with open(path, "rb") as file:
        text = file.read()
    os.unlink(path)
    yard.write(name, text.replace(b'  "status"', b"<<<<<<< ours\n" + b'  "status"', 1))
    with pytest.raises(Unreadable, match="is not JSON"):
        yard.check(allow_missing=allow_missing)


def test_half_an_identity_is_not_a_missing_gate(yard):
    yard.write("phase_wf_one.json", b'{"schema_version": "1.0", "metadata": {"workflow_id": "wf"}}')
    with pytest.raises(Unreadable, match="is not a gate: it has no workflow_id and phase_id"):
        yard.check(allow_missing=True)


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
    driver = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), yard.root, yard.folder],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (driver.stdout, driver.stderr) == ("interrupted\nstopped\n", "")
    results = yard.gate()["validation_execution"]["results"]
    assert [result["status"] for result in results] == ["passed", "skipped", "skipped"]
    assert yard.gate()["status"]["current_status"] == "in_progress"
    assert not os.path.exists(os.path.join(yard.root, "third"))
