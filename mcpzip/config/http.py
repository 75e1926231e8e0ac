"""The ``http`` and the ``access`` of a config: who may ask over HTTP, and for what.

The rule: this says who is let in, so nothing in it is ignored. A key or a value that is unknown, and a
variable that is not set, is an error, not a warning as elsewhere.
"""

import os
from typing import get_args
from urllib.parse import urlsplit

from msgspec.structs import replace

from mcpzip.config.node import TEXT, Node
from mcpzip.config.paths import expand_home
from mcpzip.config.schema import (
    AccessRule,
    Config,
    Expose,
    HttpConfig,
    IntrospectionConfig,
    IssuerConfig,
    PageConfig,
    RateLimit,
    Secret,
    ServerConfig,
    StoreFailure,
)
from mcpzip.config.syntax import member
from mcpzip.model import limits
from mcpzip.model.risk import EFFECTS, RISK_CLASSES, RiskClass
from mcpzip.system.network import is_confidential

KEYS = ("public_url", "issuers", "api_keys", "page")
PAGE_KEYS = ("listen", "public_url", "issuer", "client_id", "client_secret", "scopes")
ISSUER_KEYS = (
    *("issuer", "scopes", "groups_claim", "name_claim", "token_type", "algorithms", "jwks_uri"),
    "introspection",
)
INTROSPECTION_KEYS = ("endpoint", "client_id", "client_secret")
ACCESS_KEYS = ("allow", "deny", "groups", "scopes", "risk")
RATE_KEYS = ("of", "calls", "seconds", "concurrent", "groups", "if_store_fails", "requests")
STORE_FAILURES: tuple[StoreFailure, ...] = get_args(StoreFailure)
MOST_CALLS, LONGEST_PERIOD = 1_000_000, 86_400.0
ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Those with a public key: with any other, whoever can check a token could make one."""
GROUPS_CLAIM = "groups"

_HTTP = 'write an object, such as {"public_url": "https://mcp.example.org/mcp", "issuers": ["https://…"]}'
_URL = "write a whole URL, such as https://mcp.example.org/mcp"
_ISSUERS = 'write a list of issuers, such as ["https://login.example.org"]'
_ISSUER = 'write a URL, or an object such as {"issuer": "https://login.example.org", "scopes": ["mcp"]}'
_INTROSPECTION = (
    'write an object such as {"endpoint": "https://…", "client_id": "…", "client_secret": "${…}"}'
)
_PAGE = (
    'write an address such as "127.0.0.1:8932", or {"listen": "…", "public_url": "https://tools.example.org"}'
)
_CLIENT = 'write the "client_id" of the client that you have registered for the page at the issuer'
_SCOPES = 'write a list of scopes, such as ["mcp:tools"]'
_CLAIM = 'write the name of a claim, such as "groups"; "a.b" is the member b of the claim a'
_ALGORITHMS = f"write a list of {', '.join(ALGORITHMS)}"
_FILE = 'write the path of a file, such as "keys.json"; mcpzip keys add makes it'
_RULES = 'write a list of rules, such as [{"groups": ["dev"], "allow": ["github", "crm__get_*"]}]'
_RATES = 'write a list of limits, such as [{"of": "crm", "calls": 60, "seconds": 60, "concurrent": 4}]'
_FAILURE = 'write "local", so that each process counts by itself then, or "deny"'
_TARGETS = 'write a list of globs: of servers, such as "github", or of tools, such as "github__get_*"'
_GROUPS = 'write a list of groups, such as ["developers"]'
_RISK = 'write "reads", "writes", "destroys", or in a rule that denies "reaches_out", or a list of them'
_SCOPE_CHARACTERS = frozenset(map(chr, range(0x21, 0x7F))) - {'"', "\\"}
"""Of a scope (RFC 6749, 3.3)."""


def read_http(node: Node) -> HttpConfig:
    """Raises ConfigError."""
    check_keys(node, _HTTP, KEYS)
    url, issuers, keys, page = map(node.get, KEYS)
    found = HttpConfig(
        public_url=_public_url(url) if url else "",
        issuers=_issuers(issuers) if issuers else (),
        api_keys=_path(keys) if keys else "",
    )
    if page:
        found = replace(found, page=_page(page, found))
    if found.page and not (found.api_keys or found.page.client_id):
        raise node.error(
            "nobody can sign in to the page: there is neither api_keys nor, in page, a client_id",
            'write "api_keys": "keys.json", and make keys with mcpzip keys add; or register the page at the '
            'issuer, and write its "client_id" into "page"',
        )
    if found.issuers and not found.public_url:
        remedy = f'write "public_url", the URL by which clients reach mcpzip: {_URL.removeprefix("write ")}'
        raise node.error("tokens are for one URL, and there is no public_url", remedy)
    return found


def with_people_or_problem(config: Config) -> dict[str, ServerConfig]:
    """The servers of ``config``. One to which people are to sign in, and can't, is unusable."""
    http = config.http
    if not http.has_people:
        found = 'the config has no people; add "http" with "api_keys" or "issuers", or remove per_user'
    elif http.page is None:
        found = 'people sign in on the page, and there is none; add "page": "127.0.0.1:8932" to "http"'
    elif config.expose == "transparent":
        found = 'with "mode": "transparent" there is one sign-in for all; write "direct" or "meta"'
    else:
        found = ""

    def checked(server: ServerConfig) -> ServerConfig:
        why = found
        if server.headers_command:
            why = '"headersCommand" is one sign-in for all people; remove one of the two'
        if "@" in urlsplit(server.url).netloc:
            why = "the user in its url is one sign-in for all people; remove one of the two"
        if not server.per_user or server.problem or not why:
            return server
        return replace(server, problem=f"auth.per_user: {why}")

    return {name: checked(server) for name, server in config.servers.items()}


