"""Why there is no token, and when to ask for one again (pure).

The rule: a token endpoint that fails is asked ever less often, once a minute at most; one that says no is not
asked again.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from mcpzip.system.backoff import Backoff

FIRST_PAUSE, LONGEST_PAUSE = 60.0, 900.0
"""Seconds before a token endpoint that failed is asked again, doubling from one to the other."""
_BACKOFF = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
LONGEST_ASKED = 86_400.0
"""Seconds of pause that a server can ask for (Retry-After)."""

FINAL = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Error codes that say that what we showed is of no use, whatever the status."""
PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Error codes of an authorization server that say nothing about what we showed it."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """reason: why there is no token, without a full stop. person: whether somebody has to sign in, and the
    trouble is over when they have. remedy: what else can be done, as a sentence, or "". seen: the signature
    of what was stored when the server was asked.
    """

    reason: str
    person: bool = True
    remedy: str = ""
    seen: object = None


def pause(failures: int, retry_after: float | None) -> float:
    """Seconds to wait after ``failures`` failures in a row. retry_after: what the server asked for."""
    return max(_BACKOFF.pause(failures), min(retry_after or 0.0, LONGEST_ASKED))


def retry_after(header: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for at ``now`` (Unix s); None when it says nothing (RFC 9110,
    10.2.3).
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    from email.utils import parsedate_to_datetime  # which takes as long to import as a small server to answer

    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.fromtimestamp(now, UTC)).total_seconds())


def is_final(status: int, code: str) -> bool:
    """Whether a token endpoint that answers so will not answer otherwise (RFC 6749, 5.2): the refresh token,
    or our registration, is of no more use.
    """
    return code in FINAL or (status in (400, 401) and bool(code) and code not in PASSING)
