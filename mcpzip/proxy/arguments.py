"""Reading the arguments of `execute_tool`, which models get wrong in known ways (pure).

The rule: accept what can mean only one thing, say what was repaired, and refuse the rest in one sentence. No
value is invented and no key is dropped. What only the tool's schema can settle is left to the doctor.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from mcpzip.model.errors import InvalidArgumentsError
from mcpzip.wire import NotAnObject, join_object, split_object, unquote

LONGEST_TIMEOUT = 24 * 3600.0
ARROW = "\u2192"

_OWN = frozenset(("name", "arguments", "timeout"))
_NAMES = frozenset(("name", "tool", "toolname"))
"""What says the tool, folded, where there is no ``name``. Other proxies call it ``tool`` or ``tool_name``."""


@dataclass(frozen=True, slots=True)
class Call:
    """What to execute.

    arguments: a JSON object as text, the caller's own bytes unless ``repairs`` says otherwise. timeout:
    seconds. repairs: one short text each. beside: what stood beside ``name`` and was taken for arguments.
    fault: why the arguments can't be read, as a sentence, or "".
    """

    name: str
    arguments: bytes
    timeout: float | None
    repairs: tuple[str, ...] = ()
    beside: Mapping[str, bytes] = field(default_factory=dict)
    fault: str = ""


def read_call(raw: bytes | None) -> Call:
    """The call meant by the ``arguments`` of an `execute_tool` request.

    Raises InvalidArgumentsError when there is no name or a wrong timeout. Arguments that can't be read are
    the call's ``fault``: whoever knows the tool can say more about it.
    """
    members, whole = _members(raw)
    key, name = _name(members, "the tool to run, as search_tools shows it")
    repairs = whole if key == "name" else (*whole, f"execute_tool: {key} {ARROW} name")
    given = members.get("arguments")
    beside = (
        {} if members.keys() <= _OWN else {k: v for k, v in members.items() if k not in _OWN and k != key}
    )
    try:
        arguments, read = read_object("arguments", given)
    except InvalidArgumentsError as error:
        return Call(name, b"{}", _timeout(members.get("timeout")), repairs, fault=str(error))
    timeout = members.get("timeout")
    if beside and not _empty(arguments):
        late = [k for k in beside if folded(k) == "timeout"]
        if "timeout" not in members and late and len(beside) == 1:
            timeout = beside[late[0]]
            repairs = (*repairs, f"execute_tool: {late[0]} {ARROW} timeout")
        else:
            extra = ", ".join(map(repr, beside))
            fault = f"{extra} stands beside 'arguments'; put it inside 'arguments'."
            return Call(name, b"{}", _timeout(timeout), repairs, fault=fault)
        beside = {}
    if beside:
        repairs = (*repairs, *read, "arguments: taken from beside 'name'")
        return Call(name, join_object(beside), _timeout(timeout), repairs, beside)
    return Call(name, arguments, _timeout(timeout), (*repairs, *read))


def read_name(raw: bytes | None) -> str:
    """The ``name`` of a `describe_tool` request. Raises InvalidArgumentsError."""
    return _name(_members(raw)[0], "the tool to describe, as search_tools shows it")[1]


def read_object(what: str, raw: bytes | None) -> tuple[bytes, tuple[str, ...]]:
    """The JSON object meant by ``raw`` – one, the text of one, ``null``, nothing – and what was repaired.

    Raises InvalidArgumentsError.
    """
    if raw is None:
        return b"{}", ()
    if raw == b"null":
        return b"{}", (f"{what}: null taken as {{}}",)
    if raw.startswith(b"{"):
        return raw, ()  # it stood in a JSON text: it is whole
    times = 0
    while raw.startswith(b'"') and times < 2:
        text = unquote(raw).strip()
        raw = text.encode("utf-8", "surrogatepass") or b"{}"
        times += 1
    try:
        members = split_object(raw)
    except NotAnObject as error:
        raise InvalidArgumentsError(f"'{what}' is not a JSON object.") from error
    # Text out of a string may be spread over lines; a frame may not.
    return join_object(members), (f"{what}: JSON string decoded" + (" twice" if times > 1 else ""),)


def folded(key: str) -> str:
    """``key`` without case and separators: what two spellings of one key have in common."""
    return _SEPARATORS.sub("", key.casefold())


_SEPARATORS = re.compile(r"[\s_.-]+")


def _members(raw: bytes | None) -> tuple[dict[str, bytes], tuple[str, ...]]:
    if raw is not None and raw.startswith(b'"'):
        try:
            raw, repairs = read_object("execute_tool", raw)
        except (InvalidArgumentsError, ValueError) as error:
            raise InvalidArgumentsError("The arguments are not a JSON object.") from error
        return split_object(raw), repairs
    try:
        return (split_object(raw) if raw is not None else {}), ()
    except NotAnObject as error:
        raise InvalidArgumentsError("The arguments are not a JSON object.") from error


def _name(members: Mapping[str, bytes], what: str) -> tuple[str, str]:
    """The key that says the tool, and the tool."""
    key = "name"
    if key not in members:
        meant = [each for each in members if folded(each) in _NAMES]
        if len(meant) > 1:
            raise InvalidArgumentsError(
                f"{' and '.join(map(repr, meant))} could both be the 'name': give {what}."
            )
        key = meant[0] if meant else key
    try:
        value = unquote(members[key]) if key in members else ""
    except ValueError:
        value = ""
    if not value:
        raise InvalidArgumentsError(f"'name' is missing: give {what}.")
    return key, value


def _empty(raw: bytes) -> bool:
    return raw[1:-1].isspace() or len(raw) == 2


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
