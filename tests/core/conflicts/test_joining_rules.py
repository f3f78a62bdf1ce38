"""The rules by which a conflict joins without anybody: what each joins, and what it leaves."""

from __future__ import annotations

from collections import Counter

import pytest
from extent import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from queenbee.core.conflicts.appended import everybody_appends_to, is_change_log
from queenbee.core.conflicts.manifests import is_manifest
from queenbee.core.conflicts.markers import MARKER_SIZE, Conflict
from queenbee.core.conflicts.rules import (
    APPENDED,
    KEPT,
    SURE,
    both_added,
    greater_number,
    greater_version,
    identical,
    in_file,
    join,
    listed_names,
    next_release,
    sorted_block,
    trimmed,
)


def lines(text: str) -> list[bytes]:
    return text.encode().splitlines(keepends=True)


def conflict(main: str, base: str, branch: str, *, before: str = "", after: str = "") -> Conflict:
    return Conflict(
        lines(main), lines(base), lines(branch), before=lines(before), after=lines(after)
    )


def text(joined: list[bytes] | None) -> str | None:
    return None if joined is None else b"".join(joined).decode()


@pytest.mark.parametrize(
    ("main", "branch", "joined"),
    [("a\nb\n", "a \nb\n", "a\nb\n"), ("a\r\n", "a\n", "a\r\n"), ("a\n", "b\n", None)],
)
def test_what_differs_in_white_space_at_the_end_is_identical(
    main: str, branch: str, joined: str | None
) -> None:
    assert text(identical(conflict(main, "", branch))) == joined


@pytest.mark.parametrize(
    ("main", "base", "branch", "joined"),
    [
        ('v = "1.2.3"\n', 'v = "1.2.2"\n', 'v = "1.10.0"\n', 'v = "1.10.0"\n'),
        ("date: 2024-02-01\n", "date: 2023-01-01\n", "date: 2023-12-31\n", "date: 2024-02-01\n"),
        ("a>=2.3\nb>=1.1\n", "a>=2.1\nb>=1.0\n", "a>=2.2\nb>=1.0\n", "a>=2.3\nb>=1.1\n"),
        ("1.3.dev1\n", "", "1.3.dev2\n", "1.3.dev2\n"),
        # Greater in one and less in another: neither side is the later one.
        ("a>=2.3\nb>=1.0\n", "a>=2.1\nb>=1.0\n", "a>=2.2\nb>=1.1\n", None),
        # A release and what comes after it have no order that everybody means.
        ('v = "8.1.7"\n', 'v = "8.1.4"\n', 'v = "8.2.0.dev0"\n', None),
        # One side went back, for a reason.
        ("a==2.0.1\n", "a==2.1.0\n", "a==2.2.0\n", None),
        ("a>=2.3 # new\n", "a>=2.1\n", "a>=2.2\n", None),
        ("x\n", "y\n", "z\n", None),
    ],
)
def test_the_greater_version_or_date_is_taken_where_nothing_else_differs(
    main: str, base: str, branch: str, joined: str | None
) -> None:
    assert text(greater_number(conflict(main, base, branch))) == joined


@pytest.mark.parametrize(
    "line",
    [
        "pay({})\n",
        'ip = "10.0.{}"\n',
        "conversion {}\n",
        "SUBVERSION {}\n",
        "timeout = {}.1\n",
        "connect(version=1.0, host='{}.1')\n",
        'released = "20{}-05-01"\n',
    ],
)
def test_a_number_in_a_line_that_says_nothing_of_a_version_is_left(line: str) -> None:
    """One side's decision would be dropped, whatever a check tests."""
    year = ("21", "25", "23") if "20{" in line else ("1.0", "2.5", "1.5")
    base, main, branch = (line.format(each) for each in year)
    found = conflict(main, base, branch)
    assert greater_version(found) is None
    assert greater_number(found) is not None
    assert not in_file("src/pay.py", SURE)["greater version"](found)


@pytest.mark.parametrize(
    "line",
    [
        "version = {}\n",
        '  "version": "{}",\n',
        "__version__ = '{}'\n",
        "#define FOO_VERSION {}\n",
        "<Version>{}</Version>\n",
        "apiVersion: v{}\n",
        ".. versionadded:: {}\n",
        "target-version = '{}'\n",
    ],
)
def test_the_greater_one_is_taken_in_a_line_that_says_version(line: str) -> None:
    base, main, branch = (line.format(each) for each in ("1.0", "2.5", "1.5"))
    assert text(greater_version(conflict(main, base, branch))) == main