def _page(node: Node, http: HttpConfig) -> PageConfig:
    if isinstance(node.value, str):
        return PageConfig(given(node, _PAGE))
    check_keys(node, _PAGE, PAGE_KEYS)
    listen, url, named, client, secret, scopes = map(node.get, PAGE_KEYS)
    if listen is None:
        raise node.error("there is no listen", _PAGE)
    found = PageConfig(given(listen, _PAGE), _origin(url) if url else "")
    if client is None:
        for key in filter(None, (named, secret, scopes)):
            raise key.error("it is for a sign-in at the issuer, and there is no client_id", _CLIENT)
        return found
    issuer = _issuer_of_page(named or node, _url(named) if named else "", http.issuers)
    return replace(
        found,
        issuer=issuer.issuer,
        client_id=given(client, _CLIENT),
        client_secret=Secret(given(secret, _CLIENT)) if secret else None,
        scopes=_scopes(scopes) if scopes else issuer.scopes,
    )


def _issuer_of_page(node: Node, named: str, issuers: tuple[IssuerConfig, ...]) -> IssuerConfig:
    """The issuer where people sign in to the page. Only one: with two, one of them could have a browser bring
    it what is for the other (RFC 9700, 4.4).
    """
    fitting = [each for each in issuers if named in ("", each.issuer)]
    if len(fitting) != 1:
        found = "it is none of the issuers" if named else f"there are {len(issuers)} issuers"
        raise node.error(found, 'write one of "issuers" as the "issuer" of the page: people sign in there')
    return fitting[0]


def _origin(node: Node) -> str:
    """A URL without a path, as a browser writes an origin (RFC 6454, 6.2)."""
    url = _public_url(node)
    parts = urlsplit(url)
    if parts.path:
        raise node.error("the URL has a path", "write a URL without one, such as https://tools.example.org")
    usual = {"https": 443, "http": 80}[parts.scheme]
    return url.removesuffix(f":{usual}") if parts.port == usual else url


def _public_url(node: Node) -> str:
    url = _url(node).rstrip("/")
    parts = urlsplit(url)
    if parts.query or parts.fragment or parts.username is not None:
        raise node.error("the URL has a query, a fragment or a user", _URL)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path}"


