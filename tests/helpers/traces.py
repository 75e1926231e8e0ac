"""Traces of agents, for the tests of `bench.traces`."""

import json

from bench.traces.keeping import Candidate
from bench.traces.quotes import Reading, document_of, readings
from bench.traces.trace import Call, Recorder, Result, Trace

LOOK = Call("shop__list", "{}")


def raw(text: str, **members: object) -> bytes:
    """A result with one text."""
    return json.dumps({"content": [{"type": "text", "text": text}], **members}).encode()


def conversation(*steps: str | bytes, tool: str = "shop__list") -> Trace:
    """A trace: a text is what the model says, and it calls ``tool`` wherever a result follows."""
    told = Recorder()
    told.text("Do it.")
    for number, step in enumerate(steps):
        if isinstance(step, str):
            told.words(step)
        else:
            told.call(str(number), Call(tool, "{}", tool.startswith("local-")))
            told.result(str(number), step)
    return told.trace("t")


def words(text: str) -> int:
    """Counts a token for each word."""
    return len(text.split())


def reading(result: bytes) -> Reading:
    """Of a result from which nothing is quoted."""
    of = Result(LOOK, result)
    return Reading(of, *document_of(of))


def candidate(*steps: str | bytes) -> Candidate:
    """The first result of a conversation."""
    [first, *_] = [each for turn in readings(conversation(*steps)) for each in turn]
    return Candidate(first, words)
