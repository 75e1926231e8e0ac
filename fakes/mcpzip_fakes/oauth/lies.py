"""False statements in the metadata of an authorization server or a resource: a table (no I/O).

The rule: a lie changes a document and nothing else. "Elsewhere" is the same server under the name
``localhost``: another origin to every client, whose requests are recorded too.
"""

from collections.abc import Mapping

from mcpzip_fakes.answer import JsonObject

ABROAD = "http://elsewhere.invalid"
"""An unreachable host that isn't loopback: a client must refuse it before it connects."""

LIES: Mapping[str, str] = {
    "issuer": "the metadata name the issuer of another host",
    "foreign-endpoints": "authorize, token, register and revoke are elsewhere",
    "foreign-token": "the token endpoint is elsewhere",
    "http-token": "the token endpoint is plain http on a host that is not loopback",
    "plain-pkce": "only the PKCE method plain is said to be supported",
    "no-pkce": "no PKCE method is said to be supported",
    "resource": "the resource's metadata are of another server's resource",
    "foreign-server": "the resource's metadata name an authorization server elsewhere, of another issuer",
    "foreign-metadata": "401 says that the resource's metadata are elsewhere",
}
"""Name -> description."""

_ENDPOINTS = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "revocation_endpoint",
)


def elsewhere(url: str) -> str:
    """The same URL under another host name, which makes it another origin."""
    return url.replace("//127.0.0.1:", "//localhost:", 1)


def of_server(document: JsonObject, lies: tuple[str, ...]) -> JsonObject:
    """The authorization server's metadata (RFC 8414), with lies."""
    told = dict(document)
    if "issuer" in lies:
        told["issuer"] = f"{ABROAD}/issuer"
    if "foreign-endpoints" in lies:
        told |= {key: elsewhere(str(told[key])) for key in _ENDPOINTS if key in told}
    if "foreign-token" in lies:
        told["token_endpoint"] = elsewhere(str(told["token_endpoint"]))
    if "http-token" in lies:
        told["token_endpoint"] = f"{ABROAD}/token"
    if "plain-pkce" in lies:
        told["code_challenge_methods_supported"] = ["plain"]
    if "no-pkce" in lies:
        told.pop("code_challenge_methods_supported", None)
    return told


def of_resource(document: JsonObject, lies: tuple[str, ...]) -> JsonObject:
    """The resource's metadata (RFC 9728), with lies."""
    told = dict(document)
    if "resource" in lies:
        told["resource"] = f"{ABROAD}/mcp"
    servers = told.get("authorization_servers")
    if "foreign-server" in lies and isinstance(servers, list):
        told["authorization_servers"] = [elsewhere(str(server)) for server in servers]
    return told
