"""The ``http``, the ``access`` and the ``store`` in the JSON Schema of the config file (pure)."""

from mcpzip.config import http, replicas_forms, store_forms
from mcpzip.config.schema import RateLimit
from mcpzip.config.schema_forms import Schema, choice, integer, number, object_of, text, texts
from mcpzip.model.risk import RISK_CLASSES


def definitions() -> dict[str, Schema]:
    """The definitions, by name."""
    return {
        "http": _http(),
        "issuer": _issuer(),
        "introspection": _introspection(),
        "page": _page(),
        "access": _rule(),
        "rate_limit": _rate_limit(),
        "replicas": replicas_forms.settings(),
        "store": store_forms.settings(),
    }


def store_form() -> Schema:
    """The form of ``store``."""
    return {
        "description": "Where several processes keep what they share: sign-ins to servers, counts of "
        'calls, and what servers list. Needs the extra "redis" or "postgres".',
        "anyOf": [{"$ref": "#/$defs/store"}, {"type": "null"}],
    }


def http_form() -> Schema:
    """The form of ``http``."""
    return {"anyOf": [{"$ref": "#/$defs/http"}, {"type": "null"}]}


def access_form() -> Schema:
    """The form of ``access``."""
    return {
        "description": "What people who call over HTTP may use: a list of rules. Without this key: all.",
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/access"},
    }


def rate_limits_form() -> Schema:
    """The form of ``rate_limits``."""
    return {
        "description": "How many calls and requests each person who calls over HTTP may make: a list of "
        "limits.",
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/rate_limit"},
    }


def replicas_form() -> Schema:
    """The form of ``replicas``."""
    return {"anyOf": [{"$ref": "#/$defs/replicas"}, {"type": "null"}]}


def _rate_limit() -> Schema:
    usual = RateLimit()
    return object_of(
        "How many calls or requests each person may make.",
        {
            "of": {
                "description": "What is counted, together: globs of servers, or with __ of tools with their "
                "server. Without this key: all calls.",
                "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
            },
            "calls": integer(
                "So many calls at once, and as many again in the time of seconds.",
                least=1,
                most=http.MOST_CALLS,
            ),
            "seconds": number("See calls; fractions too.", usual.seconds, above=0, most=http.LONGEST_PERIOD),
            "concurrent": integer("So many calls at a time.", least=1, most=http.MOST_CALLS),
            "groups": texts("Whom it is for: those in one of these groups. Without this key: all."),
            "if_store_fails": choice(
                http.STORE_FAILURES,
                "While the store can't count calls: each process counts them by itself, or they are refused.",
                usual.if_store_fails,
            ),
            "requests": integer(
                "Instead of calls: so many HTTP requests of any kind at once, and as many again in the time "
                "of seconds. Further ones are refused with 429.",
                least=1,
                most=http.MOST_CALLS,
            ),
        },
    )


def _http() -> Schema:
    return object_of(
        "Who may call over HTTP: people who sign in, or have an API key.",
        {
            "public_url": text(
                "The URL by which clients reach mcpzip, and for which tokens have to be. Needed with issuers."
            ),
            "issuers": {
                "description": "The authorization servers whose access tokens are accepted: their URLs, or "
                "objects.",
                "type": ["array", "null"],
                "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/issuer"}]},
            },
            "api_keys": text(
                "The file of API keys, which mcpzip keys makes; a relative path is from the folder of the "
                "config."
            ),
            "page": {
                "description": "The page for these people: its address ([HOST:]PORT), or an object.",
                "anyOf": [{"type": ["string", "null"]}, {"$ref": "#/$defs/page"}],
            },
        },
    )


def _page() -> Schema:
    return object_of(
        "The page for a team.",
        {
            "listen": text("The address to listen at: [HOST:]PORT, without a host on loopback."),
            "public_url": text(
                "The URL by which browsers reach it, without a path. Without this key: the address itself, "
                "which has to be on loopback."
            ),
            "issuer": text(
                "The one of the issuers where people sign in to the page. Without this key: the only one."
            ),
            "client_id": text(
                "The client that the page is at the issuer. Without this key people sign in with an API key."
            ),
            "client_secret": text(
                "The secret of that client, best as a variable. Without this key: a public client."
            ),
            "scopes": texts("Scopes to ask for there. Without this key: those of the issuer."),
        },
    )


def _issuer() -> Schema:
    return object_of(
        "An authorization server whose access tokens are accepted.",
        {
            "issuer": text("Its identifier, as its tokens have it (iss)."),
            "scopes": texts("Scopes that every token has to have."),
            "groups_claim": {
                **text('The claim with the groups of a person; "a.b" is the member b of the claim a.'),
                "default": http.GROUPS_CLAIM,
            },
            "name_claim": text(
                "The claim with the name of a person. Without this key: preferred_username, email, name or "
                "username."
            ),
            "token_type": text(
                'The type (typ) of its access tokens, such as "at+jwt". Without this key: that, JWT or none.'
            ),
            "algorithms": texts(
                f"The algorithms that its keys may be used with, of {', '.join(http.ALGORITHMS)}. Without "
                "this key: those that each key is for."
            ),
            "jwks_uri": text("The URL of its keys. Without this key: that of its metadata."),
            "introspection": {"anyOf": [{"$ref": "#/$defs/introspection"}, {"type": "null"}]},
        },
    )


def _introspection() -> Schema:
    return object_of(
        "How the issuer is asked about tokens that are no JWTs (RFC 7662).",
        {
            "endpoint": text("The URL of its introspection endpoint."),
            "client_id": text("The client that mcpzip is there."),
            "client_secret": text('The secret of that client, best as a variable: "${SECRET}".'),
        },
    )


def _rule() -> Schema:
    targets: Schema = {
        "anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "string"}}],
    }
    return object_of(
        "A rule: what some people may use, or not.",
        {
            "allow": {
                "description": "What they may use: globs of servers, or with __ of tools with their server.",
                **targets,
            },
            "deny": {"description": "What they may not use, whatever other rules allow.", **targets},
            "groups": texts("Whom the rule is for: those in one of these groups. Without this key: all."),
            "scopes": texts("Scopes that a token has to have for the rule to apply: all of them."),
            "risk": {
                "description": "Only tools of these classes: reads, writes, destroys, and for deny "
                "reaches_out.",
                "anyOf": [
                    {"enum": [*RISK_CLASSES, None]},
                    {"type": "array", "items": {"enum": [*RISK_CLASSES]}, "minItems": 1},
                ],
            },
        },
    )