def _issuers(node: Node) -> tuple[IssuerConfig, ...]:
    if not isinstance(node.value, list) or not node.value:
        raise node.error("found no list with an issuer in it", _ISSUERS)
    if len(node.value) > limits.ISSUERS:
        raise node.error(f"found {len(node.value):,} issuers", f"write {limits.ISSUERS} at most")
    found = tuple(
        _issuer(Node(node.source, f"{node.path}[{at}]", each)) for at, each in enumerate(node.value)
    )
    names = [each.issuer for each in found]
    if len(set(names)) < len(names):
        raise node.error("an issuer is there twice", "write each of them once")
    if sum(each.introspection is not None for each in found) > 1:
        raise node.error(
            "more than one issuer has introspection",
            "an opaque token doesn't say whose it is, and must not be sent to all: write it for one",
        )
    return found


def _issuer(node: Node) -> IssuerConfig:
    if isinstance(node.value, str):
        return IssuerConfig(_url(node))
    check_keys(node, _ISSUER, ISSUER_KEYS)
    issuer, scopes, groups, name, kind, algorithms, jwks, introspection = map(node.get, ISSUER_KEYS)
    if issuer is None:
        raise node.error("there is no issuer", _ISSUER)
    chosen = algorithms.texts(_ALGORITHMS) if algorithms else ()
    if algorithms and (not chosen or (set(chosen) - set(ALGORITHMS))):
        raise algorithms.error("found an algorithm that is not for this, or none", _ALGORITHMS)
    return IssuerConfig(
        issuer=_url(issuer),
        scopes=_scopes(scopes) if scopes else (),
        groups_claim=given(groups, _CLAIM) if groups else GROUPS_CLAIM,
        name_claim=given(name, _CLAIM) if name else "",
        token_type=given(kind, 'write the type of access tokens, such as "at+jwt"') if kind else "",
        algorithms=chosen,
        jwks_uri=_url(jwks) if jwks else "",
        introspection=_introspection(introspection) if introspection else None,
    )


def _introspection(node: Node) -> IntrospectionConfig:
    check_keys(node, _INTROSPECTION, INTROSPECTION_KEYS)
    endpoint, client, secret = map(node.get, INTROSPECTION_KEYS)
    if endpoint is None or client is None or secret is None:
        raise node.error(f"it lacks one of {', '.join(INTROSPECTION_KEYS)}", _INTROSPECTION)
    return IntrospectionConfig(
        _url(endpoint), given(client, _INTROSPECTION), Secret(given(secret, _INTROSPECTION))
    )


def read_access(node: Node, expose: Expose) -> tuple[AccessRule, ...]:
    """The rules of who may use what. expose: how clients are shown the tools. Raises ConfigError."""
    if expose == "transparent":
        raise node.error('with "mode": "transparent" nothing can be filtered', 'write "direct" or "meta"')
    if not isinstance(node.value, list):
        raise node.error("found no list", _RULES)
    if len(node.value) > limits.ACCESS_RULES:
        raise node.error(f"found {len(node.value):,} rules", f"write {limits.ACCESS_RULES:,} at most")
    return tuple(map(_rule, _elements(node, node.value)))


def _rule(node: Node) -> AccessRule:
    check_keys(node, _RULES, ACCESS_KEYS)
    allow, deny, groups, scopes, risk = map(node.get, ACCESS_KEYS)
    targets = allow if deny is None else deny
    if targets is None or (allow and deny):
        raise node.error("a rule has either an allow or a deny", _RULES)
    effect = "allow" if deny is None else "deny"
    return AccessRule(
        allows=effect == "allow",
        targets=_globs(targets),
        groups=_groups(groups) if groups else None,
        scopes=_scopes(scopes) if scopes else (),
        risk=_risk(risk, allows=effect == "allow") if risk else None,
    )


def read_rate_limits(node: Node) -> tuple[RateLimit, ...]:
    """How many calls people may make. Raises ConfigError."""
    if not isinstance(node.value, list):
        raise node.error("found no list", _RATES)
    if len(node.value) > limits.ACCESS_RULES:
        raise node.error(f"found {len(node.value):,} limits", f"write {limits.ACCESS_RULES:,} at most")
    return tuple(map(_rate_limit, _elements(node, node.value)))


