"""Scopes, as strangers write them (pure)."""

import re

_SCOPE = re.compile(r"[!#-\[\]-~]+")
"""One scope (RFC 6749, 3.3)."""


def well_formed(scope: str) -> str:
    """The scopes in ``scope`` that are such. What isn't could break a header, or command a terminal."""
    return " ".join(one for one in scope.split() if _SCOPE.fullmatch(one))
