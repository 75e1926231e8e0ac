"""Checks of replicas that end: killed, told to end, restarted one after another.

The rule: what a call did is known from the server's record. A call may fail when its replica is killed; it is
never made twice, and no error says that nothing ran.
"""

import asyncio
from contextlib import suppress

from mcpzip.wire import LATEST_LEGACY_VERSION, MODERN_VERSION
from mcpzip_conformance.channel.http import BROKE, HttpChannel
from mcpzip_conformance.check import CONTRACT, MUST, SHOULD, SPEC_2025, check, expect
from mcpzip_conformance.checks.clustered import (
    ECHO,
    REPLICAS,
    begun,
    remote,
    says_truly,
    serves,
    times,
    waiting,
    word,
)
from mcpzip_conformance.cluster import Cluster
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, server, tool
from mcpzip_conformance.stage import Stage

SESSIONS = SPEC_2025 + "/basic/transports#session-management"
_AT_EACH = 3
"""Calls of the rolling restart while a replica is away, at least."""


async def _callers(stage: Stage, cluster: Cluster, at: int) -> dict[str, Player]:
    """By their words, clients that call at one replica: with a session from there, with one from another
    replica, and of the modern era, if the subject speaks it."""
    found = {"here": cluster.players[at], "there": cluster.players[(at + 1) % len(cluster)]}
    for player in found.values():
        cluster.send_to(player, at)
    if "modern" not in stage.subject.missing():
        found["modern"] = await stage.client_of(cluster, at=at, version=MODERN_VERSION)
    return found


@check("replicas.killed", MUST, CONTRACT, needs=REPLICAS)
async def killed(stage: Stage) -> None:
    """If the replica that got a call is killed in its middle, the call is made only once, in both eras: no
    other replica makes it again."""
    cluster = await stage.replicas(waiting())
    players = await _callers(stage, cluster, at=0)
    calls = {value: await begun(stage, player, value) for value, player in players.items()}
    await cluster.replicas[0].kill()
    for value, number in calls.items():
        says_truly(await _ended(players[value], number), "The call")
    await _once(stage, cluster, list(calls))


@check("replicas.killed-elsewhere", MUST, CONTRACT, needs=REPLICAS)
async def killed_elsewhere(stage: Stage) -> None:
    """If the replica is killed at which a session began, its call at another one is answered: with its
    result, or with an error that doesn't say that nothing ran; and it is made only once."""
    cluster = await stage.replicas(waiting())
    player = cluster.send_to(cluster.players[0], 1)
    number = await begun(stage, player, "there")
    await cluster.replicas[0].kill()
    stage.release(SHOP, "wait")
    reply = await _ended(player, number)
    says_truly(reply, "The call")
    expect(reply.failed or reply.text == "there", f"The call is answered with {reply.brief}.")
    await _once(stage, cluster, ["there"])


async def _ended(player: Player, number: int) -> Reply:
    """The answer, or the error that stands for a broken connection."""
    try:
        return await player.reply(number)
    except NoAnswerError:
        raise Finding(f"A call of {player.version} gets no answer, and its connection stays open.") from None


async def _once(stage: Stage, cluster: Cluster, words: list[str]) -> None:
    """Raises Finding unless each call was made once, after other calls were answered by the other replica."""
    stage.release(SHOP, "wait")
    client = await stage.client_of(cluster, at=1)
    for n in range(2):
        await serves(cluster, client, 1, n)
    for value in words:
        made = times(stage, "wait", value)
        expect(made == 1, f"The server got one call {made} times.")


@check("replicas.goes-on", MUST, SESSIONS, needs=REPLICAS)
async def goes_on(stage: Stage) -> None:
    """When a replica has died its clients are served by the others: in their session, or, after 404, in a new
    one."""
    cluster, player = await _without_home(stage)
    if await _answers(player) is None:
        channel = player.client.channel
        expect(
            isinstance(channel, HttpChannel) and channel.over,
            "A call in the session gets no 404, and no answer.",
        )
        fresh = await stage.client_of(cluster, at=1)
        await serves(cluster, fresh, 1, 2)