@pytest.mark.parametrize(
    "line", ["timeout = {}\n", '"rate": {},\n', "wait={}\n", "connect(version=1.0, timeout={})\n"]
)
def test_a_plain_number_that_is_a_value_is_no_version_in_a_manifest_either(line: str) -> None:
    base, main, branch = (line.format(each) for each in ("1.0", "2.5", "1.5"))
    assert greater_number(conflict(main, base, branch)) is None
    assert greater_version(conflict(main, base, branch)) is None


@pytest.mark.parametrize("line", ["version = {}\n", 'x = "{}"\n', "x=={}\n", "x: ^{}\n", "x {}\n"])
def test_what_may_be_a_version_is_in_a_manifest(line: str) -> None:
    base, main, branch = (line.format(each) for each in ("1.0", "2.5", "1.5"))
    assert text(greater_number(conflict(main, base, branch))) == main


def test_no_version_that_is_excluded_gives_way_to_another() -> None:
    base, main, branch = (f"a!=1.{each}\n" for each in "576")
    assert greater_number(conflict(main, base, branch)) is None
    main, branch = (f"a!=1.5\nb==1.{each}\n" for each in "76")
    assert text(greater_number(conflict(main, "a!=1.5\nb==1.0\n", branch))) == main


def test_each_line_that_differs_has_to_say_version() -> None:
    both = "version = {}\nrate = {}\n"
    sides = [both.format(*each) for each in (("2.5", "0.7"), ("1.0", "0.5"), ("1.5", "0.6"))]
    assert greater_version(conflict(*sides)) is None
    sides = [both.format(each, "0.5") for each in ("2.5", "1.0", "1.5")]
    assert text(greater_version(conflict(*sides))) == sides[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pyproject.toml", True),
        ("web/package.json", True),
        ("Cargo.toml", True),
        ("requirements-dev.txt", True),
        ("dev-requirements.txt", True),
        ("docs/source/conf.py", True),
        ("requirements/test.txt", True),
        ("VERSION", True),
        ("gem/x.gemspec", True),
        ("src/pay.py", False),
        ("my_package.json", False),
        ("config.toml", False),
        ("version.py", False),
        ("src/conf.py", False),
        ("docs/requirements.md", False),
    ],
)
def test_in_a_manifest_each_number_is_a_version(path: str, expected: bool) -> None:
    assert is_manifest(path) == expected
    found = conflict("a>=2.5\n", "a>=1.0\n", "a>=1.5\n")
    joined = in_file(path, SURE)["greater version"](found)
    assert text(joined) == ("a>=2.5\n" if expected else None)


NUMBER = st.lists(st.integers(0, 300), min_size=2, max_size=4).map(
    lambda each: ".".join(map(str, each))
)


@given(
    st.text("abcdefgh =():'\"", max_size=20), NUMBER, NUMBER, NUMBER, st.text('nor,)"', max_size=5)
)
@settings(max_examples=examples(200))
def test_no_rule_that_is_on_chooses_between_numbers_that_are_no_versions(
    before: str, base: str, main: str, branch: str, after: str
) -> None:
    """Unless the sides are the same number."""
    base, main, branch = (f"{before}={each}{after}\n" for each in (base, main, branch))
    found = conflict(main, base, branch)
    for name, rule in in_file("src/a.py", SURE).items():
        assert rule(found) is None or main.rstrip() == branch.rstrip(), name


class TestASortedBlock:
    AROUND = ("ant\nbee\n", "wasp\nyak\n")

    @pytest.mark.parametrize(
        ("main", "base", "branch", "joined"),
        [
            ("fly\n", "", "cow\n", "cow\nfly\n"),
            ("dog\nfly\n", "dog\n", "cow\ndog\n", "cow\ndog\nfly\n"),
            ("fly\n", "", "cow\nfly\n", "cow\nfly\n"),
            ("fly\n", "dog\n", "cow\n", None),  # A side removed something.
            ("fly 1\n", "", "fly 2\n", None),  # Two of the same name.
            ("fly\n", "", "  cow\n", None),
            ("zebra\n", "", "cow\n", None),
        ],
    )
    def test_stays_sorted(self, main: str, base: str, branch: str, joined: str | None) -> None:
        before, after = self.AROUND
        found = conflict(main, base, branch, before=before, after=after)
        assert text(sorted_block(found)) == joined

    def test_few_lines_are_in_order_by_chance(self) -> None:
        assert sorted_block(conflict("fly\n", "", "cow\n", before="ant\n", after="wasp\n")) is None

    def test_the_block_ends_where_the_order_does(self) -> None:
        found = conflict("fly\n", "", "cow\n", before="zoo\nant\nbee\n", after="wasp\nyak\nbat\n")
        assert text(sorted_block(found)) == "cow\nfly\n"


