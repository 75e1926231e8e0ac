"""The question to a person whether a call may run (spec: client/elicitation, form mode), and the answer.

The rule: a person sees all that the server would get, or isn't asked. Characters that hide or reorder others
are shown as escapes, so that the text on the screen is the text that runs.
"""

import msgspec

from mcpzip.model import limits
from mcpzip.model.entry import Entry
from mcpzip.model.risk import Risk
from mcpzip.model.sanitize import json_text, one_line
from mcpzip.wire import NotAnObject, join_object, quote, split_object

ELICIT = "elicitation/create"
_SCHEMA = b'{"type":"object","properties":{}}'
"""Of an answer without anything to fill in: to accept is to say yes."""


class Confirm(msgspec.Struct, frozen=True):
    """Why a person is to be asked about a call that the policy lets run. rule: the key path in the config.
    after: whose results came before.
    """

    rule: str
    after: str = ""


def question(
    entry: Entry, risk: Risk, arguments: bytes, after: str = "", about: tuple[str, ...] = ()
) -> bytes | None:
    """The params of the request that asks a person whether ``entry`` may be called with ``arguments`` (JSON
    text); None if they are too long to be read. after: whose results came before, if that is why. about:
    sentences about the arguments: which are results of tools.
    """
    if len(arguments) > limits.ASKED_ARGUMENTS:
        return None
    shown = shown_arguments(arguments)
    if len(shown) > limits.ASKED_ARGUMENTS:
        return None
    tool, server = one_line(entry.tool), one_line(entry.server)
    why = f"The agent has seen results of {one_line(after)} before. " if after else ""
    text = (
        f"May the tool {tool} of the server {server} run? By its own words, which prove nothing, it: "
        f"{risk.words}. {why}This counts for this one call.\n\n{tool} {shown}"
    )
    if about:
        text = f"{text}\n\nIn it, {' '.join(map(one_line, about))}"
    return join_object({"message": quote(text), "requestedSchema": _SCHEMA})


def shown_arguments(arguments: bytes) -> str:
    """``arguments`` (JSON text) for a person, with a line for each member."""
    try:
        return json_text(msgspec.json.format(arguments, indent=2).decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return json_text(arguments.decode("utf-8", "replace"))


def action_of(answer: bytes) -> str:
    """What the person did, by the ``answer`` (JSON text): ``accept``, ``decline`` or ``cancel``; "" for an
    answer that says none of these.
    """
    try:
        action = split_object(answer).get("action", b"")
    except (NotAnObject, RecursionError):
        return ""
    return next((each for each in ("accept", "decline", "cancel") if action == b'"%b"' % each.encode()), "")
