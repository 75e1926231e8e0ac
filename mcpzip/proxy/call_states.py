"""The states of a call, and what may happen in each (pure).

The rules, as in h11's ``_state.py``:

1. Everything about the order in which things happen to a call is in this table. It knows no connection, no
   task and no text of a message.
2. An event that the table does not have in a state raises IllegalEventError: it is a defect of ours.

There is one table for each era of the client (`wire.Era`). What a server may ask in the middle of a call
(spec 2026-07-28: basic/patterns/mrtr; 2025-11-25: client/sampling, client/elicitation, client/roots) depends
on its era, too:

| client | upstream | a question of the upstream's | events |
|---|---|---|---|
| legacy | legacy | is a request to the client, on the stream of the call; the call goes on meanwhile | none |
| modern | modern | is a result like any other, and so are the answers: nothing of it is looked at | none |
| legacy | modern | is a result, asked of the client as requests; then the call is made again | \
INPUT_REQUIRED, SEND |
| modern | legacy | ends the client's request with `input_required`; the call waits upstream until the \
client comes back with the answers | QUESTION, WITHDRAW, PARK, RESUME, ABANDON |
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from mcpzip.wire import Era


class State(StrEnum):
    """Where a call stands."""

    ASKED = "asked"
    """The client has asked. Nothing of its request is upstream yet."""
    SENT = "sent"
    """It is under way upstream."""
    ASKING = "asking"
    """The upstream waits for answers of the client, which has yet to be asked."""
    PARKED = "parked"
    """The client was sent the questions as the result of its request, and has yet to come back."""
    KEPT = "kept"
    """The call ended upstream while it was parked. The client gets its outcome when it comes back."""
    ANSWERED = "answered"
    """The upstream has answered, with a result or an error."""
    ABANDONED = "abandoned"
    """Nobody waits for an answer any more, or none will come."""


class Event(StrEnum):
    """What happens to a call."""

    SEND = "send"
    """Its request is handed to the transport."""
    RESULT = "result"
    """The upstream answered, with a result or an error."""
    LOSS = "loss"
    """The upstream will not answer: time is up, the connection ended, or the request was cancelled."""
    INPUT_REQUIRED = "input required"
    """What the upstream answered is a question."""
    QUESTION = "question"
    """The upstream sent a request to the client."""
    WITHDRAW = "withdraw"
    """The last open question was taken back, or was another call's."""
    PARK = "park"
    """The client is sent the questions, and its request is over."""
    RESUME = "resume"
    """The client came back with answers."""
    ABANDON = "abandon"
    """The client has gone, has been away too long, or others need the room."""


_ASKED, _SENT, _ASKING, _PARKED = State.ASKED, State.SENT, State.ASKING, State.PARKED
_KEPT, _ANSWERED, _ABANDONED = State.KEPT, State.ANSWERED, State.ABANDONED

_LEGACY_CLIENT = {
    _ASKED: {Event.SEND: _SENT},
    _SENT: {Event.RESULT: _ANSWERED, Event.LOSS: _ABANDONED},
    _ANSWERED: {Event.INPUT_REQUIRED: _ASKING},  # a modern upstream's
    _ASKING: {Event.SEND: _SENT},
    _ABANDONED: {},
}

_MODERN_CLIENT = {
    _ASKED: {Event.SEND: _SENT},
    _SENT: {Event.RESULT: _ANSWERED, Event.LOSS: _ABANDONED, Event.QUESTION: _ASKING},
    _ASKING: {
        Event.QUESTION: _ASKING,
        Event.WITHDRAW: _SENT,
        Event.PARK: _PARKED,
        Event.RESULT: _ANSWERED,
        Event.LOSS: _ABANDONED,
    },
    _PARKED: {
        Event.QUESTION: _PARKED,
        Event.RESUME: _SENT,
        Event.RESULT: _KEPT,
        Event.LOSS: _KEPT,
        Event.ABANDON: _ABANDONED,
    },
    _KEPT: {Event.RESUME: _ANSWERED, Event.ABANDON: _ABANDONED},
    _ANSWERED: {},
    # Until the cancellation has arrived upstream, anything can come from there.
    _ABANDONED: {Event.QUESTION: _ABANDONED, Event.RESULT: _ABANDONED, Event.LOSS: _ABANDONED},
}

Transitions = Mapping[State, Mapping[Event, State]]

TRANSITIONS: Mapping[Era, Transitions] = MappingProxyType(
    {Era.LEGACY: _LEGACY_CLIENT, Era.MODERN: _MODERN_CLIENT}
)
"""By the era of the client."""


class IllegalEventError(Exception):
    """An event that cannot happen to a call in its state."""

    def __init__(self, state: State, event: Event) -> None:
        self.state, self.event = state, event
        super().__init__(f"a call that is {state} cannot have the event {event!r}")
