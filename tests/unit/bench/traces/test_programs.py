"""Programs in place of series: run in mcpzip's sandbox on recorded results."""

import json
from pathlib import Path

import pytest
from helpers.traces import raw, words

from bench.traces import programs as module
from bench.traces.__main__ import main
from bench.traces.program_report import programs_json, programs_page
from bench.traces.programs import ProgramError, calls_of, filled, key_of, programs, replaced, reply_of
from bench.traces.series import Series, series_of
from bench.traces.trace import Call, Recorder
from mcpzip.programs.sandbox import Sandbox

pytest.importorskip("pydantic_monty")

ROWS = [json.dumps({"rows": [{"id": n, "note": "nothing of note " * 200}]}) for n in range(4)]
CODE = "[shop__list(page=page)['rows'][0]['id'] for page in <<*.page>>]"


def series(last: str = "Done.") -> Series:
    """Four pages that are read one after the other, in a trace as of Toolathlon."""
    told = Recorder()
    told.text("Read all pages.")
    for number, rows in enumerate(ROWS):
        told.words("Next.")
        told.call(str(number), Call("shop-list", json.dumps({"page": number})))
        told.result(str(number), raw(rows))
    told.words(last)
    [found] = series_of(told.trace("trajs/m_pages.json"))
    return found


async def reply(code: str) -> str:
    sandbox = Sandbox()
    try:
        return await reply_of(code, series(), sandbox)
    finally:
        await sandbox.close()


def test_the_arguments_are_filled_in() -> None:
    calls: list[tuple[str, dict[str, object]]] = [("a__b", {"path": "x/y", "n": 1}), ("a__b", {"path": "z"})]
    assert filled("f(<<1.path>>, <<0.n>>)", calls) == "f('z', 1)"
    assert filled("<<*.path>> <<*.n>>", calls) == "['x/y', 'z'] [1]"
    assert filled("f(**<<1>>)", calls) == "f(**{'path': 'z'})"
    assert filled("<<0.path|x/(.*)>>", calls) == "'y'"


def test_tools_have_the_names_of_programs() -> None:
    assert calls_of(series())[1] == ("shop__list", {"page": 1})
    assert key_of(series()) == "trajs/m_pages:0"


async def test_a_program_gets_the_recorded_results() -> None:
    found = await reply(filled(CODE, calls_of(series())))
    assert found.startswith("[0, 1, 2, 3]\n4 calls: shop__list ×4")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("shop__list(page=9)", "no such call was recorded"),
        ("shop__list(page=1)", "left 3 calls out"),
        ("shop__list(", "not Python"),
    ],
)
async def test_a_program_that_does_something_else_is_an_error(code: str, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        await reply(code)


def test_a_program_takes_the_place_of_its_calls() -> None:
    found = replaced(series(), "code of six words in all", "a reply", words)
    assert (found.calls, found.code, found.reply) == (4, 6, 2)
    assert (found.direct.requests, found.program.requests, found.retried.requests) == (5, 2, 3)
    assert found.program.input < found.retried.input < found.direct.input / 5
    assert found.kept[10_000].input == found.direct.input


def test_what_is_quoted_and_not_shown_is_read_afterwards() -> None:
    quoted = series("It says: nothing of note nothing of note nothing")
    unread = replaced(series(), "code", "a reply", words).program
    read = replaced(quoted, "code", "a reply", words).program
    shown = replaced(quoted, "code", "nothing of note nothing of note nothing", words).program
    assert (unread.read, read.read, shown.read) == (0, 1, 0)
    assert read.requests == unread.requests + 1


def test_the_command_prints_all_and_names_what_was_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trajs").mkdir()
    messages: list[dict[str, object]] = [{"role": "user", "content": "Read all pages."}]
    for number, rows in enumerate(ROWS):
        call = {
            "id": str(number),
            "function": {"name": "shop-list", "arguments": json.dumps({"page": number})},
        }
        messages.append({"role": "assistant", "content": "Next.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(number), "content": rows})
    messages.append({"role": "assistant", "content": "Done."})
    for name in ("m_pages", "m_more"):
        (tmp_path / "trajs" / f"{name}.json").write_text(json.dumps({"messages": messages}))
    monkeypatch.setattr(module, "programs", lambda: {"trajs/m_pages:0": CODE})
    main([str(tmp_path), "--programs", "--json", str(tmp_path / "out.json")])
    shown = capsys.readouterr().out
    assert "| m_pages:0 | 4 " in shown
    assert "- trajs/m_more:0: there is no program." in shown
    [found] = json.loads((tmp_path / "out.json").read_text())["series"]
    assert found["program"]["requests"] == 2


def test_nothing_is_a_report_too() -> None:
    assert "Programs" in programs_page([], [], "words")
    assert json.loads(programs_json([], [], "words"))["series"] == []


def test_there_are_thirty_programs() -> None:
    assert len(programs()) == 30
