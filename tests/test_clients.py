"""The scripted model of `make clients`, and the table that it writes; no client is started."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from bench.clients import known, table, world
from bench.clients.cells import MAIN, PART, Cell, Findings
from bench.clients.known import CLIENTS, Start
from bench.clients.model import Model, Play
from bench.clients.wires import Call, Request, Said

TOOLS = [{"name": "edit"}]
PATHS = {
    "v1/messages": lambda text: {"messages": [{"role": "user", "content": text}]},
    "v1/responses": lambda text: {"input": [{"role": "user", "content": text}]},
    "v1/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "v1beta/models/m:generateContent": lambda text: {
        "contents": [{"role": "user", "parts": [{"text": text}]}]
    },
}


def edits(request: Request) -> Generator[Said, Request, None]:
    request = yield Call(
        "edit", {"path": "a.py"}, text="*** patch" if PART in request.talk else None
    )
    yield f"It said: {request.last}"


@pytest.fixture
def model() -> Iterator[Model]:
    served = Model()
    yield served
    served.close()


def asked(model: Model, path: str, body: dict[str, Any]) -> str:
    request = urllib.request.Request(f"{model.address('run')}/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


class TestModel:
    @pytest.mark.parametrize("path", PATHS)
    def test_plays_a_script_in_each_protocol(self, model: Model, path: str) -> None:
        model.plays["run"] = Play(**{MAIN: edits})
        called = asked(model, path, {**PATHS[path](MAIN), "tools": TOOLS})
        said = asked(model, path, {**PATHS[path](f"{MAIN} done"), "tools": TOOLS})
        assert ("a.py" in called, "It said: " in said, "done" in said) == (True, True, True)

    @pytest.mark.parametrize("path", PATHS)
    def test_streams_the_same(self, model: Model, path: str) -> None:
        model.plays["run"] = Play(**{MAIN: edits})
        bodied = PATHS[path]
        path = path.replace(":generate", ":streamGenerate")
        told = asked(model, path, {**bodied(MAIN), "tools": TOOLS, "stream": True})
        events = [line[6:] for line in told.splitlines() if line.startswith("data: ")]
        assert any("a.py" in json.dumps(json.loads(each)) for each in events if each != "[DONE]")

    def test_a_free_form_call_is_one_of_responses(self, model: Model) -> None:
        model.plays["run"] = Play(**{PART: edits})
        body = json.loads(
            asked(model, "v1/responses", {**PATHS["v1/responses"](PART), "tools": TOOLS})
        )
        assert (body["output"][0]["type"], body["output"][0]["input"]) == (
            "custom_tool_call",
            "*** patch",
        )

    def test_a_subagent_has_a_conversation_of_its_own(self, model: Model) -> None:
        play = model.plays["run"] = Play(**{MAIN: edits, PART: edits})
        for text in (MAIN, PART, f"{MAIN} started {PART}"):
            asked(model, "v1/messages", {**PATHS["v1/messages"](text), "tools": TOOLS})
        assert [len(each.requests) for each in play.conversations] == [2, 1]

    def test_a_request_without_tools_gets_a_title_and_moves_no_script(self, model: Model) -> None:
        play = model.plays["run"] = Play(**{MAIN: edits})
        assert "A title" in asked(model, "v1/messages", PATHS["v1/messages"](MAIN))
        assert (len(play.requests), len(play.aside)) == (0, 1)

    def test_a_script_that_fails_is_told(self, model: Model) -> None:
        def fails(request: Request) -> Generator[Said, Request, None]:
            yield str(1 // 0)

        play = model.plays["run"] = Play(**{MAIN: fails})
        asked(model, "v1/messages", {**PATHS["v1/messages"](MAIN), "tools": TOOLS})
        assert isinstance(play.conversations[0].failure, ZeroDivisionError)


class TestRequest:
    def test_what_came_last_is_what_follows_the_models_words(self) -> None:
        items = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "mine"}]
        request = Request({"messages": [*items, {"role": "user", "content": "new"}]})
        assert request.last.splitlines() == ["user", "new"]

    def test_descriptions_of_tools_are_no_talk(self) -> None:
        request = Request({"messages": [], "tools": [{"name": "edit", "description": "edits"}]})
        assert (request.tools, request.talk, "edits" in request.text) == (["edit"], "", True)

    def test_names_of_nested_tools_have_their_group(self) -> None:
        request = Request({
            "input": [{"tools": [{"name": "hive", "tools": [{"name": "next"}]}]}],
            "tools": [{"functionDeclarations": [{"name": "a"}]}, {"function": {"name": "b"}}],
        })  # fmt: skip
        assert request.tools == ["a", "b", "hive.next"]


def found(**cells: Cell) -> Findings:
    made = Findings()
    made.update(cells)
    return made


class TestTable:
    RAN = (
        table.Ran("One", "1.0", found(edit=Cell(True), mail=Cell(False, "a | b\n<c>"))),
        table.Ran("Two", "2.0", found(edit=Cell(None, "its page says so"), ms=Cell(True, "12"))),
        table.Ran("Three", "3.0", found(), "npm is not on the PATH"),
    )

    def test_has_a_row_for_each_thing_tried_and_a_column_for_each_client(self) -> None:
        lines = table.text(self.RAN, "2026-11-24").splitlines()
        assert lines[0] == "|  | One 1.0 | Two 2.0 |"
        assert lines[2:5] == [
            "| edit | yes | not offered |",
            "| mail | **no** | – |",
            "| ms | – | 12 |",
        ]

    def test_says_what_failed_and_what_was_skipped(self) -> None:
        text = table.text(self.RAN, "2026-11-24")
        assert "- One 1.0, mail: a / b ‹c›\n" in text
        assert "- Two 2.0, edit: its page says so\n" in text
        assert "Three 3.0 was skipped: npm is not on the PATH." in text

    def test_says_once_what_several_rows_have_in_common(self) -> None:
        cells = found(edit=Cell(None, "why"), mail=Cell(None, "why"), name=Cell(False, "other"))
        text = table.text([table.Ran("One", "1.0", cells)], "2026-11-24")
        assert text.endswith("\n- One 1.0, edit; mail: why\n- One 1.0, name: other\n")

    def test_an_excuse_of_the_older_version_is_none_of_the_newest(self) -> None:
        newest, older = known.CODEX.versions
        assert "edit → lease" in known.CODEX.reasons(older)
        assert list(known.CODEX.reasons(newest)) == ["hive absent"]

    def test_a_cell_says_what_is_otherwise_in_the_older_version(self) -> None:
        newest = table.Ran("One", "1.0", found(edit=Cell(True), ms=Cell(True, "12")))
        older = found(edit=Cell(False, "in /tmp/any/where/repo/src"), ms=Cell(True, "13"))
        text = table.text([newest, table.Ran("One", "0.9", older)], "2026-11-24")
        assert "|  | One 1.0 / 0.9 |\n| --- | --- |\n| edit | yes / **no** |\n| ms | 12 |\n" in text
        assert "- One 0.9, edit: in repo/src\n" in text

    def test_every_other_byte_of_the_page_stays(self) -> None:
        page = f"before\n{table.BEGIN}\nold\n{table.END}\nafter"
        once = table.written(page, "new\n")
        assert once == f"before\n{table.BEGIN}\n\nnew\n\n{table.END}\nafter"
        assert table.written(once, "new\n") == once

    def test_a_page_without_its_marks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="both marks"):
            table.written("nothing", "new\n")

    def test_a_row_holds_if_everything_that_is_said_of_it_does(self) -> None:
        found = Findings()
        found.say("name", True, "unsaid")
        found.say("name", False, "shell: none")
        found.say("name", True, "unsaid", "mcp")
        assert found["name"] == Cell(False, "shell: none; mcp")


class TestClients:
    @pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
    def test_each_is_told_where_the_model_is_and_what_to_do(self, client: Any) -> None:
        start = Start("the prompt", "http://127.0.0.1:1/run")
        told = json.dumps([client.command(start), client.env(start)])
        assert ("the prompt" in told, "127.0.0.1:1/run" in told) == (True, True)
        assert client.command(start) != client.command(Start("the prompt", "x", resume=True))

    def test_a_client_gets_nothing_of_the_callers_environment(
        self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET_OF_THE_CALLER", "x")
        monkeypatch.setenv("QUEEN_DROID", "me")
        program = tmp_path / "client"
        program.write_text("#!/bin/sh\nenv\nsleep 60 &\necho $! > child\nkill -STOP $$\n")
        program.chmod(0o755)
        served = Model()
        try:
            made = world.World(tmp_path / "world", CLIENTS[0], program, served)
            run = made.start(Play(**{MAIN: edits}), "the prompt").wait(1)
        finally:
            served.close()
        assert "SECRET_OF_THE_CALLER" not in run.output
        assert "QUEEN_DROID" not in run.output
        assert f"HOME={made.home}" in run.output
        assert run.failure == "did not end"
        child = int((made.repo / "child").read_text())
        with pytest.raises(ProcessLookupError):
            for _ in range(50):
                world.os.kill(child, 0)
                world.time.sleep(0.1)
