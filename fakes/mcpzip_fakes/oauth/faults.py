"""The faults at the endpoints of an authorization server, as a table, and when they fire (no I/O).

The rule: the first fault that is due fires, and one request counts once for each fault that affects it.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

ENDPOINTS = ("metadata", "resource", "authorize", "token", "register", "revoke", "introspect", "jwks")
"""Their names. ``resource`` is the metadata of the protected MCP server (RFC 9728)."""

KINDS: Mapping[str, str] = {
    "status": "answers with `status` (500), and `retry_after` seconds if that is given",
    "error": "answers with the OAuth error `error` (invalid_grant) and `status` (400)",
    "slow": "answers after `seconds` (1)",
    "hang": "never answers",
    "cut": "cuts the connection in the middle of its answer",
    "garbage": "answers 200 with something that isn't JSON",
    "shape": "answers 200 with JSON that says nothing",
    "redirect": "redirects (307, or `status`) to the same endpoint on another host, which answers",
}
"""Kind -> description."""

_STATUS: Mapping[str, int] = {"error": 400, "redirect": 307}


class AuthFault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fault. endpoint: of `ENDPOINTS`. grant: only for this ``grant_type``. nth: the first such request,
    from 1; times: the number of requests, None for all. The rest are options of its kind; seconds,
    retry_after: s."""

    kind: str
    endpoint: str = "token"
    grant: str = ""
    nth: int = 1
    times: int | None = None
    status: int | None = None
    retry_after: float | None = None
    seconds: float = 1.0
    error: str = "invalid_grant"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r} here; the faults are {', '.join(KINDS)}")
        if self.endpoint not in ENDPOINTS:
            raise ValueError(f"there is no endpoint {self.endpoint!r}; they are {', '.join(ENDPOINTS)}")

    @property
    def code(self) -> int:
        """The HTTP status of the answer."""
        return self.status or _STATUS.get(self.kind, 500)

    def is_for(self, endpoint: str, grant: str) -> bool:
        """Whether the fault affects a request."""
        return endpoint == self.endpoint and self.grant in ("", grant)

    def fires_on(self, meeting: int) -> bool:
        """Whether it fires on the ``meeting``-th request that it affects."""
        return self.nth <= meeting and (self.times is None or meeting < self.nth + self.times)


class AuthPlan:
    """Faults, and how many requests each has affected."""

    def __init__(self, faults: Sequence[AuthFault]) -> None:
        self._faults = tuple(faults)
        self._met = [0] * len(self._faults)

    def meet(self, endpoint: str, grant: str) -> AuthFault | None:
        """Count a request, and return the fault that fires on it."""
        found: AuthFault | None = None
        for at, fault in enumerate(self._faults):
            if fault.is_for(endpoint, grant):
                self._met[at] += 1
                if found is None and fault.fires_on(self._met[at]):
                    found = fault
        return found
