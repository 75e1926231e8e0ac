"""The faults of stage ``reply``, which change how a finished answer is sent.

The rule: an answer is a line of bytes, sent in a list of `Step`s; a fault turns that list into another one.
No I/O here.
"""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from mcpzip_fakes.faults import Fault, Firing


class Write(Struct, frozen=True):
    """Write these bytes."""

    data: bytes


class Pause(Struct, frozen=True):
    """Flush, then wait ``seconds``."""

    seconds: float


class Exit(Struct, frozen=True):
    """Flush, write ``text`` to stderr and end the process at once."""

    code: int
    text: str


_SPACES = b" " * (1 << 18)


class Pad(Struct, frozen=True):
    """Write so many spaces in small pieces, until the reader disconnects."""

    count: int

    def pieces(self) -> Iterator[bytes]:
        """The spaces, in pieces."""
        for start in range(0, self.count, len(_SPACES)):
            yield _SPACES[: self.count - start]


Step = Write | Pause | Exit | Pad

# Invalid UTF-8 inside of what looks like a message.
_NOT_UTF8 = b'{"jsonrpc":"2.0","method":"notifications/\xff\xfe\xc3\x28"}\n'


def _junk(fault: Fault, steps: list[Step]) -> list[Step]:
    return [Write(fault.string("text").encode() + b"\n"), *steps]


def _invalid_utf8(fault: Fault, steps: list[Step]) -> list[Step]:
    return [Write(_NOT_UTF8), *steps]


def _wrong_id(fault: Fault, steps: list[Step]) -> list[Step]:
    return [
        Write(_reidentified(step.data)) if isinstance(step, Write) and b'"id":' in step.data else step
        for step in steps
    ]


def _duplicate(fault: Fault, steps: list[Step]) -> list[Step]:
    return steps + steps


def _huge(fault: Fault, steps: list[Step]) -> list[Step]:
    padding = b" " * int(fault.number("size"))
    return [
        Write(b"".join((step.data.rstrip()[:-1], padding, b"}\n")))
        if isinstance(step, Write) and b'"id":' in step.data
        else step
        for step in steps
    ]


def _endless(fault: Fault, steps: list[Step]) -> list[Step]:
    padding = Pad(int(fault.number("size")))
    padded: list[Step] = []
    for step in steps:
        if isinstance(step, Write) and b'"id":' in step.data:
            padded += [Write(step.data.rstrip()[:-1]), padding, Write(b"}\n")]
        else:
            padded.append(step)
    return padded


def _many_keys(fault: Fault, steps: list[Step]) -> list[Step]:
    count = int(fault.number("count"))
    keys = b"".join(b'"key-%d":%d,' % (number, number) for number in range(count))
    before, more = {
        "result": (b'"result":{', b'"result":{%b"lone":"\\ud800",' % keys),
        "meta": (b'"result":{', b'"result":{"_meta":{%b"lone":"\\ud800"},' % keys),
        "content": (b'"content":[', b'"content":[%b{"type":"text","text":"\\ud800"},' % (b"{}," * count)),
        "error": (b'"result":{', b'"error":{%b"code":-32000,"message":"\\ud800"},"was":{' % keys),
    }[fault.string("where")]
    return [Write(step.data.replace(before, more, 1)) if isinstance(step, Write) else step for step in steps]


def _torn(fault: Fault, steps: list[Step]) -> list[Step]:
    torn: list[Step] = []
    for step in steps:
        if not isinstance(step, Write):
            torn.append(step)
            continue
        size = max(-(-len(step.data) // max(int(fault.number("count")), 1)), 1)
        for start in range(0, len(step.data), size):
            torn += [Write(step.data[start : start + size]), Pause(fault.number("seconds"))]
    return torn


def _crash(fault: Fault, steps: list[Step]) -> list[Step]:
    end = Exit(int(fault.number("code")), fault.string("text"))
    if fault.string("when") == "after":
        return [*steps, end]
    head = [
        Write(step.data[: len(step.data) // 2]) if isinstance(step, Write) else step for step in steps[:1]
    ]
    return [*head, end]


_ACTIONS: Mapping[str, Callable[[Fault, list[Step]], list[Step]]] = {
    "junk": _junk,
    "invalid-utf8": _invalid_utf8,
    "wrong-id": _wrong_id,
    "duplicate": _duplicate,
    "huge": _huge,
    "endless": _endless,
    "gzip-bomb": _endless,
    "many-keys": _many_keys,
    "torn": _torn,
    "crash": _crash,
}


def distort(line: bytes, firing: Firing) -> list[Step]:
    """The steps that send ``line`` when these faults fire. Don't call it for a crash ``before``, which sends
    nothing."""
    steps: list[Step] = [Write(line)]
    for fault in sorted(firing.faults, key=lambda fault: fault.kind == "crash"):
        if fault.row.stage == "reply" or fault.kind == "crash":
            steps = _ACTIONS[fault.kind](fault, steps)
    return steps


def _reidentified(line: bytes) -> bytes:
    """The answer with an id that no client has used."""
    from mcpzip.wire.json_object import split_object

    fields = {**split_object(line.strip()), "id": b'"nobody-asked-7f3a"'}
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), value) for key, value in fields.items()) + b"}\n"
