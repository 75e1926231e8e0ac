"""Reading the arguments of `execute_tool`, which models get wrong in known ways (pure).

The rule: accept what can mean only one thing, say what was repaired, and refuse the rest in one sentence. No
value is invented and no key is dropped.
"""

from dataclasses import dataclass

import msgspec

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.wire import NotAnObject, join_object, split_object, unquote

LONGEST_TIMEOUT = 24 * 3600.0
_OWN = ("name", "arguments", "timeout")


@dataclass(frozen=True, slots=True)
class Call:
    """What to execute. ``arguments``: a JSON object as text, the caller's own bytes unless ``repairs`` says
    otherwise.
    """

    name: str
    arguments: bytes
    timeout: float | None
    repairs: tuple[str, ...] = ()


def read_call(raw: bytes | None) -> Call:
    """The call meant by the ``arguments`` of an `execute_tool` request. Raises InvalidArgumentsError."""
    members = _members(raw)
    name = _text(members, "name", "the tool to run, as search_tools shows it")
    timeout = _timeout(members.get("timeout"))
    flat = {key: value for key, value in members.items() if key not in _OWN}
    arguments, repairs = _object(members.get("arguments"))
    if flat:
        if arguments != b"{}":
            extra = ", ".join(repr(key) for key in flat)
            raise InvalidArgumentsError(f"{extra} stands beside 'arguments'; put it inside 'arguments'.")
        return Call(name, join_object(flat), timeout, (*repairs, "flat"))
    return Call(name, arguments, timeout, repairs)


def read_name(raw: bytes | None) -> str:
    """The ``name`` of a `describe_tool` request. Raises InvalidArgumentsError."""
    return _text(_members(raw), "name", "the tool to describe, as search_tools shows it")


def _members(raw: bytes | None) -> dict[str, bytes]:
    try:
        return split_object(raw) if raw is not None else {}
    except NotAnObject as error:
        raise InvalidArgumentsError("The arguments are not a JSON object.") from error


def _text(members: dict[str, bytes], key: str, what: str) -> str:
    try:
        value = unquote(members[key]) if key in members else ""
    except ValueError:
        value = ""
    if not value:
        raise InvalidArgumentsError(f"'{key}' is missing: give {what}.")
    return value


def _timeout(raw: bytes | None) -> float | None:
    if raw is None or raw == b"null":
        return None
    try:
        value = msgspec.json.decode(raw, type=float, strict=False)
    except msgspec.DecodeError:
        value = 0.0
    if not 0 < value <= LONGEST_TIMEOUT:
        raise InvalidArgumentsError("'timeout' is not a number of seconds between 0 and 86,400.")
    return value


def _object(raw: bytes | None) -> tuple[bytes, tuple[str, ...]]:
    if raw is None:
        return b"{}", ()
    if raw == b"null":
        return b"{}", ("null",)
    if raw.startswith(b"{"):
        return raw, ()  # it stood in a JSON text: it is whole
    repairs: list[str] = []
    while raw.startswith(b'"') and len(repairs) < 2:
        text = unquote(raw).strip()
        raw = text.encode("utf-8", "surrogatepass") or b"{}"
        repairs.append("string")
    try:
        members = split_object(raw)
    except NotAnObject as error:
        raise InvalidArgumentsError("'arguments' is not a JSON object.") from error
    # Text out of a string may be spread over lines; a frame may not.
    return (join_object(members) if repairs else raw), tuple(repairs)
