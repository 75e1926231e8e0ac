"""The argument doctor: a call that is nearly right, made right by what the catalog knows (pure).

The rules:

1. A repair is made where exactly one reading fits; otherwise the call is left as it is, for the upstream or
   an error to judge. No value is changed or invented, no key is lost.
2. A name that begins with a configured server's name never comes to mean another server's tool (`owners`), a
   bare one means a tool only where everything that any server has is known, and what the config hides counts
   as a candidate but is never the answer: no call lands elsewhere because its tool, or its server, is away.
3. A slip of a letter is mended only inside a word that no tool has: ``get_user`` and ``set_user``, ``user``
   and ``users``, ``v1`` and ``v2`` are one letter apart, and not slips.
4. Every repair is named in the result, under ``_meta["mcpzip/repair"]``.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, UnknownToolError
from mcpzip.model.limits import ASKED_NAME, MEMBERS, MENDED, NAME_COMPARED
from mcpzip.model.names import split
from mcpzip.model.signature import signature
from mcpzip.proxy.arguments import ARROW, Call, folded, read_object
from mcpzip.proxy.owners import may_mean, may_misspell, owner_of
from mcpzip.proxy.reply import META_PREFIX
from mcpzip.search.vocabulary import EditDistance
from mcpzip.wire import NotAnObject, quote, split_object, with_members
from mcpzip.wire.json_object import members

REPAIR = META_PREFIX + "repair"

NEAREST = 3
"""Names that are told in the place of one that isn't there."""
SHORTEST_MENDED = 8
"""Characters; in a shorter name one slip is as likely as another tool."""

_SHORT = ("arguments", "args", "params", "parameters", "input")
_LONG = ("toolarguments", "toolargs", "toolparams", "toolparameters", "toolinput")
_ALIASES = frozenset((*_SHORT, *_LONG))
"""What other proxies call ``arguments``, folded."""


def repair_name(
    name: str,
    catalog: Catalog,
    *,
    known: Catalog | None = None,
    servers: Collection[str] | None = None,
    unsure: Collection[str] = (),
) -> tuple[Entry, str | None]:
    """The tool meant by ``name``, and what was repaired.

    catalog: what a client may see; known: the same and what the config hides; servers: all that are
    configured (default: those of ``known``); unsure: those of them that may have more tools than are known.
    Raises UnknownToolError when no tool, or more than one, could be meant.
    """
    entry = catalog.get(name)
    if entry is not None:
        return entry, None
    if len(name) > ASKED_NAME:
        raise UnknownToolError(name)
    known = catalog if known is None else known
    servers = tuple(known.servers) if servers is None else servers
    named = may_mean(name, servers)
    if known.get(name) is None:  # else it is hidden: no other tool is meant
        meant = _of_its_server(name, known, named, unsure) if named else _of_any(name, known, servers, unsure)
        entry = catalog.get(meant) if meant is not None else None
    if entry is None:
        raise UnknownToolError(name, _nearest(name, catalog, named, unsure))
    return entry, f"name: {name} {ARROW} {entry.name}"


def repair_arguments(call: Call, entry: Entry) -> Call:
    """``call`` as ``entry`` can take it; the very same where nothing is wrong. What still doesn't fit is the
    upstream's to judge.

    Raises InvalidArgumentsError, with the tool's signature, when the arguments can't be read.
    """
    if call.fault:
        raise InvalidArgumentsError(f"{call.fault} {signature(entry)}")
    if call.beside:
        call = _unwrapped(call, entry)
    arguments, repairs = repair_keys(entry, call.arguments)
    return replace(call, arguments=arguments, repairs=(*call.repairs, *repairs)) if repairs else call


def repair_keys(entry: Entry, arguments: bytes) -> tuple[bytes, tuple[str, ...]]:
    """``arguments`` (a JSON object) with the tool's own spelling of its keys, and what was repaired.

    A top-level key that is no property takes the name of the one property that is equal but for case and
    separators, if that isn't given too. Nothing else changes by a byte.
    """
    if len(arguments) > MENDED or not (spelt := _spelling(entry.raw)).folded:
        return arguments, ()
    try:
        given = split_object(arguments).keys()
    except NotAnObject:  # it has more members than are looked into
        return arguments, ()
    if given <= spelt.known:
        return arguments, ()
    meant: dict[str, list[str]] = {}
    for key in given - spelt.known:
        if right := spelt.folded.get(folded(key)):
            meant.setdefault(right, []).append(key)
    wrong = {keys[0]: right for right, keys in meant.items() if len(keys) == 1 and right not in given}
    return _renamed(arguments, wrong) if wrong else (arguments, ())


