"""Pairs of patterns by name: our verdict, and beside it that of the records document's rule.

The rule is `matches(pattern_a, pattern_b) OR matches(pattern_b, pattern_a)`
(`spec/0-queenbee-records.md`, "Pattern Matching"): the text of one pattern is taken for a path
and tried on the other. Where it differs from the truth, the last column says why.
"""

from __future__ import annotations

import pytest
from glob_reference import covered, share_a_path

from queenbee.core.glob import pattern as globs

YES, NO = True, False

PAIRS = [
    # name, one pattern, another, do they overlap, what the rule says, why the rule is wrong
    ("the same file", "src/main.go", "src/main.go", YES, YES, ""),
    ("two files", "src/main.go", "src/mair.go", NO, NO, ""),
    ("a file and its folder's children", "src/main.go", "src/*", YES, YES, ""),
    ("a file below and the children of the folder above", "src/auth/login.py", "src/*", NO, NO, ""),
    ("a file and everything below its folder", "src/auth/login.py", "src/auth/**", YES, YES, ""),
    ("a file and everything below another folder", "src/auth/login.py", "src/api/**", NO, NO, ""),
    ("a file that only begins like the folder", "src/authx/login.py", "src/auth/**", NO, NO, ""),
    ("the folder itself and everything below it", "src/auth", "src/auth/**", YES, YES, ""),
    ("a folder and a folder in it", "src/**", "src/auth/**", YES, YES, ""),
    ("two sibling folders", "src/api/**", "src/auth/**", NO, NO, ""),
    ("a folder and one that it is a prefix of by letters", "src/api/**", "src/api2/**", NO, NO, ""),
    ("everything and a file", "**", "README.md", YES, YES, ""),
    ("everything and everything", "**", "**", YES, YES, ""),
    ("everything and the children of the root", "**", "*", YES, YES, ""),
    ("markdown in the root and markdown below", "*.md", "docs/a.md", NO, NO, ""),
    ("markdown anywhere and a source file", "**/*.md", "src/main.go", NO, NO, ""),
    ("markdown anywhere and markdown in the root", "**/*.md", "*.md", YES, YES, ""),
    ("markdown anywhere and a readme", "**/*.md", "README.md", YES, YES, ""),
    ("extensions that differ at any depth", "src/**/*.ts", "src/**/*.py", NO, NO, ""),
    ("the same extension at any depth, in two folders", "src/**/*.ts", "lib/**/*.ts", NO, NO, ""),
    ("the same extension, one of them deeper", "src/**/*.ts", "src/ui/**/*.ts", YES, YES, ""),
    (
        "an extension and a first letter",
        "src/*.ts",
        "src/a*",
        YES,
        NO,
        "neither text is in the other's language; a.ts is in both",
    ),
    ("an extension and a name without one", "src/*.ts", "src/Makefile", NO, NO, ""),
    (
        "a star for the folder and a star for the file",
        "src/*/a.py",
        "src/b/*.py",
        YES,
        NO,
        "each text has a star where the other wants a name",
    ),
    ("a star for the folder and another file in it", "src/*/a.py", "src/b/c.py", NO, NO, ""),
    (
        "stars on both sides of a slash",
        "*/b",
        "a/*",
        YES,
        NO,
        "each text has a star where the other wants a name",
    ),
    (
        "two stars that must agree on the middle",
        "a*c",
        "ab*",
        YES,
        NO,
        "the text a*c does not begin with ab, nor ab* end in c",
    ),
    ("two stars that must agree on an overlapping middle", "ab*bc", "abc", NO, NO, ""),
    ("two stars with room for both", "ab*bc", "ab?bc", YES, YES, ""),
    (
        "a prefix and a suffix",
        "test_*",
        "*_test.py",
        YES,
        NO,
        "a text with a star is only one of the names that it stands for",
    ),
    ("a prefix and another prefix", "test_*", "conf*", NO, NO, ""),
    ("a suffix and another suffix", "*.test.ts", "*.spec.ts", NO, NO, ""),
    ("a suffix within a suffix", "*.ts", "*.test.ts", YES, YES, ""),
    ("a suffix that only looks like one", "*.ts", "*.tsx", NO, NO, ""),
    ("three pieces in order", "a*b*c", "abc", YES, YES, ""),
    ("three pieces out of order", "a*b*c", "acb", NO, NO, ""),
    (
        "pieces in the other order, with room",
        "*a*b*",
        "*b*a*",
        YES,
        NO,
        "as texts, each lacks the other's order",
    ),
    ("pieces that cross", "*ab*", "*ba*", YES, NO, "as texts, each lacks the other's piece"),
    ("a fixed length and a longer literal", "???", "abcd", NO, NO, ""),
    ("a fixed length and a literal of it", "???", "abc", YES, YES, ""),
    ("two fixed lengths", "??", "???", NO, NO, ""),
    (
        "a fixed length and pieces that fit",
        "????",
        "a*b",
        YES,
        NO,
        "the text a*b is three letters long, its names are not",
    ),
    ("a fixed length and pieces that do not", "?", "a*b", NO, NO, ""),
    ("a question mark and a slash", "a?b", "a/b", NO, NO, ""),
    ("a star and a slash", "a*b", "a/b", NO, NO, ""),
    ("a class and a letter in it", "v[12].py", "v1.py", YES, YES, ""),
    ("a class and a letter out of it", "v[12].py", "v3.py", NO, NO, ""),
    (
        "two classes that share a letter",
        "v[12].py",
        "v[23].py",
        YES,
        NO,
        "the text of a class is no letter of it",
    ),
    ("two classes that share none", "v[12].py", "v[34].py", NO, NO, ""),
    ("two ranges that touch", "[a-m]*", "[m-z]*", YES, NO, "the text [a-m]* begins with a bracket"),
    ("two ranges that do not", "[a-m]*", "[n-z]*", NO, NO, ""),
    ("a negated class and its letter", "[!a].py", "a.py", NO, NO, ""),
    ("a negated class and another letter", "[!a].py", "b.py", YES, YES, ""),
    ("a negated class and the class", "[!ab].py", "[ab].py", NO, NO, ""),
    (
        "a negated class and a wider class",
        "[!ab].py",
        "[abc].py",
        YES,
        NO,
        "the text of a class is longer than what it covers",
    ),
    (
        "two negated classes",
        "[!a].py",
        "[!b].py",
        YES,
        NO,
        "the text of a class is longer than what it covers",
    ),
    ("a caret and an exclamation mark", "[^a].py", "[a].py", NO, NO, ""),
    ("a negated class and a slash", "src[!a]b", "src/b", NO, NO, ""),
    (
        "a class of brackets and a question mark",
        "src/[ab].py",
        "src/????.py",
        NO,
        YES,
        "wrongly yes: the text has four characters, its names have one",
    ),
    (
        "a class and the four characters that spell it",
        "src/[ab].py",
        r"src/\[ab].py",
        NO,
        YES,
        "wrongly yes: the class is compared as if it were a name",
    ),
    ("an escaped bracket and the same name", r"app/\[id]/page.tsx", "app/*/page.tsx", YES, YES, ""),
    (
        "an escaped bracket and the class it is not",
        r"app/\[id]/page.tsx",
        "app/[id]/page.tsx",
        NO,
        YES,
        "wrongly yes: the class is compared as if it were a name",
    ),
    ("an escaped star and a letter", r"a\*b", "axb", NO, NO, ""),
    ("an escaped star and a star", r"a\*b", "a*b", YES, YES, ""),
    ("braces and one of their alternatives", "src/*.{ts,tsx}", "src/app.tsx", YES, YES, ""),
    ("braces and none of their alternatives", "src/*.{ts,tsx}", "src/app.js", NO, NO, ""),
    (
        "braces that share an alternative",
        "*.{ts,tsx}",
        "*.{js,ts}",
        YES,
        NO,
        "the text of the braces is no name",
    ),
    ("braces that share none", "*.{ts,tsx}", "*.{js,jsx}", NO, NO, ""),
    ("braces that hold folders", "{src,docs}/**", "docs/a.md", YES, YES, ""),
    ("braces that hold paths", "{src/**,docs}/x", "docs/x", YES, YES, ""),
    ("braces that hold paths, one level off", "{src/**,docs}/x", "docs/a/x", NO, NO, ""),
    ("braces that hold paths, at any depth", "{src/**,docs}/x", "src/a/b/x", YES, YES, ""),
    ("braces with nothing in one alternative", "src{,/test}/a.py", "src/a.py", YES, YES, ""),
    (
        "braces with nothing, the other alternative",
        "src{,/test}/a.py",
        "src/test/a.py",
        YES,
        YES,
        "",
    ),
    ("braces within braces", "{a,b{c,d}}.py", "bd.py", YES, YES, ""),
    ("braces and stars in them", "{*.py,test_*}", "test_a.js", YES, YES, ""),
    ("any depth between, none used", "src/**/a.py", "src/a.py", YES, YES, ""),
    ("any depth between, two used", "src/**/a.py", "src/x/y/a.py", YES, YES, ""),
    ("any depth between, another name", "src/**/a.py", "src/x/y/b.py", NO, NO, ""),
    (
        "a folder anywhere and a folder",
        "**/tests/**",
        "src/**",
        YES,
        NO,
        "the text src/** has no segment tests, though its language has",
    ),
    ("a folder anywhere and a file not in one", "**/tests/**", "src/a.py", NO, NO, ""),
    ("a folder anywhere and the folder itself", "**/tests/**", "src/tests", YES, YES, ""),
    (
        "two folders anywhere",
        "**/tests/**",
        "**/migrations/**",
        YES,
        NO,
        "the text of the one has no segment of the other",
    ),
    ("two file names anywhere", "**/conftest.py", "**/setup.py", NO, NO, ""),
    (
        "a file name anywhere and its folder",
        "**/conftest.py",
        "tests/**",
        YES,
        NO,
        "the text tests/** does not end in the name, though its language does",
    ),
    ("depths that differ", "*/*", "*/*/*", NO, NO, ""),
    ("depths that differ, with room", "*/*", "*/**/*", YES, YES, ""),
    ("any depth twice and a path that fits", "**/a/**/b", "x/a/y/b", YES, YES, ""),
    ("any depth twice and a path in the wrong order", "**/a/**/b", "b/a", NO, NO, ""),
    ("any depth twice and the shortest path", "**/a/**/b", "a/b", YES, YES, ""),
    ("the children of a folder and the folder", "src/*", "src", NO, NO, ""),
    (
        "the children of a folder and a folder below",
        "src/*",
        "src/auth/**",
        YES,
        NO,
        "src/auth is covered by both; the text src/auth/** is too deep",
    ),
    ("the grandchildren of a folder and a child's all", "src/*/*", "src/auth/**", YES, YES, ""),
    ("a hidden file and a star", "*", ".env", YES, YES, ""),
    ("a hidden folder and any depth", "**/*.yml", ".github/ci.yml", YES, YES, ""),
    ("a hidden file and a question mark", "?env", ".env", YES, YES, ""),
    ("case that differs", "README.md", "readme.md", NO, NO, ""),
    ("letters beyond ASCII", "docs/é*", "docs/école.md", YES, YES, ""),
    ("a letter beyond ASCII and a question mark", "docs/?", "docs/é", YES, YES, ""),
    ("names of dots alone", ".*", "*.", YES, NO, "as texts, each lacks the other's dot"),
    ("two dots by class", "[.]?", "?[.]", NO, NO, ""),
    ("a written dot segment", "./src/a.py", "src/a.py", YES, YES, ""),
    (
        "a written parent",
        "lib/../src/a.py",
        "src/*.py",
        YES,
        NO,
        "the text is compared before the .. is taken out",
    ),
    ("a trailing slash and a file below", "src/auth/", "src/auth/a.py", YES, YES, ""),
    ("a trailing slash and the folder", "src/auth/", "src/auth", YES, YES, ""),
    ("doubled slashes", "src//a.py", "src/a.py", YES, YES, ""),
]