@pytest.mark.parametrize(
    ("main", "base", "branch", "joined"),
    [
        (
            "from x import a, c\n",
            "from x import c\n",
            "from x import b, c\n",
            "from x import a, b, c\n",
        ),
        ('x = ["a", "z"]\n', 'x = ["a"]\n', 'x = ["a", "b"]\n', 'x = ["a", "b", "z"]\n'),
        ("x = [c, a, b]\n", "x = [c, a]\n", "x = [c, a, d]\n", "x = [c, a, b, d]\n"),
        ("import b, c\nx\n", "import c\nx\n", "import a, c\nx\n", "import a, b, c\nx\n"),
        ("x = [a]\n", "x = [a, b]\n", "x = [a, b, c]\n", None),  # A name was removed.
        ("f(a, b)\n", "f(a)\n", "f(a, c)\n", None),  # Arguments are no list of names.
        ("from x import a\n", "", "from x import b\n", None),
        ("x = [a, b]\n", "x = [a]\n", "y = [a, c]\n", None),
    ],
)
def test_names_that_both_added_to_one_line_are_joined(
    main: str, base: str, branch: str, joined: str | None
) -> None:
    assert text(listed_names(conflict(main, base, branch))) == joined


class TestFilesThatEverybodyAppendsTo:
    @pytest.mark.parametrize(
        ("main", "branch", "joined"),
        [
            ("- one\n", "- two\n", "- two\n- one\n"),
            ("### Fixed\n- one\n\n", "### Fixed\n- two\n\n", "### Fixed\n- two\n- one\n\n"),
            ("- one\n- x\n", "- two\n- x\n", "- two\n- one\n- x\n"),
            ("- one\n", "- one\n- two\n", "- one\n- two\n"),
            ("- one", "- two", "- two\n- one"),
            ("- one\r\n", "- two\r\n", "- two\r\n- one\r\n"),
            ("## 2\n\n- one\n\n", "## 2\n\n- two\n\n", "## 2\n\n- two\n- one\n\n"),
            ("\n- a\n\n- b\n", "\n- c\n", "\n- c\n\n- a\n\n- b\n"),
            ("- one, in\n  x\n", "- two, in\n  x\n", "- two, in\n  x\n- one, in\n  x\n"),
            ("- a\n  x\n", "- a\n  y\n", "- a\n  y\n- a\n  x\n"),
            ("- a\n  x\n", "- a\n  x\n- b\n", "- a\n  x\n- b\n"),
            ("- one\n", "## 2.0\n- two\n", None),
            ("2.0\n===\n- one\n", "- two\n", None),
            ("- one\n", "1.2.0 (2024-01-01)\n- two\n", None),
        ],
    )
    def test_keep_both_with_the_branch_first(
        self, main: str, branch: str, joined: str | None
    ) -> None:
        assert text(both_added(conflict(main, "", branch))) == joined

    def test_a_change_is_not_an_addition(self) -> None:
        assert both_added(conflict("- one\n", "- 1\n", "- two\n")) is None

    @pytest.mark.parametrize(
        ("main", "branch", "joined"),
        [
            (
                "## 2.1 (unreleased)\n\n- one\n\n",
                "## v2.1 - Unreleased\n\n- two\n\n",
                "## 2.1 (unreleased)\n\n- two\n- one\n\n",
            ),
            (
                "v2.1 (xxxx-xx-xx)\n-----------------\n\n- one\n\n",
                "Unreleased\n----------\n\n- two\n\n",
                "v2.1 (xxxx-xx-xx)\n-----------------\n\n- two\n- one\n\n",
            ),
            (
                "## Next\n\n### Added\n\n- one\n",
                "## Unreleased\n\n### Added\n\n- two\n",
                "## Next\n\n### Added\n\n- two\n- one\n",
            ),
            (
                "## 2.0.1 (unreleased)\n\n- one\n",
                "## 2.1 (unreleased)\n\n- two\n",
                "## 2.1 (unreleased)\n\n- two\n\n## 2.0.1 (unreleased)\n\n- one\n",
            ),
            ("## 2.1 (2026-11-28)\n- one\n", "## 2.1 (unreleased)\n- two\n", None),
            ("## 2.1rc1 (unreleased)\n- one\n", "## 2.1 (unreleased)\n- two\n", None),
            ("## Next\n- one\n", "## Unreleased\n- two\n\n## 2.0 (2026-01-02)\n- 2\n", None),
            ("## Next\n\n### Added\n- one\n", "## Unreleased\n\n### Fixed\n- two\n", None),
            ("## Next\n- one\n", "- two\n", None),
            ("- 0\n## Next\n- one\n", "## Unreleased\n- two\n", None),
        ],
    )
    def test_have_one_heading_for_a_release_that_is_not_out(
        self, main: str, branch: str, joined: str | None
    ) -> None:
        assert text(next_release(conflict(main, "", branch))) == joined
        assert next_release(conflict(main, "- 0\n", branch)) is None

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("CHANGELOG.md", True),
            ("docs/changes.rst", True),
            ("NEWS", True),
            ("HISTORY-2.x.txt", True),
            ("src/changes.py", False),
            ("news.html", False),
            ("README.md", False),
            ("changelog/README.md", False),
        ],
    )
    def test_are_known_by_their_names(self, path: str, expected: bool) -> None:
        assert is_change_log(path) == expected

    def test_are_also_those_of_the_setting_unless_nothing_is_joined(self) -> None:
        assert everybody_appends_to("docs/index.md", "on", ["docs/*.md"])
        assert not everybody_appends_to("docs/index.md", "on", [])
        assert not everybody_appends_to("docs/index.md", "off", ["docs/*.md"])
        assert not everybody_appends_to("NEWS.md", "off", [])


