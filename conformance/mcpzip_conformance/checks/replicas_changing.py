"""Checks of replicas of which something is replaced while they serve, or is away: their key, their version,
their store.

The rule: how each is done is in the subject's file. Replicas are started again one after another, as an
operator does it, and the others serve meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from mcpzip.wire import LATEST_LEGACY_VERSION, MODERN_VERSION
from mcpzip_conformance.channel.http import HttpChannel
from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, check, expect
from mcpzip_conformance.checks.asking import ELICIT, named
from mcpzip_conformance.checks.clustered import (
    ECHO,
    NAMING,
    REPLICAS,
    answered,
    parked,
    remote,
    says_truly,
    serves,
    times,
    word,
)
from mcpzip_conformance.cluster import Cluster
from mcpzip_conformance.compare_conversation import unanswered
from mcpzip_conformance.declaration import Change
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

SESSIONS = SPEC_2025 + "/basic/transports#session-management"
ROTATED = (*REPLICAS, "key-rotation")
VERSIONS = (*REPLICAS, "versions")
STORE = (*REPLICAS, "store")
ASKED = ("elicitation", "modern")
_ENDS = 3
"""How many times the patience a replica may take to end."""
_SAYING = server(tools=[tool("say", None, text="{word}", fill=True), tool("echo")])


async def _restart(stage: Stage, cluster: Cluster, number: int, change: Change | None) -> None:
    """End a replica as an operator does, and start it with this change."""
    replica = cluster.replicas[number]
    replica.terminate()
    await replica.ends(stage.patience * _ENDS)
    await replica.start(change)


def _over(player: Player) -> bool:
    """Whether its session is answered with 404, so that a client begins a new one."""
    channel = player.client.channel
    return isinstance(channel, HttpChannel) and channel.over


# The key


@check("replicas.key-rotation", MUST, CONTRACT, needs=ROTATED, posix=True)
async def key_rotation(stage: Stage) -> None:
    """While the key is replaced, replica by replica, a session that began at any of them since its last start
    is used at every other."""
    cluster = await stage.replicas(remote(stage, ECHO))
    for step, change in enumerate(_rotation(stage), 1):
        for restarted in cluster.numbers:
            await _restart(stage, cluster, restarted, change)
            cluster.players[restarted] = await stage.client_of(cluster, at=restarted)
            for home, player in enumerate(cluster.players):
                for number in cluster.numbers:
                    try:
                        await serves(cluster, player, number, number)
                    except Finding as finding:
                        raise Finding(
                            f"Change {step} was made at replica {restarted + 1}. In a session that began at "
                            f"replica {home + 1}: {finding.summary}"
                        ) from None


@check("replicas.key-retired", MUST, SESSIONS, needs=ROTATED, posix=True)
async def key_retired(stage: Stage) -> None:
    """When the former key is gone, a session that began with it is used at every replica, or is answered with
    404, which tells a client to begin a new one."""
    cluster = await stage.replicas(remote(stage, ECHO))
    for change in _rotation(stage):
        await asyncio.gather(*(_restart(stage, cluster, number, change) for number in cluster.numbers))
    for player in cluster.players:
        for number in cluster.numbers:
            reply = await cluster.send_to(player, number).call(SHOP, "echo", b'{"n":1}')
            if _over(player):
                break
            expect(
                reply.json == {"n": 1},
                f"At replica {number + 1} a call in a session of the former key is answered with "
                f"{reply.brief}.",
            )


@check("replicas.key-rotation-question", SHOULD, CONTRACT, needs=(*ROTATED, *ASKED), posix=True)
async def key_rotation_question(stage: Stage) -> None:
    """In 2026-07-28, while the key is replaced, the answer to a question reaches its call from a replica that
    has the change and from one that hasn't, and the tool is called once."""
    cluster = await stage.replicas(NAMING)
    player = await stage.client_of(cluster, at=0, version=MODERN_VERSION, answers={ELICIT: unanswered})
    calls = 0
    for step, change in enumerate(_rotation(stage), 1):
        for restarted in cluster.numbers:
            await _restart(stage, cluster, restarted, change)
            other = (restarted + 1) % len(cluster)
            for asked_at, answered_at in ((restarted, other), (other, restarted)):
                calls += 1
                where = f"Change {step} was made at replica {restarted + 1}"
                await _asked_across(stage, cluster, player, asked_at, answered_at, calls, where)


