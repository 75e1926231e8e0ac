"""Several clients of one subject, for the checks of the group shared.

The rule: calls overlap because the server holds them until the check releases them, never because of time.
What belongs to one client has a word of its own, so that it is recognised wherever it appears.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from mcpzip.wire import (
    LATEST_LEGACY_VERSION,
    MODERN_VERSION,
    NotAnObject,
    join_object,
    quote,
    split_object,
    unquote,
)
from mcpzip_conformance.check import expect
from mcpzip_conformance.compare_conversation import Respondent, Says
from mcpzip_conformance.errors import Finding, NoAnswerError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import SHOP, Server, tool
from mcpzip_conformance.stage import Stage

NAMES = ("anna", "ben", "cleo", "dora")

ECHO = tool("echo")
WAIT = tool("wait", None, text="{word}", fill=True, hold=True)
"""Answers with its word when it is released."""
_OVERLAP = 4.0
"""The patience is divided by this while calls are awaited at the server: a subject may run one at a time."""


@dataclass(frozen=True, slots=True)
class Guest:
    """One of several clients. name: in its ``clientInfo``; word: what only its calls contain; respondent: its
    answers to questions, and the questions."""

    name: str
    word: str
    player: Player
    respondent: Respondent

    def arguments(self, **more: str) -> bytes:
        """Arguments with its word."""
        return join_object({key: quote(value) for key, value in {"word": self.word, **more}.items()})

    def begin(self, tool_name: str, meta: bytes | None = None, **more: str) -> int:
        """Start a call that has its word. Returns the id."""
        return self.player.begin(SHOP, tool_name, self.arguments(**more), meta)

    async def call(self, tool_name: str, meta: bytes | None = None, **more: str) -> Reply:
        """Make a call that has its word. Raises as `Player.call`."""
        return await self.player.call(SHOP, tool_name, self.arguments(**more), meta)

    async def reply(self, number: int) -> Reply:
        """The answer to request ``number``. Raises Finding, which names this client, if there is none."""
        try:
            return await self.player.reply(number)
        except NoAnswerError:
            raise Finding(f"The call of {self.name} gets no answer.") from None


async def several(
    stage: Stage,
    shop: Server,
    count: int = 2,
    *,
    says: Sequence[Says] = (),
    both_eras: bool = False,
) -> list[Guest]:
    """``count`` open clients of the subject in front of ``shop``. says: the answers of each to questions;
    both_eras: the last one speaks the modern era, if the subject does."""
    modern = both_eras and "modern" not in stage.subject.missing()
    guests: list[Guest] = []
    for number, name in enumerate(NAMES[:count]):
        respondent = Respondent(says[number] if number < len(says) else {})
        info = join_object({"name": quote(name), "version": quote("1")})
        version = MODERN_VERSION if modern and number == count - 1 else LATEST_LEGACY_VERSION
        if guests:
            player = await stage.beside(
                guests[0].player, version=version, answers=respondent.answers, info=info
            )
            await player.ready([(shop.name, shop.scenario.all_tools()[0].name)])
        else:
            player = await stage.through(shop, version=version, answers=respondent.answers, info=info)
        guests.append(Guest(name, f"{name}-{secrets.token_hex(6)}", player, respondent))
    return guests


async def aligned(guests: Sequence[Guest]) -> None:
    """Let the next request of each have the same id."""
    highest = max(guest.player.client.next_id for guest in guests)
    for guest in guests:
        while guest.player.client.next_id < highest:
            await guest.player.request("tools/list")


async def all_held(stage: Stage, count: int) -> bool:
    """Whether ``count`` calls come to be held by the server, all at the same time."""
    try:
        await stage.record(SHOP).until(
            lambda seen: len(seen.events("held")) >= count, stage.patience / _OVERLAP
        )
    except TimeoutError:
        return False
    return True


async def unseen(guests: Sequence[Guest]) -> None:
    """Raises Finding if a client got the word of another one."""
    for guest in guests:
        with suppress(NoAnswerError):  # all messages before its answer have arrived by then
            await guest.player.request("tools/list")
        for other in guests:
            if other is guest:
                continue
            for line in guest.player.client.transcript.received():
                expect(
                    other.word.encode() not in line,
                    f"The client {guest.name} got what belongs to {other.name}:"
                    f" {line[:300].decode('utf-8', 'replace')}",
                )


def text_member(params: bytes, key: str) -> str:
    """A member of a message's params that is a string; "" without."""
    try:
        value = split_object(params).get(key, b"")
    except NotAnObject:
        return ""
    return unquote(value) if value.startswith(b'"') else ""
