"""Our reading of JSON Schema agrees with the jsonschema library's, and says more at once."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queenbee.core.timestamps import instant_ms
from queenbee.documents import schema as reader
from queenbee.documents.findings import MAX_FINDINGS, Finding
from queenbee.documents.schema import is_understood, schema_findings

SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["intent", "items"],
    "properties": {
        "intent": {"type": "string"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number", "minimum": 0, "maximum": 2},
        "when": {"type": ["string", "null"], "format": "date-time"},
        "on": {"type": "boolean"},
        "items": {"type": "array", "items": {"$ref": "#/definitions/item"}},
    },
    "definitions": {
        "item": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "inner": {"$ref": "#/definitions/item"}},
        }
    },
}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.floats(-2, 3).map(lambda number: round(number, 1))
    | st.sampled_from(["a", "b", "c", "", "2025-01-01T00:00:00Z", "2025-13-01T00:00:00Z"])
)
ITEMS = st.recursive(
    SCALARS,
    lambda inner: st.fixed_dictionaries({}, optional={"name": SCALARS, "inner": inner}),
    max_leaves=5,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "intent": SCALARS,
        "kind": SCALARS,
        "count": SCALARS,
        "share": SCALARS,
        "when": SCALARS,
        "on": SCALARS,
        "items": SCALARS | st.lists(ITEMS, max_size=3),
        "unknown": SCALARS,
    },
)
FORMATS = jsonschema.FormatChecker(formats=[])
FORMATS.checks("date-time")(
    lambda value: not isinstance(value, str) or instant_ms(value) is not None
)


@given(SCALARS | DOCUMENTS)
def test_the_same_places_are_wrong_as_for_the_library(document):
    library = jsonschema.Draft7Validator(SCHEMA, format_checker=FORMATS)
    theirs = {_place(error) for error in library.iter_errors(document)}
    ours = {finding.path for finding in schema_findings(document, SCHEMA)}
    assert ours == theirs


def _place(error):
    path = error.json_path.removeprefix("$").removeprefix(".")
    if error.validator != "required":
        return path
    missing = error.message.split("'")[1]
    return f"{path}.{missing}" if path else missing


def test_everything_wrong_is_reported_at_once_with_its_path():
    document = {"kind": "c", "count": 0, "when": "soon", "items": [{"name": 1}, {}, 5]}
    assert schema_findings(document, SCHEMA) == [
        Finding("intent", "is required, but missing"),
        Finding("kind", "must be one of a, b; it is 'c'"),
        Finding("count", "must be at least 1; it is 0"),
        Finding(
            "when",
            "'soon' is not an RFC 3339 timestamp",
            hint="write it as 2024-12-14T10:30:00Z",
        ),
        Finding("items[0].name", "must be a string; it is a whole number"),
        Finding("items[1].name", "is required, but missing"),
        Finding("items[2]", "must be an object; it is a whole number"),
    ]


def test_a_time_without_an_offset_is_a_warning():
    (finding,) = schema_findings(
        {"intent": "", "items": [], "when": "2025-01-01T00:00:00.1234567"}, SCHEMA
    )
    assert (finding.path, finding.severity) == ("when", "warning")


def test_a_value_that_a_later_version_may_have_added_can_be_a_warning():
    document = {"intent": "", "items": [], "kind": "z"}
    (finding,) = schema_findings(document, SCHEMA, enums="warning")
    assert (finding.path, finding.severity) == ("kind", "warning")


def test_a_message_does_not_repeat_megabytes():
    document = {"intent": "", "items": [], "kind": "z" * 10_000_000}
    (finding,) = schema_findings(document, SCHEMA)
    assert len(finding.message) < 200


def test_of_a_long_list_the_first_faults_are_told_and_that_there_are_more():
    found = schema_findings({"intent": "", "items": [5] * (MAX_FINDINGS + 2)}, SCHEMA)
    assert [finding.path for finding in found] == [
        *(f"items[{place}]" for place in range(MAX_FINDINGS)),
        "items",
    ]
    assert len(schema_findings({"intent": "", "items": [5] * MAX_FINDINGS}, SCHEMA)) == MAX_FINDINGS


@pytest.mark.parametrize(("last", "severity"), [("z", "warning"), (5, "error")])
def test_an_error_behind_many_warnings_is_not_lost(last, severity):
    schema = {"items": {"type": "string", "enum": ["a"]}}
    found = schema_findings(["z"] * (MAX_FINDINGS + 1) + [last], schema, enums="warning")
    assert (found[-1].path, found[-1].severity) == ("", severity)
    assert len(found) == MAX_FINDINGS + 1


def test_a_schema_with_an_unknown_word_is_refused_and_not_half_obeyed():
    with pytest.raises(ValueError, match="keyword 'maxLength' is not supported"):
        schema_findings("text", {"type": "string", "maxLength": 3})


def test_a_pattern_ends_where_the_text_ends():
    schema = {"type": "string", "pattern": "^[0-9]+$"}
    assert schema_findings("12", schema) == []
    assert [each.message for each in schema_findings("12\n", schema)] == [
        "must match ^[0-9]+$; it is '12\\n'"
    ]


@pytest.mark.parametrize(
    ("value", "schema"),
    [("", {"pattern": r"\S"}), (" \t", {"pattern": r"\S"}), ([], {"minItems": 1})],
)
def test_an_empty_value_is_reported_as_empty(value, schema):
    assert schema_findings(value, schema) == [Finding("", "must not be empty")]


def test_a_text_has_one_finding_the_first_that_its_schema_names():
    schema = {"type": "string", "format": "branch", "pattern": "^[a-z]+$"}
    formats = {"branch": lambda text: "must be a branch" if " " in text else None}
    assert [each.message for each in schema_findings("a b", schema, formats=formats)] == [
        "must be a branch; it is 'a b'"
    ]
    assert [each.message for each in schema_findings("A", schema, formats=formats)] == [
        "must match ^[a-z]+$; it is 'A'"
    ]


def test_a_format_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="'email' is not supported"):
        schema_findings("a@b", {"format": "email"})


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (5.0, "integer", "must be a whole number; it is a number"),
        (True, "integer", "must be a whole number; it is true or false"),
        ("\ud800", "string", "must be a string; it is half of a surrogate pair"),
    ],
)
def test_an_exact_check_takes_what_every_tool_reads_alike(value, kind, message):
    schema = {"type": kind}
    assert [each.message for each in schema_findings(value, schema, exact=True)] == [message]
    if value is not True:
        assert schema_findings(value, schema) == []


def test_a_number_of_too_many_digits_to_print_is_a_finding():
    (finding,) = schema_findings(10**5_000, {"type": "integer", "maximum": 5})
    assert finding.message == "must be at most 5; it is a number of many digits"


# Schemas that others write

NUMBERS = st.integers(-2, 3) | st.sampled_from([0.5, 1.0, True])
VALUES = st.recursive(
    SCALARS | st.sampled_from([1.0, True]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from([*reader._NOUNS, "text", 5])
FOREIGN = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3),
            "enum": st.lists(VALUES, max_size=3) | VALUES,
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "minItems": NUMBERS,
            "required": st.lists(st.sampled_from(["a", "b", "name", 5]), max_size=3) | SCALARS,
            "title": SCALARS,
            "default": VALUES,
            "$schema": st.sampled_from(
                [
                    "http://json-schema.org/draft-07/schema#",
                    "http://json-schema.org/draft-04/schema",
                ]
            ),
            "pattern": st.just("a"),
            "uniqueItems": st.just(True),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=3),
            "items": inner | st.booleans(),
            "type": TYPES,
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        },
    ),
    max_leaves=5,
)


@given(FOREIGN, VALUES)
def test_a_schema_that_is_understood_is_valid_and_judged_as_the_library_does(
    schema: dict, value: object
) -> None:
    if not is_understood(schema):
        return
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    validator.check_schema(schema)
    assert (schema_findings(value, schema) == []) == validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "understood"),
    [
        ({"type": "object", "properties": {"n": {"type": "number", "minimum": 1}}}, True),
        ({"items": {"enum": [True, [1]]}, "minItems": 2, "description": "x"}, True),
        ({"$ref": "#"}, False),
        ({"properties": {"n": {"pattern": "(a+)+$"}}}, False),
        ({"format": "date-time"}, False),
        ({"minimum": True}, False),
        ({"items": [{"type": "string"}]}, False),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, False),
    ],
)
def test_what_is_understood(schema: dict, understood: bool) -> None:
    assert is_understood(schema) is understood


def check_equality() -> None:
    for value, allowed in ((True, [1]), (0, [False]), ([True], [[1]]), ({"a": 1}, [{"a": True}])):
        assert reader.schema_findings(value, {"enum": allowed}), value
    for value, allowed in ((1, [1.0]), ([1.0], [[1]]), ({"a": [True]}, [{"a": [True]}])):
        assert not reader.schema_findings(value, {"enum": allowed}), value


def test_values_are_equal_as_in_json() -> None:
    check_equality()


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [(r"^[$a]+$", "a$", "a$\n"), (r"^\$[^]$]$", r"$b", "$$"), (r"^[\]$]\$$", "$$", "$$\n")],
)
def test_a_dollar_in_a_class_or_escaped_is_a_dollar(pattern: str, good: str, bad: str) -> None:
    schema = {"type": "string", "pattern": pattern}

    assert schema_findings(good, schema) == []
    assert len(schema_findings(bad, schema)) == 1
