"""Whether it is risky to take over a change of an item without asking a person (pure).

The rules: everything here is decided from the structure of the two definitions and from their characters, not
from what a text says. A reason is a phrase for a person, in which a server's words are quoted.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from mcpzip.model.quoting import quoted
from mcpzip.model.surface import Item
from mcpzip.pins.schema_change import widened

_HINTS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
"""The hints of `ToolAnnotations` and what counts if one is missing (spec: schema, ToolAnnotations)."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.-]+[A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
"""A word that is rather the name of a tool than one of a language: it has parts."""
_NAMES_SHOWN = 3

_TAGS = re.compile("[\U000e0000-\U000e007f]")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
"""The flag of a region, as an emoji tag sequence (Unicode TS 51, ED-14a)."""
_OVERRIDES = re.compile("[\u202d\u202e]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufffb\ue000-\uf8ff\ud800-\udfff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
"""Characters that nobody sees: without width, for the direction of text, tags, variation selectors (but those
for the style of emoji), fillers; and those of private use, which look like anything."""


def flaws(item: Item) -> Sequence[str]:
    """Why ``item`` is not taken over even at the first sight of its server: it has characters that act on a
    terminal, that override the direction of text, or that are tags outside of a flag.
    """
    found = []
    for what, pattern in (
        ("control characters", _CONTROLS),
        ("characters that override the direction of text", _OVERRIDES),
        ("characters of the tag block, which nobody sees", _TAGS),
    ):
        for where, text in _texts(item):
            if match := pattern.search(_FLAG.sub("", text)):
                found.append(f"{where} has {what} ({_code(match[0])})")
                break
    return found


def risky_changes(old: Item | None, new: Item, other_tools: Collection[str]) -> Sequence[str]:
    """Why it is risky to offer ``new`` instead of ``old`` (None for an item that is new) without asking a
    person, as phrases; empty if it isn't. other_tools: the names of other servers' tools, with and without
    the server.
    """
    reasons = [*flaws(new), *_invisible(old, new), *_other_tools(old, new, other_tools)]
    if old is not None and new.kind == "tool":
        before, now = _object(old.body), _object(new.body)
        reasons += _hints(before, now)
        reasons += widened(before.get("inputSchema", {}), now.get("inputSchema", {}))
    return list(dict.fromkeys(reasons))


def _invisible(old: Item | None, new: Item) -> Iterator[str]:
    known = {character for _, character in _invisible_in(old)} if old is not None else set()
    for where, character in _invisible_in(new):
        if character not in known:
            yield f"{where} has characters that nobody sees ({_code(character)})"
            return


def _invisible_in(item: Item) -> Iterator[tuple[str, str]]:
    for where, text in _texts(item):
        for match in _INVISIBLE.finditer(_FLAG.sub("", text)):
            yield where, match[0]


def _other_tools(old: Item | None, new: Item, other_tools: Collection[str]) -> Iterator[str]:
    known = _names_in(old) if old is not None else set[str]()
    named = sorted(name for name in _names_in(new) - known - {new.name} if name in other_tools)
    if named:
        shown = ", ".join(quoted(name, 60) for name in named[:_NAMES_SHOWN])
        more = f" and {len(named) - _NAMES_SHOWN} more" if len(named) > _NAMES_SHOWN else ""
        yield f"it names tools of other servers: {shown}{more}"


def _names_in(item: Item) -> set[str]:
    return {match[0] for _, text in _texts(item) for match in _NAME.finditer(text)}


def _hints(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    before, now = old.get("annotations"), new.get("annotations")
    for hint, default in _HINTS.items():
        was, is_now = (
            each.get(hint, default) if isinstance(each, dict) else default for each in (before, now)
        )
        if was != is_now:
            yield f"{hint} is {_json(is_now)}, and was {_json(was)}"


def _texts(item: Item) -> Iterator[tuple[str, str]]:
    """Every text of ``item``, keys included, with the member that it is in."""
    try:
        value = msgspec.json.decode(item.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield "its text", item.body.decode("utf-8", "surrogateescape")
        return
    if not isinstance(value, dict):
        yield from (("its text", text) for text in _strings(value))
        return
    for key, member in value.items():
        where = quoted(key, 40)
        yield where, key
        yield from ((where, text) for text in _strings(member))


def _strings(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from each
            waiting += reversed(each.values())
        elif isinstance(each, list):
            waiting += reversed(each)


def _object(body: bytes) -> Mapping[str, object]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()[:20]


def _code(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}{' ' + name if name else ''}"
