"""Checks of a subject of several processes, to any of which each request may go: sessions, calls that ask,
lists.

The rule: no affinity, and no balancer that knows MCP. How replicas share what they share is their affair.
"""

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing

from mcpzip.wire import MODERN_VERSION, join_object, quote, split_object
from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, SPEC_2026, check, expect, saw
from mcpzip_conformance.checks.asking import ELICIT, named
from mcpzip_conformance.checks.clustered import (
    ECHO,
    NAMING,
    REPLICAS,
    SESSION,
    answered,
    asks,
    begun,
    others_refused,
    parked,
    refused,
    remote,
    serves,
    session_of,
    waiting,
)
from mcpzip_conformance.client import Fields
from mcpzip_conformance.compare_conversation import method_of, unanswered
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.issuer import PEOPLE
from mcpzip_conformance.player import Player
from mcpzip_conformance.raw_http import PING, RawHttp, Response
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

SESSIONS = SPEC_2025 + "/basic/transports#session-management"
HIJACKING = SPEC_2025 + "/basic/security_best_practices#session-hijacking"
STATELESS = SPEC_2026 + "/basic/versioning"
STATE = SPEC_2026 + "/basic/patterns/mrtr"
CHANGED = SPEC_2025 + "/server/tools#list-changed-notification"
ASKED = ("elicitation",)
_PAGES = 100
_LISTS = {"tools": "name", "resources": "uri", "prompts": "name"}
"""Each list, and the member by which its items are known."""


@check("replicas.session", MUST, CONTRACT, needs=REPLICAS)
async def session(stage: Stage) -> None:
    """A session that began at one replica is used at every other: each request in it may go to any."""
    cluster = await stage.replicas(remote(stage, ECHO))
    for home, player in enumerate(cluster.players):
        for number in (*cluster.numbers, home):
            await serves(cluster, player, number, number)


@check("replicas.modern", MUST, STATELESS, needs=(*REPLICAS, "modern"))
async def modern(stage: Stage) -> None:
    """In 2026-07-28 each request may go to any replica, also a client's first one, which needs no
    `server/discover`."""
    cluster = await stage.replicas(remote(stage, ECHO))
    for number in cluster.numbers:
        player = await stage.client_of(cluster, at=number, version=MODERN_VERSION, opened=False)
        for other in (number, *cluster.numbers):
            await serves(cluster, player, other, other)


# Session ids


@check("replicas.forged-session", MUST, HIJACKING, needs=REPLICAS)
async def forged_session(stage: Stage) -> None:
    """An invented, a shortened and a changed session id are refused by every replica."""
    async with aclosing(_answers_to_forged(stage)) as answers:
        async for where, told in answers:
            expect(refused(told), f"{where} is answered with {told}.")


@check("replicas.forged-session-unknown", SHOULD, SESSIONS, needs=REPLICAS)
async def forged_session_unknown(stage: Stage) -> None:
    """A session id that no replica made is answered with 404 by every replica, which tells a client to begin
    a new session."""
    async with aclosing(_answers_to_forged(stage)) as answers:
        async for where, told in answers:
            expect(told.status == 404, f"{where} is answered with {told}.")


async def _answers_to_forged(stage: Stage) -> AsyncGenerator[tuple[str, Response], None]:
    """What each replica answers to each session id that none has made, with a name for where and which."""
    cluster = await stage.replicas(remote(stage, ECHO))
    async with RawHttp(stage, cluster.players[0]) as http:
        headers = await session_of(http)
        for number in cluster.numbers:
            cluster.send_to(cluster.players[0], number)
            for how, id in _forged(headers[SESSION]):
                told = await http.post(PING, {**headers, SESSION: id})
                yield f"At replica {number + 1} {how} session id", told


def _forged(id: str) -> list[tuple[str, str]]:
    """Ids that are none, and how each was made of ``id``."""
    middle = len(id) // 2
    other = "A" if id[middle] != "A" else "B"
    return [
        ("an invented", secrets.token_hex(len(id))[: len(id)]),
        ("a shortened", id[:middle]),
        ("a changed", id[:middle] + other + id[middle + 1 :]),
    ]


@check("replicas.session-of-another-person", MUST, HIJACKING, needs=(*REPLICAS, "people"))
async def session_of_another_person(stage: Stage) -> None:
    """The session of one person is closed to another one at every replica: to requests, to its stream, and to
    its end."""
    cluster = await stage.replicas(remote(stage, ECHO))
    player = cluster.players[0]
    async with RawHttp(stage, player) as http, RawHttp(stage, player, stage.credentials(PEOPLE[1])) as other:
        headers = await session_of(http)
        for number in cluster.numbers:
            cluster.send_to(player, number)
            await others_refused(http, other, headers, f"At replica {number + 1} ")