def test_what_both_added_to_code_needs_a_check() -> None:
    kept = {"names joined", "entries kept", "definitions kept", "sections kept"}
    assert KEPT.keys() - SURE.keys() == kept
    assert both_added not in KEPT.values()


UNRELEASED = b"## Unreleased\n"
LINE = st.sampled_from(
    [
        *(b"a\n", b"b\n", b"\n", b"- x\n", b"- y\n", b"    b,\n", b"import c\n", b"v = 1.2\n"),
        *(b"def d(): pass\n", b"def e(): over\n", b"## One\n", b"## Two\n"),
        *(b"## 2.0 (unreleased)\n", b"## 2.1 (unreleased)\n", UNRELEASED),
    ]
)
SIDE = st.lists(LINE, min_size=1, max_size=5)


@given(SIDE, SIDE, st.lists(LINE, max_size=5), st.lists(LINE, max_size=5))
@settings(max_examples=examples(300))
def test_no_line_of_an_addition_is_lost_and_none_is_made_up(
    main: list[bytes], branch: list[bytes], before: list[bytes], after: list[bytes]
) -> None:
    found = Conflict(main, [], branch, before=before, after=after)
    for rules in (APPENDED, KEPT):
        for name, rule in rules.items():
            joined = rule(found)
            if joined is None or name in ("greater version", "identical", "names joined"):
                continue  # `test_lists.py` has the laws of lists: they are wrapped again.
            said = [
                Counter(each for each in side if each.strip()) for side in (main, branch, joined)
            ]
            assert said[0] <= said[2], name
            lost = said[1] - said[2]
            assert not lost or (name == "next release" and lost.total() == 1), name
            assert all(b"nreleased" in each for each in lost)
            assert said[2] <= said[0] + said[1], name


@given(SIDE, SIDE)
@settings(max_examples=examples(200))
def test_what_is_trimmed_and_the_rest_are_the_whole(main: list[bytes], branch: list[bytes]) -> None:
    head, rest, tail = trimmed(Conflict(main, [], branch, before=[], after=[]))
    assert [*head, *rest.main, *tail] == main
    assert [*head, *rest.branch, *tail] == branch


def marked(main: list[bytes], base: list[bytes], branch: list[bytes]) -> bytes:
    marks = [char * MARKER_SIZE + b"\n" for char in (b"<", b"|", b"=", b">")]
    return b"".join([marks[0], *main, marks[1], *base, marks[2], *branch, marks[3]])


@given(SIDE, SIDE, SIDE, SIDE, SIDE)
@settings(max_examples=examples(200))
def test_nothing_outside_a_conflict_changes_and_the_places_are_those_of_the_result(
    before: list[bytes],
    main: list[bytes],
    branch: list[bytes],
    middle: list[bytes],
    after: list[bytes],
) -> None:
    one = b"".join(before) + marked(main, [], branch) + b"".join(middle)
    done = join(one + marked(branch, [], main) + b"".join(after), APPENDED)
    if done is None:
        return
    joined, (first, second) = done
    found = joined.splitlines(keepends=True)
    for place in (first, second):
        assert found[place.first - 1 : place.first - 1 + len(place.lines)] == place.lines
    between = found[first.first - 1 + len(first.lines) : second.first - 1]
    assert found[: first.first - 1] == before
    assert between == middle
    assert found[second.first - 1 + len(second.lines) :] == after


def test_one_conflict_that_no_rule_joins_leaves_all_of_them() -> None:
    good, bad = marked([b"- a\n"], [], [b"- b\n"]), marked([b"- a\n"], [b"-\n"], [b"- b\n"])
    assert join(good, APPENDED) is not None
    assert join(good + b"x\n" + bad, APPENDED) is None
    assert join(good, {}) is None


def test_sections_are_kept_in_texts_only() -> None:
    assert "sections kept" in in_file("docs/API.md", KEPT)
    assert "sections kept" not in in_file("conf.py", KEPT)