def _rotation(stage: Stage) -> tuple[Change, ...]:
    assert stage.subject.replicas is not None, "the check needs the feature"
    return stage.subject.replicas.key_rotation


async def _asked_across(
    stage: Stage,
    cluster: Cluster,
    player: Player,
    asked_at: int,
    answered_at: int,
    calls: int,
    where: str,
) -> None:
    """Raises Finding unless a call at one replica is answered at another one. calls: how many the server has
    got after that; where: begins the finding."""
    params, asked = await parked(cluster.send_to(player, asked_at), "one")
    cluster.send_to(player, answered_at)
    reply = await player.reply(player.send("tools/call", answered(params, asked, named("Eva"))))
    across = f"{where}: what was asked at replica {asked_at + 1} and answered at replica {answered_at + 1}"
    expect(reply.text == "one: Eva", f"{across} is answered with {reply.brief}.")
    made = len(stage.record(SHOP).calls("name"))
    expect(made == calls, f"{across}: after {calls} calls the server has got {made}.")


# The version


@check("replicas.upgrade", MUST, CONTRACT, needs=VERSIONS, posix=True)
async def upgrade(stage: Stage) -> None:
    """While replicas are replaced by those of another version, one after another, and back, every call is
    answered, in both eras, and none is made twice. A session may end with 404."""
    other = _other_version(stage)
    cluster = await stage.replicas(remote(stage, _SAYING))
    eras = [LATEST_LEGACY_VERSION] + [MODERN_VERSION] * ("modern" not in stage.subject.missing())
    players = [await stage.client_of(cluster, version=version, at=0) for version in eras]
    count = 0
    for change, to in ((other, "the other version"), (None, "the first version")):
        for restarted in cluster.numbers:
            await _restart(stage, cluster, restarted, change)
            for index in range(len(players)):
                for number in cluster.numbers:
                    count += 1
                    where = f"Replica {restarted + 1} has been replaced by {to}. At replica {number + 1}"
                    players[index] = await _said(stage, cluster, players[index], number, f"w{count}", where)
    for n in range(1, count + 1):
        made = times(stage, "say", f"w{n}")
        expect(made == 1, f"The server got a call {made} times.")


async def _said(
    stage: Stage, cluster: Cluster, player: Player, number: int, value: str, where: str
) -> Player:
    """Have a call answered at a replica, in a new session if the old one is over. Returns the client that has
    the session."""
    reply = await cluster.send_to(player, number).call(SHOP, "say", word(value))
    if reply.text != value and _over(player):
        player = await stage.client_of(cluster, at=number)
        reply = await player.call(SHOP, "say", word(value))
    expect(reply.text == value, f"{where} a call of {player.version} is answered with {reply.brief}.")
    return player


@check("replicas.upgrade-session", SHOULD, SESSIONS, needs=VERSIONS)
async def upgrade_session(stage: Stage) -> None:
    """A session that began at a replica of one version is used at those of the other."""
    cluster = await _of_two_versions(stage)
    for home, player in enumerate(cluster.players):
        for number in (*cluster.numbers, home):
            await serves(cluster, player, number, number)


@check("replicas.upgrade-question", SHOULD, CONTRACT, needs=(*VERSIONS, *ASKED))
async def upgrade_question(stage: Stage) -> None:
    """In 2026-07-28 the answer to a question reaches its call at a replica of the other version, and the tool
    is called once."""
    cluster = await _of_two_versions(stage, asks=True)
    player = await stage.client_of(cluster, at=0, version=MODERN_VERSION, answers={ELICIT: unanswered})
    for calls, asked_at in enumerate(cluster.numbers, 1):
        answered_at = (asked_at + 1) % len(cluster)
        await _asked_across(stage, cluster, player, asked_at, answered_at, calls, "Of two versions")


def _other_version(stage: Stage) -> Change:
    assert stage.subject.replicas is not None, "the check needs the feature"
    assert stage.subject.replicas.other_version is not None, "the check needs the feature"
    return stage.subject.replicas.other_version


async def _of_two_versions(stage: Stage, *, asks: bool = False) -> Cluster:
    """Replicas of which every second one has the other version."""
    assert stage.subject.replicas is not None, "the check needs the feature"
    other = _other_version(stage)
    changes = [other if number % 2 else None for number in range(stage.subject.replicas.count)]
    return await stage.replicas(NAMING if asks else remote(stage, ECHO), changes=changes)


# The store


