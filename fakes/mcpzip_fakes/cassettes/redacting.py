"""A cassette without secrets that are still in it (pure)."""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mcpzip.cassettes.cassette import Cassette, Exchange, Masked
from mcpzip.cassettes.masking import Masker
from mcpzip.cassettes.observer import masked_event, masked_headers, masked_response


def redacted(
    cassette: Cassette, secrets: Mapping[str, str], paths: Iterable[str]
) -> tuple[Cassette, list[Masked]]:
    """``cassette`` without its secrets, and those that were masked now. secrets, paths: as in `Masker`,
    beside what looks like a secret.
    """
    found: list[Masked] = []
    masker = Masker(secrets, paths, found.append, known=cassette.masked)
    once = _masked(cassette, masker)
    # A secret may be named as one only after the message that has it first.
    whole = _masked(once, masker) if found else once
    return replace(whole, masked=(*cassette.masked, *found)), found


def _masked(cassette: Cassette, masker: Masker) -> Cassette:
    return replace(
        cassette,
        command=masker.command(cassette.command, "the command"),
        url=masker.url(cassette.url, "the URL") if cassette.url else "",
        exchanges=tuple(_exchange(each, number, masker) for number, each in enumerate(cassette.exchanges, 1)),
    )


def _exchange(exchange: Exchange, number: int, masker: Masker) -> Exchange:
    where = f"request {number}"
    return replace(
        exchange,
        request=masker.message(exchange.request, where),
        headers=masked_headers(masker, exchange.headers, where),
        response=masked_response(masker, exchange.response, f"answer {number}"),
        events=tuple(masked_event(masker, event, number) for event in exchange.events),
    )