def repair_meta(result: bytes, repairs: Iterable[str]) -> bytes:
    """``result`` with ``repairs`` named in its ``_meta``; everything else byte for byte.

    A result that is no object, or whose ``_meta`` is none, stays as it is.
    """
    told = b",".join(map(quote, repairs))
    if not told:
        return result
    try:
        meta = split_object(result).get("_meta", b"null")
        meta = b"{}" if meta == b"null" else meta
        theirs = split_object(meta).get(REPAIR, b"")  # of an mcpzip behind this one
        if theirs.startswith(b"[") and (listed := theirs[1:-1].strip()):
            told = b"%b,%b" % (listed, told)
        return with_members(result, {"_meta": with_members(meta, {REPAIR: b"[%b]" % told})})
    except NotAnObject:
        return result


# --- names --------------------------------------------------------------------------------------------------

_EDGE = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_PIECES = 5


def _of_its_server(name: str, known: Catalog, named: Collection[str], unsure: Collection[str]) -> str | None:
    """The tool of the server that ``name`` names, if no other that it may name has one, or may have."""
    owner = owner_of(name, named)
    if any(each in unsure for each in named if each != owner):
        return None
    found = known.alike(name, named) or _slips(name, known)
    return found[0] if len(found) == 1 and _server(found[0]) == owner else None


def _of_any(name: str, known: Catalog, servers: Collection[str], unsure: Collection[str]) -> str | None:
    """The only tool that a bare ``name`` can mean, or one whose server is misspelt, where all are known."""
    if unsure:
        return None
    found = {*known.alike(name), *_slips(name, known)}
    if len(found) != 1:
        return None
    [meant] = found
    return None if may_misspell(name, (each for each in servers if each != _server(meant))) else meant


def _nearest(name: str, catalog: Catalog, named: Collection[str], unsure: Collection[str]) -> tuple[str, ...]:
    """The tools to call in the place of ``name``: of the server that it names only, where that one may have
    it yet.
    """
    if not any(each in unsure for each in named):
        return catalog.nearest(name)
    return tuple(near for near in catalog.nearest(name, len(catalog)) if _server(near) in named)[:NEAREST]


def _server(name: str) -> str:
    """The server of the tool called ``name``."""
    return (split(name) or (name,))[0]


def _slips(name: str, catalog: Catalog) -> tuple[str, ...]:
    """The one tool a slip of a letter away from ``name``, when no other is even two away."""
    if not SHORTEST_MENDED <= len(name) <= NAME_COMPARED:
        return ()
    # Two mistakes touch no more than four pieces: one of five is left whole.
    size = -(-len(name) // _PIECES)
    pieces = [name[at : at + size] for at in range(0, len(name), size)]
    distance = EditDistance(name).distance
    near: list[str] = []
    for entry in catalog.entries:
        other = entry.name
        if abs(len(other) - len(name)) <= 2 and any(map(other.__contains__, pieces)) and distance(other) <= 2:
            near.append(other)
    if len(near) != 1 or distance(near[0]) != 1 or not _inside_a_word(name, near[0]):
        return ()
    words = set(chain.from_iterable(_words(entry.name) for entry in catalog.entries))
    return () if words.issuperset(_words(name)) else (near[0],)


def _inside_a_word(name: str, other: str) -> bool:
    """Whether the two differ in letters only, with a letter on either side."""
    first = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), 0)
    last = 0
    while last < min(len(name), len(other)) - first and name[-1 - last] == other[-1 - last]:
        last += 1
    differing = name[first : len(name) - last] + other[first : len(other) - last]
    around = name[first - 1 : first] + name[len(name) - last : len(name) - last + 1]
    return differing.isalpha() and len(around) == 2 and around.isalpha()


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _EDGE.split(name)]


# --- keys ---------------------------------------------------------------------------------------------------