@check("replicas.store-away", MUST, CONTRACT, needs=STORE)
async def store_away(stage: Stage) -> None:
    """While the store refuses connections, every call is answered, with its result or with an error that
    doesn't say that nothing ran if it did; none is made twice, and no replica ends."""
    await _answers_without(stage, lambda: stage.store.refuse(), "refuses connections")


@check("replicas.store-hangs", MUST, CONTRACT, needs=STORE)
async def store_hangs(stage: Stage) -> None:
    """While the store takes connections and answers nothing, every call is answered, with its result or with
    an error that doesn't say that nothing ran if it did; none is made twice, and no replica ends."""

    async def hold() -> None:
        stage.store.hold()

    await _answers_without(stage, hold, "answers nothing")


@check("replicas.store-away-serves", SHOULD, CONTRACT, needs=STORE)
async def store_away_serves(stage: Stage) -> None:
    """While the store refuses connections, calls are answered with their results, in sessions and in
    2026-07-28."""
    cluster = await stage.replicas(remote(stage, ECHO))
    players = await _of_all_eras(stage, cluster)
    await stage.store.refuse()
    for player in players:
        for number in cluster.numbers:
            await serves(cluster, player, number, number)


@check("replicas.store-back", MUST, CONTRACT, needs=STORE)
async def store_back(stage: Stage) -> None:
    """When the store is back, after it has refused connections, every replica serves its clients again, in
    their sessions or, after 404, in new ones."""
    cluster = await stage.replicas(remote(stage, ECHO))
    players = await _of_all_eras(stage, cluster)
    await stage.store.refuse()
    for player in players:
        for number in cluster.numbers:
            await _reply(cluster, player, number, "echo", b'{"n":0}')
    await stage.store.mend()
    for player in players:
        for number in cluster.numbers:
            await _serves_again(stage, cluster, player, number)


async def _of_all_eras(stage: Stage, cluster: Cluster) -> list[Player]:
    """A client with a session of each replica, and one of the modern era, if the subject speaks it."""
    modern = "modern" not in stage.subject.missing()
    return [
        *cluster.players,
        *([await stage.client_of(cluster, at=0, version=MODERN_VERSION)] if modern else []),
    ]


async def _reply(cluster: Cluster, player: Player, number: int, name: str, arguments: bytes) -> Reply | None:
    """The answer at this replica; None if the client has none in time."""
    try:
        return await cluster.send_to(player, number).call(SHOP, name, arguments)
    except NoAnswerError:
        return None


async def _answers_without(stage: Stage, take_away: Callable[[], Awaitable[None]], what: str) -> None:
    cluster = await stage.replicas(remote(stage, _SAYING))
    players = await _of_all_eras(stage, cluster)
    await take_away()
    said: list[tuple[str, Reply]] = []
    for player in players:
        for number in cluster.numbers:
            value = f"w{len(said)}"
            where = f"While the store {what}, a call of {player.version} at replica {number + 1}"
            reply = await _reply(cluster, player, number, "say", word(value))
            if reply is None:
                raise Finding(f"{where} gets no answer.")
            if times(stage, "say", value):
                says_truly(reply, where)
            expect(reply.failed or reply.text == value, f"{where} is answered with {reply.brief}.")
            said.append((value, reply))
            ended = cluster.replicas[number].listening.process.code
            expect(ended is None, f"While the store {what}, replica {number + 1} ends.")
    await stage.store.mend()
    for number in cluster.numbers:
        await _serves_again(stage, cluster, players[number], number)
    for value, reply in said:
        made = times(stage, "say", value)
        expect(made <= 1, f"While the store {what}, a call is made {made} times.")
        expect(made or reply.failed, f"While the store {what}, a call that wasn't made has a result.")


async def _serves_again(stage: Stage, cluster: Cluster, player: Player, number: int) -> None:
    """Wait until a call is answered at this replica, in a new session if the old one is over. Raises
    Finding."""
    last = ""
    with suppress(TimeoutError):
        async with asyncio.timeout(stage.patience * _ENDS):
            while True:
                if _over(player):
                    with suppress(Finding):
                        player = await stage.client_of(cluster, at=number)
                reply = await _reply(cluster, player, number, "echo", b'{"n":1}')
                if reply is not None and reply.json == {"n": 1}:
                    return
                last = "nothing" if reply is None else reply.brief
                await asyncio.sleep(0.05)
    raise Finding(
        f"{stage.patience * _ENDS:g} s after the store came back a call of {player.version} at replica "
        f"{number + 1} is answered with {last}."
    )
