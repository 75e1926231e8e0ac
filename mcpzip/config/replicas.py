"""The ``replicas`` of a config: what several processes with this config share, behind a balancer.

The rule: with a wrong key, sessions of one replica would be unknown to another, so nothing in it is ignored.
A key or a value that is unknown, and a variable that is not set, is an error, not a warning as elsewhere.
"""

from mcpzip.config.http import check_keys, given
from mcpzip.config.node import Node
from mcpzip.config.schema import ReplicasConfig, Secret
from mcpzip.system.sealing import MOST_KEYS, read_key

KEYS = ("keys", "listen", "address", "drain_seconds")
LONGEST_DRAIN = 3_600.0
"""Seconds."""
_REPLICAS = 'write an object, such as {"keys": ["${MCPZIP_REPLICA_KEY}"], "listen": "0.0.0.0:8940"}'
_KEYS = (
    'write a list of keys, such as ["${MCPZIP_REPLICA_KEY}"], each of which `openssl rand -base64 32` made'
)
_LISTEN = "write the address at which other replicas reach this one, [HOST:]PORT, such as 0.0.0.0:8940"
_ADDRESS = "write HOST or HOST:PORT by which other replicas reach this one, such as ${POD_IP}:8940"


def read_replicas(node: Node) -> ReplicasConfig:
    """Raises ConfigError."""
    check_keys(node, _REPLICAS, KEYS)
    keys, listen, address, drain = map(node.get, KEYS)
    if keys is None:
        raise node.error("there are no keys", _KEYS)
    usual = ReplicasConfig(())
    found = ReplicasConfig(
        keys=_keys(keys),
        listen=given(listen, _LISTEN) if listen else "",
        address=given(address, _ADDRESS) if address else "",
        drain=drain.number_between(0, LONGEST_DRAIN) if drain else usual.drain,
    )
    if found.address and not found.listen:
        raise node.error("there is an address, and no listen", _LISTEN)
    return found


def _keys(node: Node) -> tuple[Secret, ...]:
    """The keys; an empty one, such as that of ``${OLD_KEY:-}``, is left out."""
    if not isinstance(node.value, list):
        raise node.error("found no list", _KEYS)
    found: list[Secret] = []
    for at, value in enumerate(node.value):
        one = Node(node.source, f"{node.path}[{at}]", value)
        faults = len(node.source.faults)
        text = one.text(_KEYS).strip()
        if len(node.source.faults) > faults:
            fault = node.source.faults[faults]
            raise one.error(fault.found, fault.remedy)
        if not text:
            continue
        key = Secret(text)
        try:
            read_key(text)
        except ValueError as error:
            raise one.error(
                f"this is no key: {error}", "write what `openssl rand -base64 32` prints"
            ) from None
        found.append(key)
    if not found:
        raise node.error("there is no key in it", _KEYS)
    if len(found) > MOST_KEYS:
        raise node.error(f"found {len(found):,} keys", f"write {MOST_KEYS} at most")
    if len({read_key(each.reveal()) for each in found}) < len(found):
        raise node.error("a key is there twice", "write each of them once")
    return tuple(found)