@check("replicas.session-ended", MUST, SESSIONS, needs=REPLICAS)
async def session_ended(stage: Stage) -> None:
    """A session that was ended at any replica (DELETE) is gone at all: 404; or the DELETE is answered with
    405."""
    cluster = await stage.replicas(remote(stage, ECHO))
    player = cluster.players[0]
    async with RawHttp(stage, player) as http:
        for ending in cluster.numbers:
            cluster.send_to(player, 0)
            headers = await session_of(http)
            cluster.send_to(player, ending)
            told = await http.delete(headers)
            if told.status == 405:
                continue
            expect(200 <= told.status < 300, f"A DELETE at replica {ending + 1} is answered with {told}.")
            for number in cluster.numbers:
                cluster.send_to(player, number)
                told = await http.post(PING, headers)
                expect(
                    told.status == 404,
                    f"The session was ended at replica {ending + 1}. At replica {number + 1} a ping in it is "
                    f"answered with {told}.",
                )


# Calls that ask, and their end


@check("replicas.question", MUST, CONTRACT, needs=(*REPLICAS, *ASKED))
async def question(stage: Stage) -> None:
    """The answer to a server's question reaches its call, whichever replica the call and the answer came to;
    and the tool was called once."""
    cluster = await stage.replicas(NAMING, answers={ELICIT: unanswered})
    player = cluster.players[0]
    for count, asked_at in enumerate(cluster.numbers, 1):
        answered_at = (asked_at + 1) % len(cluster)
        since = len(player.client.messages())
        number = cluster.send_to(player, asked_at).begin(SHOP, "name", b'{"by":"one"}')
        fields = await player.client.wait_for(asks, since)
        cluster.send_to(player, answered_at).client.answer(fields, named("Eva"))
        try:
            reply = await player.reply(number)
        except NoAnswerError:
            raise Finding(
                f"The call at replica {asked_at + 1} gets no answer. The user's answer to its question went "
                f"to replica {answered_at + 1}."
            ) from None
        expect(reply.text == "one: Eva", f"The call is answered with {reply.brief}.")
        calls = len(stage.record(SHOP).calls("name"))
        expect(calls == count, f"After {count} calls the server has got {calls}.")


@check("replicas.question-modern", MUST, STATE, needs=(*REPLICAS, *ASKED, "modern"))
async def question_modern(stage: Stage) -> None:
    """In 2026-07-28 the request that answers a question may go to another replica than the call: it reaches
    the call, and the tool is called once, also if the answer comes again."""
    cluster = await stage.replicas(NAMING)
    player = await stage.client_of(cluster, at=0, version=MODERN_VERSION, answers={ELICIT: unanswered})
    for count, asked_at in enumerate(cluster.numbers, 1):
        params, asked = await parked(cluster.send_to(player, asked_at), "one")
        cluster.send_to(player, (asked_at + 1) % len(cluster))
        again = answered(params, asked, named("Eva"))
        reply = await _sent(player, again)
        expect(reply.text == "one: Eva", f"The answer is answered with {reply.brief}.")
        await _sent(player, again)
        calls = len(stage.record(SHOP).calls("name"))
        expect(calls == count, f"After {count} calls the server has got {calls}.")


@check("replicas.question-of-another-person", MUST, STATE, needs=(*REPLICAS, *ASKED, "modern", "people"))
async def question_of_another_person(stage: Stage) -> None:
    """In 2026-07-28 a question that one person was asked is answered by no other person, at any replica, not
    even with its `requestState`."""
    cluster = await stage.replicas(NAMING)
    answers = {ELICIT: unanswered}
    player = await stage.client_of(cluster, at=0, version=MODERN_VERSION, answers=answers)
    stranger = await stage.client_of(
        cluster, at=0, version=MODERN_VERSION, answers=answers, headers=stage.credentials(PEOPLE[1])
    )
    params, asked = await parked(player, "one")
    for number in cluster.numbers:
        reply = await _sent(cluster.send_to(stranger, number), answered(params, asked, named("Mallory")))
        took = not reply.failed and "Mallory" in reply.text
        expect(not took, f"At replica {number + 1} another person's answer is answered with {reply.brief}.")
    reply = await _sent(player, answered(params, asked, named("Eva")))
    expect(reply.text == "one: Eva", f"After that the person's own answer is answered with {reply.brief}.")


async def _sent(player: Player, params: bytes) -> Reply:
    """The answer to this call, without answering what it asks."""
    return await player.reply(player.send("tools/call", params))


@check("replicas.cancel", SHOULD, CONTRACT, needs=(*REPLICAS, "cancellation"))
async def cancel(stage: Stage) -> None:
    """A cancellation that comes to another replica than its call reaches the server."""
    cluster = await stage.replicas(waiting())
    player = cluster.players[0]
    for count, called_at in enumerate(cluster.numbers, 1):
        number = await begun(stage, cluster.send_to(player, called_at), f"w{count}")
        cluster.send_to(player, (called_at + 1) % len(cluster)).client.cancel(number)
        await saw(
            stage.record(SHOP),
            lambda seen, count=count: len(seen.events("cancelled")) >= count,  # type: ignore[misc]
            f"The call at replica {called_at + 1} was cancelled at another one, and the server wasn't told.",
        )


