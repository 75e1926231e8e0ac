"""The ``search`` of a config.

The rule: ``semantic`` is a provider, a URL or an object. Without a provider, the URL determines the API.
"""

import re
from typing import Literal, get_args

from msgspec.structs import replace

from mcpzip.config.node import TEXT, Node
from mcpzip.config.schema import (
    DEFAULT_LIMIT,
    EMBEDDING_DEADLINE,
    GEMINI_MODEL,
    LLM_DEADLINE,
    MAX_LIMIT,
    MAX_TOKENS,
    Learn,
    Provider,
    SearchConfig,
    Secret,
    SemanticConfig,
)
from mcpzip.config.server import URL

KEYS = (
    *("default_limit", "max_tokens", "learn", "model", "llm_deadline_seconds", "semantic", "threshold"),
    "details",
)
SEMANTIC_KEYS = (
    *("provider", "url", "model", "api_key", "dimensions", "deadline_seconds"),
    *("query_prefix", "document_prefix"),
)

SERVER_ONLY_KEYS = tuple(key for key in SEMANTIC_KEYS if key not in ("provider", "deadline_seconds"))
"""Keys that have an effect only with an embedding server."""

TOKENS = (100, 20_000)
DIMENSIONS = (8, 16_384)
LONGEST_DEADLINE = 60.0
"""Seconds."""

OLLAMA_PORT = 11434

LEARN: tuple[Literal["calls"], ...] = ("calls",)
"""Values of ``learn`` beside true and false."""
_LEARN = 'write true, false or "calls"'
_PROVIDER = 'write "local", "onnx", "ollama", "openai" or "off"'
_SEMANTIC = 'write "local", "onnx", "ollama", "off", the URL of an embedding server, or an object'
_URL = "write the whole address, such as http://127.0.0.1:11434"
_QUOTABLE = re.compile(r"[\w.-]{0,20}")
"""Values that an error may quote. Others could be a URL with a password."""


def read_search(node: Node | None) -> SearchConfig:
    """The search settings; the defaults if ``node`` is None. Raises ConfigError."""
    if node is None:
        return SearchConfig()
    node.object('write an object, such as {"default_limit": 5}', KEYS)
    limit, tokens, learn, model, deadline, semantic, threshold, details = map(node.get, KEYS)
    return SearchConfig(
        default_limit=_limit(limit) if limit else DEFAULT_LIMIT,
        max_tokens=tokens.integer(*TOKENS) if tokens else MAX_TOKENS,
        learn=_learn(learn) if learn else True,
        model=_model(model),
        llm_deadline=deadline.number("seconds", LONGEST_DEADLINE) if deadline else LLM_DEADLINE,
        semantic=_semantic(semantic) if semantic else SemanticConfig(),
        threshold=threshold.number_between(0, 1) if threshold else None,
        details=details.boolean() if details else False,
    )


def _learn(node: Node) -> Learn:
    if isinstance(node.value, bool):
        return node.value
    return node.choice(LEARN, _LEARN) or True


def provider_of(url: str) -> Provider:
    """The API at ``url``: "ollama" on its port or under /api, unless under /v1; else "openai".

    Raises ValueError for an invalid URL.
    """
    from urllib.parse import urlsplit  # slow to import, and most configs have no such URL

    parts = urlsplit(url)
    path = f"{parts.path}/"
    if "/v1/" in path:
        return "openai"
    return "ollama" if parts.port == OLLAMA_PORT or "/api/" in path else "openai"


def _limit(node: Node) -> int:
    limit = node.integer(1, 100)
    if limit > MAX_LIMIT:
        node.warn(f"{MAX_LIMIT} tools are shown at most", f"write a number from 1 to {MAX_LIMIT}")
    return min(limit, MAX_LIMIT)


def _model(node: Node | None) -> str | None:
    model = _text(node) or GEMINI_MODEL
    if node and not re.fullmatch(r"[\w.:@/-]+", model):
        raise node.error("not a model name", f'write its name, such as "{GEMINI_MODEL}", or "off"')
    return None if model == "off" else model


def _semantic(node: Node) -> SemanticConfig:
    if isinstance(node.value, dict):
        return _object(node.object(_SEMANTIC, SEMANTIC_KEYS))
    text = node.text(_SEMANTIC).strip()
    if "://" in text:
        return SemanticConfig(_url_provider(node, text), text)
    return SemanticConfig(_provider(node, text or "local", _SEMANTIC))


def _object(node: Node) -> SemanticConfig:
    provider, url, model, key, dimensions, deadline, query, document = map(node.get, SEMANTIC_KEYS)
    address = url.text(_URL).strip() if url else ""
    name = _text(provider)
    secret = _text(key)
    if url and not address:
        if not str(url.value).strip():  # else a variable in it isn't set, for which there is a warning
            url.warn("the address is empty", _URL)
        return SemanticConfig()  # texts must not go to a default address
    found = SemanticConfig(
        provider=_provider(provider, name, _PROVIDER) if provider and name else "local",
        url=address,
        model=_text(model),
        api_key=Secret(secret) if secret else None,
        dimensions=dimensions.integer(*DIMENSIONS) if dimensions else None,
        deadline=deadline.number("seconds", LONGEST_DEADLINE) if deadline else EMBEDDING_DEADLINE,
        query_prefix=query.text(TEXT) if query else None,
        document_prefix=document.text(TEXT) if document else None,
    )
    if url:
        by_url = _url_provider(url, address)
        found = found if name else replace(found, provider=by_url)
    elif not name:
        raise node.error('neither a "provider" nor a "url"', _PROVIDER)
    if found.provider not in ("ollama", "openai"):
        for unused in filter(None, map(node.get, SERVER_ONLY_KEYS)):
            unused.warn(f'not used by the provider "{found.provider}"', "remove it, or name another provider")
    return found


def _provider(node: Node, name: str, remedy: str) -> Provider:
    providers: tuple[Provider, ...] = get_args(Provider)
    for provider in providers:
        if provider == name:
            return provider
    raise node.error(f"found {name!r}" if _QUOTABLE.fullmatch(name) else "found another value", remedy)


def _url_provider(node: Node, url: str) -> Provider:
    try:
        if URL.fullmatch(url):
            return provider_of(url)
    except ValueError:  # a port that is not a number, a bracket that is not closed
        pass
    raise node.error("not an http address", _URL)


def _text(node: Node | None) -> str | None:
    return (node.text(TEXT).strip() or None) if node else None
