"""OAuth scopes (pure): lists of words with a space between them (RFC 6749, 3.3)."""

import re

_SCOPE = re.compile(r"[!#-\[\]-~]+")
"""One scope (RFC 6749, 3.3)."""


def well_formed(scope: str) -> str:
    """The valid scopes in ``scope``. The others could break a header, or control a terminal."""
    return " ".join(one for one in scope.split() if _SCOPE.fullmatch(one))


def union(*scopes: str | None) -> str:
    """All ``scopes``, each one once, in the order in which they come first."""
    return " ".join(dict.fromkeys(one for scope in scopes if scope for one in scope.split()))
