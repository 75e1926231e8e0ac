"""Plays a cassette to clients of another era or on another transport than the recorded one.

The rule: what was said is what was recorded (`conversations`); how it is said in the present era is what the
engine of scenarios does: the handshake, the members of the modern era, and questions to the client as
requests or as rounds of ``input_required``.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import UNSET

from mcpzip.cassettes.cassette import Cassette
from mcpzip.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    SERVER_INFO_KEY,
    join_object,
)
from mcpzip.wire.canonical_json import decoded
from mcpzip.wire.envelope import read_error
from mcpzip_fakes import hostile, questions
from mcpzip_fakes.answer import Ask, JsonObject
from mcpzip_fakes.calls import LEVELS, heard
from mcpzip_fakes.definitions import Prompt, Resource, Tool
from mcpzip_fakes.engine import Engine, Handler, Note
from mcpzip_fakes.record import Record
from mcpzip_fakes.replay.conversations import (
    CHANGES,
    Conversation,
    Said,
    answer_to,
    base,
    conversations,
    plain_result,
)
from mcpzip_fakes.replay.differences import Difference, differences, told
from mcpzip_fakes.replay.matching import Matcher, Recorded, recorded
from mcpzip_fakes.replay.messages import Message
from mcpzip_fakes.replay.report import report
from mcpzip_fakes.replay.session import described, place
from mcpzip_fakes.request import Refused, Request, as_object
from mcpzip_fakes.scenario import Scenario

_OWN = frozenset(
    {
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "server/discover",
        "subscriptions/listen",
    }
)
"""Methods about the connection, which the engine answers itself."""
_LISTS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})


class ReplayEngine(Engine):
    """Answers as recorded."""

    def __init__(
        self,
        scenario: Scenario,
        note: Note,
        past: Record | None = None,
        releases: Record | None = None,
        *,
        cassette: Cassette,
        number: int,
    ) -> None:
        """scenario: of `with_recorded_lists`; number: of this process on its record, from 1."""
        super().__init__(scenario, note, past, releases)
        exchanges = recorded(cassette.exchanges)
        self._info, _ = _greeting(exchanges)
        self._told = {each.asked.number: each for each in conversations(exchanges)}
        asked = [each.asked for each in self._told.values()]
        self._matcher = Matcher(asked, cassette.match)
        self._repeat = cassette.match.repeat
        sessions = sorted({each.exchange.session for each in exchanges}) or [1]
        self._number = sessions[min(number, len(sessions)) - 1]
        self._source = os.path.basename(scenario.replay.cassette) if scenario.replay else cassette.name
        self._timing = scenario.replay.timing if scenario.replay else None
        self._used: dict[object, set[int]] = {}
        self._last: dict[tuple[str, bytes], Conversation] = {}
        self._played: dict[object, Conversation] = {}
        """By request: the conversation that it was answered with."""
        self._changed_lists = False

    def info(self) -> JsonObject:
        return self._info or super().info()

    def handler(self, request: Request) -> Handler:
        paged = self.scenario.page_size is not None or self._changed_lists
        if request.method in _OWN or (request.method in _LISTS and paged):
            return super().handler(request)
        return lambda engine, request: self._play(request)

    def follows(self, request: Request) -> bool:
        return _key(request) in self._played or super().follows(request)

    async def answered(self, request: Request) -> None:
        self._changed_lists |= request.firing.get("list-changed") is not None
        await super().answered(request)
        conversation = self._played.pop(_key(request), None)
        for change in conversation.changes if conversation else ():
            if kind := CHANGES[change.method]:
                await self.audience.list_changed(kind)
            elif isinstance(uri := _object(change.params).get("uri"), str):
                await self.audience.updated(uri)

    # One request

    async def _play(self, request: Request) -> JsonObject | bytes:
        message = _message(request)
        if request.method == "tools/call":
            await hostile.flood(request)
        conversation = self._chosen(request, message)
        answers: JsonObject = {}
        if request.modern:
            asks = _asks(conversation)
            answers = questions.brought(request, asks, True)
            conversation = self._going_on(conversation, message, answers)
            asks = _asks(conversation)
            at = next(
                (
                    number
                    for number, turn in enumerate(conversation.rounds)
                    if any(ask.name not in answers for ask in turn.asks)
                ),
                len(conversation.rounds),
            )
            segments = [turn.said for turn in conversation.rounds] + [conversation.said]
            await self._say(request, segments[at])
            await questions.replies(request, asks, state=True, filled=False)
        else:
            number = 0
            while number < len(conversation.rounds):
                turn = conversation.rounds[number]
                await self._say(request, turn.said)
                answers |= await questions.replies(request, turn.asks, state=True, filled=False)
                conversation = self._going_on(conversation, message, answers)
                number += 1
            await self._say(request, conversation.said)
        await asyncio.sleep(conversation.wait * (self._timing or 0))
        if conversation.changes:
            self._played[_key(request)] = conversation
        return await self._answer(request, conversation)

    async def _answer(self, request: Request, conversation: Conversation) -> bytes:
        answer = conversation.answer
        if answer is None:
            if any(event.kind == "end" for event in conversation.asked.exchange.events):
                raise Refused(INTERNAL_ERROR, f"{self._source}: the recorded server ended here")
            await asyncio.Event().wait()  # until it is cancelled, as it was then
            raise AssertionError
        if not answer.failed:
            return answer.answer if request.modern else plain_result(answer.answer)
        error = read_error(answer.answer)
        code = error.code
        if request.method == "resources/read" and request.modern and code == RESOURCE_NOT_FOUND:
            code = INVALID_PARAMS
        raise Refused(code, error.message, UNSET if error.data is None else msgspec.Raw(error.data))

    async def _say(self, request: Request, said: Sequence[Said]) -> None:
        """Send the notifications that this client may get."""
        least = request.meta.get(LOG_LEVEL_KEY)
        if not request.modern:
            least = self.audience.level(request.session) or LEVELS[0]
        token = request.meta.get("progressToken")
        for each in said:
            await asyncio.sleep(each.wait * (self._timing or 0))
            params = _object(each.params)
            match each.method:
                case "notifications/progress":
                    if token is None:
                        continue
                    params = {**params, "progressToken": token}
                case "notifications/message":
                    if not heard(str(params.get("level")), least):
                        continue
                case _ if request.modern:
                    continue  # the stream of a request has only these two
            await request.channel.notify(each.method, params)

    # Which conversation

    def _chosen(self, request: Request, message: Message) -> Conversation:
        """The conversation that ``request`` begins or goes on with. Raises Refused if none was recorded."""
        found = self._matcher.found(message)
        if not found:
            raise self._unmatched(message)
        key = (message.method, message.params)
        if request.modern and ("inputResponses" in request.params or "requestState" in request.params):
            return self._last.get(key) or self._told[found[0].number]
        used = self._used.setdefault(None if request.modern else request.session, set())
        chosen = next(_in_turn(found, self._number, used, repeat=self._repeat), None)
        if chosen is None:
            text = f"{described(message)}: all recorded answers of {self._source} were given"
            raise self._refused(INVALID_PARAMS, f"{text}, and match.repeat is false")
        used.add(chosen.number)
        self.note("played", {"exchange": chosen.number})
        self._last[key] = self._told[chosen.number]
        return self._told[chosen.number]

    def _going_on(self, conversation: Conversation, message: Message, answers: JsonObject) -> Conversation:
        """The conversation in which the client gave these answers: if it can, this one. Raises Refused."""
        others = [self._told[each.number] for each in self._matcher.found(message)]
        for each in (conversation, *others):
            if _same_questions(each, conversation) and not _differing(each, answers):
                return each
        found = _differing(conversation, answers)
        text = f"{described(message)}: the client answered otherwise than in {place(conversation.asked)}"
        raise self._refused(INVALID_PARAMS, f"{text} of {self._source}\n{told(found)}")

    def _unmatched(self, message: Message) -> Refused:
        near = self._matcher.nearest(message)
        if near is None:
            text = f"{message.method}: {self._source} has no request of this method"
            return self._refused(METHOD_NOT_FOUND, text)
        text = f"{described(message)} is not in {self._source}. The nearest is {place(near[0])}, which"
        return self._refused(INVALID_PARAMS, f"{text} differs in\n{told(near[1])}")

    def _refused(self, code: int, text: str) -> Refused:
        self.note("unmatched", {"text": text})
        report(text)
        return Refused(code, text)


def engine_maker(cassette: Cassette, number: int) -> Callable[..., Engine]:
    """Makes the engine of a server that plays ``cassette``. number: of this process on its record."""

    def make(
        scenario: Scenario, note: Note, past: Record | None = None, releases: Record | None = None
    ) -> Engine:
        return ReplayEngine(scenario, note, past, releases, cassette=cassette, number=number)

    return make


def with_recorded_lists(scenario: Scenario, cassette: Cassette) -> Scenario:
    """``scenario`` with what the recorded server said of itself, and with its tools, resources, templates and
    prompts, unless it has its own."""
    exchanges = recorded(cassette.exchanges)
    info, greeting = _greeting(exchanges)
    items = {
        key: tuple(dict.fromkeys(_listed(exchanges, method, key)))
        for method, key in (
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        )
    }
    instructions = greeting.get("instructions")
    return msgspec.structs.replace(
        scenario,
        name=str(info.get("name", scenario.name)),
        version=str(info.get("version", scenario.version)),
        instructions=instructions if isinstance(instructions, str) else scenario.instructions,
        capabilities=scenario.capabilities or greeting.get("capabilities"),
        tools=scenario.tools or tuple(Tool(raw=raw) for raw in items["tools"]),
        resources=scenario.resources or tuple(Resource(raw=raw) for raw in items["resources"]),
        resource_templates=scenario.resource_templates
        or tuple(Resource(raw=raw) for raw in items["resourceTemplates"]),
        prompts=scenario.prompts or tuple(Prompt(raw=raw) for raw in items["prompts"]),
    )


def _results(exchanges: Sequence[Recorded], *methods: str) -> Iterator[JsonObject]:
    """The results of these methods, in the order of the cassette."""
    for each in exchanges:
        if not methods or each.message.method in methods:
            answer = answer_to(each)
            if answer is not None and not answer.failed:
                yield _object(answer.answer)


def _greeting(exchanges: Sequence[Recorded]) -> tuple[JsonObject, JsonObject]:
    """What the server said of itself: its ``serverInfo``, and the result with its capabilities."""
    greeting = next(_results(exchanges, "initialize", "server/discover"), {})
    if info := as_object(greeting.get("serverInfo")):
        return info, greeting
    for result in _results(exchanges):
        if info := as_object(as_object(result.get("_meta")).get(SERVER_INFO_KEY)):
            return info, greeting
    return {}, greeting


def _listed(exchanges: Sequence[Recorded], method: str, key: str) -> Iterator[str]:
    """The JSON text of the items on the recorded pages of a list."""
    for each in exchanges:
        reply = answer_to(each) if each.message.method == method else None
        if reply is None:
            continue
        try:
            page = msgspec.json.decode(reply.answer, type=dict[str, msgspec.Raw])
            yield from (
                bytes(item).decode()
                for item in msgspec.json.decode(page.get(key, b"[]"), type=list[msgspec.Raw])
            )
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # the server answered something else


def _in_turn(found: Sequence[Recorded], number: int, used: set[int], *, repeat: bool) -> Iterator[Recorded]:
    """Those of ``found`` that weren't played yet, of session ``number`` first; then its last again."""
    own = [each for each in found if each.exchange.session == number]
    others = [each for each in found if each.exchange.session != number]
    yield from (each for each in own if each.number not in used)
    if own and repeat:
        yield own[-1]
    yield from (each for each in others if each.number not in used)
    if others and repeat:
        yield others[-1]


