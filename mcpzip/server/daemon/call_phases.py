"""Who did what at which time of a call, from its events (pure)."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from mcpzip.model.durations import span
from mcpzip.server.daemon.call_report import CallReport

Who = Literal["mcpzip", "person", "connection", "server", "client"]

WORDS: dict[Who, str] = {
    "mcpzip": "mcpzip",
    "person": "a person who was asked",
    "connection": "the connection to the server",
    "server": "the server",
    "client": "the client's answers",
}
"""What the time passed with."""
ASKED = {
    "elicitation": "the server asked the user",
    "sampling": "the server asked the model",
    "roots": "the server asked for the roots",
    "question": "the server asked the client",
}
"""Questions of servers."""
HAPPENED = {
    **ASKED,
    "decided": "the policy decided",
    "person asked": "a person was asked whether it may run",
    "person answered": "the person answered",
    "connecting": "mcpzip looked for a connection to the server",
    "sent": "it was sent to the server",
    "question over": "the question was over",
    "input required": "the server's answer was a question",
    "parked": "the client was sent the questions, and has to come back",
    "resumed": "the client came back with answers",
    "answered": "the server answered",
    "lost": "it was clear that the server will not answer",
    "abandoned": "nobody waited for it any more",
}
"""Events as sentences."""
_SHORTEST = 0.0005
"""Seconds of a phase that is named in a sentence."""


class Phase(msgspec.Struct, frozen=True):
    """A part of a call. begin, end: seconds after its beginning."""

    who: Who
    begin: float
    end: float


def seconds_of(call: CallReport, now: float) -> float:
    """How long ``call`` took, or has taken until ``now`` (Unix time)."""
    return max(0.0, now - call.at) if call.seconds is None else call.seconds


def phases(call: CallReport, now: float) -> list[Phase]:
    """The parts of ``call``, one after the other, without empty ones."""
    found: list[Phase] = []
    who: Who = "mcpzip"
    at, asked, end = 0.0, 0, seconds_of(call, now)
    for event in call.events:
        asked = _asked(event.what, asked)
        becomes = _who(event.what, asked, who)
        until = min(max(event.after, at), end)
        if becomes != who:
            if until > at:
                found.append(Phase(who, at, until))
            who, at = becomes, until
    if end > at:
        found.append(Phase(who, at, end))
    return found


def _asked(what: str, asked: int) -> int:
    """How many questions are open after ``what``."""
    if what in ASKED:
        return asked + 1
    return max(0, asked - 1) if what == "question over" else asked


def _who(what: str, asked: int, now: Who) -> Who:
    """With whom the time passes after ``what``."""
    match what:
        case "person asked":
            return "person"
        case "connecting":
            return "connection"
        case "sent" | "resumed":
            return "server"
        case "question over":
            return "client" if asked else "server"
        case "person answered" | "input required" | "answered" | "lost" | "parked" | "abandoned":
            return "mcpzip"
    return "client" if what in ASKED else now


def told(what: str, number: int) -> str:
    """An event as a sentence. number: how often it has happened by then."""
    return "it was sent again" if what == "sent" and number > 1 else HAPPENED.get(what, what)


def spent(call: CallReport, now: float) -> list[tuple[Who, float]]:
    """The seconds of each, in the order in which they came first."""
    found: dict[Who, float] = {}
    for phase in phases(call, now):
        found[phase.who] = found.get(phase.who, 0.0) + phase.end - phase.begin
    return list(found.items())


def remarks(call: CallReport, now: float) -> list[str]:
    """What is to be said of ``call`` besides its outcome, as phrases."""
    return [*_waits(call, now), *_marks(call)]


def _waits(call: CallReport, now: float) -> Iterator[str]:
    for who, seconds in spent(call, now):
        if who in ("person", "connection", "client") and seconds >= _SHORTEST:
            yield f"{span(seconds)} for {WORDS[who]}"


def _marks(call: CallReport) -> Iterator[str]:
    sent = sum(event.what == "sent" for event in call.events)
    if sent > 1:
        yield f"sent {sent} times"
    for what, sentence in ASKED.items():
        if number := sum(event.what == what for event in call.events):
            yield sentence if number == 1 else f"{sentence} {number} times"
    if call.progress is not None:
        yield f"progress {call.progress.count} times"
    if call.repairs:
        yield "1 repair" if call.repairs == 1 else f"{call.repairs} repairs"
    if call.kept:
        yield "its result is kept"
    if call.parent:
        yield f"of the program {call.parent}"
    if call.continues:
        yield f"goes on from {call.continues}"
