"""`python -m tests.mutation`: tries mutants, prints survivors, writes a report of a sample."""

from __future__ import annotations

import argparse
import atexit
import glob
import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPOSITORY = os.path.dirname(TESTS)
sys.path.insert(0, TESTS)

from mutation import promises, report, selection  # noqa: E402
from mutation.report import NO_TEST, Tried  # noqa: E402
from mutation.running import Copy, caught, limit_s  # noqa: E402
from mutation.sampling import Site, sample  # noqa: E402
from mutation.selection import tests_folder  # noqa: E402

FOLDERS = tuple(
    sorted(
        name
        for name in os.listdir(os.path.join(REPOSITORY, "queenbee"))
        if os.path.isdir(os.path.join(TESTS, tests_folder(name)))
    )
)
"""The packages, each of which has tests of its own."""
_MOST_ELSEWHERE = 300
"""So many tests of other folders are asked, the quickest first, once its own have not noticed."""


def main(arguments: Sequence[str]) -> int:
    """Tries the mutants that were asked for; survivors of a sample are a figure, not a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("which", choices=["promises", "sample"], help="the table, or random lines")
    parser.add_argument("--folders", nargs="+", default=FOLDERS, help="below queenbee/")
    parser.add_argument("--sample", default="150", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=1, help="which sample")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--work", default=os.path.join(REPOSITORY, ".mutants"))
    options = parser.parse_args(arguments)
    try:
        return _promises(options) if options.which == "promises" else _sample(options)
    except selection.TestsFail:
        print("the tests fail without any mutant; make them pass first", file=sys.stderr)
        return 2


def _promises(options: argparse.Namespace) -> int:
    tried = promises.try_rows(REPOSITORY, promises.rows(options.folders), options.workers)
    missed = sum(not caught(verdict) for _, verdict in tried)
    print(f"mutants of promises: {len(tried)}, noticed: {len(tried) - missed}")
    return 1 if missed else 0


def _sample(options: argparse.Namespace) -> int:
    run = Run(options.folders, os.path.abspath(options.work))
    size = None if options.sample == "all" else int(options.sample)
    tried = run.try_all(sample(run.counts, size, options.seed), options.workers)
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=REPOSITORY, capture_output=True, text=True
    ).stdout.strip()
    text = report.page(
        tried, run.counts, seed=options.seed, commit=commit, folders=", ".join(options.folders)
    )
    path = os.path.join(options.work, "report.md")
    with open(path, "w") as file:
        file.write(text)
    print(text.partition("\n## ")[0], path, sep="\n")
    return 0


class Run:
    """The mutants of some folders, the tests for each, and what is known of them already."""

    def __init__(self, folders: Sequence[str], work: str) -> None:
        from mutation.mutants_of import Mutants  # It needs mutmut, which the table does not.

        os.makedirs(work, exist_ok=True)
        self._mutants = {
            os.path.relpath(path, REPOSITORY): Mutants(_read(path))
            for folder in folders
            for path in glob.glob(f"{REPOSITORY}/queenbee/{folder}/**/*.py", recursive=True)
        }
        self.counts = {path: len(mutants) for path, mutants in self._mutants.items()}
        # Outside of any repository: tests must find none above the folders that they make.
        self._copies = tempfile.mkdtemp(prefix="queenbee-mutants-")
        atexit.register(shutil.rmtree, self._copies, ignore_errors=True)
        self._first = Copy(REPOSITORY, os.path.join(self._copies, "0"))
        digest = _digest_of(self._first.folder, folders)
        self._verdicts_path = os.path.join(work, f"verdicts-{digest}.jsonl")
        measured = os.path.join(work, f"measured-{digest}")
        self._times = os.path.join(measured, "times.json")
        if not os.path.exists(os.path.join(measured, "lines.json")):
            selection.measure(self._first.folder, measured, self._first.env)
        self._times_s: dict[str, float] = json.loads(_read(self._times))
        raw = json.loads(_read(os.path.join(measured, "lines.json")))
        self._lines: dict[str, selection.Lines] = {
            path: {int(line): tests for line, tests in found.items()} for path, found in raw.items()
        }
        self._verdicts: dict[Site, str] = {}
        if os.path.exists(self._verdicts_path):
            for row in map(json.loads, _read(self._verdicts_path).splitlines()):
                self._verdicts[row["path"], row["number"]] = row["verdict"]

    def try_all(self, chosen: Sequence[Site], workers: int) -> list[Tried]:
        """Tries the mutants, several at once; a run that was interrupted goes on where it was."""
        todo: queue.SimpleQueue[Site] = queue.SimpleQueue()
        for site in chosen:
            if site not in self._verdicts:
                todo.put(site)
        print(f"{len(chosen)} mutants, {len(chosen) - todo.qsize()} of them known", flush=True)
        mutex = threading.Lock()

        def work(copy: Copy) -> None:
            copy.order_by(self._times)
            while True:
                try:
                    site = todo.get_nowait()
                except queue.Empty:
                    break
                verdict = self._try(copy, site)
                with mutex, open(self._verdicts_path, "a") as file:
                    self._verdicts[site] = verdict
                    row = {"path": site[0], "number": site[1], "verdict": verdict}
                    file.write(json.dumps(row) + "\n")
                    if not caught(verdict):
                        print(self._tried(site).diff, f"{site[0]}, {verdict}", sep="\n", flush=True)
            copy.remove()

        copies = [self._first]
        copies += [Copy(REPOSITORY, os.path.join(self._copies, str(n))) for n in range(1, workers)]
        threads = [threading.Thread(target=work, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            with suppress(queue.Empty):  # What is being tried is tried to its end, and kept.
                while True:
                    todo.get_nowait()
            for thread in threads:
                thread.join()
            raise
        return [self._tried(site) for site in chosen]

    def _try(self, copy: Copy, site: Site) -> str:
        path, number = site
        mutants = self._mutants[path]
        lines = self._lines.get(path, {})
        tests = selection.tests_for(mutants.source, mutants.lines[number], lines)
        begin = f"tests/{tests_folder(path.split('/')[1])}/"
        own = [test for test in tests if test.startswith(begin)]
        others = sorted({*tests} - {*own}, key=lambda test: self._times_s.get(test, 0.0))
        verdict = NO_TEST
        for some in filter(None, (own, others[:_MOST_ELSEWHERE])):
            limit = limit_s(some, self._times_s)
            verdict = copy.try_source(path, mutants.source_of(number), some, limit)
            if caught(verdict):
                break
        return verdict

    def _tried(self, site: Site) -> Tried:
        path, number = site
        mutants = self._mutants[path]
        return Tried(
            path, number, mutants.lines[number], mutants.diff(number), self._verdicts[site]
        )


def _digest_of(folder: str, folders: Sequence[str]) -> str:
    """Returns what tells this code with these tests from any other."""
    digest = hashlib.sha256(" ".join(folders).encode())
    for path in sorted(glob.glob(f"{folder}/**/*", recursive=True)):
        if os.path.isfile(path) and "__pycache__" not in path:
            with open(path, "rb") as file:
                digest.update(path.removeprefix(folder).encode() + b"\0" + file.read())
    return digest.hexdigest()[:12]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