pairs = pytest.mark.parametrize(
    ("one", "other", "ours", "rule", "why"),
    [pytest.param(*row[1:], id=row[0]) for row in PAIRS],
)


@pairs
def test_overlap_is_decided_for(one: str, other: str, ours: bool, rule: bool, why: str) -> None:
    witness = globs.overlap(one, other)
    assert (witness is not None) is ours
    assert globs.overlap(other, one) == witness
    if witness is not None:
        assert covered(one, witness)
        assert covered(other, witness)


@pairs
def test_a_reference_without_shortcuts_agrees_on(
    one: str, other: str, ours: bool, rule: bool, why: str
) -> None:
    assert share_a_path(one, other) is ours


@pairs
def test_the_symmetric_rule_on_texts_answers_for(
    one: str, other: str, ours: bool, rule: bool, why: str
) -> None:
    assert (globs.matches(one, other) or globs.matches(other, one)) is rule
    assert bool(why) is (ours is not rule)


def test_the_table_is_large_and_has_both_verdicts() -> None:
    assert len(PAIRS) >= 80
    assert len({row[0] for row in PAIRS}) == len(PAIRS)
    assert sum(row[3] for row in PAIRS) > 30
    assert sum(not row[3] for row in PAIRS) > 30
    # The rule misses overlaps far more often than it sees one that is not there.
    assert sum(row[3] and not row[4] for row in PAIRS) > 15
    assert any(row[4] and not row[3] for row in PAIRS)