# Lists


@check("replicas.lists", MUST, CONTRACT, needs=REPLICAS)
async def lists(stage: Stage) -> None:
    """All replicas list the same: tools, resources and prompts; also if each page is asked of another
    replica."""
    for kind, listed in (await _lists(stage)).items():
        first, *others = map(sorted, listed)
        expect(all(other == first for other in others), f"Replicas list different {kind}: {_apart(listed)}.")


@check("replicas.list-order", SHOULD, SPEC_2026 + "/server/tools#listing-tools", needs=REPLICAS)
async def list_order(stage: Stage) -> None:
    """All replicas list their tools, resources and prompts in the same order, so that a prompt cache
    lasts."""
    for kind, listed in (await _lists(stage)).items():
        if len({*map(frozenset, listed)}) == 1:  # otherwise it is another check's finding
            expect(all(other == listed[0] for other in listed), f"The order of {kind} differs: {listed}.")


async def _lists(stage: Stage) -> dict[str, list[list[str]]]:
    """Of each kind what each replica lists, and then what all of them do, a page each; in their order."""
    servers = [
        server(name, tools=[tool(f"{name}_{n}") for n in range(3)], resources=_notes(name), page_size=2)
        for name in ("cherry", "apple", "banana")
    ]
    single = "several-servers" in stage.subject.missing()
    servers = [remote(stage, one) for one in servers[: 1 if single else None]]
    cluster = await stage.replicas(*servers)
    every = await stage.client_of(cluster)
    for number in cluster.numbers:
        await cluster.send_to(every, number).ready([(one.name, f"{one.name}_0") for one in servers])
    cluster.send_to(every, None)
    found: dict[str, list[list[str]]] = {}
    for kind, key in _LISTS.items():
        if not every.offers(kind):
            continue
        found[kind] = [await _names(player, kind, key) for player in (*cluster.players, every)]
    return found


def _notes(name: str) -> list[dict[str, object]]:
    return [{"uri": f"memo://{name}/{n}", "name": f"{name} {n}", "text": "Nothing."} for n in range(3)]


async def _names(player: Player, kind: str, key: str) -> list[str]:
    """The names, or URIs, of all pages of a list."""
    found: list[str] = []
    cursor: bytes | None = None
    for _ in range(_PAGES):
        params = None if cursor is None else join_object({"cursor": cursor})
        reply = await player.request(f"{kind}/list", params)
        items = reply.fields.get(kind)
        expect(isinstance(items, list), f"{kind}/list is answered with {reply.brief}.")
        assert isinstance(items, list)
        found += [str(item.get(key)) for item in items if isinstance(item, dict)]
        cursor = split_object(reply.result or b"{}").get("nextCursor")
        if cursor in (None, b"null"):
            break
    return found


def _apart(listed: list[list[str]]) -> str:
    """What some have and others don't."""
    sets: list[set[str]] = [set(each) for each in listed]
    some = sets[0].union(*sets[1:]) - sets[0].intersection(*sets[1:])
    return ", ".join(sorted(some)) or "some of it twice"


@check("replicas.list-changed", SHOULD, CHANGED, needs=(*REPLICAS, "list-changed"))
async def list_changed(stage: Stage) -> None:
    """When a server that all replicas use has a new tool, clients of every replica are notified, in both
    eras."""
    shop = server(
        over="http",
        era="both",
        tools=[tool("grow", None, text="grown", changes=["tools"]), {**tool("fresh"), "late": True}],
    )
    cluster = await stage.replicas(shop)
    if cluster.players[0].route.meta:
        return  # the tools of servers are in no list that changes
    listening = list(cluster.players)
    if "modern" not in stage.subject.missing():
        for number in cluster.numbers:
            player = await stage.client_of(cluster, at=number, version=MODERN_VERSION)
            wanted = join_object({"toolsListChanged": b"true"})
            player.send("subscriptions/listen", join_object({"notifications": wanted}))
            await player.client.wait_for(
                lambda it: method_of(it) == "notifications/subscriptions/acknowledged"
            )
            listening.append(player)
    for player in listening:
        await player.list_tools()
    await cluster.players[0].call(SHOP, "grow")
    for at, player in enumerate(listening):
        try:
            await player.client.wait_for(_tells_of_tools)
        except NoAnswerError:
            where, era = at % len(cluster) + 1, "2026-07-28" if player.modern else "the legacy era"
            raise Finding(f"A client of {era} at replica {where} is not told.") from None


def _tells_of_tools(fields: Fields) -> bool:
    return fields.get("method") == quote("notifications/tools/list_changed")
