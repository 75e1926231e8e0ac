"""From real messages to anything a peer might send, by a seeded generator: the same seed, the same bytes.

The rules: a message is bent first as a tree (members lost, doubled, renamed, swapped for odd values), then in
its spelling (space, escapes, order), then as bytes. Each step may be left out, so that right messages occur
among the wrong ones.
"""

import json
from collections.abc import Callable
from random import Random

from messages import MESSAGES

Members = list[tuple[str, "Tree"]]


class Text(str):
    """A JSON text that goes out as it is."""


class Object(list[tuple[str, object]]):
    """The members of an object; a key may stand twice."""


Tree = object

_IDS = (
    "1",
    "2",
    "3",
    "4",
    '"1"',
    "1.0",
    "1e0",
    "01",
    "-1",
    "-0",
    "0",
    "7",
    '"7"',
    '"a-1"',
    '"\\u0061-1"',
    "null",
)
_NUMBERS = (
    "1E+2",
    "-0",
    "-0.0",
    "1e400",
    "-1e400",
    "1e-400",
    "9" * 30,
    "1.0",
    "0.1e-7",
    "9" * 5000,
    "1" + "0" * 400,
)
_STRINGS = (
    '""',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    '"\\\\ud800"',
    '"\U0010ffff"',
    '"\\"}"',
    '"x"',
)
_ODD = (
    *_NUMBERS,
    *_STRINGS,
    "true",
    "false",
    "null",
    "{}",
    "[]",
    "[[]]",
    '{"":{}}',
    "NaN",
    "Infinity",
    "[1,]",
    "'a'",
)
_KEYS = ("jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data", "_meta", "", "x")
_KEYS += ("requestId", "progressToken", "reason", "ID", "\ud800", "é", "\x00")
_TOKENS = (
    *(b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"\n", b"\r", b"\r\n", b" ", b"\t", b"\x00", b"\x0b"),
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xc0\x80", b"\xe2\x80\xa8"),
    *(
        b'"id":1',
        b'"id":1}',
        b'"result":',
        b'"error":',
        b"null",
        b"NaN",
        b"1e999999",
        b"\\ud800",
        b"\\u",
        b"/**/",
    ),
    *(
        b'{"jsonrpc":"2.0",',
        b'"jsonrpc":"2.0"',
        b'"method":',
        b'"params":{',
        b"\n\n",
        b"Content-Length: 2\r\n\r\n",
    ),
)
_CANCELS = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b,"reason":"r"}}'
_PROGRESSES = (
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%b,"progress":1}}'
)
_ANSWER = b'{"jsonrpc":"2.0","id":%b,"result":{}}'
_SAME_IDS = (
    (b"12", b"12"),
    (b'"z"', b'"\\u007a"'),
    (b"-0", b"0"),
    (b'"12"', b"12"),
    (b'"\\ud800"', b'"\\uD800"'),
)
_PAIRS = (
    *((b'{"jsonrpc":"2.0","id":%b,"method":"tools/call"}' % id, _CANCELS % about) for id, about in _SAME_IDS),
    (_ANSWER % b"1", _ANSWER % b'"1"'),
    (_PROGRESSES % b"2", _ANSWER % b"2"),
    (_CANCELS % b"2", _ANSWER % b"2"),
    (_ANSWER % b"3", _PROGRESSES % b"3"),
)
_DEEP = (("[", "]"), ('{"a":', "}"), ('[{"b":[', "]}]"))
_DEPTHS = (*(5, 60, 300, 900, 1100) * 4, 5000, 60_000)


def lines(random: Random) -> list[bytes]:
    """A few lines, without their newlines (but a mutation may have put some in)."""
    made = [_line(random) for _ in range(random.randint(1, 6))]
    if random.random() < 0.3:  # two that belong together, which chance alone seldom makes
        request, about = random.choice(_PAIRS)
        start = random.randrange(len(made) + 1)
        made.insert(start, request)
        made.insert(random.randint(start + 1, len(made)), about)
    return made


def pieces(random: Random, data: bytes) -> list[bytes]:
    """``data``, cut anywhere."""
    if len(data) < 400 and random.random() < 0.3:
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.randint(0, 12)))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def bent(random: Random, data: bytes) -> bytes:
    """``data`` with bytes lost, doubled, put in or changed."""
    changed = bytearray(data)
    random.choice(_BYTE_STEPS)(random, changed)
    return bytes(changed)


def _line(random: Random) -> bytes:
    way = random.random()
    if way < 0.04:
        return random.randbytes(random.randrange(200))
    if way < 0.1:
        return b"".join(random.choices(_TOKENS, k=random.randrange(40)))
    tree = json.loads(random.choice(MESSAGES), object_pairs_hook=Object, parse_int=Text, parse_float=Text)
    while random.random() < 0.45:
        tree = random.choice(_TREE_STEPS)(random, tree)
    line = bytearray(_spelt(random, tree, odd=random.random() < 0.3).encode("utf-8", "backslashreplace"))
    while random.random() < 0.3:
        random.choice(_BYTE_STEPS)(random, line)
    return bytes(line)


# Trees


