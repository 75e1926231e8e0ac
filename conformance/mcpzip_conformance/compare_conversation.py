"""Compares the messages beside an answer: the notifications and questions that a client gets.

The rule: only the server's own content is compared. Ids, progress tokens and ``_meta`` are left out, and so
are messages that the subject sends by itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from mcpzip.wire import LATEST_LEGACY_VERSION, NotAnObject, join_object, split_object, unquote
from mcpzip_conformance.client import Answer, Fields, RefusedError
from mcpzip_conformance.compare_json import Likeness, diff, lines
from mcpzip_conformance.errors import ControlError, Finding, NotPlayableError
from mcpzip_conformance.player import Player
from mcpzip_conformance.reply import Reply
from mcpzip_conformance.scene import Call, Server
from mcpzip_conformance.stage import Stage

_AROUND = ("_meta", "progressToken")

Says = Mapping[str, Sequence[bytes | RefusedError]]
"""Method of a question -> the answers in turn, the last one repeated: results as JSON text."""


class Respondent:
    """Answers the server's requests, and records them. asked: their methods and params, in order."""

    def __init__(self, says: Says) -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.answers: Mapping[str, Answer] = {method: self._answer(method, says[method]) for method in says}

    def _answer(self, method: str, says: Sequence[bytes | RefusedError]) -> Answer:
        left = list(says)

        def answer(params: bytes) -> bytes:
            self.asked.append((method, params))
            next_answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(next_answer, RefusedError):
                raise next_answer
            return next_answer

        return answer


def unanswered(params: bytes) -> None:
    """No answer: the question stays open."""


async def compare_requests(
    stage: Stage,
    shop: Server,
    calls: Sequence[Call],
    says: Says,
    *,
    version: str = LATEST_LEGACY_VERSION,
    straight: str = "",
    since: str = "",
) -> None:
    """Play ``calls`` directly and through the subject with the same answers of the client. Raises Finding
    unless the server's requests and the results are the same. straight: the version of the direct side, if it
    differs; since: the first version with such requests. Raises NotPlayableError if the subject negotiates an
    older one."""
    with controlled():
        respondent = Respondent(says)
        player = await stage.straight(shop, straight or version, answers=respondent.answers)
        expected = [await _interview(player, respondent, call) for call in calls]
    respondent = Respondent(says)
    set_up = bridged if straight else Stage.through
    player = await set_up(stage, shop, version=version, answers=respondent.answers)
    agreed = player.opening.fields.get("protocolVersion")
    if isinstance(agreed, str) and agreed < since:
        raise NotPlayableError(f"It speaks {agreed}, which has no such question.")
    for call, wanted in zip(calls, expected, strict=True):
        try:
            got = await _interview(player, respondent, call)
        except Finding as finding:
            requests = [message_lines(*question) for question in respondent.asked]
            got = [line for part in requests for line in part] + [finding.summary]
        difference = diff([str(call), *wanted], [str(call), *got], stage.subject.title)
        if difference:
            raise Finding(f"The server's requests during {call}, or the answer, differ.", difference)


async def bridged(
    stage: Stage, shop: Server, *, version: str, answers: Mapping[str, Answer] | None = None
) -> Player:
    """A player through the subject to a server that doesn't speak ``version``. Raises NotPlayableError if the
    subject doesn't speak it with such a server either, which a proxy may do."""
    player = await stage.started(shop, version=version, answers=answers)
    try:
        await player.open()
    except Finding as finding:
        if player.opening.error is None:
            raise
        raise NotPlayableError("With a server of the other era it does not speak this era.") from finding
    await player.ready([(shop.name, tool.name) for tool in shop.scenario.all_tools()[:1]])
    return player


async def _interview(player: Player, respondent: Respondent, call: Call) -> list[str]:
    respondent.asked.clear()
    reply = await player.call(call.server, call.tool, call.arguments, call.meta)
    requests = [line for question in respondent.asked for line in message_lines(*question)]
    return [*requests, *reply_lines(player, reply)]


async def compare_notifications(
    stage: Stage,
    shop: Server,
    call: Call,
    method: str,
    *,
    version: str = LATEST_LEGACY_VERSION,
) -> list[Fields]:
    """Play ``call`` directly and through the subject. Raises Finding unless the client gets the same
    notifications ``method``, in the same order, before the answer. Returns their params through the subject,
    as members."""
    with controlled():
        straight = await stage.straight(shop, version)
        expected = [
            message_lines(method, params) for params in await received_notifications(straight, call, method)
        ]
        if not expected:
            raise ControlError(f"the direct side got no {method}")
    player = await stage.through(shop, version=version)
    got = await received_notifications(player, call, method)
    compare(
        stage,
        f"The client does not get the same {method} before the answer.",
        expected,
        [message_lines(method, params) for params in got],
    )
    return [split_object(params) for params in got]


async def received_notifications(player: Player, call: Call, method: str) -> list[bytes]:
    """Play ``call``; the params of the notifications ``method`` that came before its answer."""
    since = len(player.client.messages())
    number = player.begin(call.server, call.tool, call.arguments, call.meta)
    await player.reply(number)
    came = []
    for fields in player.client.messages()[since:]:
        if "method" not in fields and fields.get("id") == b"%d" % number:
            break
        if method_of(fields) == method:
            came.append(fields.get("params", b"{}"))
    return came


def compare(stage: Stage, otherwise: str, straight: list[list[str]], through: list[list[str]]) -> None:
    """Raises Finding with the sentence ``otherwise`` unless the messages through the subject equal the direct
    ones. Members that are not in ``straight`` are the subject's own."""
    if [one for one in through if one in straight] != straight:
        flat = [[line for one in side for line in one] for side in (straight, through)]
        raise Finding(otherwise, diff(flat[0], flat[1], stage.subject.title))


def message_lines(method: str, params: bytes) -> list[str]:
    """A notification or a question, a member a line."""
    try:
        compared = {key: value for key, value in split_object(params).items() if key not in _AROUND}
    except NotAnObject:
        return [method, *lines(params, Likeness.VALUE)]
    if compared.get("mode") == b'"form"':  # the default, which older versions don't have
        del compared["mode"]
    return [method, *lines(join_object(compared), Likeness.VALUE)]


def common_members(straight: bytes, through: bytes) -> bytes:
    """``through`` without the members that ``straight`` lacks, at any depth; both are JSON text."""
    return msgspec.json.encode(_kept(msgspec.json.decode(straight), msgspec.json.decode(through)))


def _kept(straight: object, through: object) -> object:
    if isinstance(straight, dict) and isinstance(through, dict):
        return {key: _kept(straight[key], item) for key, item in through.items() if key in straight}
    if isinstance(straight, list) and isinstance(through, list) and len(straight) == len(through):
        return [_kept(one, other) for one, other in zip(straight, through, strict=True)]
    return through


def reply_lines(player: Player, reply: Reply) -> list[str]:
    """An answer, a member a line, without the subject's declared additions."""
    if reply.result is None:
        return ["answered with an error", *lines(reply.error or b"", Likeness.VALUE)]
    return ["answered with a result", *lines(player.route.undone(reply.result), Likeness.VALUE)]


def method_of(fields: Fields) -> str:
    """A message's method; "" when it has none."""
    method = fields.get("method", b"")
    return unquote(method) if method.startswith(b'"') else ""


@contextmanager
def controlled() -> Iterator[None]:
    """Turns a Finding of the direct side into a ControlError."""
    try:
        yield
    except Finding as finding:
        raise ControlError(f"the straight side failed: {finding.summary}") from finding
