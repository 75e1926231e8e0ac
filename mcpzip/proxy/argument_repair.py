"""Repairs the tool name and the argument keys of a call, by the catalog (pure).

The rules:

1. A repair is made only if exactly one reading fits. Otherwise the call is passed on unchanged or refused. No
   value is changed or invented, no key is lost.
2. A name that begins with a configured server's name is never resolved to another server's tool
   (`server_prefix`). A bare name is repaired only while the tools of all servers are known. Tools that the
   config hides, and those that a server has lost (`lost_tools`), count as candidates but are never called. So
   a missing tool or server never redirects a call to another tool.
3. A typo is repaired only inside a word that no tool's name has: ``get_user`` and ``set_user``, ``user`` and
   ``users``, ``v1`` and ``v2`` differ by one letter, too.
4. The result lists every repair under ``_meta["mcpzip/repair"]``.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain

import msgspec

from mcpzip.catalog import Catalog
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, UnknownToolError
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.limits import ASKED_NAME, MEMBERS, NAME_COMPARED, REPAIRED
from mcpzip.model.names import split
from mcpzip.model.signature import signature
from mcpzip.proxy.arguments import ARROW, ToolCall, folded, read_object
from mcpzip.proxy.server_prefix import begins_misspelt, candidate_servers, named_server
from mcpzip.proxy.tool_result import META_PREFIX
from mcpzip.search.vocabulary import EditDistance
from mcpzip.wire import NotAnObject, quote, split_object, with_members
from mcpzip.wire.json_object import keys_of, members

REPAIR = META_PREFIX + "repair"

NEAREST = 3
"""Similar names in the error for an unknown name."""
MIN_TYPO_LENGTH = 8
"""Characters; a name that differs from a shorter one by a letter is rather another tool."""

_SHORT = ("arguments", "args", "params", "parameters", "input")
_LONG = ("toolarguments", "toolargs", "toolparams", "toolparameters", "toolinput")
_ALIASES = frozenset((*_SHORT, *_LONG))
"""Folded names that other proxies use for ``arguments``."""


def repair_name(
    name: str,
    catalog: Catalog,
    *,
    known: Catalog | None = None,
    servers: Collection[str] | None = None,
    incomplete: Collection[str] = (),
) -> tuple[Entry, str | None]:
    """The tool that ``name`` means, and the repair as a text, None without a repair.

    catalog: what clients may see. known: with what the config hides and servers have lost. servers: all that
    are configured (default: those of ``known``). incomplete: servers that may have more tools than are known.
    Raises UnknownToolError if no tool or several tools fit.
    """
    entry = catalog.get(name)
    if entry is not None:
        return entry, None
    if len(name) > ASKED_NAME:
        raise UnknownToolError(name)
    known = catalog if known is None else known
    servers = tuple(known.servers) if servers is None else servers
    candidates = candidate_servers(name, servers)
    if known.get(name) is None:  # a hidden tool's exact name means no other tool
        if candidates:
            repaired = _match_in_server(name, known, candidates, incomplete)
        else:
            repaired = _match_in_all(name, known, servers, incomplete)
        entry = catalog.get(repaired) if repaired is not None else None
    if entry is None:
        raise UnknownToolError(name, _nearest(name, catalog, candidates, incomplete))
    return entry, f"name: {name} {ARROW} {entry.name}"


def repair_arguments(call: ToolCall, entry: Entry) -> ToolCall:
    """``call`` with its arguments repaired by the schema of ``entry``; the same object if nothing was
    repaired. Arguments that still don't fit the schema are left to the upstream.

    Raises InvalidArgumentsError, with the tool's signature, when the arguments can't be read.
    """
    if call.error:
        raise InvalidArgumentsError(f"{call.error} {signature(entry)}")
    if call.extra:
        call = _unwrapped(call, entry)
    arguments, repairs = repair_keys(entry, call.arguments)
    return (
        msgspec.structs.replace(call, arguments=arguments, repairs=(*call.repairs, *repairs))
        if repairs
        else call
    )


def repair_keys(entry: Entry, arguments: bytes) -> tuple[bytes, tuple[str, ...]]:
    """``arguments`` (JSON text of an object) with misspelt keys corrected, and the repairs.

    A top-level key that is no property of the schema is replaced by the only property that is equal but for
    case and separators, unless that is given, too. All other bytes stay.
    """
    if len(arguments) > REPAIRED or not (spelling := _spelling(entry.raw)).folded:
        return arguments, ()
    try:
        given = keys_of(arguments)
    except NotAnObject:  # or one with more members than `limits.MEMBERS`
        return arguments, ()
    misspelt: dict[str, list[str]] = {}
    for key in given - spelling.known:
        if name := spelling.folded.get(folded(key)):
            misspelt.setdefault(name, []).append(key)
    renames = {keys[0]: name for name, keys in misspelt.items() if len(keys) == 1 and name not in given}
    return _renamed(arguments, renames) if renames else (arguments, ())


def repair_meta(result: bytes, repairs: Iterable[str]) -> bytes:
    """``result`` with ``repairs`` in its ``_meta``; all other bytes stay. A result that is no object, or has
    a ``_meta`` that is none, is returned unchanged.
    """
    texts = b",".join(map(quote, repairs))
    if not texts:
        return result
    try:
        meta = split_object(result).get("_meta", b"null")
        meta = b"{}" if meta == b"null" else meta
        earlier = split_object(meta).get(REPAIR, b"")  # of another mcpzip upstream
        if earlier.startswith(b"[") and (listed := earlier[1:-1].strip()):
            texts = b"%b,%b" % (listed, texts)
        return with_members(result, {"_meta": with_members(meta, {REPAIR: b"[%b]" % texts})})
    except NotAnObject:
        return result


# --- names --------------------------------------------------------------------------------------------------

_WORD_BOUNDARY = lazy_pattern(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_PIECES = 5


def _match_in_server(
    name: str, known: Catalog, candidates: Collection[str], incomplete: Collection[str]
) -> str | None:
    """The tool that ``name`` fits, of the server that it belongs to; None if a tool of another candidate
    fits, or may fit.
    """
    server = named_server(name, candidates)
    if any(each in incomplete for each in candidates if each != server):
        return None
    found = known.alike(name, candidates) or _typo_matches(name, known)
    return found[0] if len(found) == 1 and _server(found[0]) == server else None


def _match_in_all(
    name: str, known: Catalog, servers: Collection[str], incomplete: Collection[str]
) -> str | None:
    """The only tool that ``name`` fits, which begins with no server's name or with a misspelt one."""
    if incomplete:
        return None
    found = {*known.alike(name), *_typo_matches(name, known)}
    if len(found) != 1:
        return None
    [match] = found
    return None if begins_misspelt(name, (each for each in servers if each != _server(match))) else match


