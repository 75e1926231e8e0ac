"""The secrets that a recorder knows from the start: those of its environment and headers, and named ones."""

import os
from collections.abc import Iterable, Mapping

from mcpzip.cassettes.secret_names import is_secret_variable
from mcpzip.cassettes.secret_texts import find_secrets
from mcpzip.model.errors import ConfigError
from mcpzip.model.redaction import PLAIN_HEADERS, SHORTEST


def known_secrets(environment: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """Secrets, each with the reason why it is one.

    environment: the server's variables, of which those count whose names suggest a secret, and parts of
    others such as the password in a URL. names: variables that are secrets in any case. Raises ConfigError
    for a name that can't be one.
    """
    found: dict[str, str] = {}
    for name, value in environment.items():
        if is_secret_variable(name, value) and not os.path.exists(value):
            found[value] = f"it is the value of the variable {name}"
        for part in find_secrets(value):
            found[value[part.start : part.stop]] = f"it is in the variable {name}"
    for name in names:
        given = environment.get(name, "")
        if not given:
            raise ConfigError(
                "--secret", name, "there is no such variable", "set it, or leave the option out"
            )
        if len(given.strip()) < SHORTEST:
            short = f"its value has fewer than {SHORTEST} characters, which are also in ordinary words"
            raise ConfigError("--secret", name, short, "mask it with --mask and its path")
        found[given] = f"it is the value of the variable {name}"
    return found


def header_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """The values of these headers, each with the reason why it is a secret; without `PLAIN_HEADERS`."""
    secret = ((name, value) for name, value in headers.items() if name.lower() not in PLAIN_HEADERS)
    return {value: f"it is the value of the header {name}" for name, value in secret}
