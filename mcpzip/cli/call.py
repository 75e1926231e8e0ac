"""`mcpzip call`: run one tool, as `execute_tool` would."""

import json
import sys

import click
import msgspec
from rich.progress import Progress, TaskID

from mcpzip.cli.opening import err, list_missing, with_proxy
from mcpzip.model.entry import JsonObject
from mcpzip.model.errors import InvalidArgumentsError, UpstreamRpcError
from mcpzip.proxy.proxy import Context, Proxy


@click.command()
@click.argument("name")
@click.argument("arguments", nargs=-1)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds to wait for the answer.")
@click.option("--json", "as_json", is_flag=True, help="The result exactly as its server sent it.")
@with_proxy
async def call(
    proxy: Proxy, name: str, arguments: tuple[str, ...], timeout: float | None, as_json: bool
) -> int:
    """Run a tool. NAME is server__tool; ARGUMENTS are one JSON object, or key=value each.

    A value is read by the tool's schema: numbers, true/false and JSON where it asks for them, else text.
    Exit code 1 when the tool reports an error.
    """
    await list_missing(proxy)
    entry = await proxy.find(name)
    given = json.dumps(read_arguments(arguments, entry.input_schema()), ensure_ascii=False).encode()
    with Progress(console=err, transient=True, disable=not err.is_terminal) as progress:
        bar = progress.add_task(entry.name, total=None)
        context = Context(on_progress=lambda params: _advance(progress, bar, params))
        try:
            result = await proxy.execute(entry.name, given, timeout, context)
        except UpstreamRpcError as error:
            raise _Refused(error) from error
    if as_json:
        click.echo(result)
        return 1 if _Result.read(result).is_error else 0
    return _show(_Result.read(result))


class _Refused(click.ClickException):
    exit_code = 1

    def __init__(self, error: UpstreamRpcError) -> None:
        data = f" {error.data.decode('utf-8', 'replace')}" if error.data else ""
        super().__init__(f"{error.server} answered with JSON-RPC error {error.code}: {error.message}{data}")


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
        """What is to be shown of a result; one in no known form is shown as the JSON it is."""
        try:
            return msgspec.json.decode(result, type=_Result)
        except msgspec.DecodeError:
            return _Result([_Content("text", result.decode("utf-8", "replace"))])


def _advance(progress: Progress, bar: TaskID, params: bytes) -> None:
    try:
        told = msgspec.json.decode(params, type=_ProgressParams)
    except msgspec.DecodeError:
        return
    progress.update(bar, completed=told.progress, total=told.total, description=told.message or None)


def _show(result: _Result) -> int:
    stream = sys.stderr if result.is_error else sys.stdout
    for content in result.content:
        if content.text is not None:
            print(content.text, file=stream)
        else:
            size = f", {len(content.data):,} base64 characters" if content.data else ""
            print(
                f"[{content.type} {content.mime_type or ''}{size}; --json shows it]".replace(" ,", ","),
                file=stream,
            )
    return 1 if result.is_error else 0


def read_arguments(given: tuple[str, ...], schema: JsonObject) -> JsonObject:
    """The arguments meant by the command line, typed by the tool's schema. Raises InvalidArgumentsError."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            value = json.loads(given[0])
        except ValueError as error:
            raise InvalidArgumentsError(
                f"The arguments are not JSON ({error}); quote them for your shell."
            ) from error
        if isinstance(value, dict):
            return value
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    arguments: JsonObject = {}
    for pair in given:
        key, found, text = pair.partition("=")
        if not found or not key:
            raise InvalidArgumentsError(f"{pair!r} is neither key=value nor a JSON object.")
        arguments[key] = _typed(key, text, known.get(key))
    return arguments


def _typed(key: str, text: str, schema: object) -> object:
    wanted = _types(schema)
    if not wanted or "string" in wanted:
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidArgumentsError(
            f"{key}={text!r} is not {' or '.join(sorted(wanted))}, which the tool asks for."
        ) from None


def _types(schema: object) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = schema.get("type")
    types = {found} if isinstance(found, str) else set(found) if isinstance(found, list) else set()
    for key in ("anyOf", "oneOf"):
        for alternative in schema.get(key) or ():
            types |= _types(alternative)
    return {kind for kind in types if isinstance(kind, str)} - {"null"}
