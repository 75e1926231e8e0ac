"""Secrets are never said. The register of secrets is one for the whole process.

The rules: what is registered with `register` is left out of everything that `redact` is given, in whatever
spelling it is likely to come back: as it is, with the escapes of JSON, of a URL, of HTML or of a repr –
whoever wrote them, and one inside another (`mcpzip.model.unescape`) –, in hexadecimal, in base64, also as the
tail of ``Basic`` credentials. What is shorter than `SHORTEST` is no secret: it would be found in ordinary
words. A text without a secret is given back as it is.

What clients are sent of a server – results, schemas, descriptions – never passes through here.
"""

import re
import threading

from mcpzip.model.unescape import unescaped

SHORTEST = 6
"""Characters a secret has at least."""
LINE = 16
"""Characters at which one line of a secret of several is a secret itself; in a PEM file it is every line."""
MOST = 1_000
"""How many passing ones are remembered; beyond that the oldest are forgotten."""
LEFT_OUT = "…"
ORDINARY = frozenset(
    {"bearer", "basic", "cookie", "default", "disabled", "enabled", "header", "none", "oauth2", "optional"}
    | {"password", "private", "public", "required", "secret", "signature", "unknown"}
    | {"application/json", "text/event-stream"}
)
"""What stands where a secret may, and is said so often that leaving it out would hide nothing but sense."""
PLAIN_HEADERS = frozenset(
    {"accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection"}
    | {"content-encoding", "content-language", "content-type", "date", "dnt", "expect", "from", "host"}
    | {"keep-alive", "mcp-protocol-version", "origin", "pragma", "prefer", "range", "referer", "te"}
    | {"upgrade", "user-agent", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}
    | {"x-request-id", "x-requested-with"}
)
"""Headers whose values say nothing that others may not know."""

_PEM = "-----BEGIN "
_SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|passphrase|credential|bearer|cookie|signature|private|apikey|auth(?!or(?!iz))"
    r"|session(?![_-]?(?:timeout|ttl|limit|max|size|dir|name))|conn(?:ection)?[_ -]?str"
    r"|(?:^|[^a-z])(?:keys?|creds?|pat|pass|jwts?|otp|totp|sid|sig|hmac)(?:$|[^a-z])"
    r"|(?:account|access|shared|signing|encryption|master)key",
    re.IGNORECASE,
)
_PAIR = re.compile(r"""(?<![\w.-])([A-Za-z_][\w.-]*)\s*=\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;&,]+)""")
_PLAIN_VALUE = re.compile(r"[a-z]{1,16}(?:[ ,_/-]+[a-z]{1,16})*|[\d.,:/ -]{1,10}", re.ASCII)
"""Words in small letters, a date, a version: what a header has that only sets something."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CREDENTIALS = re.compile(
    r"(?:bearer|basic|token|apikey|api-key|digest|dpop|hawk|key|negotiate|oauth)\s+(.*)",
    re.IGNORECASE | re.DOTALL,
)


class Secrets:
    """A set of texts that must not be shown. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[str, ...]] = {}  # with its forms, once they were wanted
        self._passing: dict[str, None] = {}  # in the order in which they came
        self._forms: tuple[str, ...] | None = ()

    def keep(self, value: str, *, passing: bool = False) -> None:
        """From now on ``value`` is a secret, without the white space around it, if it is long enough.

        passing: as tokens are, which are followed by others without end.
        """
        value = value.strip()
        for text in (value, *_lines(value)):
            if len(text) >= SHORTEST:
                self._keep(text, passing)

    def _keep(self, text: str, passing: bool) -> None:
        with self._lock:
            known = text in self._kept
            if known and text in self._passing:
                del self._passing[text]  # the last to be forgotten, or no longer at all
                if passing:
                    self._passing[text] = None
            if known:
                return
            self._kept[text] = ()
            if passing:
                self._passing[text] = None
            while len(self._passing) > MOST:
                oldest = next(iter(self._passing))
                del self._passing[oldest], self._kept[oldest]
            self._forms = None

    def _all(self) -> tuple[str, ...]:
        with self._lock:
            for text, forms in self._kept.items():
                if not forms:
                    self._kept[text] = _forms(text)
            self._forms = tuple({form for forms in self._kept.values() for form in forms})
            return self._forms

    def conceal(self, text: str) -> str:
        """``text`` with `LEFT_OUT` in place of every secret; where secrets overlap, of all of them."""
        forms = self._forms
        if forms is None:
            forms = self._all()
        if not forms:
            return text
        while spans := _merged(_found(text, forms)):
            pieces, end = [], 0
            for start, stop in spans:
                pieces += [text[end:start], LEFT_OUT]
                end = stop
            text = "".join((*pieces, text[end:]))
        return text


