"""The config's ``search``.

The rule: `semantic` is a word, an address or an object, and means the same in each spelling. What an address
leaves open, whose API is spoken there, is read from the address.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from mcpzip.config.node import TEXT, Node
from mcpzip.config.schema import (
    DEFAULT_LIMIT,
    EMBEDDING_DEADLINE,
    GEMINI_MODEL,
    LLM_DEADLINE,
    MAX_LIMIT,
    MAX_TOKENS,
    Provider,
    SearchConfig,
    Secret,
    SemanticConfig,
)
from mcpzip.config.server import URL

KEYS = ("default_limit", "max_tokens", "learn", "model", "llm_deadline_seconds", "semantic", "threshold")
SEMANTIC_KEYS = (
    "provider",
    "url",
    "model",
    "api_key",
    "dimensions",
    "deadline_seconds",
    "query_prefix",
    "document_prefix",
)

PROVIDERS: Mapping[str, Provider] = {
    "local": "local",
    "onnx": "onnx",
    "ollama": "ollama",
    "openai": "openai",
    "off": "off",
}
OF_A_SERVER = tuple(key for key in SEMANTIC_KEYS if key not in ("provider", "deadline_seconds"))
"""Keys that mean something only where another program embeds."""

TOKENS = (100, 20_000)
DIMENSIONS = (8, 16_384)
LONGEST_DEADLINE = 60.0
"""Seconds; who waits longer has gone elsewhere."""

OLLAMA_PORT = 11434

_PROVIDER = 'write "local", "onnx", "ollama", "openai" or "off"'
_SEMANTIC = 'write "local", "onnx", "ollama", "off", the URL of an embedding server, or an object'
_URL = "write it whole, such as http://127.0.0.1:11434"
_SHOWABLE = re.compile(r"[\w.-]{0,20}")
"""What is quoted in an error. Anything else might be an address with a password in it."""


def read_search(node: Node | None) -> SearchConfig:
    """The ``search`` of a config; None for a config without. Raises ConfigError."""
    if node is None:
        return SearchConfig()
    node.object('write an object, such as {"default_limit": 5}', KEYS)
    limit, tokens, learn, model, deadline, semantic, threshold = map(node.get, KEYS)
    return SearchConfig(
        default_limit=_limit(limit) if limit else DEFAULT_LIMIT,
        max_tokens=tokens.whole(*TOKENS) if tokens else MAX_TOKENS,
        learn=learn.flag() if learn else True,
        model=_model(model),
        llm_deadline=deadline.number("seconds", LONGEST_DEADLINE) if deadline else LLM_DEADLINE,
        semantic=_semantic(semantic) if semantic else SemanticConfig(),
        threshold=threshold.within(0, 1) if threshold else None,
    )


def speaks(url: str) -> Provider:
    """Whose API is spoken at ``url``: "ollama" on its port or under /api, unless under /v1; else "openai".

    Raises ValueError for what is no URL.
    """
    from urllib.parse import urlsplit  # slow to import, and most configs name no server

    parts = urlsplit(url)
    path = f"{parts.path}/"
    if "/v1/" in path:
        return "openai"
    return "ollama" if parts.port == OLLAMA_PORT or "/api/" in path else "openai"


def _limit(node: Node) -> int:
    limit = node.whole(1, 100)
    if limit > MAX_LIMIT:
        node.warn(f"{MAX_LIMIT} tools are shown at most", f"write a number from 1 to {MAX_LIMIT}")
    return min(limit, MAX_LIMIT)


def _model(node: Node | None) -> str | None:
    model = _text(node) or GEMINI_MODEL
    if node and not re.fullmatch(r"[\w.:@/-]+", model):
        raise node.wrong("no model is called so", f'write its name, such as "{GEMINI_MODEL}", or "off"')
    return None if model == "off" else model


def _semantic(node: Node) -> SemanticConfig:
    if isinstance(node.value, dict):
        return _object(node.object(_SEMANTIC, SEMANTIC_KEYS))
    said = node.text(_SEMANTIC).strip()
    if "://" in said:
        return SemanticConfig(_speaks(node, said), said)
    return SemanticConfig(_provider(node, said or "local", _SEMANTIC))


def _object(node: Node) -> SemanticConfig:
    provider, url, model, key, dimensions, deadline, query, document = map(node.get, SEMANTIC_KEYS)
    address = url.text(_URL).strip() if url else ""
    said = _text(provider)
    secret = _text(key)
    if url and not address:
        # Its variable isn't set, which has been told: no text goes to an address nobody named.
        return SemanticConfig()
    found = SemanticConfig(
        provider=_provider(provider, said, _PROVIDER) if provider and said else "local",
        url=address,
        model=_text(model),
        api_key=Secret(secret) if secret else None,
        dimensions=dimensions.whole(*DIMENSIONS) if dimensions else None,
        deadline=deadline.number("seconds", LONGEST_DEADLINE) if deadline else EMBEDDING_DEADLINE,
        query_prefix=query.text(TEXT) if query else None,
        document_prefix=document.text(TEXT) if document else None,
    )
    if url:
        spoken = _speaks(url, address)
        found = found if said else replace(found, provider=spoken)
    elif not said:
        raise node.wrong('neither a "provider" nor a "url"', _PROVIDER)
    if found.provider not in ("ollama", "openai"):
        for unused in filter(None, map(node.get, OF_A_SERVER)):
            unused.warn(f'not used by the provider "{found.provider}"', "remove it, or name another provider")
    return found


def _provider(node: Node, said: str, remedy: str) -> Provider:
    if said not in PROVIDERS:
        raise node.wrong(f"found {said!r}" if _SHOWABLE.fullmatch(said) else "found something else", remedy)
    return PROVIDERS[said]


def _speaks(node: Node, url: str) -> Provider:
    try:
        if URL.fullmatch(url):
            return speaks(url)
    except ValueError:  # a port that is no number, a bracket that is not closed
        pass
    raise node.wrong("not an http address", _URL)


def _text(node: Node | None) -> str | None:
    return (node.text(TEXT).strip() or None) if node else None
