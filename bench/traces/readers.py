"""Reads traces in the formats of three public collections.

    Toolathlon     trajs/*.json            {"messages": […]}, messages as OpenAI's chat completions have them
    MCPMark        **/messages.json        […], items as OpenAI's Responses have them, or messages
    LiveMCPBench   baseline/output/*.json  [{"task_id": …, "messages": […]}], a result as Python writes it

The rule: what a harness put around a result is taken off, so that a result is what the server sent. All three
harnesses show the model JSON (or Python) with the text of the server as an escaped string in it.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.traces.trace import Call, Recorder, Trace

FILE = 64 << 20
"""Bytes of a file."""
FILES = 10_000
MESSAGES = 20_000
"""Messages of a trace, and traces of a file."""
DEPTH = 3
"""Results around a result."""
_TEXT = re.compile(r"""TextContent\(type='text', text=('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")""", re.DOTALL)
_CUT_TEXT = re.compile(r"""TextContent\(type='text', text=(['"])((?:[^\\]|\\.)*+)""", re.DOTALL)
_CUT_JSON = re.compile(
    r'''\{(?:\s*"_?meta":\s*null,)?\s*(?:"content":\s*\[\s*\{\s*)?"type":\s*"text",\s*"text":\s*"'''
    r"""((?:[^"\\\x00-\x1f]|\\(?:u[0-9a-fA-F]{4}|[^u]))*+)([^"]*+)\Z"""
)
"""The same, where a harness has cut the end off: a text that doesn't end, and what was put there instead."""
_CONTENT = re.compile(r"meta=\S+ content=\[")
_KINDS = ("text", "image", "audio", "resource", "resource_link")


class UnreadableTraceError(ValueError):
    """The file is no trace of this format. Its text is a sentence."""


@dataclass(frozen=True)
class Format:
    """name: of the collection. files: where its traces are, as a glob. read: yields the traces of a decoded
    file, named after it; raises ValueError, TypeError, KeyError or AttributeError if it has another form.
    own: how the names of tools begin that the harness itself runs.
    """

    name: str
    files: str
    read: Callable[[Any, str, str], Iterator[Trace]]
    own: str = "\0"


def format_of(folder: Path) -> Format | None:
    """The format of the traces in ``folder``; None if there are none."""
    return next((each for each in FORMATS if next(folder.glob(each.files), None)), None)


def files_of(folder: Path, form: Format) -> list[Path]:
    """The files with traces, in the order of their names. Raises UnreadableTraceError for too many."""
    found = sorted(folder.glob(form.files))
    if len(found) > FILES:
        raise UnreadableTraceError(f"The folder has more than {FILES:,} files.")
    return found


def read_file(file: Path, name: str, form: Format) -> list[Trace]:
    """The traces of ``file``. Raises UnreadableTraceError, OSError."""
    if file.stat().st_size > FILE:
        raise UnreadableTraceError(f"It has more than {FILE >> 20} MiB.")
    try:
        return list(form.read(msgspec.json.decode(file.read_bytes()), name, form.own))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        why = error if isinstance(error, ValueError) else f"a {type(error).__name__}, {error}"
        raise UnreadableTraceError(f"It is no trace of {form.name}: {why}.") from error


# --- the formats ---


def _toolathlon(decoded: Any, name: str, own: str) -> Iterator[Trace]:
    yield _of_messages(decoded["messages"], name, own)


def _mcpmark(decoded: Any, name: str, own: str) -> Iterator[Trace]:
    if not any("type" in item for item in _list(decoded)):
        yield _of_messages(decoded, name, own)
        return
    told = Recorder()
    for item in decoded:
        kind = item.get("type", "message")
        if kind == "function_call":
            told.call(item["call_id"], Call(item["name"], item["arguments"]))
        elif kind == "function_call_output":
            told.result(item["call_id"], result_of(item["output"]))
        elif item.get("role") == "assistant":
            told.words(_words(item["content"]))
        elif kind == "message":
            told.text(_words(item["content"]))
        else:
            raise ValueError(f"an item of type {kind!r:.40}")
    yield told.trace(name)


def _livemcpbench(decoded: Any, name: str, own: str) -> Iterator[Trace]:
    for task in _list(decoded):
        yield _of_messages(task["messages"], f"{name}#{task['task_id']}", own)


FORMATS = (
    Format("Toolathlon", "trajs/*.json", _toolathlon, own="local-"),
    Format("MCPMark", "**/messages.json", _mcpmark),
    Format("LiveMCPBench", "baseline/output/*.json", _livemcpbench),
)


def _of_messages(messages: Any, name: str, own: str) -> Trace:
    """Of messages as chat completions have them."""
    told = Recorder()
    for message in _list(messages):
        role = message["role"]
        if role == "assistant":
            told.words(_words(message["content"]))
            for call in message.get("tool_calls") or ():
                tool, arguments = call["function"]["name"], call["function"]["arguments"]
                told.call(call["id"], Call(tool, arguments, tool.startswith(own)))
        elif role == "tool":
            told.result(message["tool_call_id"], result_of(message["content"]))
        else:
            told.text(_words(message["content"]))
    return told.trace(name)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("it has no list of messages")
    if len(value) > MESSAGES:
        raise ValueError(f"it has more than {MESSAGES:,} messages")
    return value


def _words(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content)


# --- results ---


def result_of(recorded: str) -> bytes:
    """The `CallToolResult` in what a harness recorded: the text itself, a block, a list of blocks, or a
    result, each also inside the text of another.
    """
    result = _unwrapped(recorded, DEPTH)
    return msgspec.json.encode(result or {"content": [{"type": "text", "text": recorded}]})


def _unwrapped(recorded: str, depth: int) -> dict[str, Any] | None:
    result = _as_python(recorded) or _as_json(recorded)
    if result is None or depth == 0:
        return result
    blocks = result["content"]
    # A result inside the only text of another: the outer one is that of a router, or of the harness.
    if len(blocks) == 1 and blocks[0].get("type") == "text":
        if _CUT_JSON.match(blocks[0]["text"]):
            return _unwrapped(blocks[0]["text"], depth - 1)
        inner = _decoded(blocks[0]["text"])
        if isinstance(inner, dict) and "isError" in inner and _are_blocks(inner.get("content")):
            return _unwrapped(blocks[0]["text"], depth - 1)
    return result


def _as_json(recorded: str) -> dict[str, Any] | None:
    if (cut := _CUT_JSON.match(recorded)) is not None:
        return {"content": [{"type": "text", "text": f"{_decoded_string(cut[1])}{cut[2]}"}]}
    value = _decoded(recorded)
    if isinstance(value, dict) and _are_blocks([value]):
        return {"content": [value]}
    if _are_blocks(value):
        return {"content": value}
    if isinstance(value, dict) and _are_blocks(value.get("content")):
        result = {"content": value["content"], "isError": bool(value.get("isError"))}
        if value.get("structuredContent"):
            result["structuredContent"] = value["structuredContent"]
        return result
    return None


def _as_python(recorded: str) -> dict[str, Any] | None:
    """Of the texts in a result as Python's MCP SDK writes it, ``meta=None content=[TextContent(…)] …``."""
    if not _CONTENT.match(recorded):
        return None
    texts = [str(ast.literal_eval(found[1])) for found in _TEXT.finditer(recorded)]
    if not texts and (cut := _CUT_TEXT.search(recorded)) is not None:
        try:
            texts = [str(ast.literal_eval(f"{cut[1]}{cut[2]}{cut[1]}"))]
        except SyntaxError:  # the end is inside an escape
            return None
    if not texts:
        return None
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"content": blocks, "isError": recorded.endswith("isError=True")}


def _are_blocks(value: Any) -> bool:
    """Whether it is a list of content blocks (spec: server/tools), and not empty."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict)
            and each.get("type") in _KINDS
            and (each["type"] != "text" or isinstance(each.get("text"), str))
            for each in value
        )
    )


def _decoded_string(inner: str) -> str:
    """Of the inside of a JSON string."""
    try:
        return str(msgspec.json.decode(f'"{inner}"'))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return inner


def _decoded(text: str) -> Any:
    if text[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
