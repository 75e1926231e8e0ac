"""What a server offers besides its tools: prompts, resources and resource templates.

The rule: each is kept as the JSON text it was received in. All that is read from it is the one member it is
asked for by; what the rest says is between the server and the client.
"""

from dataclasses import dataclass

import msgspec

from mcpzip.model import limits
from mcpzip.model.errors import InvalidOfferError


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of offer. word: what people call it. key: the member it is asked for by. longest: the
    characters that may have.
    """

    word: str
    key: str
    longest: int


PROMPT = Kind("prompt", "name", limits.NAME)
RESOURCE = Kind("resource", "uri", limits.URI)
TEMPLATE = Kind("resource template", "uriTemplate", limits.URI)


def key_of(kind: Kind, server: str, raw: bytes) -> str:
    """What ``raw``, an offer of ``server``, is asked for by.

    Raises InvalidOfferError when it is not a JSON object that says so with a string, one of ``kind.longest``
    characters at most.
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
