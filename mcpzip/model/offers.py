"""Prompts, resources and resource templates, together called offers.

They are kept as the JSON text that was received. Only the member by which an offer is requested is read; the
rest is for the client.
"""

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidOfferError


class Kind(msgspec.Struct, frozen=True):
    """One kind of offer.

    word: its name in messages. key: the member by which it is requested. longest: the maximum number of
    characters of that member.
    """

    word: str
    key: str
    longest: int


PROMPT = Kind("prompt", "name", limits.NAME)
RESOURCE = Kind("resource", "uri", limits.URI)
TEMPLATE = Kind("resource template", "uriTemplate", limits.URI)


def key_of(kind: Kind, server: str, raw: bytes) -> str:
    """The name or URI by which the offer ``raw`` of ``server`` is requested.

    Raises InvalidOfferError unless ``raw`` is a JSON object of at most `limits.MEMBERS` members whose
    ``kind.key`` is a string of 1 to ``kind.longest`` characters.
    """
    try:
        offer = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidOfferError(f"a {kind.word} of {server!r} is not JSON: {error}") from error
    if not isinstance(offer, dict):
        raise InvalidOfferError(f"a {kind.word} of {server!r} is not a JSON object")
    if len(offer) > limits.MEMBERS:
        raise InvalidOfferError(f"a {kind.word} of {server!r} has more than {limits.MEMBERS:,} members")
    key = offer.get(kind.key)
    if not isinstance(key, str) or not key:
        raise InvalidOfferError(f"a {kind.word} of {server!r} has no {kind.key}")
    if len(key) > kind.longest:
        raise InvalidOfferError(
            f"a {kind.word} of {server!r} has a {kind.key} of {len(key):,} characters ({kind.longest:,} at "
            f"most), {key[:40]!r}…"
        )
    return key
