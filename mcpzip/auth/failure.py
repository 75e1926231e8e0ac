"""Why there is no token, and when one may be asked for again (pure).

The rule: a token endpoint that fails is asked at most once a minute, and then less and less often; one that
refuses is not asked again.
"""

import msgspec

from mcpzip.system.backoff import Backoff

FIRST_PAUSE, LONGEST_PAUSE = 60.0, 900.0
"""Seconds before a token endpoint that failed is asked again, doubling from one to the other."""
_BACKOFF = Backoff(FIRST_PAUSE, LONGEST_PAUSE)

REFUSALS = (401, 403)
"""The statuses by which a server says that a request needs a token, or another one."""
FINAL = frozenset({"invalid_grant", "invalid_client", "unauthorized_client"})
"""Error codes that say that what we showed is not valid, whatever the status."""
PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Error codes of an authorization server that say nothing about what we showed it."""


class AuthFailure(msgspec.Struct, frozen=True):
    """reason: why there is no token, without a full stop. needs_login: whether somebody has to sign in, which
    ends the failure. remedy: what else can be done, as a sentence, or "". seen: the signature of what was
    stored when the server was asked.
    """

    reason: str
    needs_login: bool = True
    remedy: str = ""
    seen: object = None


def pause(failures: int, asked: float | None) -> float:
    """Seconds to wait after ``failures`` failures in a row. asked: those that the server asked for."""
    return max(_BACKOFF.pause(failures), asked or 0.0)


def is_final(status: int, code: str) -> bool:
    """Whether a token endpoint that answers so will not answer otherwise (RFC 6749, 5.2): the refresh token,
    or our registration, is no longer valid.
    """
    return code in FINAL or (status in (400, 401) and bool(code) and code not in PASSING)
