"""The ``replicas`` of a config."""

import base64
import json

import pytest

from mcpzip.config import parse
from mcpzip.config.schema import ReplicasConfig, Secret
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import redact

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
ENV = {"NEW": NEW, "OLD": OLD, "IP": "10.0.0.7", "EMPTY": ""}


def read(value: object) -> ReplicasConfig | None:
    data = json.dumps({"mcpServers": {"a": {"command": "a"}}, "replicas": value})
    return parse(data.encode(), "/c.json", ENV).replicas


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        ({"keys": ["${NEW}"]}, ReplicasConfig((Secret(NEW),))),
        ({"keys": ["${NEW}", "${OLD}"]}, ReplicasConfig((Secret(NEW), Secret(OLD)))),
        ({"keys": ["${NEW}", "${NOT_SET:-}", "${EMPTY}"]}, ReplicasConfig((Secret(NEW),))),
        (
            {"keys": ["${NEW}"], "listen": "0.0.0.0:8940", "address": "${IP}:8940", "drain_seconds": 0},
            ReplicasConfig((Secret(NEW),), "0.0.0.0:8940", "10.0.0.7:8940", 0.0),
        ),
    ],
)
def test_what_is_read(value: object, found: ReplicasConfig | None) -> None:
    assert read(value) == found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (True, "found no object"),
        ({}, "there are no keys"),
        ({"keys": NEW}, "found no list"),
        ({"keys": []}, "there is no key in it"),
        ({"keys": ["${EMPTY}"]}, "there is no key in it"),
        ({"keys": ["${NOT_SET}"]}, "NOT_SET"),
        ({"keys": ["c2hvcnQ="]}, "it has 5 bytes"),
        ({"keys": ["not base64 at all"]}, "it is not base64"),
        ({"keys": [5]}, "openssl rand"),
        ({"keys": ["${NEW}", NEW.rstrip("=")]}, "twice"),
        ({"keys": [base64.b64encode(bytes([n]) * 32).decode() for n in range(17)]}, "found 17 keys"),
        ({"keys": ["${NEW}"], "adress": "a"}, "there is no such key"),
        ({"keys": ["${NEW}"], "address": "10.0.0.7"}, "an address, and no listen"),
        ({"keys": ["${NEW}"], "listen": "${NOT_SET}:8940"}, "NOT_SET"),
        ({"keys": ["${NEW}"], "drain_seconds": -1}, "write a number from 0 to 3600"),
    ],
)
def test_what_is_refused(value: object, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refusal:
        read(value)
    assert "replicas" in str(refusal.value)


def test_a_key_is_a_secret() -> None:
    read({"keys": ["${NEW}"]})
    assert NEW not in redact(f"a text with {NEW} in it")
