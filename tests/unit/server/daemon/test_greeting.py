"""What the daemon keeps of a greeting."""

import json
import os

import pytest

from mcpzip.model import limits
from mcpzip.server.daemon import protocol
from mcpzip.server.daemon.client import Greeting, GreetingTooLongError


def greeting(variables: dict[str, str], **more: object) -> Greeting:
    line = protocol.client_greeting(b"", variables, "/f", continued=False)
    return Greeting.of({**json.loads(line), **more})


def test_agents_with_equal_variables_have_them_once() -> None:
    """Of each agent the daemon kept its whole environment."""
    variables = {"LONG": "x" * 1000, "ODD": os.fsdecode(b"\\xff\xff")}
    one, other = greeting(variables), greeting(dict(variables))
    assert one.environment == other.environment == variables
    for name in variables:
        assert one.environment[name] is other.environment[name]


@pytest.mark.parametrize(
    "more", [{"environment": {"A": 1}}, {"environment": []}, {"replay": -1}, {"pid": "1"}]
)
def test_what_no_mcpzip_says_is_no_greeting(more: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no greeting"):
        greeting({}, **more)


def test_more_settings_than_are_read_are_refused_with_a_sentence() -> None:
    with pytest.raises(GreetingTooLongError, match="4 MiB"):
        greeting({}, replay=limits.GREETING + 1)
