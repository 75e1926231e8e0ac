"""Questions to the client in the middle of a request, round by round.

The rule: a client gets no question for which it lacks the capability. A legacy client gets requests; a modern
one gets a result of type ``input_required``, and sends its answers in a new request (2026-07-28
`basic/patterns/mrtr`). No state of a modern client is kept between rounds: its former answers are in its
``requestState``, which is signed and bound to the request.
"""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from mcpzip.wire import INVALID_PARAMS, MISSING_REQUIRED_CLIENT_CAPABILITY
from mcpzip_fakes.answer import Ask, Asks, JsonObject, fill, json_value, rounds
from mcpzip_fakes.request import Refused, Request, as_object

_KEY = b"a fake has no secrets"
_NEEDS = {
    "sampling/createMessage": ("sampling",),
    "elicitation/create": ("elicitation",),
    "roots/list": ("roots",),
}


class InputRequired(Exception):
    """The client must answer questions first. ``result``: what it gets instead of an answer."""

    def __init__(self, result: JsonObject) -> None:
        self.result = result
        super().__init__("input required")


async def replies(request: Request, asks: Asks, *, state: bool, filled: bool) -> JsonObject:
    """The client's answers, by the names of the questions; none for a question it lacks the capability for.

    state: whether a modern client gets a ``requestState``; filled: whether placeholders in the questions are
    replaced by the request's arguments and by earlier answers. Raises InputRequired if a modern client must
    answer first; Refused if a question needs a capability that the client hasn't declared, if the client
    refuses to answer, or if its ``requestState`` is not the one that it got.
    """
    if asks is None:
        return {}
    answers = brought(request, asks, state) if request.modern else {}
    for turn, questions in enumerate(rounds(asks), 1):
        missing = _able(request, [ask for ask in questions if ask.name not in answers])
        if not missing:
            continue
        values = {**as_object(request.params.get("arguments")), **answers}
        if request.modern:
            asked = {it.name: {"method": it.method, "params": _params(it, filled, values)} for it in missing}
            result: JsonObject = {"resultType": "input_required", "inputRequests": asked}
            if state:
                result["requestState"] = _seal(request, turn, answers)
            raise InputRequired(result)
        for ask in missing:
            answers[ask.name] = await request.channel.ask(ask.method, _params(ask, filled, values))
    return answers


def _params(ask: Ask, filled: bool, values: Mapping[str, object]) -> JsonObject:
    params = {} if ask.params is UNSET else json_value(ask.params)
    return as_object(fill(params, values) if filled else params)


def _able(request: Request, asks: list[Ask]) -> list[Ask]:
    """The questions that the client can answer. Refused if it can't answer one that isn't optional."""
    lacking: JsonObject = {}
    able = []
    for ask in asks:
        path = _needs(ask)
        if _declared(path, request.capabilities):
            able.append(ask)
        elif not ask.optional:
            inner: JsonObject = {}
            for key in reversed(path[1:]):
                inner = {key: inner}
            lacking[path[0]] = {**as_object(lacking.get(path[0])), **inner}
    if lacking:
        named = " and ".join(lacking)
        said = f"this needs {named}" if request.modern else f"this client does not offer {named}"
        raise Refused(MISSING_REQUIRED_CLIENT_CAPABILITY, said, {"requiredCapabilities": lacking})
    return able


def _needs(ask: Ask) -> tuple[str, ...]:
    """The path of the capability that a question needs; empty for a method that needs none."""
    params = {} if ask.params is UNSET else as_object(json_value(ask.params))
    if ask.method == "elicitation/create" and params.get("mode") == "url":
        return ("elicitation", "url")
    if ask.method == "sampling/createMessage" and "tools" in params:
        return ("sampling", "tools")
    return _NEEDS.get(ask.method, ())


def _declared(path: tuple[str, ...], capabilities: JsonObject) -> bool:
    """Whether a client has the capability. Elicitation without a mode means forms (2025-11-25
    `client/elicitation`)."""
    held: object = capabilities
    for key in path:
        if not isinstance(held, dict) or not isinstance(held.get(key), dict):
            return False
        held = held[key]
    return path != ("elicitation",) or not held or "form" in as_object(held)


def brought(request: Request, asks: Asks, state: bool) -> JsonObject:
    """The answers of this round and, from the ``requestState``, of earlier rounds. Raises Refused."""
    given = as_object(request.params.get("inputResponses"))
    names = [ask.name for questions in rounds(asks) for ask in questions]
    for name in names:
        if name in given and not isinstance(given[name], dict):
            raise Refused(INVALID_PARAMS, f"inputResponses.{name} must be an object")
    known = {name: given[name] for name in names if name in given}
    sealed = request.params.get("requestState")
    if not state or (sealed is None and not known):
        return known
    return {**_unseal(request, sealed), **known}


def _seal(request: Request, turn: int, answers: JsonObject) -> str:
    body = msgspec.json.encode([_bound(request), turn, answers])
    return f"{body.hex()}.{_signature(body)}"


def _unseal(request: Request, sealed: object) -> JsonObject:
    wrong = Refused(INVALID_PARAMS, "requestState is not the one this server gave out")
    text, _, signature = sealed.partition(".") if isinstance(sealed, str) else ("", "", "")
    try:
        body = bytes.fromhex(text)
    except ValueError:
        raise wrong from None
    if not signature or signature != _signature(body):
        raise wrong
    bound, _turn, answers = msgspec.json.decode(body, type=tuple[list[object], int, JsonObject])
    if bound != _bound(request):
        raise wrong
    return answers


def _bound(request: Request) -> list[object]:
    """The request to which a ``requestState`` is bound."""
    return [request.method, request.params.get("name") or request.params.get("uri")]


def _signature(body: bytes) -> str:
    import hmac  # imported late: a fake without questions starts without it

    return hmac.digest(_KEY, body, "sha256").hex()
