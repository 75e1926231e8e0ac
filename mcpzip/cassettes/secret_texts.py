"""Finds what looks like a secret in a text: API keys by their form, credentials, named values (pure).

The rule: the time is linear in the text, which may be 64 MiB of a hostile server. So a pattern is tried only
where its beginning was found, and never twice on the same characters.
"""

import binascii
from base64 import b64decode
from collections.abc import Iterator
from typing import NamedTuple

from mcpzip.cassettes.secret_names import Suspicion, is_mask, is_secret_in_text, looks_random, suspicion
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.redaction import is_ordinary

_KEYS = (
    ("sk-", r"[\w-]{16,}+", "an API key (sk-…)"),
    ("sk_live_", r"\w{10,}+", "an API key of Stripe"),
    ("sk_test_", r"\w{10,}+", "an API key of Stripe"),
    ("rk_live_", r"\w{10,}+", "an API key of Stripe"),
    ("rk_test_", r"\w{10,}+", "an API key of Stripe"),
    ("whsec_", r"[\w+/=]{16,}+", "a webhook's secret"),
    *((f"gh{kind}_", r"[A-Za-z0-9]{16,}+", "a token of GitHub") for kind in "pousr"),
    ("github_pat_", r"\w{16,}+", "a token of GitHub"),
    *(
        (f"gl{kind}-", r"[\w.-]{16,}+", "a token of GitLab")
        for kind in ("pat", "dt", "rt", "cbt", "ptt", "ft")
    ),
    *(
        (f"xox{kind}", r"[\w.-]{10,}+", "a token of Slack")
        for kind in ("b-", "p-", "a-", "r-", "s-", "c-", "e.", "e-")
    ),
    ("xapp-", r"[\w-]{10,}+", "a token of Slack"),
    ("hooks.slack.com/services/", r"[\w/]{10,}+", "a webhook of Slack"),
    ("/api/webhooks/", r"\d+/[\w-]{20,}+", "a webhook of Discord"),
    ("AKIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", "an access key of AWS"),
    ("ASIA", r"[A-Z0-9]{16}(?![A-Za-z0-9])", "an access key of AWS"),
    ("AIza", r"[\w-]{30,}+", "an API key of Google"),
    ("ya29.", r"[\w-]{16,}+", "a token of Google"),
    ("GOCSPX-", r"[\w-]{16,}+", "a client secret of Google"),
    ("npm_", r"[A-Za-z0-9]{20,}+", "a token of npm"),
    ("pypi-", r"[\w-]{32,}+", "a token of PyPI"),
    ("hf_", r"[A-Za-z0-9]{20,}+", "a token of Hugging Face"),
    ("dop_v1_", r"[a-f0-9]{32,}+", "a token of DigitalOcean"),
    ("dapi", r"[a-f0-9]{32}(?![A-Za-z0-9])", "a token of Databricks"),
    ("SG.", r"[\w-]{16,}+\.[\w-]{16,}+", "an API key of SendGrid"),
    ("lin_api_", r"\w{16,}+", "an API key of Linear"),
    ("ntn_", r"\w{20,}+", "a token of Notion"),
    ("secret_", r"[A-Za-z0-9]{32,}+", "a token of Notion"),
    ("figd_", r"[\w-]{16,}+", "a token of Figma"),
    ("shpat_", r"[a-fA-F0-9]{16,}+", "a token of Shopify"),
    ("sntrys_", r"[\w+/=-]{16,}+", "a token of Sentry"),
    ("tskey-", r"[\w-]{10,}+", "a key of Tailscale"),
    ("gsk_", r"\w{20,}+", "an API key of Groq"),
    ("xai-", r"\w{20,}+", "an API key of xAI"),
    ("glsa_", r"\w{16,}+", "a token of Grafana"),
    ("PMAK-", r"[a-f0-9-]{16,}+", "an API key of Postman"),
    ("ATATT3", r"[\w=-]{16,}+", "a token of Atlassian"),
    ("ATCTT3", r"[\w=-]{16,}+", "a token of Atlassian"),
    ("AGE-SECRET-KEY-", r"[A-Z0-9]{16,}+", "a key of age"),
    ("eyJ", r"[\w-]{6,}+(?:\.[\w-]{4,}+){1,4}+", "a JSON Web Token"),
)
_KEY_PATTERNS = tuple((prefix, lazy_pattern(rest), why) for prefix, rest, why in _KEYS)
_RUN = lazy_pattern(r"[\w+/=-]*+")
"""Characters in which no other key begins: what is skipped after one that didn't match."""
_ESCAPE_BEFORE = lazy_pattern(r"(?:\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[abfnrtv])|%[0-9A-Fa-f]{2})\Z")
_PEM = "-----BEGIN "
_PEM_HEAD = lazy_pattern(r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_TAIL = lazy_pattern(r"-----END [A-Z0-9 ]{1,60}-----")
_SCHEME = lazy_pattern(r"(?i:bearer|basic|dpop)[ \t]{1,4}([A-Za-z0-9._~+/-]{6,}+={0,2})")
_AUTHORITY = lazy_pattern(r"([^\s/?#\"'<>\\@:\0]{0,512}+)(?::([^\s/?#\"'<>\\@\0]{0,1024}+))?+@")
_NAME = lazy_pattern(
    r"(?<![\w.-])(-{1,2})?+([A-Za-z_][\w.-]{0,99}+)(?:\\{0,4}[\"'])?+"
    r"(?:[ \t]{0,4}+(?:=|:(?!/))[ \t]{0,4}+|(?(1)[ \t]{1,4}+(?![=:-])|(?!)))"
    r"(?:(?i:bearer|basic|token|api-?key|dpop|digest)[ \t]{1,4}+)?+(\\{0,4}[\"'])?+"
)
"""``name=``, ``name: ``, ``"name": "`` and ``--name ``."""
_SHORT = 256
_QUOTED = lazy_pattern(r"[^\"'\\\n\r\0]{1,256}+")
_QUOTED_REST = lazy_pattern(r"[^\"'\\\n\r\0]*+")
_BARE = lazy_pattern(r"[^\s\"'\\,;&<>(){}\[\]|\0]{1,256}+")
_BARE_REST = lazy_pattern(r"[^\s\"'\\,;&<>(){}\[\]|\0]*+")


class Found(NamedTuple):
    """A secret in a text, at these offsets. why: a phrase."""

    start: int
    stop: int
    why: str


def find_secrets(text: str) -> Iterator[Found]:
    """Yields what looks like a secret. Those of different kinds may overlap."""
    yield from _keys(text)
    yield from _private_keys(text)
    yield from _credentials(text)
    yield from _in_urls(text)
    yield from _named(text)


def begins_private_key(text: str) -> bool:
    """Whether a private key begins in the text that doesn't end in it."""
    heads = list(_PEM_HEAD.finditer(text)) if _PEM in text else []
    return bool(heads) and _PEM_TAIL.search(text, heads[-1].end()) is None


def ends_private_key(text: str) -> bool:
    """Whether the last line of a private key is in the text."""
    return _PEM_TAIL.search(text) is not None


def _keys(text: str) -> Iterator[Found]:
    for prefix, rest, why in _KEY_PATTERNS:
        at = text.find(prefix)
        while at >= 0:
            end = at + len(prefix)
            match = rest.match(text, end)
            if match is None:
                if prefix == "eyJ" and (run := _RUN.match(text, end)):
                    end = run.end()
            else:
                end = match.end()
                if _begins_word(text, at) and any(char.isdigit() for char in match[0]):
                    yield Found(at, end, f"it looks like {why}")
            at = text.find(prefix, end)


def _begins_word(text: str, at: int) -> bool:
    """Whether no word goes on at ``at``: letters before it may be the end of an escape."""
    if at == 0 or not text[at - 1].isalnum() or not text[at].isalnum():
        return True
    return _ESCAPE_BEFORE.search(text[max(0, at - 6) : at]) is not None


def _private_keys(text: str) -> Iterator[Found]:
    at = text.find(_PEM)
    while at >= 0:
        head = _PEM_HEAD.match(text, at)
        if head is None:
            at = text.find(_PEM, at + len(_PEM))
            continue
        limit = text.find("\0", head.end())
        tail = _PEM_TAIL.search(text, head.end(), limit if limit >= 0 else len(text))
        end = tail.end() if tail else limit if limit >= 0 else len(text)
        yield Found(at, end, "it is a private key")
        at = text.find(_PEM, end)


def _credentials(text: str) -> Iterator[Found]:
    for part in ("earer", "EARER", "asic", "ASIC", "pop", "PoP"):
        at = text.find(part, 1)
        while at >= 0:
            match = _SCHEME.match(text, at - 1)
            end = at + len(part)
            if match is not None:
                end = match.end()
                if _is_credential(match[1].rstrip("="), basic=part.lower() == "asic"):
                    yield Found(*match.span(1), "it is a credential of an Authorization header")
            at = text.find(part, end)


def _is_credential(value: str, *, basic: bool) -> bool:
    if basic:
        try:
            return b":" in b64decode(value + "=" * (-len(value) % 4))
        except (binascii.Error, ValueError):
            return False
    return not is_ordinary(value) and (not value.isalpha() or len(value) >= 24)


def _in_urls(text: str) -> Iterator[Found]:
    """The password of each URL, and its user name if that isn't an ordinary one."""
    at = text.find("://")
    while at >= 0:
        match = _AUTHORITY.match(text, at + 3)
        if match is not None:
            user, password = match[1], match[2]
            if password and not is_mask(password):
                yield Found(*match.span(2), "it is the password of a URL")
            if user and not is_ordinary(user) and (password or looks_random(user)):
                yield Found(*match.span(1), "it is the user name of a URL")
        at = text.find("://", at + 3)


def _named(text: str) -> Iterator[Found]:
    end = 0
    for match in _NAME.finditer(text):
        name = match[2]
        if suspicion(name) is Suspicion.NONE or match.start() < end:
            continue
        short, rest = (_QUOTED, _QUOTED_REST) if match[3] else (_BARE, _BARE_REST)
        value = short.match(text, match.end())
        if value is None or not is_secret_in_text(name, value[0]):
            continue
        end = value.end()
        if len(value[0]) == _SHORT and (more := rest.match(text, end)):
            end = more.end()
        yield Found(value.start(), value.start() + len(text[value.start() : end].rstrip(" .\t")), named(name))


def named(name: str) -> str:
    """Why a value is a secret: its name."""
    return f"it is named {name[:40]}"
