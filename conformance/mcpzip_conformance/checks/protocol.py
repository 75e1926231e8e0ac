"""Checks of the protocol: handshakes, ids, invalid messages."""

import json
import re
from contextlib import suppress
from functools import partial

import msgspec

from mcpzip.wire import (
    INVALID_PARAMS,
    LEGACY_VERSIONS,
    METHOD_NOT_FOUND,
    MODERN_VERSION,
    PARSE_ERROR,
    SERVER_INFO_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    initialize_params,
    join_object,
    quote,
    stamp_request,
)
from mcpzip_conformance.check import (
    JSON_RPC,
    MAY,
    MUST,
    SHOULD,
    SPEC_2024,
    SPEC_2025,
    SPEC_2026,
    check,
    expect,
)
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player, name_of
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

ECHO = server(tools=[tool("echo")])
LIFECYCLE = SPEC_2025 + "/basic/lifecycle"
STDIO = SPEC_2025 + "/basic/transports#stdio"
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KNOWN = (*LEGACY_VERSIONS, MODERN_VERSION)
_INFO = b'{"name":"conformance","version":"1"}'


async def _conversation(stage: Stage, version: str) -> None:
    """A handshake, a listing and a call in ``version``."""
    player = await stage.through(ECHO, version=version)
    agreed = player.opening.fields.get("protocolVersion")
    other = ", another version, as a server may" if agreed in _KNOWN else ""
    expect(agreed == version, f"Asked for {version}, it answers in {agreed!r}{other}.")
    _well_formed(player.opening)
    expect(await player.list_tools(), f"In {version} it lists no tools.")
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"In {version} a call is answered with {reply.text!r}.")


def _well_formed(opening: Reply) -> None:
    info = opening.fields.get("serverInfo")
    named = (
        isinstance(info, dict) and isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
    )
    expect(named, "The answer to initialize has no serverInfo with name and version.")
    expect(
        isinstance(opening.fields.get("capabilities"), dict), "The answer to initialize has no capabilities."
    )


@check("protocol.version-2024-11-05", SHOULD, SPEC_2024 + "/basic/lifecycle#version-negotiation")
async def version_2024_11_05(stage: Stage) -> None:
    """A client of 2024-11-05 is answered in its version, and can list and call."""
    await _conversation(stage, LEGACY_VERSIONS[0])


@check("protocol.version-2025-03-26", SHOULD, LIFECYCLE + "#version-negotiation")
async def version_2025_03_26(stage: Stage) -> None:
    """A client of 2025-03-26 is answered in its version, and can list and call."""
    await _conversation(stage, LEGACY_VERSIONS[1])


@check("protocol.version-2025-06-18", SHOULD, LIFECYCLE + "#version-negotiation")
async def version_2025_06_18(stage: Stage) -> None:
    """A client of 2025-06-18 is answered in its version, and can list and call."""
    await _conversation(stage, LEGACY_VERSIONS[2])


@check("protocol.version-2025-11-25", SHOULD, LIFECYCLE + "#version-negotiation")
async def version_2025_11_25(stage: Stage) -> None:
    """A client of 2025-11-25 is answered in its version, and can list and call."""
    await _conversation(stage, LEGACY_VERSIONS[3])


@check("protocol.version-2026-07-28", MUST, SPEC_2026 + "/basic/versioning", needs=("modern",))
async def version_2026_07_28(stage: Stage) -> None:
    """A client of 2026-07-28 opens with no handshake: ``server/discover`` names the version, a listing
    carries ``ttlMs`` and ``cacheScope``, and every result ``resultType``."""
    player = await stage.through(ECHO, version=MODERN_VERSION)
    versions = player.opening.fields.get("supportedVersions")
    expect(isinstance(versions, list) and MODERN_VERSION in versions, f"server/discover names {versions!r}.")
    listed = await player.request("tools/list")
    called = await player.client.reply(player.begin(SHOP, "echo", b'{"n":1}'))  # with the subject's additions
    expect(not called.failed, f"A call is answered with {called.text!r}.")
    for what, reply in (("server/discover", player.opening), ("tools/list", listed), ("tools/call", called)):
        expect(reply.fields.get("resultType") == "complete", f"The result of {what} has no resultType.")
    for key in ("ttlMs", "cacheScope"):
        expect(key in listed.fields, f"The result of tools/list has no {key}.")


