"""What a server listed, as it lies in a store that processes share (pure).

The rule: it is what the server said, before anything was taken out of it, so that each process decides by
itself what of it may be offered.

    zlib of {"format":"mcpzip-listing","version":1,"at":…,"tools":[…],…}
"""

import zlib

import msgspec

from mcpzip.catalog.catalog import Listed
from mcpzip.model import limits
from mcpzip.system.formats import Format, Head, UnusableError

FORMAT = Format("mcpzip-listing", 1, "a listing")
_ABSENT = msgspec.Raw()


class _Listing(Head, omit_defaults=True):
    at: float
    tools: tuple[msgspec.Raw, ...]
    prompts: tuple[msgspec.Raw, ...] = ()
    resources: tuple[msgspec.Raw, ...] = ()
    templates: tuple[msgspec.Raw, ...] = ()
    protocol: str | None = None
    title: str = ""
    instructions: str = ""
    capabilities: msgspec.Raw = _ABSENT
    info: msgspec.Raw = _ABSENT
    ttl: float | None = None
    over: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()


def encode(listed: Listed) -> bytes:
    """Raises ValueError for what can't be written down, or is too large."""
    tools, prompts, resources, templates = (
        tuple(map(msgspec.Raw, raws))
        for raws in (listed.tools, listed.prompts, listed.resources, listed.templates)
    )
    data = msgspec.json.encode(
        _Listing(
            FORMAT.name,
            FORMAT.version,
            at=listed.at,
            tools=tools,
            prompts=prompts,
            resources=resources,
            templates=templates,
            protocol=listed.protocol,
            title=listed.title,
            instructions=listed.instructions,
            capabilities=msgspec.Raw(listed.capabilities),
            info=msgspec.Raw(listed.info) if listed.info else _ABSENT,
            ttl=listed.ttl,
            over=listed.over,
            unlisted=listed.unlisted,
        )
    )
    if len(data) > limits.SNAPSHOT_SERVER:
        raise ValueError(f"its lists take {len(data):,} bytes")
    return zlib.compress(data)


def decode(data: bytes, server: str, fingerprint: str, now: float) -> Listed:
    """What ``server`` listed. now: Unix time in seconds; nothing was listed later, whatever the clock of who
    wrote it said. Raises UnusableError.
    """
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, limits.SNAPSHOT_SERVER)
    except zlib.error:
        raise UnusableError(f"isn't {FORMAT.noun} of mcpzip") from None
    if not inflater.eof:
        raise UnusableError("is cut off, or too large")
    found = FORMAT.decode(text, _Listing)
    tools, prompts, resources, templates = (
        tuple(map(bytes, raws)) for raws in (found.tools, found.prompts, found.resources, found.templates)
    )
    return Listed(
        server,
        tools,
        at=min(found.at, now),
        protocol=found.protocol,
        fingerprint=fingerprint,
        title=found.title,
        instructions=found.instructions,
        prompts=prompts,
        resources=resources,
        templates=templates,
        capabilities=bytes(found.capabilities) or b"{}",
        info=bytes(found.info),
        ttl=found.ttl,
        over=found.over,
        unlisted=found.unlisted,
    )