def _containers(tree: Tree) -> list[Object | list[Tree]]:
    """Every object and array in ``tree``."""
    found: list[Object | list[Tree]] = []
    left = [tree]
    while left:
        match left.pop():
            case Object() as members:
                found.append(members)
                left += [value for _, value in members]
            case list() as items:
                found.append(items)
                left += items
    return found


def _place(random: Random, tree: Tree) -> tuple[Object | list[Tree], int] | None:
    """Some member or item; the envelope's own are as likely as all that is deeper."""
    filled = [container for container in _containers(tree) if container]
    if not filled:
        return None
    container = filled[0] if random.random() < 0.5 else random.choice(filled)
    return container, random.randrange(len(container))


def _put(random: Random, tree: Tree, value: Tree) -> Tree:
    if (place := _place(random, tree)) is None:
        return value
    container, at = place
    if isinstance(container, Object):
        container[at] = (container[at][0], value)
    else:
        container[at] = value
    return tree


def _odd_value(random: Random, tree: Tree) -> Tree:
    return _put(random, tree, Text(random.choice(_ODD)))


def _other_id(random: Random, tree: Tree) -> Tree:
    if isinstance(tree, Object):
        id = Text(random.choice(_IDS))
        tree[:] = [(key, id if key in ("id", "requestId", "progressToken") else value) for key, value in tree]
    return tree


def _deep_value(random: Random, tree: Tree) -> Tree:
    opening, closing = random.choice(_DEEP)
    depth = random.choice(_DEPTHS)
    return _put(random, tree, Text(opening * depth + "1" + closing * (depth - (random.random() < 0.1))))


def _long_value(random: Random, tree: Tree) -> Tree:
    unit = random.choice(("x", "é", "\\n", "\\ud83d\\ude00", "\\\\", "😀", "\\ud800"))
    return _put(random, tree, Text(f'"{unit * random.choice((10, 10, 700, 3000, 10_000))}"'))


def _lost(random: Random, tree: Tree) -> Tree:
    if place := _place(random, tree):
        del place[0][place[1]]
    return tree


def _doubled(random: Random, tree: Tree) -> Tree:
    if place := _place(random, tree):
        container, at = place
        container.insert(random.randrange(len(container) + 1), container[at])
    return tree


def _renamed(random: Random, tree: Tree) -> Tree:
    place = _place(random, tree)
    if place and isinstance(place[0], Object):
        container, at = place
        container[at] = (random.choice(_KEYS), container[at][1])
    return tree


def _added(random: Random, tree: Tree) -> Tree:
    containers = [container for container in _containers(tree) if isinstance(container, Object)]
    if containers:
        value = Text(random.choice((*_ODD, *_IDS)))
        random.choice(containers).insert(0, (random.choice(_KEYS), value))
    return tree


def _shuffled(random: Random, tree: Tree) -> Tree:
    for container in _containers(tree):
        random.shuffle(container)
    return tree


def _batched(random: Random, tree: Tree) -> Tree:
    return [tree] * random.randrange(3)


_TREE_STEPS: tuple[Callable[[Random, Tree], Tree], ...] = (
    *(_odd_value, _odd_value, _other_id, _other_id, _deep_value, _long_value),
    *(_lost, _lost, _doubled, _renamed, _added, _shuffled, _batched),
)


def _spelt(random: Random, tree: Tree, *, odd: bool) -> str:
    """JSON text; odd: with space between the tokens and escapes in the strings."""

    def space() -> str:
        return random.choice(("", "", "", " ", "\t", "  ", "\r")) if odd else ""

    def string(text: str) -> str:
        if odd and random.random() < 0.3:
            return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text) + '"'
        return json.dumps(text, ensure_ascii=False)

    def spell(value: Tree) -> str:
        match value:
            case Text():
                return value
            case str():
                return string(value)
            case Object():
                members = (
                    f"{space()}{string(key)}{space()}:{space()}{spell(v)}{space()}" for key, v in value
                )
                return "{" + ",".join(members) + "}"
            case list():
                return "[" + ",".join(f"{space()}{spell(item)}{space()}" for item in value) + "]"
        return json.dumps(value)

    return space() + spell(tree) + space()


# Bytes


def _flip(random: Random, line: bytearray) -> None:
    if line:
        line[random.randrange(len(line))] ^= 1 << random.randrange(8)


def _insert(random: Random, line: bytearray) -> None:
    at = random.randrange(len(line) + 1)
    line[at:at] = random.choice(_TOKENS) * random.choice((1, 1, 1, 2, 50))


def _cut_out(random: Random, line: bytearray) -> None:
    start = random.randrange(len(line) + 1)
    del line[start : start + random.choice((1, 2, 10, 100))]


def _cut_off(random: Random, line: bytearray) -> None:
    del line[random.randrange(len(line) + 1) :]


def _repeat(random: Random, line: bytearray) -> None:
    start = random.randrange(len(line) + 1)
    line[start:start] = line[start : start + random.choice((1, 5, 40))] * random.choice((1, 3, 20))


def _spliced(random: Random, line: bytearray) -> None:
    other = random.choice(MESSAGES).encode()
    line[random.randrange(len(line) + 1) :] = other[random.randrange(len(other)) :]


_BYTE_STEPS = (_flip, _insert, _cut_out, _cut_off, _repeat, _spliced)