@check("protocol.server-info-modern", SHOULD, SPEC_2026 + "/basic", needs=("modern",))
async def server_info_modern(stage: Stage) -> None:
    """In 2026-07-28 every result has ``serverInfo`` in its ``_meta``."""
    player = await stage.through(ECHO, version=MODERN_VERSION)
    listed = await player.request("tools/list")
    called = await player.client.reply(player.begin(SHOP, "echo", b'{"n":1}'))
    for what, reply in (("server/discover", player.opening), ("tools/list", listed), ("tools/call", called)):
        meta = reply.fields.get("_meta")
        expect(
            reply.result is None or (isinstance(meta, dict) and SERVER_INFO_KEY in meta),
            f"The result of {what} doesn't say who answers.",
        )


@check("protocol.first-request-modern", MUST, SPEC_2026 + "/basic/versioning", needs=("modern",))
async def first_request_modern(stage: Stage) -> None:
    """A client of 2026-07-28 needs no `server/discover`: its first request can be any."""
    player = await stage.started(ECHO, version=MODERN_VERSION)
    reply = await player.request("tools/list")
    expect(isinstance(reply.fields.get("tools"), list), f"tools/list was answered with {reply.text!r}.")


@check("protocol.unknown-version", MUST, LIFECYCLE + "#version-negotiation")
async def unknown_version(stage: Stage) -> None:
    """``initialize`` with an unknown version is answered with a version that the server speaks, or with an
    error."""
    player = await stage.started(ECHO)
    reply = await player.request("initialize", initialize_params("1999-12-31", _INFO, b"{}"))
    agreed = reply.fields.get("protocolVersion")
    another = isinstance(agreed, str) and _VERSION.fullmatch(agreed) and agreed != "1999-12-31"
    expect(reply.error or another, f"Asked for 1999-12-31, it answers in {agreed!r}.")


@check("protocol.unknown-version-modern", MUST, SPEC_2026 + "/basic/versioning", needs=("modern",))
async def unknown_version_modern(stage: Stage) -> None:
    """A request with an unknown version is answered with error -32022, whose data list the supported ones."""
    player = await stage.started(ECHO)
    params = stamp_request(None, "2099-01-01", _INFO, b"{}")
    reply = await player.client.request("tools/list", params)
    expect(reply.code == UNSUPPORTED_PROTOCOL_VERSION, f"It answers with {reply.code!r}: {reply.text}")
    data = msgspec.json.decode(reply.error or b"{}").get("data")
    known = data.get("supported") if isinstance(data, dict) else None
    expect(isinstance(known, list) and MODERN_VERSION in known, f"data.supported is {known!r}.")


@check("protocol.unknown-method", MUST, JSON_RPC + "#error_object")
async def unknown_method(stage: Stage) -> None:
    """A request for a method that doesn't exist is answered with error -32601."""
    player = await stage.through(ECHO)
    reply = await player.request("conformance/no-such-method", b"{}")
    expect(reply.code == METHOD_NOT_FOUND, f"It answers with {_told(reply)}.")


@check("protocol.unknown-tool", MUST, SPEC_2025 + "/server/tools#error-handling")
async def unknown_tool(stage: Stage) -> None:
    """A call of a tool that doesn't exist is answered with an error, or a result with `isError`."""
    player = await stage.through(ECHO)
    for name in ("no_such_tool", ""):
        reply = await player.call(SHOP, name)
        expect(reply.failed, f"A call of {name!r} is answered with {_told(reply)}.")


@check("protocol.call-without-name", SHOULD, SPEC_2025 + "/server/tools#error-handling")
async def call_without_name(stage: Stage) -> None:
    """A ``tools/call`` without a name is answered with error -32602."""
    player = await stage.through(ECHO)
    reply = await player.request("tools/call", b'{"arguments":{}}')
    expect(reply.code == INVALID_PARAMS, f"It answers with {_told(reply)}.")


@check("protocol.ping", MUST, SPEC_2025 + "/basic/utilities/ping")
async def ping(stage: Stage) -> None:
    """A ``ping`` is answered with an empty result."""
    player = await stage.through(ECHO)
    reply = await player.request("ping")
    said = reply.fields.keys() - {"_meta", "resultType"}
    expect(reply.result is not None and not said, f"It answers with {_told(reply)}.")


_IDS: tuple[str | int, ...] = (0, -1, 2**53 - 1, "", "70007", 70007, "a b", "é☃𝄞", '"quoted"', "x" * 500)
"""None of them is one that the client used before: it may not be used again."""


@check("protocol.ids", MUST, JSON_RPC + "#request_object")
async def ids(stage: Stage) -> None:
    """An answer has the id of its request unchanged, string or number: empty, long, negative, Unicode,
    "70007" and then 70007."""
    player = await stage.through(ECHO)
    for id in _IDS:
        await _come_back(player, id)


