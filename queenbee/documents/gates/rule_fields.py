"""The fields of the four types of rules, and what is wrong with a rule.

The field names of the source's own validator are read too: `path` with `type`, `pattern` with
`match_type` and `case_sensitive`, `command` with `working_directory`, and `script_args`.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from queenbee.checks.check import MAX_CHECKS
from queenbee.documents.fields import environment_findings
from queenbee.documents.findings import Finding, errors_in
from queenbee.documents.schema import is_whole, member_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SPELLINGS = {
    "file_exists": (("file_path", "path"),),
    "content_match": (("file_path", "path"), ("patterns", "pattern")),
    "test_pass": (("test_command", "command"),),
    "custom": (("script_path",),),
}
"""The required fields of each type, in the document's spelling and then its validator's."""


def rules_findings(rules: list[dict[str, Any]], path: str) -> list[Finding]:
    """Returns what is wrong with rules that fit the schema."""
    if len(rules) > MAX_CHECKS:
        return [Finding(path, f"has {len(rules):,} rules; a gate can have at most {MAX_CHECKS}")]
    return [
        finding
        for number, rule in enumerate(rules)
        for finding in rule_findings(rule, f"{path}[{number}]")
    ]


def rule_findings(rule: dict[str, Any], path: str) -> list[Finding]:
    """Returns what is wrong with the `rule_config` of a rule that fits the schema."""
    config, where = rule["rule_config"], member_path(path, "rule_config")
    found = []
    for names in _SPELLINGS.get(rule["rule_type"], ()):
        found += _required(config, names, where)
    for name, (is_right, message) in _OPTIONAL.get(rule["rule_type"], {}).items():
        if config.get(name) is not None and not is_right(config[name]):
            found.append(Finding(member_path(where, name), message))
    found += environment_findings(config.get("env"), member_path(where, "env"))
    if not errors_in(found):
        odd = bad_patterns(rule, path)
        found += [replace(finding, severity="warning") for finding in odd]
    return found


def bad_patterns(rule: dict[str, Any], path: str) -> list[Finding]:
    """Returns an error for each regular expression of a rule that Python cannot use.

    Another tool's gate may use another dialect and have passed there; such a rule can never pass
    here.
    """
    config = rule["rule_config"]
    if rule["rule_type"] != "content_match":
        return []
    name = "patterns" if "patterns" in config else "pattern"
    return [
        Finding(f"{path}.rule_config.{name}", f"{text[:60]!r} can never match: {problem}")
        for text, literal, _ in patterns_of(config)
        if not literal and (problem := _regex_problem(text))
    ]


def spelled(config: dict[str, Any], name: str, other: str) -> Any:
    """Returns the value of a field under the document's name, or its validator's."""
    return config.get(name, config.get(other))


def patterns_of(config: dict[str, Any]) -> list[tuple[str, bool, bool]]:
    """Returns each pattern of a valid `content_match`, whether it is plain text, and whether case
    matters.

    The document's `patterns` are regular expressions; the validator's `pattern` is plain text
    unless `match_type` says otherwise.
    """
    many = "patterns" in config
    texts = config["patterns"] if many else [config["pattern"]]
    literal = (config.get("match_type") or ("regex" if many else "contains")) != "regex"
    case_sensitive = config.get("case_sensitive") is not False
    return [(text, literal, case_sensitive) for text in texts]


def _required(config: dict[str, Any], names: tuple[str, ...], where: str) -> list[Finding]:
    given = [name for name in names if name in config]
    if not given:
        return [Finding(member_path(where, names[0]), "is required, but missing")]
    found = []
    for name in given:
        value, path = config[name], member_path(where, name)
        if name == "patterns":
            if not (_is_texts(value) and value and all(value)):
                found.append(Finding(path, "must be a list of at least one pattern"))
        elif not _is_text(value):
            found.append(Finding(path, "must be a string that is not empty and contains no NUL"))
        elif name in ("file_path", "path", "script_path") and not value.startswith("/"):
            message = "is not absolute: it is relative to where the gate is run"
            found.append(Finding(path, message, "warning"))
    if len(given) == 2 and config[given[0]] not in (config[given[1]], [config[given[1]]]):
        message = f"contradicts {given[0]}: keep only one of them"
        found.append(Finding(member_path(where, given[1]), message))
    return found


def _regex_problem(pattern: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(text, str) and "\0" not in text for text in value
    )


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


_Rule = tuple["Callable[[object], bool]", str]
_TIME: dict[str, _Rule] = {"timeout_seconds": (_is_time, "must be a number above 0")}
_PROGRAM: dict[str, _Rule] = _TIME | {
    "working_directory": (_is_text, "must be a path"),
    "expected_exit_code": (is_whole, "must be a whole number"),
}
_ARGUMENTS: _Rule = (_is_texts, "must be a list of strings without a NUL")
_OPTIONAL: dict[str, dict[str, _Rule]] = {
    "file_exists": {
        "type": (
            lambda value: value in ("file", "directory", "any"),
            "must be one of file, directory, any",
        )
    },
    "content_match": _TIME
    | {
        "match_type": (
            lambda value: value in ("regex", "literal", "contains"),
            "must be one of regex, literal, contains",
        ),
        "case_sensitive": (lambda value: isinstance(value, bool), "must be true or false"),
    },
    "test_pass": _PROGRAM,
    "custom": _PROGRAM | {"args": _ARGUMENTS, "script_args": _ARGUMENTS},
}
"""The optional fields of each type; null counts as absent."""
