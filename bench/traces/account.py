"""The tokens of a conversation: what is sent to the model, request by request (pure).

The rules:

1. Every request sends all that was said before it, so a text counts once for each request that follows it.
2. Where results are kept, the agent reads on at once, in one extra request for all results that came
   together. What it read stays in the conversation like all else.
3. Definitions of tools are not counted: the traces have none, and keeping results doesn't change them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.traces.keeping import Candidate, Count, Kept
from bench.traces.quotes import readings
from bench.traces.trace import Result, Trace

CACHED, WRITTEN = 0.1, 1.25
"""The price of input that the provider has in its cache, and of input that it writes to it, as factors."""


@dataclass(frozen=True)
class Sized:
    """A turn in tokens. prompts: of the texts that it gives. results: that it gives. answer: of words and
    calls.
    """

    prompts: int
    results: tuple[Candidate, ...]
    answer: int


@dataclass
class Cost:
    """What a conversation costs, in tokens. input: of all requests. priced: the same, with what is cached at
    its price. output: that the model writes. last: the input of the last request, which is the longest.
    requests: how many. kept, read, whole: results that are kept, that are read on, and read whole.
    extra: requests to read on. resent: the input of these.
    """

    input: int = 0
    priced: float = 0.0
    output: int = 0
    last: int = 0
    requests: int = 0
    kept: int = 0
    read: int = 0
    whole: int = 0
    extra: int = 0
    resent: int = 0

    def request(self, tokens: int) -> None:
        """A request of so many tokens."""
        self.input += tokens
        self.priced += CACHED * self.last + WRITTEN * (tokens - self.last)
        self.last = tokens
        self.requests += 1

    def add(self, other: "Cost") -> None:
        """Adds each figure of ``other``."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


Treatment = Callable[[Candidate], Kept | None]
"""What becomes of a result; None if it is sent whole."""


def direct(candidate: Candidate) -> None:
    """Every result is sent whole."""


def sized(trace: Trace, count: Count, again: bool = False) -> list[Sized]:
    """The turns of ``trace`` in tokens. again: see `readings`."""
    found = []
    for turn, read in zip(trace.turns, readings(trace, again), strict=True):
        prompts = sum(count(each) for each in turn.given if not isinstance(each, Result))
        results = tuple(Candidate(each, count) for each in read)
        calls = sum(count(call.tool) + count(call.arguments) for call in turn.calls)
        found.append(Sized(prompts, results, count(turn.said) + calls))
    return found


def cost(turns: Iterable[Sized], treatment: Treatment) -> Cost:
    """What the conversation costs if ``treatment`` says what becomes of each result."""
    total, context = Cost(), 0
    for turn in turns:
        context += turn.prompts
        asked = read = 0
        for candidate in turn.results:
            if (kept := treatment(candidate)) is None:
                context += candidate.tokens
                continue
            context += kept.beginning
            asked += kept.asked
            read += kept.read
            total.kept += 1
            total.read += kept.asked > 0
            total.whole += kept.is_whole
        if asked:
            total.request(context)
            total.extra += 1
            total.resent += context
            total.output += asked
            context += asked + read
        total.request(context)
        total.output += turn.answer
        context += turn.answer
    return total