def _nearest(
    name: str, catalog: Catalog, candidates: Collection[str], incomplete: Collection[str]
) -> tuple[str, ...]:
    """Similar names for the error; only those of the candidate servers while one of these may have the
    tool."""
    if not any(each in incomplete for each in candidates):
        return catalog.nearest(name)
    return tuple(near for near in catalog.nearest(name, len(catalog)) if _server(near) in candidates)[
        :NEAREST
    ]


def _server(name: str) -> str:
    """The server of the tool called ``name``."""
    return (split(name) or (name,))[0]


def _typo_matches(name: str, catalog: Catalog) -> tuple[str, ...]:
    """The only tool at edit distance 1 from ``name``, if no other is at distance 2 or less."""
    if not MIN_TYPO_LENGTH <= len(name) <= NAME_COMPARED:
        return ()
    # Two edits change four pieces at most, so that a name within distance 2 contains one of five pieces.
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
    """Whether ``name`` and ``other`` differ in letters only, with a letter before and after the
    difference."""
    first = next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), 0)
    last = 0
    while last < min(len(name), len(other)) - first and name[-1 - last] == other[-1 - last]:
        last += 1
    differing = name[first : len(name) - last] + other[first : len(other) - last]
    around = name[first - 1 : first] + name[len(name) - last : len(name) - last + 1]
    return differing.isalpha() and len(around) == 2 and around.isalpha()


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORD_BOUNDARY.split(name)]


# --- keys ---------------------------------------------------------------------------------------------------


class _Schema(msgspec.Struct):
    """The keywords that determine which keys an object may have (JSON Schema 2020-12, core 10)."""

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
        """Whether no keyword allows keys other than ``properties``. A missing ``additionalProperties`` counts
        as false here, because most schemas leave it out.
        """
        indirect = (self.reference, self.dynamic, self.dependent, self.then, self.otherwise)
        parts = chain(self.all, self.any, self.one)
        return (
            not self.pattern
            and bytes(self.additional) == bytes(self.unevaluated) == b"false"
            and indirect == (None,) * len(indirect)
            and all(part.keys() <= {"required", "title", "description"} for part in parts)
        )


class _Tool(msgspec.Struct):
    schema: _Schema = msgspec.field(name="inputSchema")


class _Spelling(msgspec.Struct, frozen=True):
    """The keys of a tool's arguments. known: its properties. closed: whether there are no other keys. folded:
    the properties by their folded names, without those that share one; empty unless closed.
    """

    known: frozenset[str] = frozenset()
    closed: bool = False
    folded: Mapping[str, str] = {}


@lru_cache(maxsize=128)
def _spelling(raw: bytes) -> _Spelling:
    if len(raw) > REPAIRED:
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
    repairs: dict[str, None] = {}
    done = 0
    for member in members(arguments):
        if name := names.get(member.key):
            colon = arguments[member.start : member.value].rstrip(b" \t\r\n")[:-1].rstrip(b" \t\r\n")
            pieces += arguments[done : member.start], quote(name)
            done = member.start + len(colon)
            repairs[f"{member.key} {ARROW} {name}"] = None
    return b"".join([*pieces, arguments[done:]]), tuple(repairs)


# --- arguments beside the name -----------------------------------------------------------------------------


def _unwrapped(call: ToolCall, entry: Entry) -> ToolCall:
    """``call`` with its only extra member as the arguments, if that is ``arguments`` under another name.

    Raises InvalidArgumentsError when ``timeout`` could be the tool's or that of the meta-tool.
    """
    spelling = _spelling(entry.raw)
    if call.timeout is not None and "timeout" in spelling.known:
        raise InvalidArgumentsError(
            f"'timeout' could be the tool's or {call.through}'s; put the tool's arguments inside "
            f"'arguments'. {signature(entry)}"
        )
    if len(call.extra) != 1:
        return call
    [(key, value)] = call.extra.items()
    alias = folded(key)
    is_exact = alias == "arguments"
    if alias not in _ALIASES or key in spelling.known or alias in spelling.folded:
        return call
    if not spelling.closed or not (spelling.known or is_exact):
        return call
    try:
        arguments, repairs = read_object("arguments", value)
    except InvalidArgumentsError:
        return call
    if arguments == b"{}" and not (is_exact or value.startswith(b"{")):  # `input: ""` is no object
        return call
    renamed = f"{call.through}: {key} {ARROW} arguments"
    return msgspec.structs.replace(
        call, arguments=arguments, repairs=(*call.repairs[:-1], renamed, *repairs), extra={}
    )