def _message(request: Request) -> Message:
    """The request as it counts for matching."""
    fields = {key: msgspec.json.encode(value) for key, value in request.params.items() if key != "_meta"}
    if "arguments" in fields and request.method == "tools/call":
        fields["arguments"] = request.arguments  # with its spelling of numbers
    raw = join_object(fields)
    return base(Message(kind="request", raw=raw, id=b"0", method=request.method, params=raw))


def _key(request: Request) -> object:
    """The same for the same request."""
    return request.session, repr(request.id)


def _asks(conversation: Conversation) -> tuple[Ask, ...]:
    return tuple(
        msgspec.structs.replace(ask, round=number)
        for number, turn in enumerate(conversation.rounds, 1)
        for ask in turn.asks
    )


def _same_questions(one: Conversation, other: Conversation) -> bool:
    return [turn.asks for turn in one.rounds] == [turn.asks for turn in other.rounds]


def _differing(conversation: Conversation, answers: JsonObject) -> list[Difference]:
    """Where the client's answers differ from those of the conversation."""
    found: list[Difference] = []
    for turn in conversation.rounds:
        for ask in turn.asks:
            if ask.name in answers and ask.name in turn.answers:
                present = decoded(msgspec.json.encode(answers[ask.name]))
                found += differences(decoded(turn.answers[ask.name]), present, ask.method)
    return found


def _object(raw: bytes) -> JsonObject:
    try:
        return as_object(msgspec.json.decode(raw or b"{}"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
