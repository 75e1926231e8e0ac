"""Reading the traces of three collections: written here, in their forms."""

import json
from pathlib import Path

import pytest

from bench.traces import readers
from bench.traces.readers import UnreadableTraceError, files_of, format_of, read_file, result_of
from bench.traces.trace import Call, Result, Trace, Turn

CALL = {"id": "c1", "function": {"name": "shop-list", "arguments": '{"page": 1}'}}


def block(text: str) -> dict[str, object]:
    return {"type": "text", "text": text, "annotations": None}


def content(text: str) -> bytes:
    return json.dumps({"content": [block(text)]}, separators=(",", ":")).encode()


def read(folder: Path, name: str, value: object) -> list[Trace]:
    """The traces of a file of this name in ``folder``, which is to have the right format."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    form = format_of(folder)
    assert form is not None
    assert files_of(folder, form) == [file]
    return read_file(file, name, form)


def test_messages_of_chat_completions_are_turns(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "How many?"},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps(block("none"))},
        {"role": "assistant", "content": None, "tool_calls": [CALL | {"id": "c2"}]},
        {"role": "tool", "tool_call_id": "c2", "content": "not in JSON"},
    ]
    [trace] = read(tmp_path, "trajs/a.json", {"pass": True, "messages": messages})
    call = Call("shop-list", '{"page": 1}')
    assert trace == Trace(
        "trajs/a.json",
        (
            Turn(("How many?",), "I look.", (call,)),
            Turn((Result(call, content("none")),), "", (call,)),
        ),
        (Result(call, b'{"content":[{"type":"text","text":"not in JSON"}]}'),),
    )


def test_a_tool_of_the_harness_is_known(tmp_path: Path) -> None:
    call = CALL | {"function": {"name": "local-python", "arguments": "{}"}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call, CALL | {"id": "c2"}]}]
    [trace] = read(tmp_path, "trajs/a.json", {"messages": messages})
    assert [each.is_own for each in trace.turns[0].calls] == [True, False]


def test_items_of_responses_are_turns(tmp_path: Path) -> None:
    items = [
        {"role": "user", "content": "How many?"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "list", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "list", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": json.dumps(block("one"))},
        {"type": "function_call_output", "call_id": "c2", "output": json.dumps(block("two"))},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two."}]},
    ]
    [trace] = read(tmp_path, "servers/github/messages.json", items)
    call = Call("list", "{}")
    assert trace.turns == (
        Turn(("How many?",), "I look.", (call, call)),
        Turn((Result(call, content("one")), Result(call, content("two"))), "Two.", ()),
    )


def test_each_task_of_a_file_is_a_trace(tmp_path: Path) -> None:
    tasks = [
        {
            "task_id": name,
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "?"},
                {"role": "assistant", "content": name},
            ],
        }
        for name in ("t1", "t2")
    ]
    traces = read(tmp_path, "baseline/output/m.json", tasks)
    assert [(trace.name.partition("#")[2], trace.turns) for trace in traces] == [
        (name, (Turn(("Be brief.", "?"), name, ()),)) for name in ("t1", "t2")
    ]


def test_a_folder_without_traces_has_no_format(tmp_path: Path) -> None:
    (tmp_path / "trajs").mkdir()
    (tmp_path / "trajs" / "notes.txt").write_text("")
    assert format_of(tmp_path) is None


@pytest.mark.parametrize(
    "value",
    [
        "[" * 100_000,
        '{"messages": "none"}',
        '{"messages": [{"role": "tool", "tool_call_id": "c9", "content": "of no call"}]}',
        '{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": 1}]}]}',
        '{"messages": [7]}',
        "[]",
    ],
)
def test_a_file_of_another_form_is_an_error(tmp_path: Path, value: str) -> None:
    with pytest.raises(UnreadableTraceError, match="no trace of Toolathlon"):
        read(tmp_path, "trajs/a.json", value)


def test_files_and_their_messages_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = {"messages": [{"role": "user", "content": "?"}] * 3}
    assert len(read(tmp_path, "trajs/a.json", messages)) == 1
    monkeypatch.setattr(readers, "MESSAGES", 2)
    with pytest.raises(UnreadableTraceError, match="more than 2 messages"):
        read(tmp_path, "trajs/a.json", messages)
    monkeypatch.setattr(readers, "FILE", 10)
    with pytest.raises(UnreadableTraceError, match="MiB"):
        read(tmp_path, "trajs/a.json", messages)


# --- results ---


def test_a_result_inside_the_text_of_a_block_is_the_result() -> None:
    inner = {"meta": None, "content": [block("rows")], "structuredContent": {"result": 1}, "isError": True}
    assert json.loads(result_of(json.dumps(block(json.dumps(inner))))) == {
        "content": [block("rows")],
        "isError": True,
        "structuredContent": {"result": 1},
    }


def test_a_result_as_python_writes_it_is_read() -> None:
    text = 'It\'s "quoted",\nand has \\n and ü.'
    written = f"meta=None content=[TextContent(type='text', text={text!r}, annotations=None)] isError=True"
    assert json.loads(result_of(written)) == {"content": [{"type": "text", "text": text}], "isError": True}


def test_a_result_inside_a_result_as_python_writes_it_is_read() -> None:
    inner = json.dumps({"content": [block("rows")], "isError": False})
    written = f"meta=None content=[TextContent(type='text', text={inner!r}, annotations=None)] isError=False"
    assert json.loads(result_of(written))["content"] == [block("rows")]


@pytest.mark.parametrize(
    "text", ["", "plain", '{"a": 1}', '[{"type": "row"}]', "[]", '{"content": []}', "[1, 2", '"text"']
)
def test_what_is_no_block_is_a_text(text: str) -> None:
    assert json.loads(result_of(text)) == {"content": [{"type": "text", "text": text}]}


def test_json_of_the_server_stays_its_text() -> None:
    """Data that only looks like a result stays data."""
    data = json.dumps({"content": [{"type": "text", "text": "of a page"}]})
    assert json.loads(result_of(json.dumps(block(data)))) == {"content": [block(data)]}


def test_what_a_harness_cut_is_read_as_far_as_it_goes() -> None:
    text = 'a "row",\nand another – ü'
    note = "\n\n(The output is too long)"
    whole = json.dumps({"type": "text", "text": text + "z" * 100}, ensure_ascii=False)
    cut = whole[: whole.index("zzz") + 3]
    assert json.loads(result_of(cut + " ..." + note))["content"][0]["text"] == f"{text}zzz ...{note}"
    inner = json.dumps({"content": [{"type": "text", "text": text + "z" * 100}], "isError": False}, indent=2)
    written = f"meta=None content=[TextContent(type='text', text={inner!r}, annotations=None)] isError=False"
    cut = written[: written.index("zzz") + 3]
    assert json.loads(result_of(cut))["content"] == [{"type": "text", "text": f"{text}zzz"}]


@pytest.mark.parametrize("end", range(60, 110))
def test_a_cut_inside_an_escape_is_no_error(end: int) -> None:
    inner = json.dumps({"content": [{"type": "text", "text": 'ü"\n' * 30}], "isError": False})
    written = f"meta=None content=[TextContent(type='text', text={inner!r}, annotations=None)] isError=False"
    assert b'"text"' in result_of(written[:end])


def test_a_long_text_takes_no_time_that_grows_faster_than_it() -> None:
    """A block of 100 kB took a minute: its end was looked for from each character."""
    text = 'a "row" and more;\n' * 200_000
    assert json.loads(result_of(json.dumps(block(text)))) == {"content": [block(text)]}
