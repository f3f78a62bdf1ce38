"""How plans look in the wild: each shape with the sprints and findings expected from it.

The files in `fixtures/plans/shapes` are plans; the `.expected` file beside each has a line for each
sprint (its line, number, title, and what else was read) and for each finding.

    python tests/documents/plans/test_shapes.py     prints what is read today
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from queenbee.documents.plans.plan import Sprint, parse_plan
from queenbee.documents.plans.plan_check import check_plan

SHAPES = sorted((Path(__file__).parents[1] / "fixtures" / "plans" / "shapes").glob("*.md"))
NUMBERED = re.compile(r"sprint[\s*_~`#]*(\d+[a-z]*\.\d+[a-z]*)", re.IGNORECASE)


def described(sprint: Sprint) -> str:
    """Returns one line about a sprint; what it has none of is left out."""
    parts = [f"{sprint.line:3} sprint {sprint.number} {sprint.title!r}"]
    parts += [sprint.mark] if sprint.mark else []
    boxes = sprint.boxes
    parts += [f"boxes={boxes.ticked}/{sum(boxes)}"] if any(boxes) else []
    parts += [
        f"{name}={value}"
        for name, value in (("branch", sprint.branch), ("team", sprint.team))
        if value
    ]
    parts += (
        [f"dev={','.join(each.name for each in sprint.dev_agents)}"] if sprint.dev_agents else []
    )
    parts += [f"qa={','.join(each.name for each in sprint.qa_agents)}"] if sprint.qa_agents else []
    parts += [f"needs={','.join(sprint.depends_on)}"] if sprint.depends_on else []
    parts += [f"bead={sprint.bead_id}"] if sprint.bead_id else []
    return " ".join(parts)


def read(path: Path) -> str:
    """Returns what is read from a plan, line by line."""
    plan = parse_plan(path.read_bytes().decode())
    lines = [described(sprint) for sprint in (*plan.sprints, *plan.skipped)]
    lines += [
        f"{finding.line or 0:3} {finding.severity} {finding.path} {finding.message}".replace(
            "  ", " "
        )
        for finding in check_plan(plan)
        if not finding.message.startswith("defaults are used")
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


@pytest.mark.parametrize("path", SHAPES, ids=[path.stem for path in SHAPES])
def test_a_shape_is_read_as_expected(path: Path) -> None:
    assert read(path) == path.with_suffix(".expected").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SHAPES, ids=[path.stem for path in SHAPES])
def test_every_heading_with_a_sprints_number_is_read_or_named(path: Path) -> None:
    """Of a sprint that is not imported, some line is in a finding, unless it is code."""
    text = path.read_bytes().decode()
    plan = parse_plan(text)
    imported = {sprint.number for sprint in plan.sprints}
    named = {finding.line for finding in check_plan(plan)}
    named |= {sprint.line for sprint in plan.sprints}
    code = {"7.7", "7.8", "8.8", "9.9"} if "code" in path.stem else set()
    hidden = {"1.2", "9.9"} if "comments" in path.stem else set()
    hidden |= {"1.1", "1.2", "1.3"} if "phase-and" in path.stem else set()  # phases are its units
    hidden |= {"1.2"} if "open-fence" in path.stem else set()  # the fence itself is the finding
    lines = re.split(r"\r\n|\r|\n", text)
    for at, line in enumerate(lines, 1):
        for number in NUMBERED.findall(line) if re.match(r"\W*#", line) else ():
            if number.lower() not in imported | code | hidden and "(Post-" not in line:
                assert at in named, line


if __name__ == "__main__":
    for shape in SHAPES:
        if "--write" in sys.argv:
            shape.with_suffix(".expected").write_text(read(shape), encoding="utf-8")
        print(f"== {shape.stem}\n{read(shape)}")
