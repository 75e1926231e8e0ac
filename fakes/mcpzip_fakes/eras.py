"""The era of a connection, and the handshake.

The rule: the client's first request decides: with the modern members in ``_meta`` it opens a modern
connection, otherwise a legacy one. Later requests of the other era are refused. (2026-07-28
`basic/versioning`; the official SDK does the same.) Over HTTP the SDK decides per request, and only versions
that the scenario excludes are refused here.
"""

from mcpzip.wire import (
    CLIENT_CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LATEST_LEGACY_VERSION,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.engine import Engine
from mcpzip_fakes.request import Refused, as_object
from mcpzip_fakes.scenario import Scenario


class Handshake:
    """The state of one connection: its version once it is known, its client's capabilities, and the client's
    name and version."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scenario = engine.scenario
        self.version = ""
        self.capabilities: JsonObject = {}
        self.client: JsonObject = {}

    @property
    def modern(self) -> bool:
        """Whether the connection is modern."""
        return self.version in MODERN_VERSIONS

    def admit(self, method: str, params: JsonObject) -> JsonObject | None:
        """The result of `initialize`; None if the engine answers the request. Raises Refused if the request
        is not allowed."""
        if method == "initialize":
            return self._initialize(params)
        meta = as_object(params.get("_meta"))
        if PROTOCOL_VERSION_KEY in meta and self._scenario.modern_versions:
            self._envelope(meta)
        elif self.modern or not self._scenario.legacy_versions:
            raise Refused(
                INVALID_PARAMS,
                f"params._meta must carry {PROTOCOL_VERSION_KEY} and {CLIENT_CAPABILITIES_KEY}",
            )
        elif method not in ("ping", "server/discover") and not self.version:
            raise Refused(INVALID_PARAMS, "Received request before initialization was complete")
        return None

    def _envelope(self, meta: JsonObject) -> None:
        if CLIENT_CAPABILITIES_KEY not in meta:
            raise Refused(INVALID_PARAMS, f"params._meta is missing {CLIENT_CAPABILITIES_KEY}")
        version = meta[PROTOCOL_VERSION_KEY]
        if not isinstance(version, str):
            raise Refused(INVALID_PARAMS, f"{PROTOCOL_VERSION_KEY} must be a string")
        if self.version and not self.modern:
            raise Refused(
                INVALID_REQUEST,
                "this connection was opened with initialize; requests of 2026-07-28 don't belong on it",
            )
        if version not in self._scenario.modern_versions:
            raise unsupported(self._scenario, version)
        self.version = version
        self.capabilities = as_object(meta[CLIENT_CAPABILITIES_KEY])
        self.client = as_object(meta.get(CLIENT_INFO_KEY))

    def _initialize(self, params: JsonObject) -> JsonObject:
        self._engine.initialized += 1
        asked = params.get("protocolVersion")
        if self.modern or not self._scenario.legacy_versions:
            raise unsupported(self._scenario, asked)
        if not isinstance(asked, str):
            raise Refused(INVALID_PARAMS, "params.protocolVersion must be a string")
        offered = self._scenario.legacy_versions
        self.version = asked if asked in offered else offered[-1]
        self.capabilities = as_object(params.get("capabilities"))
        self.client = as_object(params.get("clientInfo"))
        return {"protocolVersion": self.version, "serverInfo": self._engine.info(), **self._engine.greeting()}

    @property
    def request_version(self) -> str:
        """The protocol version of a request; before the handshake, the newest legacy version."""
        return self.version or LATEST_LEGACY_VERSION


def unsupported(scenario: Scenario, asked: object) -> Refused:
    """The error -32022 with the supported versions (2026-07-28 `basic/versioning`)."""
    data = {
        "supported": list(scenario.modern_versions),
        "requested": asked if isinstance(asked, str) else "",
    }
    return Refused(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
