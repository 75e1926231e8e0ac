"""Redacts secrets from texts. Not pure: the set of secrets is global to the process.

`redact` removes every secret that was given to `register`, in the encodings in which it may return: plain,
with the escapes of JSON, URLs, HTML or `repr`, also nested (`mcpzip.model.unescape`), in hexadecimal, and in
Base64, also as the end of ``Basic`` credentials. Values shorter than `SHORTEST` are not redacted, because
they occur in ordinary words. A text without a secret is returned unchanged.

Results, schemas and descriptions that a server sends to a client are not redacted.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.unescape import unescaped

SHORTEST = 6
"""Minimum characters of a secret."""
LINE = 16
"""Minimum characters of a line of a multi-line secret that is a secret by itself; in PEM, `SHORTEST`."""
MOST = 1_000
"""Maximum number of passing secrets; beyond that the oldest are forgotten."""
LEFT_OUT = "…"
ORDINARY = frozenset(
    {"bearer", "basic", "cookie", "default", "disabled", "enabled", "header", "none", "oauth2", "optional"}
    | {"password", "private", "public", "required", "secret", "signature", "unknown"}
    | {"application/json", "text/event-stream"}
)
"""Frequent values of options and headers, which are no secrets even where a secret may be."""
PLAIN_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection"}
    | {"content-encoding", "content-language", "content-type", "date", "dnt", "expect", "from", "host"}
    | {"keep-alive", "mcp-protocol-version", "origin", "pragma", "prefer", "range", "referer", "te"}
    | {"upgrade", "user-agent", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}
    | {"x-request-id", "x-requested-with"}
)
"""Headers whose values are no secrets."""

_PEM = "-----BEGIN "
_SECRET_NAME = lazy_pattern(
    r"token|secret|passw|pwd|passphrase|credential|bearer|cookie|signature|private|apikey|auth(?!or(?!iz))"
    r"|session(?![_-]?(?:timeout|ttl|limit|max|size|dir|name))|conn(?:ection)?[_ -]?str"
    r"|(?:^|[^a-z])(?:keys?|creds?|pat|pass|jwts?|otp|totp|sid|sig|hmac)(?:$|[^a-z])"
    r"|(?:account|access|shared|signing|encryption|master)key",
    re.IGNORECASE,
)
_PAIR = lazy_pattern(
    r"""(?<![\w.-])([A-Za-z_][\w.-]*)\s*=\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;&,]+)"""
)
_PLAIN_VALUE = lazy_pattern(r"[a-z]{1,16}(?:[ ,_/-]+[a-z]{1,16})*|[\d.,:/ -]{1,10}", re.ASCII)
"""Lower-case words, a date, a version: values of settings."""
_CAMEL_CASE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_CREDENTIALS = lazy_pattern(
    r"(?:bearer|basic|token|apikey|api-key|digest|dpop|hawk|key|negotiate|oauth)\s+(.*)",
    re.IGNORECASE | re.DOTALL,
)


class Secrets:
    """A set of secrets. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: dict[str, tuple[str, ...]] = {}  # secret -> its encodings, () until they are needed
        self._passing: dict[str, None] = {}  # oldest first
        self._encodings: tuple[str, ...] | None = ()

    def keep(self, value: str, *, passing: bool = False) -> None:
        """Adds ``value`` without surrounding whitespace, and its lines; ignores what is too short.

        passing: for secrets such as tokens, which are replaced again and again; old ones are forgotten.
        """
        value = value.strip()
        for text in (value, *secret_lines(value)):
            if len(text) >= SHORTEST:
                self._keep(text, passing)

    def _keep(self, text: str, passing: bool) -> None:
        with self._lock:
            known = text in self._secrets
            if known and text in self._passing:
                del self._passing[text]  # is now the newest, or no longer passing
                if passing:
                    self._passing[text] = None
            if known:
                return
            self._secrets[text] = ()
            if passing:
                self._passing[text] = None
            while len(self._passing) > MOST:
                oldest = next(iter(self._passing))
                del self._passing[oldest], self._secrets[oldest]
            self._encodings = None

    def kept(self) -> tuple[str, ...]:
        """All secrets."""
        with self._lock:
            return tuple(self._secrets)

    def _all_encodings(self) -> tuple[str, ...]:
        with self._lock:
            for secret, found in self._secrets.items():
                if not found:
                    self._secrets[secret] = encodings(secret)
            self._encodings = tuple({each for found in self._secrets.values() for each in found})
            return self._encodings

    def conceal(self, text: str) -> str:
        """``text`` with `LEFT_OUT` in place of every secret, or group of overlapping secrets."""
        searched = self._encodings
        if searched is None:
            searched = self._all_encodings()
        if not searched:
            return text
        while spans := _merged(_found(text, searched)):
            pieces, end = [], 0
            for start, stop in spans:
                pieces += [text[end:start], LEFT_OUT]
                end = stop
            text = "".join((*pieces, text[end:]))
        return text


_REGISTER = Secrets()
_THREAD = threading.local()
"""``secrets``: those of `temporary_secrets`."""


def register(value: str, *, passing: bool = False) -> None:
    """Adds ``value`` to the secrets of this process (`Secrets.keep`)."""
    getattr(_THREAD, "secrets", _REGISTER).keep(value, passing=passing)