_OURS = Secrets()


def register(value: str, *, passing: bool = False) -> None:
    """From now on ``value`` is a secret in this process (`Secrets.keep`)."""
    _OURS.keep(value, passing=passing)


def redact(text: str) -> str:
    """``text`` without the secrets of this process (`Secrets.conceal`)."""
    return _OURS.conceal(text)


def register_header(name: str, value: str) -> None:
    """The value of this header is a secret, and each value in it, as cookies have them – but of
    `PLAIN_HEADERS`, and but words in small letters where the name says nothing of a secret.

    Of credentials it is the part behind their scheme, and the password of the ``Basic`` ones (RFC 7617).
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
        from base64 import b64decode  # seldom wanted

        try:
            pair = b64decode(credentials[1]).decode()
        except ValueError:
            return
        register(pair)
        register(pair.partition(":")[2])


def is_ordinary(value: str) -> bool:
    """Whether ``value`` only sets something, as far as can be told: small words, a date, a version."""
    return value.strip() in ORDINARY or _PLAIN_VALUE.fullmatch(value.strip()) is not None


def register_spellings(value: str) -> None:
    """From now on ``value`` is a secret, and so is what it is without percent-encoding."""
    register(value)
    if "%" in value:
        from urllib.parse import unquote  # slow to import, and seldom wanted

        register(unquote(value))


def pairs(text: str) -> list[tuple[str, str]]:
    """The ``name=value`` in ``text``: of cookies, of connection strings, of a query. Quotes are off."""
    found = []
    for segment in text.split(";"):  # a value between semicolons may have anything in it
        name, equals, value = segment.partition("=")
        if equals:
            found.append((name.strip(), value.strip().strip("'\"")))
    found += [(each[1], each[2].strip("'\"")) for each in _PAIR.finditer(text)]
    return list(dict.fromkeys(found))


def looks_secret(name: str) -> bool:
    """Whether a variable, a parameter or a member of this name holds a secret, as names go."""
    return _SECRET_NAME.search(_WORDS.sub("_", name)) is not None


def _lines(value: str) -> list[str]:
    """The lines of ``value`` that are secrets themselves, also where their ends are escapes (``\\n``)."""
    for text in (value, *(undone for undone, _ in unescaped(value))):
        if "\n" in text:
            shortest = SHORTEST if _PEM in text else LINE
            return [line.strip() for line in text.splitlines() if len(line.strip()) >= shortest]
    return []


def _forms(secret: str) -> tuple[str, ...]:
    """How ``secret`` may be written where no escape is left, also of the escapes that it has itself; and with
    those that Python writes, which are found too where what stands before makes another escape of the first.
    """
    from base64 import b64encode, urlsafe_b64encode  # `serve` begins without any of these
    from json import dumps
    from urllib.parse import quote, quote_plus

    data = secret.encode("utf-8", "replace")
    found = {secret, data.decode(), *(undone for undone, _ in unescaped(secret))}
    found |= {dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]}
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        found |= {quoted, re.sub("%..", lambda escape: escape[0].lower(), quoted)}
    found |= {form.replace(" ", "+") for form in found}
    found |= {data.hex(), data.hex().upper()}
    for encode in (b64encode, urlsafe_b64encode):
        # What stands before it in what is encoded shifts it by 0, 1 or 2 bytes, and blurs its edges.
        for shift in range(3):
            core = encode(b"\0" * shift + data)[(shift * 4 + 2) // 3 : (shift + len(data)) * 4 // 3]
            found.add(core.decode())
    return tuple(form for form in found if len(form) >= SHORTEST)


def _found(text: str, forms: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where ``forms`` are in ``text``, as it is and with its escapes undone."""
    found = _spans(text, forms)
    for undone, begins in unescaped(text):
        found += [(begins[start], begins[stop]) for start, stop in _spans(undone, forms)]
    return found


def _spans(text: str, forms: tuple[str, ...]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for form in forms:
        at = text.find(form)
        while at >= 0:
            found.append((at, at + len(form)))
            at = text.find(form, at + 1)
    return found


def _merged(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """``found`` in order, those that overlap or touch as one."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged
