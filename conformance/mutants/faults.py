"""The ways to be wrong.

The rule: a fault is a row: what it does, the mode it shows in, the check that must notice, and, where it
spoils results or arguments, the function that does. The relay asks by name for those that are not functions.
"""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

Object = dict[str, object]
Spoil = Callable[[Object], Object]


class Fault(NamedTuple):
    """One row. check: the id of the check that must fail; mode: ``names`` or ``meta``; result, arguments:
    what becomes of each result of a server, and of the arguments of each call."""

    about: str
    check: str
    mode: str = "names"
    result: Spoil | None = None
    arguments: Spoil | None = None


def _without(*keys: str) -> Spoil:
    return lambda value: {key: item for key, item in value.items() if key not in keys}


def _known_fields(result: Object) -> Object:
    known = ("content", "isError", "structuredContent", "_meta")
    return {key: value for key, value in result.items() if key in known}


def _first_block(result: Object) -> Object:
    return {**result, "content": cast(list[object], result["content"])[:1]}


def _truncated(result: Object) -> Object:
    def cut(block: object) -> object:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            return {**block, "text": block["text"][: 1 << 20]}
        return block

    return {**result, "content": [cut(block) for block in cast(list[object], result["content"])]}


def _as_doubles(value: Object) -> Object:
    """What a language whose numbers are all doubles makes of it."""

    def number(spelt: str) -> float | int:
        double = float(spelt)
        return int(double) if double.is_integer() and abs(double) < 1e21 else double

    return cast(Object, json.loads(json.dumps(value), parse_int=number, parse_float=number))


def _sorted(value: Object) -> Object:
    return cast(Object, json.loads(json.dumps(value, sort_keys=True)))


def _respelt(value: Object) -> Object:
    """The same values in another spelling: key order, and what decoding and encoding does by itself."""
    return dict(reversed(value.items()))


def _ascii(result: Object) -> Object:
    text = json.dumps(result, ensure_ascii=False).encode("ascii", "replace").decode()
    return cast(Object, json.loads(text))


def _without_nulls(arguments: Object) -> Object:
    return {key: value for key, value in arguments.items() if value is not None}


def _typed(arguments: Object) -> Object:
    """Reads JSON out of strings that happen to hold some."""

    def read(value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return value

    return {key: read(value) for key, value in arguments.items()}


FAULTS: Mapping[str, Fault] = {
    # What the client gets
    "drops-is-error": Fault("drops isError", "fidelity.is-error", result=_without("isError")),
    "drops-structured": Fault(
        "drops structuredContent", "fidelity.structured-content", result=_without("structuredContent")
    ),
    "drops-meta": Fault("drops _meta of a result", "fidelity.meta", result=_without("_meta")),
    "drops-unknown-fields": Fault(
        "keeps only the fields it knows", "fidelity.unknown-fields", result=_known_fields
    ),
    "first-block-only": Fault("keeps only the first block", "fidelity.several-blocks", result=_first_block),
    "truncates": Fault("cuts text at 1 MiB", "fidelity.large-result", result=_truncated),
    "doubles": Fault("reads every number as a double", "fidelity.big-integers", result=_as_doubles),
    "sorts-keys": Fault("sorts the keys of objects", "fidelity.key-order", result=_sorted),
    "respells": Fault(
        "writes all JSON anew", "fidelity.number-spelling", result=_respelt, arguments=_respelt
    ),
    "ascii": Fault("writes ? for what is not ASCII", "fidelity.text", result=_ascii),
    "hides-errors": Fault("makes a server's error a result", "fidelity.error"),
    "loses-annotations": Fault("shows definitions without annotations", "fidelity.definition"),
    # What the server gets
    "drops-nulls": Fault("drops null arguments", "arguments.null-members", arguments=_without_nulls),
    "reads-strings": Fault("reads JSON in strings", "arguments.text-is-not-touched", arguments=_typed),
    "drops-text": Fault("runs with {} when arguments are a string", "arguments.as-text", "meta"),
    "drops-flat": Fault("runs with {} when arguments are flat", "arguments.flat", "meta"),
    "drops-request-meta": Fault("keeps _meta of a call to itself", "fidelity.request-meta"),
    "runs-twice": Fault("sends every call twice", "resilience.runs-once"),
    "retries": Fault("sends a call again after a crash", "resilience.no-double-execution"),
    "broadcasts": Fault("sends every call to every server", "security.calls-stay-apart"),
    # The conversation
    "spells-ids": Fault("answers number ids as strings", "protocol.ids"),
    "dies-of-junk": Fault("exits on a line that is not JSON", "protocol.malformed-line"),
    "answers-notifications": Fault("answers notifications", "protocol.notification-unanswered"),
    "answers-anything": Fault("answers unknown methods with {}", "protocol.unknown-method"),
    "answers-twice": Fault("answers every request twice", "protocol.answers-once"),
    "logs-to-stdout": Fault("logs to stdout", "protocol.stdout-is-messages"),
    "first-page-only": Fault("ignores nextCursor", "protocol.paging"),
    # Servers that misbehave
    "hangs-on-junk": Fault("stops reading a server that writes junk", "resilience.junk-on-stdout"),
    "one-at-a-time": Fault("makes calls wait for each other", "resilience.slow-call-other-server"),
    "waits-for-all": Fault("answers initialize when all servers are up", "resilience.slow-start"),
    "all-or-none": Fault("exits when a server does", "resilience.dead-server"),
    "never-reconnects": Fault("never starts a server again", "resilience.reconnect"),
    "waits-for-ever": Fault("leaves a call open when its server dies", "resilience.crash-before-answer"),
    "mixes-answers": Fault("answers calls in the order they came", "resilience.concurrent-calls"),
    # Leaving
    "stays": Fault("stays when its input ends", "resilience.exit-on-eof"),
    "leaves-servers": Fault("leaves its servers running", "resilience.no-orphan"),
    # Search
    "ignores-limit": Fault("ignores the limit", "search.limit", "meta"),
    "says-nothing": Fault("answers with nothing when nothing matches", "search.no-match", "meta"),
    "ranks-by-name": Fault("ranks by the alphabet", "search.exact-name", "meta"),
    # Secrets
    "inherits": Fault("gives servers its own environment", "security.environment-of-the-proxy"),
    "shares-environment": Fault("gives every server every env", "security.environment-of-others"),
    "tells-secrets": Fault("puts a server's env into its errors", "security.secrets-in-messages"),
}