def redact(text: str) -> str:
    """``text`` without the secrets of this process (`Secrets.conceal`)."""
    text = _REGISTER.conceal(text)
    temporary: Secrets | None = getattr(_THREAD, "secrets", None)
    return text if temporary is None else temporary.conceal(text)


@contextmanager
def temporary_secrets() -> Iterator[None]:
    """What this thread registers meanwhile is redacted in this thread, and forgotten at the end."""
    _THREAD.secrets = Secrets()
    try:
        yield
    finally:
        del _THREAD.secrets


def registered() -> tuple[str, ...]:
    """The secrets of this process that were registered until now."""
    return _REGISTER.kept()


def redact_json(value: object) -> object:
    """``value``, a JSON value, with every string in it redacted."""
    if isinstance(value, dict):
        return {key: redact_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [redact_json(each) for each in value]
    return redact(value) if isinstance(value, str) else value


def register_header(name: str, value: str) -> None:
    """Registers the value of a header, and the values inside it, as cookies have them.

    Ignores `PLAIN_HEADERS`, and values of settings unless the name suggests a secret. Of credentials,
    registers the part after their scheme, and the password of ``Basic`` ones (RFC 7617).
    """
    credentials = _CREDENTIALS.fullmatch(value.strip())
    plain = name.strip().lower() in PLAIN_HEADERS or _PLAIN_VALUE.fullmatch(value.strip())
    if value.strip() in ORDINARY:
        return
    if plain and credentials is None and not looks_secret(name):
        return
    register(credentials[1] if credentials else value)
    for part, held in pairs(value):
        if looks_secret(part) or not _PLAIN_VALUE.fullmatch(held):
            register_spellings(held)
    if credentials and value.strip()[:5].lower() == "basic":
        from base64 import b64decode  # rarely needed

        try:
            pair = b64decode(credentials[1]).decode()
        except ValueError:
            return
        register(pair)
        register(pair.partition(":")[2])


def is_ordinary(value: str) -> bool:
    """Whether ``value`` looks like a setting instead of a secret: lower-case words, a date, a version."""
    return value.strip() in ORDINARY or _PLAIN_VALUE.fullmatch(value.strip()) is not None


def register_spellings(value: str) -> None:
    """Registers ``value``, and also its percent-decoded form."""
    register(value)
    if "%" in value:
        from urllib.parse import unquote  # slow to import, and rarely needed

        register(unquote(value))


def pairs(text: str) -> list[tuple[str, str]]:
    """The ``name=value`` pairs of cookies, a connection string or a query, with values unquoted."""
    found = []
    for segment in text.split(";"):  # a value between semicolons may contain any other character
        name, equals, value = segment.partition("=")
        if equals:
            found.append((name.strip(), value.strip().strip("'\"")))
    found += [(each[1], each[2].strip("'\"")) for each in _PAIR.finditer(text)]
    return list(dict.fromkeys(found))


def looks_secret(name: str) -> bool:
    """Whether the name of a variable, parameter or member suggests that its value is a secret."""
    return _SECRET_NAME.search(_CAMEL_CASE.sub("_", name)) is not None


def secret_lines(value: str) -> list[str]:
    """The lines of ``value`` that are secrets by themselves, also if line breaks are escaped (``\\n``)."""
    for text in (value, *(plain for plain, _ in unescaped(value))):
        if "\n" in text:
            shortest = SHORTEST if _PEM in text else LINE
            return [line.strip() for line in text.splitlines() if len(line.strip()) >= shortest]
    return []


def encodings(secret: str) -> tuple[str, ...]:
    """The encodings of ``secret``: plain, unescaped, escaped by Python, hexadecimal, Base64.

    A text is unescaped before it is searched, but Python's escapes are needed where the character before an
    escape turns it into another one.
    """
    from base64 import b64encode, urlsafe_b64encode  # not imported at the start of `serve`
    from json import dumps
    from urllib.parse import quote, quote_plus

    data = secret.encode("utf-8", "replace")
    found = {secret, data.decode(), *(plain for plain, _ in unescaped(secret))}
    found |= {dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        found |= {quoted, re.sub("%..", lambda escape: escape[0].lower(), quoted)}
    found |= {encoding.replace(" ", "+") for encoding in found}
    found |= {data.hex(), data.hex().upper()}
    for encode in (b64encode, urlsafe_b64encode):
        # Text before the secret shifts it by 0, 1 or 2 bytes and changes its first and last characters.
        for shift in range(3):
            core = encode(b"\0" * shift + data)[(shift * 4 + 2) // 3 : (shift + len(data)) * 4 // 3]
            found.add(core.decode())
    return tuple(encoding for encoding in found if len(encoding) >= SHORTEST)


def _found(text: str, encodings: tuple[str, ...]) -> list[tuple[int, int]]:
    """The spans of ``encodings`` in ``text``, as it is and unescaped."""
    found = _spans(text, encodings)
    for plain, offsets in unescaped(text):
        found += [(offsets[start], offsets[stop]) for start, stop in _spans(plain, encodings)]
    return found


def _spans(text: str, encodings: tuple[str, ...]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for encoding in encodings:
        at = text.find(encoding)
        while at >= 0:
            found.append((at, at + len(encoding)))
            at = text.find(encoding, at + 1)
    return found


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """``found`` in order, with overlapping and adjacent spans merged."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged
