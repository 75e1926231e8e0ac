"""What the checks of the group replicas have in common.

The rule: a check says to which replica a request goes, and calls overlap because the server holds them. What
a replica may do by itself is known from the server's record, never from times.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from mcpzip.wire import join_object, split_object
from mcpzip_conformance.check import expect, saw
from mcpzip_conformance.checks.asking import ELICIT, naming
from mcpzip_conformance.client import Fields
from mcpzip_conformance.cluster import Cluster
from mcpzip_conformance.compare_conversation import method_of
from mcpzip_conformance.errors import NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.raw_http import PING, RawHttp, Response
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, server, tool
from mcpzip_conformance.stage import Stage

REPLICAS = ("http", "replicas")
SESSION = "Mcp-Session-Id"

ECHO = server(tools=[tool("echo")])
NAMING = naming()
"""Asks the client for a name."""
_NOTHING_RAN = re.compile(
    r"nothing (?:ran|was (?:run|sent|called|executed))|(?:did|does) not (?:run(?! to )|start|reach)"
    r"|(?:was|were|has been) (?:not|never) (?:run|sent|called|executed)|(?:safe|save) to (?:retry|repeat)",
    re.IGNORECASE,
)


def waiting() -> Server:
    """A server whose tool ``wait`` answers with its word when it is released."""
    return server(tools=[tool("wait", None, text="{word}", fill=True, hold=True), tool("echo")])


def remote(stage: Stage, shop: Server) -> Server:
    """``shop`` on HTTP, where all replicas use one process of it, if the subject's file has an entry for
    such a server."""
    config = stage.subject.config
    return replace(shop, over="http") if config is not None and "http" in config.entries() else shop


def word(value: str) -> bytes:
    """The arguments with this word."""
    return b'{"word":"%s"}' % value.encode()


def times(stage: Stage, name: str, value: str) -> int:
    """How often the server got a call of this tool with this word."""
    calls = stage.record(SHOP).calls(name)
    return sum(
        isinstance(given := call.get("arguments"), dict) and given.get("word") == value for call in calls
    )


async def begun(stage: Stage, player: Player, value: str) -> int:
    """Begin a call of ``wait``, and wait until the server has it. Returns its id."""
    number = player.begin(SHOP, "wait", word(value))
    await saw(
        stage.record(SHOP), lambda seen: times(stage, "wait", value), "The call doesn't reach the server."
    )
    return number


def says_truly(reply: Reply, what: str) -> None:
    """Raises Finding if an error claims that a call which reached its server did not run."""
    claim = _NOTHING_RAN.search(reply.text) if reply.failed else None
    expect(claim is None, f"{what} reached the server, and the error says: {reply.text[:300]}")


async def session_of(http: RawHttp) -> dict[str, str]:
    """The headers of a session. Raises NotPlayableError if the subject has none."""
    headers = await http.session()
    if SESSION not in headers:
        raise NotPlayableError("It has no sessions.")
    return headers


def refused(told: Response) -> bool:
    """Whether a request was refused, by HTTP or by JSON-RPC."""
    return told.status >= 400 or (told.status == 200 and told.reply.error is not None)


async def others_refused(owner: RawHttp, other: RawHttp, headers: Mapping[str, str], where: str) -> None:
    """Raises Finding unless a session is closed to another person, and still the owner's after that."""
    for verb, told in (
        ("ping", await other.post(PING, headers)),
        ("GET", await other.get({"Accept": "text/event-stream", **headers})),
        ("DELETE", await other.delete(headers)),
    ):
        expect(refused(told), f"{where}a {verb} of another person in the session is answered with {told}.")
    told = await owner.post(PING, headers)
    expect(told.reply.result is not None, f"{where}after that its owner's ping is answered with {told}.")


def asks(fields: Fields) -> bool:
    """Whether a message is the server's question."""
    return method_of(fields) == ELICIT


async def parked(player: Player, by: str) -> tuple[bytes, Mapping[str, bytes]]:
    """A call of 2026-07-28 that waits for an answer: its params, and its result. Raises NotPlayableError if
    the subject doesn't ask."""
    params = player.route.call(SHOP, "name", b'{"by":"%s"}' % by.encode())
    reply = await player.request("tools/call", params)
    if reply.fields.get("resultType") != "input_required":
        raise NotPlayableError(f"It doesn't ask a client of 2026-07-28 for a legacy server: {reply.brief}")
    return params, split_object(reply.result or b"{}")


def answered(params: bytes, result: Mapping[str, bytes], answer: bytes) -> bytes:
    """The params of the request that answers what ``result`` asks."""
    questions = split_object(result.get("inputRequests", b"{}"))
    more = {"inputResponses": join_object(dict.fromkeys(questions, answer))}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    return join_object(split_object(params) | more)


async def serves(cluster: Cluster, player: Player, number: int, n: int) -> None:
    """Raises Finding unless a call of this client is answered at this replica."""
    reply = await cluster.send_to(player, number).call(SHOP, "echo", b'{"n":%d}' % n)
    expect(reply.json == {"n": n}, f"At replica {number + 1} a call is answered with {reply.brief}.")