def _rate_limit(node: Node) -> RateLimit:
    check_keys(node, _RATES, RATE_KEYS)
    of, calls, seconds, concurrent, groups, failure, requests = map(node.get, RATE_KEYS)
    if requests is not None:
        if any(each is not None for each in (of, calls, concurrent, failure)):
            remedy = 'write limits of calls beside it: [{"requests": 600}, {"calls": 60}]'
            raise node.error("a limit of requests has only seconds and groups beside it", remedy)
    elif calls is None and (concurrent is None or seconds is not None):
        raise node.error(
            "it says neither how many calls or requests in how many seconds, nor how many calls at a time",
            _RATES,
        )
    usual = RateLimit()
    return RateLimit(
        of=_globs(of) if of else usual.of,
        calls=calls.integer(1, MOST_CALLS) if calls else 0,
        seconds=seconds.number("seconds", LONGEST_PERIOD) if seconds else usual.seconds,
        concurrent=concurrent.integer(1, MOST_CALLS) if concurrent else None,
        groups=_groups(groups) if groups else None,
        if_store_fails=(failure.choice(STORE_FAILURES, _FAILURE) if failure else None)
        or usual.if_store_fails,
        requests=requests.integer(1, MOST_CALLS) if requests else 0,
    )


def _groups(node: Node) -> frozenset[str]:
    found = node.texts(_GROUPS)
    if not found:
        raise node.error("found an empty list", f"{_GROUPS}; without this key it is for everybody")
    return frozenset(found)


def _globs(node: Node) -> tuple[str, ...]:
    found = (given(node, _TARGETS),) if isinstance(node.value, str) else node.texts(_TARGETS)
    if not found or not all(each.strip() for each in found):
        raise node.error("found an empty list, or an empty glob", _TARGETS)
    if len(found) > limits.POLICY_GLOBS:
        raise node.error(f"found {len(found):,} globs", f"write {limits.POLICY_GLOBS:,} at most")
    return tuple(each.strip() for each in found)


def _risk(node: Node, *, allows: bool) -> frozenset[RiskClass]:
    named = (node.value,) if isinstance(node.value, str) else node.texts(_RISK)
    known = EFFECTS if allows else RISK_CLASSES
    if not named or any(each not in known for each in named):
        raise node.error("found another class, or none", _RISK)
    return frozenset(each for each in RISK_CLASSES if each in named)


def _scopes(node: Node) -> tuple[str, ...]:
    found = node.texts(_SCOPES)
    if not found:
        raise node.error("found an empty list", _SCOPES)
    if not all(map(is_scope, found)):
        raise node.error("found what is no scope: it has a space, a quotation mark, or nothing", _SCOPES)
    return tuple(dict.fromkeys(found))


def is_scope(text: str) -> bool:
    """Whether ``text`` is a scope (RFC 6749, 3.3)."""
    return bool(text) and _SCOPE_CHARACTERS.issuperset(text)


def _url(node: Node) -> str:
    """A URL that can be trusted: on which nobody can listen. Raises ConfigError."""
    url = given(node, _URL)
    try:
        parts = urlsplit(url)
        valid = parts.scheme.lower() in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(not "!" <= character <= "~" or character in '"\\' for character in url):
        raise node.error("found no URL of HTTP", _URL)
    if not is_confidential(url):
        raise node.error("others could listen, and take the tokens", "write https://")
    return url


def _elements(node: Node, values: list[object]) -> list[Node]:
    return [Node(node.source, f"{node.path}[{at}]", each) for at, each in enumerate(values)]


def _path(node: Node) -> str:
    text = expand_home(given(node, _FILE), node.source.env)
    return os.path.join(os.path.dirname(node.source.file), text)


def given(node: Node, remedy: str) -> str:
    """A text that isn't empty. Raises ConfigError, also for a variable that isn't set."""
    faults = len(node.source.faults)
    text = node.text(remedy).strip()
    if len(node.source.faults) > faults:
        fault = node.source.faults[faults]
        raise node.error(fault.found, fault.remedy)
    if not text:
        raise node.error("found an empty text", remedy or TEXT)
    return text


def check_keys(node: Node, remedy: str, known: tuple[str, ...]) -> None:
    """Raises ConfigError for what isn't an object, and for a key that isn't ``known``."""
    if not isinstance(node.value, dict):
        raise node.error("found no object", remedy)
    for key, value in node.value.items():
        if key not in known and not key.startswith(("_", "//")):
            unknown = Node(node.source, member(node.path, key), value)
            raise unknown.error("there is no such key", f"the keys here are {', '.join(known)}")