class _Schema(msgspec.Struct):
    """The keywords that say which keys an object may have (JSON Schema 2020-12, core 10)."""

    properties: dict[str, msgspec.Raw] = {}
    pattern: dict[str, msgspec.Raw] = msgspec.field(default={}, name="patternProperties")
    additional: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"false"), name="additionalProperties")
    unevaluated: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"false"), name="unevaluatedProperties")
    reference: msgspec.Raw | None = msgspec.field(default=None, name="$ref")
    dynamic: msgspec.Raw | None = msgspec.field(default=None, name="$dynamicRef")
    dependent: msgspec.Raw | None = msgspec.field(default=None, name="dependentSchemas")
    then: msgspec.Raw | None = None
    otherwise: msgspec.Raw | None = msgspec.field(default=None, name="else")
    all: list[dict[str, msgspec.Raw]] = msgspec.field(default=[], name="allOf")
    any: list[dict[str, msgspec.Raw]] = msgspec.field(default=[], name="anyOf")
    one: list[dict[str, msgspec.Raw]] = msgspec.field(default=[], name="oneOf")

    @property
    def closed(self) -> bool:
        """Whether no key is welcome but those of ``properties``, as far as anybody cared to say."""
        elsewhere = (self.reference, self.dynamic, self.dependent, self.then, self.otherwise)
        parts = chain(self.all, self.any, self.one)
        return (
            not self.pattern
            and bytes(self.additional) == bytes(self.unevaluated) == b"false"
            and elsewhere == (None,) * len(elsewhere)
            and all(part.keys() <= {"required", "title", "description"} for part in parts)
        )


class _Tool(msgspec.Struct):
    schema: _Schema = msgspec.field(name="inputSchema")


@dataclass(frozen=True, slots=True)
class _Spelling:
    """known: the properties. closed: whether no other key is welcome. folded: each property by its spelling
    without case and separators, where no other has the same; empty unless closed.
    """

    known: frozenset[str] = frozenset()
    closed: bool = False
    folded: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=128)
def _spelling(raw: bytes) -> _Spelling:
    if len(raw) > MENDED:
        return _Spelling()
    try:
        schema = msgspec.json.decode(raw, type=_Tool).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Spelling()
    if len(schema.properties) > MEMBERS:
        return _Spelling()
    known = frozenset(schema.properties)
    if not schema.closed:
        return _Spelling(known)
    alike: dict[str, list[str]] = {}
    for name in known:
        alike.setdefault(folded(name), []).append(name)
    return _Spelling(known, True, {key: names[0] for key, names in alike.items() if key and len(names) == 1})


def _renamed(arguments: bytes, names: Mapping[str, str]) -> tuple[bytes, tuple[str, ...]]:
    pieces: list[bytes] = []
    told: dict[str, None] = {}
    done = 0
    for member in members(arguments):
        if right := names.get(member.key):
            colon = arguments[member.start : member.value].rstrip(b" \t\r\n")[:-1].rstrip(b" \t\r\n")
            pieces += arguments[done : member.start], quote(right)
            done = member.start + len(colon)
            told[f"{member.key} {ARROW} {right}"] = None
    return b"".join([*pieces, arguments[done:]]), tuple(told)


# --- arguments that stood beside the name -------------------------------------------------------------------


def _unwrapped(call: Call, entry: Entry) -> Call:
    """``call`` when one of the keys beside ``name`` is ``arguments`` by another name.

    Raises InvalidArgumentsError when a key could be the tool's as well as our own.
    """
    spelt = _spelling(entry.raw)
    if call.timeout is not None and "timeout" in spelt.known:
        raise InvalidArgumentsError(
            "'timeout' could be the tool's or execute_tool's; put the tool's arguments inside 'arguments'. "
            + signature(entry)
        )
    if len(call.beside) != 1:
        return call
    [(key, value)] = call.beside.items()
    alias = folded(key)
    ours = alias == "arguments"
    if alias not in _ALIASES or key in spelt.known or alias in spelt.folded:
        return call
    if not spelt.closed or not (spelt.known or ours):
        return call
    try:
        arguments, repairs = read_object("arguments", value)
    except InvalidArgumentsError:
        return call
    if arguments == b"{}" and not (ours or value.startswith(b"{")):  # `input: ""` is no object
        return call
    renamed = f"execute_tool: {key} {ARROW} arguments"
    return replace(call, arguments=arguments, repairs=(*call.repairs[:-1], renamed, *repairs), beside={})
