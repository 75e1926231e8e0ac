"""Parses the arguments of `execute_tool` and `execute_read_tool`, and repairs the typical mistakes of models
(pure).

The rule: arguments that can mean only one thing are repaired, and the repair is recorded; others are refused
with one sentence. No value is invented and no key is dropped. Repairs that need the tool's schema are made in
`argument_repair`.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.model.lazy_pattern import lazy_pattern
from mcpzip.proxy.metatools import DESCRIBE, EXECUTE
from mcpzip.wire import NotAnObject, join_object, split_object, unquote

MAX_TIMEOUT = 24 * 3600.0
"""Seconds."""
ARROW = "\u2192"

_KEYS = frozenset(("name", "arguments", "timeout"))
_USUAL = frozenset(("name", "arguments"))
_BESIDE = ("select", "run")
"""Keys beside ``arguments``: see `ToolCall`. Without ``arguments`` they may be the tool's own."""
_NAME_KEYS = frozenset(("name", "tool", "toolname"))
"""Folded keys that are read as ``name`` if there is none: other proxies call it ``tool`` or ``tool_name``."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool through a meta-tool.

    arguments: a JSON object as text, the client's bytes unless they were repaired. timeout: seconds. repairs:
    one short text each. extra: members beside ``name`` that were taken for the tool's arguments, as JSON
    texts. error: why the arguments can't be read, as a sentence, or "". through: the name of the meta-tool.
    select: the path of the part of the result that is wanted, "" for all of it. run: the id of the paused
    program that waits for this call, "" for none.
    """

    name: str
    arguments: bytes
    timeout: float | None
    repairs: tuple[str, ...] = ()
    extra: Mapping[str, bytes] = MappingProxyType({})
    error: str = ""
    through: str = EXECUTE
    select: str = ""
    run: str = ""


def read_call(raw: bytes | None, through: str = EXECUTE) -> ToolCall:
    """Parses the arguments (JSON text) of the meta-tool ``through``.

    Raises InvalidArgumentsError when the name is missing, or the timeout or ``select`` is invalid. For
    unreadable arguments of the tool only ``error`` is set, because the error message for them shows the
    tool's signature.
    """
    members, repairs = _members(raw, through)
    if members.keys() == _USUAL and not repairs:
        quoted, given = members["name"], members["arguments"]
        if quoted.startswith(b'"') and len(quoted) > 2 and given.startswith(b"{"):
            return ToolCall(unquote(quoted), given, None, through=through)
    key, name = _name(members, "the tool to run, as search_tools shows it")
    if key != "name":
        repairs = (*repairs, f"{through}: {key} {ARROW} name")
    extra = {k: v for k, v in members.items() if k not in _KEYS and k != key}
    select, run = (
        _text(key, extra.pop(key)) if key in extra and "arguments" in members else "" for key in _BESIDE
    )
    timeout = members.get("timeout")
    try:
        arguments, decoding = read_object("arguments", members.get("arguments"))
    except InvalidArgumentsError as failure:
        return ToolCall(name, b"{}", _timeout(timeout), repairs, error=str(failure), through=through)
    if extra and not _empty(arguments):
        only = next(iter(extra))
        if timeout is not None or len(extra) > 1 or folded(only) != "timeout":
            keys = ", ".join(map(repr, extra))
            error = f"{keys} stands beside 'arguments'; put it inside 'arguments'."
            return ToolCall(name, b"{}", _timeout(timeout), repairs, error=error, through=through)
        timeout, extra = extra[only], {}
        repairs = (*repairs, f"{through}: {only} {ARROW} timeout")
    if extra:
        repairs = (*repairs, *decoding, "arguments: taken from beside 'name'")
        return ToolCall(name, join_object(extra), _timeout(timeout), repairs, extra, through=through)
    repairs = (*repairs, *decoding)
    return ToolCall(name, arguments, _timeout(timeout), repairs, through=through, select=select, run=run)


def read_name(raw: bytes | None) -> str:
    """The ``name`` of a `describe_tool` request. Raises InvalidArgumentsError."""
    return _name(_members(raw, DESCRIBE)[0], "the tool to describe, as search_tools shows it")[1]


def read_object(what: str, raw: bytes | None) -> tuple[bytes, tuple[str, ...]]:
    """Returns the text of a JSON object, and the repairs that were necessary to get it, one phrase each.

    raw: the text of an object, of a JSON string that holds such a text (up to two levels deep), or of
    ``null``; None if it is missing. ``null`` and None become ``{}``. what: the name of ``raw`` in messages.
    Raises InvalidArgumentsError.
    """
    if raw is None:
        return b"{}", ()
    if raw == b"null":
        return b"{}", (f"{what}: null taken as {{}}",)
    if raw.startswith(b"{"):
        return raw, ()  # valid, because it is part of a parsed JSON text
    times = 0
    while raw.startswith(b'"') and times < 2:
        text = unquote(raw).strip()
        raw = text.encode("utf-8", "surrogatepass") or b"{}"
        times += 1
    try:
        members = split_object(raw)
    except NotAnObject as error:
        raise InvalidArgumentsError(f"'{what}' is not a JSON object.") from error
    # The text may contain line breaks, which a line of the stdio transport may not.
    return join_object(members), (f"{what}: JSON string decoded" + (" twice" if times > 1 else ""),)


def folded(key: str) -> str:
    """``key`` in lower case without separators, which is equal for all spellings of a key."""
    return _SEPARATORS.sub("", key.casefold())


_SEPARATORS = lazy_pattern(r"[\s_.-]+")


def _members(raw: bytes | None, through: str) -> tuple[dict[str, bytes], tuple[str, ...]]:
    if raw is not None and raw.startswith(b'"'):
        try:
            raw, repairs = read_object(through, raw)
        except (InvalidArgumentsError, ValueError) as error:
            raise InvalidArgumentsError("The arguments are not a JSON object.") from error
        return split_object(raw), repairs
    try:
        return (split_object(raw) if raw is not None else {}), ()
    except NotAnObject as error:
        raise InvalidArgumentsError("The arguments are not a JSON object.") from error


def _name(members: Mapping[str, bytes], what: str) -> tuple[str, str]:
    """The key that contains the tool's name, and the name. Raises InvalidArgumentsError."""
    key = "name"
    if key not in members:
        keys = [each for each in members if folded(each) in _NAME_KEYS]
        if len(keys) > 1:
            raise InvalidArgumentsError(
                f"{' and '.join(map(repr, keys))} could both be the 'name': give {what}."
            )
        key = keys[0] if keys else key
    try:
        value = unquote(members[key]) if key in members else ""
    except ValueError:
        value = ""
    if not value:
        raise InvalidArgumentsError(f"'name' is missing: give {what}.")
    return key, value


def _text(what: str, raw: bytes) -> str:
    try:
        return unquote(raw)
    except ValueError as error:
        raise InvalidArgumentsError(f"'{what}' is not a text.") from error


def _empty(raw: bytes) -> bool:
    return raw[1:-1].isspace() or len(raw) == 2


def _timeout(raw: bytes | None) -> float | None:
    if raw is None or raw == b"null":
        return None
    try:
        value = msgspec.json.decode(raw, type=float, strict=False)
    except msgspec.DecodeError:
        value = 0.0
    if not 0 < value <= MAX_TIMEOUT:
        raise InvalidArgumentsError("'timeout' is not a number of seconds between 0 and 86,400.")
    return value
