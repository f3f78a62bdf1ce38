from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queenbee.core import plain_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
ODD = [
    "", " ", "{", "[1,]", '{"a":1}x', "nul", '"\\ud800"', '"a\nb"', "\ufeff{}", "01", "1e999",
    "NaN", "[-Infinity, 1]", '{"a":1,"a":2}', " \t\n\r[1] \t\n\r", "\x0b1", "9" * 5000,
]  # fmt: skip


def said(read, text):
    """Returns what a reader makes of a text: its value, or its error."""
    try:
        return repr(read(text))
    except ValueError as error:
        return type(error).__name__, str(error)


class TestLoads:
    @given(VALUES)
    def test_it_reads_what_json_writes(self, value):
        for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
            assert repr(plain_json.loads(text)) == repr(json.loads(text))

    @given(st.text() | st.sampled_from(ODD))
    def test_it_says_what_json_says_of_any_text(self, text):
        assert said(plain_json.loads, text) == said(json.loads, text)

    @given(st.binary() | st.sampled_from(ODD).map(lambda text: text.encode(errors="replace")))
    @example('{"a": "é"}'.encode("utf-16"))
    @example('{"a": "é"}'.encode("utf-16-le"))
    @example('{"a": "é"}'.encode("utf-32-be"))
    @example('{"a": "é"}'.encode("utf-8-sig"))
    @example('"\ud800"'.encode(errors="surrogatepass"))
    def test_it_says_what_json_says_of_any_bytes(self, data):
        assert said(plain_json.loads, data) == said(json.loads, data)

    def test_an_error_of_a_rule_reaches_the_caller(self):
        def refuse(constant):
            raise ValueError(f"no {constant}")

        assert said(plain_json.reader(parse_constant=refuse), "[NaN]") == ("ValueError", "no NaN")

    def test_deep_nesting_ends_in_the_error_that_json_has(self):
        with pytest.raises(RecursionError):
            plain_json.loads("[" * 100_000)

    def test_what_json_would_refuse_is_refused_where_json_is_not_loaded_yet(self):
        # Where `json` is not loaded, the C module cannot even say what is wrong.
        program = (
            "import sys; from queenbee.core.plain_json import loads\n"
            "assert 'json' not in sys.modules\n"
            "try: loads('[1, }')\n"
            "except ValueError as error: print(type(error).__name__, error)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout == "JSONDecodeError Expecting value: line 1 column 5 (char 4)\n"


class TestDumps:
    @given(VALUES)
    def test_it_writes_what_json_writes(self, value):
        assert plain_json.dumps(value) == json.dumps(value)

    @given(VALUES)
    def test_a_compact_one_writes_what_json_writes_without_spaces_and_escapes(self, value):
        def plain(value):
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

        assert said(plain_json.writer(compact=True), value) == said(plain, value)

    def test_what_json_cannot_express_is_refused_again_and_again(self):
        value = [{"a": object()}]
        for _ in range(2):
            with pytest.raises(TypeError, match="Object of type object is not JSON serializable"):
                plain_json.dumps(value)
        value[0]["a"] = 1
        assert plain_json.dumps(value) == '[{"a": 1}]'

    def test_a_circle_is_refused(self):
        value: list[object] = []
        value.append(value)
        with pytest.raises(ValueError, match="Circular reference"):
            plain_json.dumps(value)

    def test_threads_write_at_the_same_time(self):
        value = {"a": [1, {"b": [2.5, None]}] * 200}
        wanted, got = json.dumps(value), []
        threads = [
            threading.Thread(target=lambda: got.append(plain_json.dumps(value))) for _ in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert got == [wanted] * 8


class TestWithoutTheModuleInC:
    @pytest.fixture
    def bare(self, monkeypatch):
        """The module as another interpreter would load it, which a debug build is treated like."""
        monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
        spec = importlib.util.find_spec(plain_json.__name__)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @pytest.mark.parametrize("text", ['{"a": [1, 2.5, "é"]}', "[NaN", "1 2"])
    def test_json_reads(self, bare, text):
        assert bare.make_scanner is None
        assert said(bare.loads, text) == said(json.loads, text)

    def test_json_writes(self, bare):
        assert bare.dumps({"a": [1, "é", math.inf]}) == '{"a": [1, "\\u00e9", Infinity]}'
        assert bare.writer(compact=True)({"a": [1, "é"]}) == '{"a":[1,"é"]}'

    def test_rules_count(self, bare):
        assert bare.reader(parse_int=str, object_pairs_hook=None)("[1]") == ["1"]