@check("protocol.ids-at-a-time", SHOULD, JSON_RPC + "#request_object")
async def ids_at_a_time(stage: Stage) -> None:
    """Answers have the ids of their requests unchanged, also when all requests are open at the same time."""
    player = await stage.through(ECHO)
    await _come_back(player, *(id for id in _IDS if id != "70007"))


@check("protocol.ids-alike", MAY, JSON_RPC + "#request_object", needs=("stdio",))
async def ids_alike(stage: Stage) -> None:
    """70007 and "70007" are different ids, also when both requests are open at the same time."""
    player = await stage.through(ECHO)
    await _come_back(player, 70007, "70007", 0, "0")


async def _come_back(player: Player, *sent: str | int) -> None:
    """Concurrent requests with these ids are all answered with their ids."""
    before = len(player.client.messages())
    for id in sent:
        player.client.write(_line(id, "tools/list"))
    for id in sent:
        try:
            answer = await player.client.wait_for(partial(_answers, id), before)
        except NoAnswerError:
            raise Finding(f"The request with id {id!r} got no answer with this id.") from None
        expect("result" in answer, f"The request with id {id!r} got an error.")


@check("protocol.id-null", SHOULD, SPEC_2025 + "/basic#requests")
async def id_null(stage: Stage) -> None:
    """A request whose id is null, an array or an object breaks nothing: the next request is answered."""
    await _survives(
        stage, *(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id for id in (b"null", b"[1]", b"{}"))
    )


@check("protocol.malformed-line", MUST, JSON_RPC + "#error_object")
async def malformed_line(stage: Stage) -> None:
    """A line (over HTTP a body) that isn't JSON, or isn't a message, breaks nothing: the next request is
    answered."""
    await _survives(stage, b'{"jsonrpc":"2.0","id":1,', b"hello", b"42", b'"text"', b"{}", b'{"id":5}')


@check("protocol.malformed-utf8", SHOULD, JSON_RPC + "#error_object")
async def malformed_utf8(stage: Stage) -> None:
    """A line (over HTTP a body) that isn't UTF-8 breaks nothing: the next request is answered."""
    await _survives(stage, b"\xff\xfe")


@check("protocol.malformed-line-answered", SHOULD, JSON_RPC + "#error_object", needs=("stdio",))
async def malformed_line_answered(stage: Stage) -> None:
    """A line that isn't JSON is answered with error -32700 and the id null."""
    player = await stage.through(ECHO)
    player.client.write(b'{"jsonrpc":"2.0","id":1,')
    for method in ("ping", "tools/list"):  # all messages before their answers have arrived by then
        await player.request(method)
    answers = [it for it in player.client.messages() if it.get("id") == b"null" and "error" in it]
    expect(answers, "The requests behind it are answered, and it is not.")
    code = msgspec.json.decode(answers[0]["error"]).get("code")
    expect(code == PARSE_ERROR, f"It answers with {code!r}.")


@check("protocol.batch", SHOULD, SPEC_2025 + "/changelog")
async def batch(stage: Stage) -> None:
    """A batch, which no version since 2025-06-18 has, breaks nothing: the next request is answered."""
    await _survives(stage, b'[{"jsonrpc":"2.0","id":90,"method":"ping"}]', b"[]")


@check("protocol.notification-unanswered", MUST, JSON_RPC + "#notification")
async def notification_unanswered(stage: Stage) -> None:
    """A notification is never answered, not even an unknown one."""
    player = await stage.through(ECHO)
    before = len(player.client.messages())
    player.client.notify("notifications/conformance-unknown", b'{"n":1}')
    player.client.notify("tools/list")
    number = player.send("tools/list")
    await player.reply(number)
    fresh = [fields for fields in player.client.messages()[before:] if "method" not in fields]
    strays = [fields for fields in fresh if fields.get("id") not in _spelt(number)]
    expect(not strays, f"{len(strays)} answers came to notifications.")


@check("protocol.stdout-is-messages", MUST, STDIO, needs=("stdio",))
async def stdout_is_messages(stage: Stage) -> None:
    """Stdout has only messages, whatever the servers write on theirs."""
    loud = server(
        tools=[tool("echo"), tool("fail", text="no", isError=True)],
        faults=[{"kind": "stderr", "count": 20}],
    )
    player = await stage.through(loud)
    with suppress(Finding):  # how they are answered is another check's requirement
        await player.list_tools()
        for name in ("echo", "fail", "no_such_tool"):
            await player.call(SHOP, name)
    await player.client.end()
    junk = [line.decode("utf-8", "backslashreplace")[:80] for line in player.client.junk]
    expect(not junk, f"This stands there too: {junk[:1]}")


