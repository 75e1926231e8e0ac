"""Several cassettes as one (pure).

Sessions are numbered anew, and so are masks: ``[masked 1]`` of two cassettes are two secrets.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from mcpzip.cassettes.cassette import MASK, Cassette, Check, Event, Exchange, Masked, Match
from mcpzip.cassettes.files import CassetteError
from mcpzip.cassettes.toml_values import Value
from mcpzip.wire.canonical_json import canonical
from mcpzip.wire.json_object import NotAnObject, join_object, split_object
from mcpzip_fakes.cassettes.messages import HANDSHAKE, read_message

_OPENING = (*HANDSHAKE, "notifications/initialized")
_MASK = re.compile(r"\[masked (\d+)\]")
_MASK_BYTES = re.compile(rb"\[masked (\d+)\]")


class Part:
    """One of the cassettes. path: its file; more: the other keys of the file."""

    def __init__(self, path: str, cassette: Cassette, more: Mapping[str, Value]) -> None:
        self.path, self.cassette, self.more = path, cassette, more


def merge(parts: Sequence[Part], *, once: bool = False) -> tuple[Cassette, dict[str, Value], int]:
    """The cassette of all, the other keys of its file, and how many exchanges were left out.

    once: leave out exchanges that have the same request and the same events as an earlier one, but for ids
    and times; and sessions of which only the handshake is then left. Name, command and URL are those of the
    first. Raises CassetteError if the cassettes don't fit together.
    """
    first = parts[0].cassette
    whole = replace(first, match=_match(parts), check=_check(parts), sessions=(), exchanges=(), masked=())
    more: dict[str, Value] = {}
    exchanges: list[Exchange] = []
    highest = secrets = 0
    for part in parts:
        _fits(part, parts[0], more)
        more |= part.more
        renumbered, secrets = _with_masks_from(part.cassette, secrets)
        numbers = sorted(
            {each.number for each in renumbered.sessions} | {each.session for each in renumbered.exchanges}
        )
        anew = {number: highest + place for place, number in enumerate(numbers, 1)}
        highest += len(numbers)
        sessions = tuple(replace(each, number=anew[each.number]) for each in renumbered.sessions)
        whole = replace(whole, sessions=whole.sessions + sessions, masked=whole.masked + renumbered.masked)
        exchanges += [replace(each, session=anew[each.session]) for each in renumbered.exchanges]
    kept = _without_repetitions(exchanges) if once else exchanges
    if once:
        left = {each.session for each in kept}
        whole = replace(whole, sessions=tuple(each for each in whole.sessions if each.number in left))
    return whole.with_exchanges(kept), more, len(exchanges) - len(kept)


def _fits(part: Part, first: Part, more: Mapping[str, Value]) -> None:
    if part.cassette.transport != first.cassette.transport:
        raise CassetteError(
            part.path,
            "recorded.transport",
            f"{part.cassette.transport!r}, but {first.path} was recorded over {first.cassette.transport!r}",
            "merge cassettes of one transport",
        )
    for key, value in part.more.items():
        if more.get(key, value) != value:
            raise CassetteError(
                part.path, key, f"it differs from that of {first.path}", "make both the same, or remove one"
            )


def _match(parts: Sequence[Part]) -> Match:
    found = [part.cassette.match for part in parts]
    return Match(
        ignore=tuple(dict.fromkeys(path for each in found for path in each.ignore)),
        repeat=all(each.repeat for each in found),
    )


def _check(parts: Sequence[Part]) -> Check:
    found = [part.cassette.check for part in parts]
    return Check(
        ignore=tuple(dict.fromkeys(path for each in found for path in each.ignore)),
        shape=any(each.shape for each in found),
        call=tuple(dict.fromkeys(tool for each in found for tool in each.call)),
    )


def _with_masks_from(cassette: Cassette, used: int) -> tuple[Cassette, int]:
    """``cassette`` with masks from number ``used`` + 1, and the highest number then used."""
    numbers = {int(found[1]) for each in cassette.masked if (found := _MASK.fullmatch(each.mask))}
    if not numbers:
        return cassette, used
    anew = {number: used + place for place, number in enumerate(sorted(numbers), 1)}

    def mask(number: str) -> str:
        return MASK.format(anew.get(int(number), number))

    def text(value: str) -> str:
        return _MASK.sub(lambda found: mask(found[1]), value)

    def data(value: bytes) -> bytes:
        return _MASK_BYTES.sub(lambda found: mask(found[1].decode()).encode(), value)

    def event(each: Event) -> Event:
        return replace(each, data=data(each.data), fields=tuple(map(text, each.fields)))

    def exchange(each: Exchange) -> Exchange:
        headers = {name: text(value) for name, value in each.headers.items()}
        response = each.response and replace(
            each.response, headers={name: text(value) for name, value in each.response.headers.items()}
        )
        return replace(
            each,
            request=data(each.request),
            headers=headers,
            response=response,
            events=tuple(map(event, each.events)),
        )

    return replace(
        cassette,
        exchanges=tuple(map(exchange, cassette.exchanges)),
        masked=tuple(
            Masked(mask=text(each.mask), where=each.where, why=each.why) for each in cassette.masked
        ),
    ), used + len(numbers)


def _without_repetitions(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """A session keeps its handshake, unless nothing else is left of it."""
    seen = set()
    kept: list[Exchange] = []
    openings: list[Exchange] = []
    for each in exchanges:
        key = (
            each.verb,
            tuple(sorted(each.headers.items())),
            _without_id(each.request),
            each.response and each.response.status,
            tuple((event.kind, _without_id(event.data), event.fields, event.code) for event in each.events),
        )
        message = read_message(each.request)
        if message is not None and message.method in _OPENING:
            openings.append(each)
        elif key not in seen or not each.request:
            kept.append(each)
        seen.add(key)
    left = {each.session for each in kept}
    return kept + [each for each in openings if each.session in left]


def _without_id(raw: bytes) -> bytes:
    """The canonical form of a message without its id; other data as it is."""
    try:
        fields = split_object(raw)
    except NotAnObject:
        return raw
    fields.pop("id", None)
    return canonical(join_object(fields))
