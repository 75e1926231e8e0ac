"""The ``store`` of a config: where processes share what they have to agree on.

The rule: what lies there is secret, so nothing in it is ignored. A key or a value that is unknown, and a
variable that is not set, is an error.
"""

import re
from urllib.parse import urlsplit

from mcpzip.config.http import check_keys, given
from mcpzip.config.node import Node
from mcpzip.config.schema import Secret, StoreConfig
from mcpzip.config.secrets import register_in_text
from mcpzip.system.sealing import MOST_KEYS, key_id, read_key

URL, KEYS_KEY, NAMESPACE = "url", "keys", "namespace"
KEYS = (URL, KEYS_KEY, NAMESPACE)
SCHEMES = ("redis", "rediss", "postgresql", "postgres")
DEFAULT_NAMESPACE = StoreConfig.__struct_defaults__[-1]

_STORE = 'write an object, such as {"url": "rediss://redis.example:6379", "keys": ["${MCPZIP_STORE_KEY}"]}'
_URL = "write redis://…, rediss://… (with TLS) or postgresql://…"
_KEYS = 'write a list of keys, such as ["${MCPZIP_STORE_KEY}"]; the first seals, all open'
_KEY = "write 32 random bytes as base64; openssl rand -base64 32 makes them"
_NAMESPACE = "write up to 64 letters, digits, _, . and -"
_NAMESPACE_FORM = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_store(node: Node) -> StoreConfig:
    """Raises ConfigError."""
    check_keys(node, _STORE, KEYS)
    url, keys, namespace = map(node.get, KEYS)
    if url is None:
        raise node.error("there is no url", _STORE)
    if keys is None:
        raise node.error("there are no keys to seal with what lies in it", _KEYS)
    return StoreConfig(_url(url), _keys(keys), _namespace(namespace) if namespace else DEFAULT_NAMESPACE)


def _url(node: Node) -> str:
    url = given(node, _URL)
    register_in_text(url)
    try:
        parts = urlsplit(url)
        valid = parts.scheme in SCHEMES and (parts.port is None or parts.port > 0)
        hostname = parts.hostname
    except ValueError:
        valid, hostname = False, None
    if not valid or any(not "!" <= character <= "~" for character in url):
        raise node.error("found no URL of a store", _URL)
    if not hostname and parts.scheme in ("redis", "rediss"):
        raise node.error("found a URL without a host", _URL)
    if parts.fragment:
        raise node.error("the URL has a fragment", "write # in a password as %23")
    return url


def _keys(node: Node) -> tuple[Secret, ...]:
    if not isinstance(node.value, list) or not node.value:
        raise node.error("found no list with a key in it", _KEYS)
    if len(node.value) > MOST_KEYS:
        raise node.error(f"found {len(node.value):,} keys", f"write {MOST_KEYS} at most")
    found, ids = list[Secret](), set[bytes]()
    for at, each in enumerate(node.value):
        key = Node(node.source, f"{node.path}[{at}]", each)
        secret = Secret(given(key, _KEY))
        try:
            raw = read_key(secret.reveal())
        except ValueError as error:
            raise key.error(f"this is no key: {error}", _KEY) from None
        if key_id(raw) in ids:
            raise key.error("a key is there twice", "write each of them once")
        ids.add(key_id(raw))
        found.append(secret)
    return tuple(found)


def _namespace(node: Node) -> str:
    text = given(node, _NAMESPACE)
    if _NAMESPACE_FORM.fullmatch(text) is None:
        raise node.error("found another text", _NAMESPACE)
    return text
