"""What a run of mutants found, as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mutation.running import caught
from mutation.sampling import interval

NO_TEST = "survived: no test runs it"

_HEADER = "| folder | mutants | tried | caught | by timeout | survived | no test | share caught |"


class Tried:
    """One mutant: where it is, what it changes, and what became of it."""

    def __init__(self, path: str, number: int, line: int, diff: str, verdict: str) -> None:
        self.path = path
        self.number = number
        self.line = line
        self.diff = diff
        self.verdict = verdict


def page(
    tried: Sequence[Tried], counts: Mapping[str, int], *, seed: int, commit: str, folders: str
) -> str:
    """Returns the report: the share that was caught, by folder, and every survivor."""
    survivors = [each for each in tried if not caught(each.verdict)]
    total = sum(counts.values())
    which = "all of them" if len(tried) == total else f"a sample, seed {seed}"
    lines = [
        "# Mutants",
        "",
        f"Of `queenbee` at {commit}: {total:,} mutants of {folders}.",
        f"Tried: {len(tried):,}, {which}.",
        "After a share: the 95 % interval for all mutants.",
        "",
        _HEADER,
        "|---" * _HEADER.count(" |") + "|",
    ]
    by_folder = Counter[str]()
    for path, count in counts.items():
        by_folder[_folder_of(path)] += count
    lines += [
        _row(folder, by_folder[folder], [each for each in tried if _folder_of(each.path) == folder])
        for folder in sorted(by_folder)
    ]
    lines.append(_row("together", total, tried))
    lines += ["", "## Survivors", ""]
    for each in survivors:
        lines += [f"`{each.path}:{each.line}` (mutant {each.number}), {each.verdict}", ""]
        lines += ["```diff", each.diff, "```", ""]
    if not survivors:
        lines += ["None.", ""]
    timeouts = [each for each in tried if each.verdict == "timeout"]
    if timeouts:
        lines += ["## Timeouts", "", "Counted as caught: a test that hangs is noticed.", ""]
        lines += [
            f"- `{each.path}:{each.line}` (mutant {each.number}): `{_last(each.diff)}`"
            for each in timeouts
        ]
        lines.append("")
    return "\n".join(lines)


def _row(name: str, count: int, tried: Iterable[Tried]) -> str:
    verdicts = Counter(each.verdict for each in tried)
    total = sum(verdicts.values())
    good = sum(number for verdict, number in verdicts.items() if caught(verdict))
    low, high = interval(good, total)
    share = f"{100 * good / total:.1f} % ({100 * low:.1f} to {100 * high:.1f})" if total else "–"
    survived = total - good
    return (
        f"| {name} | {count:,} | {total:,} | {good:,} | {verdicts['timeout']:,} | {survived:,} "
        f"| {verdicts[NO_TEST]:,} | {share} |"
    )


def _folder_of(path: str) -> str:
    return path.split("/")[1]


def _last(diff: str) -> str:
    return diff.splitlines()[-1] if diff else ""
