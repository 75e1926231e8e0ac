"""Replaces the secrets in recorded messages by masks, and leaves all other bytes as they are.

    masker = Masker(values={"hunter2-x": "the variable API_TOKEN"}, paths=["params.arguments.pin"])
    masker.message(b'{"token":"abc-123-xyz"}', "request 1")     # b'{"token":"[masked 1]"}'
    masker.header("authorization", "Bearer abc-123-xyz", "request 2")       # "Bearer [masked 1]"

The rule: the same secret has the same mask wherever it occurs, so that what a client repeats still matches. A
secret that was found by its name or its form is remembered, and is also masked where only its value occurs,
in the encodings of `mcpzip.model.redaction`. JSON stays JSON: masks are inside of strings, and a number that
is a secret becomes a string.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from json import dumps
from typing import NamedTuple
from urllib.parse import unquote

from mcpzip.cassettes.cassette import MASK, Masked
from mcpzip.cassettes.json_strings import NotJsonError, decoded, original_offsets, tokens
from mcpzip.cassettes.known_secrets import KnownSecrets
from mcpzip.cassettes.secret_names import (
    Suspicion,
    is_mask,
    is_secret,
    is_secret_number,
    looks_random,
    suspicion,
)
from mcpzip.cassettes.secret_texts import begins_private_key, ends_private_key, named
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.redaction import ORDINARY, PLAIN_HEADERS, SHORTEST, is_ordinary

MOST = 10_000
"""Different secrets that get a mask of their own. All further ones share one."""
_NESTED = 3
"""JSON in a string of a JSON text, in a string of that, and so on, is walked over so often."""
_LONGEST_WHERE = 200
_LOOKUPS = 20
"""Secrets of one message whose paths are searched for. Of the rest only the message is told."""
_GIVEN = "the path was given"
_LABELS = frozenset({"name", "key", "variable", "header"})
"""Members that hold the name of the member ``value`` beside them."""
_CREDENTIALS = lazy_pattern(r"([A-Za-z][\w-]{0,20}[ \t]+)(\S.*)", re.DOTALL)
_COOKIE_ATTRIBUTES = frozenset(
    {"expires", "max-age", "domain", "path", "secure", "httponly", "samesite", "partitioned", "priority"}
)
_COOKIE = lazy_pattern(r"(?:^|[;,])[ \t]*([^=;,\s]{1,256})=([^;,]+)")
"""A cookie or an attribute, also where several ``Set-Cookie`` are joined."""
_CHALLENGES = frozenset({"www-authenticate", "proxy-authenticate", "authentication-info"})
_MASK_NUMBER = lazy_pattern(r"\[masked (\d{1,9})\]")


class _Span(NamedTuple):
    """A part of a text to replace. secret: its value, without encodings. quote: what has to stand around the
    mask, `"` for a number; in JSON in a string with the escapes that it has there."""

    start: int
    stop: int
    secret: str
    why: str
    where: str = ""
    quote: str = ""


class Masker:
    """Masks the secrets of one recorded server. Not thread-safe.

    Every method takes ``where``, the place as a phrase such as ``request 3``, and tells of each secret that
    is masked for the first time. The time is linear in the length of the text.
    """

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        paths: Iterable[str] = (),
        found: Callable[[Masked], None] | None = None,
        *,
        known: Iterable[Masked] = (),
    ) -> None:
        """values: secrets, each with the reason as a phrase (``the variable API_TOKEN``); those shorter than
        `SHORTEST` characters are ignored. paths: where in JSON messages secrets are, with ``*`` for any name
        or index (``params.arguments.pin``, ``result.content.*.text``). found: is called once for each mask.
        known: the masks that the cassette already has; new ones get higher numbers.
        """
        self._known = KnownSecrets()
        self._paths = [tuple(path.removeprefix("$.").split(".")) for path in paths]
        self._found = found
        self._masks: dict[bytes, str] = {}  # by the SHA-256 of the secret
        self._first = 1 + max((_number(each.mask) for each in known), default=0)
        self._in_private_key = False
        for value, why in (values or {}).items():
            self.add(value, why)

    def add(self, value: str, why: str) -> None:
        """Adds a secret that is masked from now on."""
        self._known.give(value, why)

    def message(self, data: bytes, where: str) -> bytes:
        """A message, or any other text."""
        text = data.decode("utf-8", "surrogateescape")
        masked = self._replaced(text, self._spans(text), where)
        return data if masked is text else masked.encode("utf-8", "surrogateescape")

    def line(self, data: bytes, where: str) -> bytes:
        """A line of a standard error; private keys may go over several."""
        text = data.decode("utf-8", "surrogateescape")
        if self._in_private_key:
            self._in_private_key = not ends_private_key(text)
            body = text.strip()
            start = text.find(body)
            spans = [_Span(start, start + len(body), body, "it is a private key")] if body else []
            masked = self._replaced(text, spans, where)
        else:
            self._in_private_key = begins_private_key(text)
            masked = self._replaced(text, self._spans(text), where)
        return data if masked is text else masked.encode("utf-8", "surrogateescape")

    def text(self, text: str, where: str) -> str:
        """Any text."""
        return self._replaced(text, self._spans(text), where)

    def header(self, name: str, value: str, where: str) -> str:
        """The value of an HTTP header."""
        spans = list(self._spans(value))
        spans += _header_spans(name.strip().lower(), value)
        return self._replaced(value, spans, f"{where}: header {name.lower()}")

    def url(self, url: str, where: str) -> str:
        """A URL of the server itself, in which also the path may be a secret."""
        return self._replaced(url, [*self._spans(url), *_url_spans(url)], where)

    def command(self, words: Sequence[str], where: str) -> tuple[str, ...]:
        """A command line."""
        masked: list[str] = []
        for number, word in enumerate(words):
            spans = list(self._spans(word))
            before = words[number - 1] if number else ""
            if before.startswith("-") and "=" not in before and is_secret(before, word):
                spans.append(_Span(0, len(word), word, f"it follows {before}"))
            spans += _url_spans(word) if "://" in word else []
            masked.append(self._replaced(word, spans, where))
        return tuple(masked)

    # Finding

    def _spans(self, text: str, nested: int = 0) -> Iterator[_Span]:
        if len(text) < 2:
            return
        if text.lstrip(" \t\r\n")[:1] in ("{", "[", '"'):
            try:
                yield from list(self._json_spans(text, nested))
                return
            except NotJsonError:
                pass
        yield from self._text_spans(text)

    def _text_spans(self, text: str) -> Iterator[_Span]:
        for start, stop, secret, why in self._known.find(text):
            yield _Span(start, stop, secret, why)

    def _json_spans(self, text: str, nested: int) -> Iterator[_Span]:
        """Its strings are searched all at once, because many short searches take long."""
        pieces: list[str] = []
        places: list[tuple[int, int, int, bool]] = []  # offset in the joined pieces, offsets, is it a string
        length = 0
        labels: dict[int, str] = {}  # by depth
        for token in tokens(text):
            content = text[token.start : token.stop]
            value = decoded(content) if token.is_string else content
            if token.is_string and not token.is_key and nested < _NESTED and value[:1] in ("{", "["):
                yield from _outer(
                    content, token.start, list(self._nested(value, nested + 1)), _dotted(token.path)
                )
            if not token.is_key and (why := self._why(token.path, value, token.is_string, labels)):
                yield from _whole(content, value, token.start, token.is_string, why, _dotted(token.path))
            if len(value) >= SHORTEST:
                places.append((length, token.start, token.stop, token.is_string))
                pieces.append(value)
                length += len(value) + 1
        joined = "\0".join(pieces)
        for span in self._text_spans(joined):
            yield from _in_tokens(text, span, places)

    def _nested(self, value: str, nested: int) -> Iterator[_Span]:
        try:
            yield from list(self._json_spans(value, nested))
        except NotJsonError:
            pass  # it is searched as a text

    def _why(
        self, path: Sequence[str | int], value: str, is_string: bool, labels: dict[int, str]
    ) -> str | None:
        """The reason why the value at ``path`` is a secret, or None. labels: changed if it is the name of
        another value."""
        if self._paths and any(_matches(each, path) for each in self._paths):
            return _GIVEN
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        depth = len(path)
        if path and path[-1] == name:
            if name in _LABELS:
                labels[depth] = value if is_string and suspicion(value) is not Suspicion.NONE else ""
            elif name == "value" and is_string and (label := labels.get(depth)) and is_secret(label, value):
                return named(label)
        if is_string:
            return named(name) if is_secret(name, value) else None
        return named(name) if is_secret_number(name) else None

    # Replacing

    def _replaced(self, text: str, spans: Iterable[_Span], where: str) -> str:
        ordered = sorted((span for span in spans if span.stop > span.start), key=lambda span: span[:2])
        if not ordered:
            return text
        pieces: list[str] = []
        end = 0
        lookups = _LOOKUPS
        for group in _groups(ordered):
            start, stop = group[0].start, max(span.stop for span in group)
            if is_mask(text[start:stop]):
                continue
            widest = max(group, key=lambda span: (span.stop - span.start, -span.start))
            same = len({span.secret for span in group}) == 1
            covered = same or (widest.start, widest.stop) == (start, stop)
            secret = widest.secret if covered else text[start:stop]
            quote = max((span.quote for span in group), key=len)
            if not widest.where and self._is_new(secret) and (lookups := lookups - 1) >= 0:
                widest = widest._replace(where=_path_at(text, start))
            pieces += [text[end:start], quote, self._mask(secret, widest, where), quote]
            end = stop
        return "".join((*pieces, text[end:])) if pieces else text

    def _is_new(self, secret: str) -> bool:
        return _digest(secret) not in self._masks

    def _mask(self, secret: str, span: _Span, where: str) -> str:
        digest = _digest(secret)
        if mask := self._masks.get(digest):
            return mask
        if len(self._masks) >= MOST:
            return MASK.format(self._first + MOST)
        mask = self._masks[digest] = MASK.format(self._first + len(self._masks))
        self._known.remember(secret, span.why, asked=span.why == _GIVEN)
        if self._found is not None:
            place = f"{where}: {self._safe(span.where)}" if span.where else where
            self._found(Masked(mask=mask, where=place[:_LONGEST_WHERE], why=self._safe(span.why)))
        return mask

    def _safe(self, text: str) -> str:
        """``text``, which may quote names of a message, without secrets."""
        spans = sorted(self._text_spans(text), key=lambda span: span[:2])
        pieces, end = [], 0
        for group in _groups(spans):
            pieces += [text[end : group[0].start], "…"]
            end = max(span.stop for span in group)
        return "".join((*pieces, text[end:]))


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _path_at(text: str, offset: int) -> str:
    """The path of the value at ``offset`` of a JSON text, "" of another text."""
    try:
        return next((_dotted(token.path) for token in tokens(text) if token.stop > offset), "")
    except NotJsonError:
        return ""


def _number(mask: str) -> int:
    match = _MASK_NUMBER.fullmatch(mask)
    return int(match[1]) if match else 0


def _groups(spans: Sequence[_Span]) -> Iterator[list[_Span]]:
    """Those that overlap. spans: in order."""
    group: list[_Span] = []
    end = 0
    for span in spans:
        if group and span.start >= end:
            yield group
            group = []
        end = max(end, span.stop) if group else span.stop
        group.append(span)
    if group:
        yield group


def _matches(wanted: Sequence[str], path: Sequence[str | int]) -> bool:
    """Whether ``path`` is at or below ``wanted``."""
    return len(wanted) <= len(path) and all(
        part in ("*", str(here)) for part, here in zip(wanted, path, strict=False)
    )


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path))[:_LONGEST_WHERE]


def _whole(content: str, value: str, start: int, is_string: bool, why: str, where: str) -> Iterator[_Span]:
    """The whole value, or of credentials such as ``Bearer abc`` the part after the scheme."""
    end = start + len(content)
    if not is_string:
        yield _Span(start, end, value, why, where, '"')
        return
    if is_mask(value):
        return
    credentials = None if why == _GIVEN else _CREDENTIALS.fullmatch(value)
    if credentials and credentials[1].strip().lower() in _SCHEMES:
        offset = original_offsets(content, [credentials.start(2)])[0]
        yield _Span(start + offset, end, credentials[2], why, where)
    else:
        yield _Span(start, end, value, why, where)


_SCHEMES = frozenset({"bearer", "basic", "token", "apikey", "api-key", "digest", "dpop", "negotiate", "key"})


def _outer(content: str, start: int, spans: Sequence[_Span], where: str = "") -> Iterator[_Span]:
    """Spans in the value of a string at the path ``where``, as spans in the text around it."""
    if not spans:
        return
    wanted = sorted({offset for span in spans for offset in (span.start, span.stop)})
    offsets = dict(zip(wanted, original_offsets(content, wanted), strict=True))
    for span in spans:
        yield span._replace(
            start=start + offsets[span.start],
            stop=start + offsets[span.stop],
            quote=dumps(span.quote)[1:-1],
            where=f"{where}.{span.where}" if where and span.where else where or span.where,
        )


def _in_tokens(text: str, span: _Span, places: Sequence[tuple[int, int, int, bool]]) -> Iterator[_Span]:
    """A span in the joined strings and numbers, as a span in the text."""
    at, start, stop, is_string = places[bisect_right(places, span.start, key=lambda place: place[0]) - 1]
    if not is_string:
        yield _Span(start, stop, text[start:stop], span.why, span.where, '"')
        return
    content = text[start:stop]
    length = len(decoded(content))
    inside = span._replace(start=min(span.start - at, length), stop=min(span.stop - at, length))
    yield from _outer(content, start, [inside])


def _header_spans(name: str, value: str) -> Iterator[_Span]:
    why = named(name)
    if name in ("cookie", "set-cookie"):
        for pair in _COOKIE.finditer(value):
            if name == "cookie" or pair[1].lower() not in _COOKIE_ATTRIBUTES:
                yield _Span(*pair.span(2), pair[2], why)
        return
    if name in PLAIN_HEADERS or name in _CHALLENGES:
        return
    held = value.strip()
    if name in ("authorization", "proxy-authorization"):
        credentials = _CREDENTIALS.fullmatch(held)
        secret = credentials[2] if credentials else held
        start = value.index(secret) if secret else 0
        yield _Span(start, start + len(secret), secret, why)
    elif is_secret(name, held):
        yield from (
            span._replace(start=span.start + value.index(held), stop=span.stop + value.index(held))
            for span in _whole(held, held, 0, is_string=True, why=why, where="")
        )


_URL_PARTS = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]*://(?:([^/?#]*)@)?[^/?#@]*([^?#]*)")
_PARAMETER = lazy_pattern(r"[?&#;]([^=&#;]*)=([^&#;]*)")
_SECRET_PARAMETERS = frozenset({"code", "sid", "sig", "ticket", "assertion"})
_PATH_TOKEN = 16
"""Minimum characters of a segment of a URL's path that is a secret: some services put the API key there."""


def _url_spans(url: str) -> Iterator[_Span]:
    match = _URL_PARTS.search(url)
    if match is None:
        return
    if match[1]:
        at = match.start(1)
        for part in match[1].split(":"):
            if part and part not in ORDINARY:
                yield _Span(at, at + len(part), part, "it is the user name or password of a URL")
            at += len(part) + 1
    at = match.start(2)
    for segment in match[2].split("/"):
        if len(segment) >= _PATH_TOKEN and looks_random(segment):
            yield _Span(at, at + len(segment), segment, "it looks like a secret in the path of a URL")
        at += len(segment) + 1
    for parameter in _PARAMETER.finditer(url, match.end(2)):
        name, value = unquote(parameter[1]), unquote(parameter[2])
        looks = name.lower() in _SECRET_PARAMETERS and not is_ordinary(value)
        if looks or is_secret(name, value) or (suspicion(name) is not Suspicion.NONE and looks_random(value)):
            yield _Span(*parameter.span(2), value, named(name))
