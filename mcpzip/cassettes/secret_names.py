"""Which named values of messages are secrets (pure).

The rule: a false positive spoils a cassette, because a client then gets a mask instead of a page token; a
false negative publishes a secret. So the name decides how much the value must look like a secret:

- a password: everything but a few words;
- a token, an API key: what is no word, number or date (`mcpzip.model.redaction.is_ordinary`);
- a key, a session, a signature: only what looks random, because these words also name other things.
"""

import re
from enum import IntEnum
from functools import lru_cache

from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.model.redaction import ORDINARY, SHORTEST, is_ordinary, looks_secret


class Suspicion(IntEnum):
    """How much a name suggests that its value is a secret."""

    NONE = 0
    WEAK = 1
    TOKEN = 2
    PASSWORD = 3


_LONGEST_NAME = 100
_PASSWORD = lazy_pattern(r"passw|passphrase|passcode|(?:^|_)(?:pwd|otp|totp|pin_?code)(?:_|$)")
_TOKEN = lazy_pattern(
    r"token|secret|credential|bearer|api_?key|apikey|authorization|jwt|cookie"
    r"|(?:account|access|shared|signing|encryption|master|private|subscription|service|auth|admin)_?key"
    r"|conn(?:ection)?_?str"
)
_NO_SECRET = lazy_pattern(
    r"(?:progress|page|next|prev|previous|continuation|continue|sync|cursor|delta|resume|change|start)_?tokens?$"
    r"|^(?:old)?pwd$|^tokeni[sz]|(?:^|_)(?:remaining|reset|limit|max|used)_tokens$"
    r"|(?:url|uri|endpoint|type)s?$"
    r"|_(?:file|path|dir|folder|host|port|alg|algorithm|name|ttl|timeout|expiry|expires|length|size|limit|count"
    r"|max|version|provider|method|methods|mode|store|user|username|in|at|hint|field|fields|supported|required"
    r"|enabled|policy|scope|scopes|status|description|title|label|format|schema)$"
    r"|^(?:www|proxy)_authenticate$|^authentication_info$|(?:^|_)public_?key$|^sec_"
)
"""Names that describe a secret or a page without holding a secret."""
_CAMEL_CASE = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATORS = lazy_pattern(r"[^a-z0-9]+")
_PLACEHOLDER = lazy_pattern(r"\$\{?[\w:.-]*\}?|<[^<>]*>|\{\{?[\w .:-]*\}?\}|[*x•.…-]+|%\w+%", re.IGNORECASE)
"""What stands for a secret in examples."""
_TYPES = ORDINARY | frozenset(
    {
        "string",
        "number",
        "integer",
        "boolean",
        "object",
        "array",
        "null",
        "true",
        "false",
        "name",
        "key",
        "n/a",
    }
    | {"token", "redacted", "hidden", "text", "yes", "no"}
)
_VERSION = lazy_pattern(r"(?:[\^~<>=v ]{0,4}\d[\w.*+-]{0,30}(?: |\|\||$)){1,4}")
"""A version, or a range of them, as packages of any name have."""
_WORD = lazy_pattern(r"[A-Z]?[a-z]{1,24}|[A-Z_]{1,24}", re.ASCII)
_RANDOM = lazy_pattern(
    r"(?<![A-Za-z0-9])(?:(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{6}|[A-Za-z0-9]{32})"
)
_SPACE = lazy_pattern(r"\s")
_LOOKED_AT = 64
"""Characters of a value in which a random part is searched."""
_MASK = re.compile(r"\[masked \d+\]")
_URL = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.-]{0,32}://")


@lru_cache(4096)
def suspicion(name: str) -> Suspicion:
    """How much ``name``, of a member, header, variable or parameter, suggests a secret."""
    if len(name) > _LONGEST_NAME or not looks_secret(name):
        return Suspicion.NONE
    plain = _SEPARATORS.sub("_", _CAMEL_CASE.sub("_", name).lower()).strip("_")
    if _NO_SECRET.search(plain):
        return Suspicion.NONE
    if _PASSWORD.search(plain):
        return Suspicion.PASSWORD
    return Suspicion.TOKEN if _TOKEN.search(plain) else Suspicion.WEAK


def is_secret(name: str, value: str) -> bool:
    """Whether ``value`` is a secret, given the name that it has in data such as a JSON object."""
    return _hides(suspicion(name), value.strip())


def is_secret_in_text(name: str, value: str) -> bool:
    """The same in running text (``token: abc``), where words after a colon are usual."""
    held = value.strip()
    kind = suspicion(name)
    return _hides(kind, held) and (looks_random(held) or (len(held) >= SHORTEST and not held.isalpha()))


def is_secret_variable(name: str, value: str) -> bool:
    """The same for a variable of the environment, which may have any form, such as that of a file."""
    kind = suspicion(name)
    if kind is Suspicion.WEAK:
        return _hides(kind, value.strip())
    return kind is not Suspicion.NONE and len(value.strip()) >= SHORTEST and not is_ordinary(value)


def is_secret_number(name: str) -> bool:
    """Whether a number that has this name is a secret."""
    return suspicion(name) is Suspicion.PASSWORD


def is_mask(text: str) -> bool:
    """Whether ``text`` is a mask already."""
    return _MASK.fullmatch(text) is not None


def looks_random(value: str) -> bool:
    """Whether ``value`` looks as if a program had made it: letters and digits mixed, or very long."""
    head = value[:_LOOKED_AT]
    return len(head) >= 12 and _SPACE.search(head) is None and _RANDOM.search(head) is not None


def _hides(kind: Suspicion, value: str) -> bool:
    if kind is Suspicion.NONE or not value or value.lower() in _TYPES:
        return False
    if _PLACEHOLDER.fullmatch(value[:256]) or is_mask(value) or _URL.match(value):
        return False
    if kind is Suspicion.PASSWORD:
        return True
    if is_ordinary(value) or _WORD.fullmatch(value):
        return False
    if value[0] in "^~<>=v0123456789" and "." in value and _VERSION.fullmatch(value[:_LOOKED_AT]):
        return len(value) > _LOOKED_AT or looks_random(value)
    if kind is Suspicion.WEAK:
        return looks_random(value)
    return len(value) >= SHORTEST and _SPACE.search(value[:_LOOKED_AT]) is None