@check("replicas.session-goes-on", SHOULD, SESSIONS, needs=REPLICAS)
async def session_goes_on(stage: Stage) -> None:
    """A session goes on at the other replicas when the one at which it began has died."""
    _, player = await _without_home(stage)
    expect(await _answers(player) is not None, "A call in the session is not answered.")


async def _without_home(stage: Stage) -> tuple[Cluster, Player]:
    cluster = await stage.replicas(remote(stage, ECHO))
    player = cluster.players[0]
    await serves(cluster, player, 0, 1)
    await cluster.replicas[0].kill()
    return cluster, cluster.send_to(player, 1)


async def _answers(player: Player) -> Reply | None:
    """The answer to a call; None if it fails."""
    reply = await player.call(SHOP, "echo", b'{"n":1}')
    return reply if reply.json == {"n": 1} else None


@check("replicas.drain", MUST, CONTRACT, needs=REPLICAS, posix=True)
async def drain(stage: Stage) -> None:
    """On SIGTERM a replica answers the calls under way before it ends, in both eras."""
    cluster = await stage.replicas(waiting())
    players = await _callers(stage, cluster, at=0)
    calls = {value: await begun(stage, player, value) for value, player in players.items()}
    ending = cluster.replicas[0]
    ending.terminate()
    with suppress(NoAnswerError):  # it may take connections for as long as calls are under way
        await ending.refuses(stage.patience / 4)
    stage.release(SHOP, "wait")
    for value, number in calls.items():
        reply = await _ended(players[value], number)
        expect(reply.text == value, f"A call of {players[value].version} is answered with {reply.brief}.")
    await ending.ends(stage.patience * 3)


@check("replicas.rolling-restart", MUST, CONTRACT, needs=REPLICAS, posix=True)
async def rolling_restart(stage: Stage) -> None:
    """While replicas are restarted one after another, a client whose connects are retried loses no call, and
    none is made twice, in both eras."""
    cluster = await stage.replicas(remote(stage, server(tools=[tool("say", None, text="{word}", fill=True)])))
    eras = [LATEST_LEGACY_VERSION] + [MODERN_VERSION] * ("modern" not in stage.subject.missing())
    callers = [_Caller(stage, await stage.client_of(cluster, version=version)) for version in eras]
    tasks = [asyncio.create_task(caller.call_on()) for caller in callers]
    try:
        await _progress(callers, stage.patience)
        for replica in cluster.replicas:
            replica.terminate()
            await replica.ends(stage.patience * 3)
            await _progress(callers, stage.patience)
            await replica.start()
            await _progress(callers, stage.patience)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for caller in callers:
        for value in caller.answered:
            made = times(stage, "say", value)
            expect(made == 1, f"The server got a call {made} times.")


class _Caller:
    """A client that calls on and on. answered: the words of its calls that were."""

    def __init__(self, stage: Stage, player: Player) -> None:
        self._stage, self.player = stage, player
        self.answered: list[str] = []
        self.lost = ""

    async def call_on(self) -> None:
        """Make calls, until one is lost."""
        number = 0
        while not self.lost:
            number += 1
            value = f"{self.player.version}-{number}"
            try:
                self.lost = await self._call(value)
            except Finding as finding:
                self.lost = finding.summary

    async def _call(self, value: str) -> str:
        """Make a call, and once more if its connection broke before the server had it. Returns what was wrong
        with the answer, "" for nothing."""
        for _ in range(2):
            reply = await self.player.call(SHOP, "say", word(value))
            if reply.text == value:
                self.answered.append(value)
                return ""
            if reply.text != BROKE or times(self._stage, "say", value):
                break
        return f"A call of {self.player.version} is answered with {reply.brief}."


async def _progress(callers: list[_Caller], patience: float) -> None:
    """Wait until each has made some more calls. Raises Finding if one was lost."""
    wanted = [len(caller.answered) + _AT_EACH for caller in callers]
    try:
        async with asyncio.timeout(patience):
            while any(len(each.answered) < count for each, count in zip(callers, wanted, strict=True)):
                for caller in callers:
                    expect(not caller.lost, caller.lost)
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise Finding("While a replica was away, calls got no answer.") from None
