"""`mcpzip call`: run one tool, as `execute_tool` would."""

from collections.abc import Callable

import click
import msgspec

from mcpzip.cli import console
from mcpzip.cli.parameters import examples, tool_names
from mcpzip.cli.proxy_session import find_tool, with_proxy
from mcpzip.model import sanitize
from mcpzip.model.entry import JsonObject
from mcpzip.model.errors import (
    InvalidArgumentsError,
)
from mcpzip.model.limits import SHOWN_LINE
from mcpzip.model.redaction import redact
from mcpzip.proxy.admin_tools import ADMIN_TOOLS
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.proxy import Proxy
from mcpzip.wire import (
    NotAnObject,
    UpstreamRpcError,
    is_json,
    join_object,
    quote,
    split_object,
)


@click.command(
    epilog=examples(
        "mcpzip call time__get_current_time timezone=Europe/Berlin",
        'mcpzip call github__create_issue \'{"repo": "shop", "title": "Checkout fails"}\'',
        ("mcpzip call slack__list_channels --json | jq .content", "for programs"),
    )
)
@click.argument("name", shell_complete=tool_names)
@click.argument("arguments", nargs=-1)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds to wait for the answer.")
@click.option("--json", "as_json", is_flag=True, help="The result exactly as its server sent it.")
@with_proxy
async def call(
    proxy: Proxy, name: str, arguments: tuple[str, ...], timeout: float | None, as_json: bool
) -> int:
    """Run a tool. NAME is server__tool; ARGUMENTS are one JSON object, or key=value each.

    A value's type follows the tool's schema: numbers, true/false and JSON where it asks for them, else text.
    Exit code 1 when the tool reports an error.
    """
    entry = await find_tool(proxy, name)
    given = read_arguments(arguments, entry.input_schema())
    with console.progress_bar(entry.name) as progress:

        def tell(method: str, params: bytes | None) -> None:
            if method == "notifications/progress" and params is not None:
                _update(progress, params)

        exchange = Exchange(Client(), params=b'{"_meta":{"progressToken":1}}', notify=tell)
        try:
            if entry in ADMIN_TOOLS:
                result = await proxy.handlers[entry.tool](None, exchange)
            else:
                result = await proxy.tool_caller.execute(entry, given, timeout, exchange)
        except UpstreamRpcError as error:
            raise _RpcError(error) from error
    if as_json:
        console.raw(result)
        return 1 if _Result.read(result).is_error else 0
    return _show(_Result.read(result))


_DATA_LENGTH = 20 * SHOWN_LINE
"""Bytes of an error's data that are decoded, of which fewer are shown."""


class _RpcError(click.ClickException):
    exit_code = 1

    def __init__(self, error: UpstreamRpcError) -> None:
        response = error.error
        data = f" {response.data[:_DATA_LENGTH].decode('utf-8', 'replace')}" if response.data else ""
        message = f"{error.server} answered with JSON-RPC error {response.code}: {response.message}{data}"
        super().__init__(sanitize.one_line(redact(message), SHOWN_LINE))


class _ProgressParams(msgspec.Struct):
    progress: float
    total: float | None = None
    message: str | None = None


class _Content(msgspec.Struct):
    type: str
    text: str | None = None
    data: str | None = None
    mime_type: str | None = msgspec.field(default=None, name="mimeType")


class _Result(msgspec.Struct):
    content: list[_Content] = []
    is_error: bool = msgspec.field(default=False, name="isError")

    @staticmethod
    def read(result: bytes) -> "_Result":
        """The parts of a result that are shown; a malformed result is shown as its JSON."""
        try:
            return msgspec.json.decode(result, type=_Result)
        except (msgspec.DecodeError, RecursionError):
            failed = _members(result).get("isError") == b"true"
            return _Result([_Content("text", result.decode("utf-8", "replace"))], failed)


def _members(result: bytes) -> dict[str, bytes]:
    try:
        return split_object(result)
    except NotAnObject:
        return {}


def _update(progress: Callable[[float, float | None, str], None], params: bytes) -> None:
    try:
        update = msgspec.json.decode(params, type=_ProgressParams)
    except (msgspec.DecodeError, RecursionError):
        return
    progress(update.progress, update.total, update.message or "")


def _show(result: _Result) -> int:
    for content in result.content:
        if content.text is not None:
            console.answer(content.text, failed=result.is_error)
        else:
            size = f", {len(content.data):,} base64 characters" if content.data else ""
            kind = sanitize.one_line(f"{content.type} {content.mime_type or ''}".rstrip())
            console.answer(f"[{kind}{size}; --json shows it]", failed=result.is_error)
    return 1 if result.is_error else 0


def read_arguments(given: tuple[str, ...], schema: JsonObject) -> bytes:
    """The tool arguments on the command line as JSON text: an object unchanged, or the key=value pairs
    converted by the tool's schema. Raises InvalidArgumentsError.
    """
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        text = given[0].strip().encode("utf-8", "surrogateescape")
        try:
            return join_object(split_object(text))
        except NotAnObject as error:
            raise InvalidArgumentsError(
                f"The arguments are not a JSON object ({error}); quote them for your shell."
            ) from error
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    arguments: dict[str, bytes] = {}
    for pair in given:
        key, found, value = pair.partition("=")
        if not found or not key:
            example = """'{"text": "hello"}'"""
            raise InvalidArgumentsError(
                f"{pair!r} is neither key=value nor a JSON object. Write text=hello, or {example}."
            )
        arguments[key] = _typed(key, value, known.get(key))
    return join_object(arguments)


def _typed(key: str, value: str, schema: object) -> bytes:
    wanted = _types(schema)
    if not wanted or "string" in wanted:
        return quote(value)
    raw = value.strip().encode("utf-8", "surrogateescape")
    if not _is_json(raw):
        raise InvalidArgumentsError(
            f"{key}={value!r} is not {' or '.join(sorted(wanted))}, which the tool asks for."
        )
    return raw


def _is_json(raw: bytes) -> bool:
    try:
        raw.decode()
        return is_json(raw)
    except (UnicodeDecodeError, RecursionError):
        return False


def _types(schema: object) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = schema.get("type")
    types = {kind for kind in (found if isinstance(found, list) else [found]) if isinstance(kind, str)}
    for key in ("anyOf", "oneOf"):
        alternatives = schema.get(key)
        for alternative in alternatives if isinstance(alternatives, list) else ():
            types |= _types(alternative)
    return types - {"null"}
