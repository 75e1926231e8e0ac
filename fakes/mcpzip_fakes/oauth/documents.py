"""The metadata of an authorization server and of a protected resource (no I/O)."""

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.oauth import lies
from mcpzip_fakes.oauth.authority import Authority
from mcpzip_fakes.oauth.settings import AUTH_METHODS, OAuth

WELL_KNOWN = "/.well-known/"
_OF_RESOURCE = f"{WELL_KNOWN}oauth-protected-resource"
_OF_SERVER = f"{WELL_KNOWN}oauth-authorization-server"
_OF_OPENID = f"{WELL_KNOWN}openid-configuration"


def server_path(told: OAuth) -> str:
    """The path of an authorization server's metadata (RFC 8414, section 3; OpenID Connect Discovery, section
    4), "" if there are none."""
    return {
        "oauth": _OF_SERVER + told.issuer_path,
        "oidc-inserted": _OF_OPENID + told.issuer_path,
        "oidc": told.issuer_path + _OF_OPENID,
        "none": "",
    }[told.discovery]


def resource_path(told: OAuth, path: str) -> str:
    """The path of the metadata of the resource at ``path`` (RFC 9728, section 3), "" if there are none."""
    return {"path": _OF_RESOURCE + path, "root": _OF_RESOURCE, "none": ""}[told.resource_metadata]


def about_resource(path: str) -> bool:
    """Whether a well-known path is one of RFC 9728."""
    return path.startswith(_OF_RESOURCE)


def of_server(authority: Authority) -> JsonObject:
    """The metadata of the authorization server (RFC 8414, section 2)."""
    told, issuer = authority.told, authority.issuer
    document: JsonObject = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": list(AUTH_METHODS),
        "token_endpoint_auth_signing_alg_values_supported": ["RS256", "ES256", "EdDSA"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": told.announce_iss,
        "client_id_metadata_document_supported": told.cimd,
    }
    if told.all_scopes:
        document["scopes_supported"] = list(told.all_scopes)
    if told.registration:
        document["registration_endpoint"] = f"{issuer}/register"
    if told.revocation:
        document["revocation_endpoint"] = f"{issuer}/revoke"
    document["introspection_endpoint"] = f"{issuer}/introspect"
    if told.access_tokens == "jwt":
        document["jwks_uri"] = f"{issuer}/jwks"
    if told.discovery != "oauth":
        document |= {
            "jwks_uri": f"{issuer}/jwks",
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }
    return _over(lies.of_server(document, told.lies), told.metadata)


def of_resource(told: OAuth, resource: str, name: str, issuer: str) -> JsonObject:
    """The metadata of the protected resource (RFC 9728, section 2)."""
    listed = told.listed or ("{issuer}",)
    document: JsonObject = {
        "resource": resource,
        "resource_name": name,
        "authorization_servers": [each.replace("{issuer}", issuer) for each in listed],
        "bearer_methods_supported": ["header"],
    }
    if told.all_scopes:
        document["scopes_supported"] = list(told.first_scopes or told.all_scopes)
    return _over(lies.of_resource(document, told.lies), told.resource_fields)


def _over(document: JsonObject, fields: JsonObject) -> JsonObject:
    return {key: value for key, value in {**document, **fields}.items() if value != ""}