@check("protocol.listing-stable", SHOULD, SPEC_2026 + "/server/tools#capabilities")
async def listing_stable(stage: Stage) -> None:
    """``tools/list`` is the same before and after a call: a call has no side effect on it."""
    player = await stage.through(ECHO)
    before = await player.list_tools()
    await player.call(SHOP, "echo")
    expect(await player.list_tools() == before, "After a call it says something else.")


@check("protocol.paging", MUST, SPEC_2025 + "/server/utilities/pagination")
async def paging(stage: Stage) -> None:
    """Every page of a server's listing is followed: the tool on the last page is shown, and can be called."""
    many = server(tools=[tool(f"tool_{number}") for number in range(7)], page_size=2)
    player = await stage.through(many)
    await player.ready([(SHOP, "tool_6")])
    if not player.route.meta and not stage.subject.tools.hidden:
        shown = [name_of(raw) for raw in await player.list_tools()]
        expect(player.route.shown(SHOP, "tool_6") in shown, f"tools/list shows {shown}.")
    reply = await player.call(SHOP, "tool_6", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call of the last tool is answered with {_told(reply)}.")


@check("protocol.paging-empty-cursor", SHOULD, SPEC_2025 + "/server/utilities/pagination")
async def paging_empty_cursor(stage: Stage) -> None:
    """A cursor that is the empty string is valid: its page is followed."""
    many = server(tools=[tool("first"), tool("last")], page_size=1, faults=["empty-cursor"])
    player = await stage.through(many)
    await player.ready([(SHOP, "last")])
    reply = await player.call(SHOP, "last", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call of the tool behind it is answered with {_told(reply)}.")


@check("protocol.answers-once", MUST, JSON_RPC + "#response_object")
async def answers_once(stage: Stage) -> None:
    """Every request gets exactly one answer."""
    await _one_answer_each(stage, ECHO)


@check("protocol.answers-once-for-two", SHOULD, JSON_RPC + "#response_object", needs=("owns-servers",))
async def answers_once_for_two(stage: Stage) -> None:
    """Every request gets exactly one answer, also when a server sends two."""
    await _one_answer_each(stage, server(tools=[tool("echo")], faults=["duplicate"]))


async def _one_answer_each(stage: Stage, shop: Server) -> None:
    player = await stage.through(shop)
    numbers = [player.begin(SHOP, "echo", b'{"n":%d}' % n) for n in range(5)]
    for number in numbers:
        await player.reply(number)
    await player.request("tools/list")  # a second answer has arrived by then
    for number in numbers:
        answers = [it for it in player.client.messages() if it.get("id") in _spelt(number)]
        expect(len(answers) == 1, f"Request {number} got {len(answers)} answers.")


@check("protocol.request-before-initialize", SHOULD, LIFECYCLE + "#initialization")
async def request_before_initialize(stage: Stage) -> None:
    """A request before ``initialize`` breaks nothing: the handshake works after it."""
    player = await stage.started(ECHO)
    number = player.client.send("ping")
    await player.open()
    await player.reply(number)
    await player.ready([(SHOP, "echo")])
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    expect(reply.json == {"n": 1}, f"A call is then answered with {_told(reply)}.")


async def _survives(stage: Stage, *lines: bytes) -> None:
    """A call works after each of ``lines``."""
    player = await stage.through(ECHO)
    for line in lines:
        player.client.write(line)
        reply = await player.call(SHOP, "echo", b'{"n":1}')
        expect(reply.json == {"n": 1}, f"After {line[:60]!r} a call is answered with {_told(reply)}.")


def _answers(id: str | int, fields: dict[str, bytes]) -> bool:
    if "method" in fields or "id" not in fields:
        return False
    value = json.loads(fields["id"])
    return type(value) is type(id) and value == id


def _spelt(number: int) -> tuple[bytes, bytes]:
    """An id as it should come back, or as a string: that its type is unchanged is tested by another check."""
    return b"%d" % number, b'"%d"' % number


def _line(id: str | int, method: str) -> bytes:
    number = quote(id) if isinstance(id, str) else b"%d" % id
    return join_object({"jsonrpc": quote("2.0"), "id": number, "method": quote(method)})


def _told(reply: Reply) -> str:
    if reply.result is None:
        return f"error {reply.code!r}: {reply.text}"
    return f"the result {reply.result[:200].decode('utf-8', 'replace')}"
