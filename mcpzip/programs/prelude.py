"""What the sandbox knows before a program runs: the functions that are tools (pure).

The rule: only JSON texts go in and out, so that nothing large is ever converted from one interpreter's values
to another's. All that decides anything is outside: a program may redefine or call whatever is here.
"""

from collections.abc import Iterable

from mcpzip.programs.source import AWAITED, CALL, VALUE

NOW, LATER = "mcpzip_now", "mcpzip_later"
"""The functions that reach outside: both take the name of a tool and its arguments as JSON, and return its
value as JSON; the second is awaited.
"""
KEPT = "mcpzip_kept"
"""The input in which a kept result comes, as JSON."""

_BEFORE = f"""\
import json as mcpzip_json
def mcpzip_plain(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {{each if isinstance(each, str) else str(each): mcpzip_plain(value[each]) for each in value}}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [mcpzip_plain(each) for each in value]
    return str(value)
def {VALUE}(value):
    try:
        return mcpzip_json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return mcpzip_json.dumps(mcpzip_plain(value), ensure_ascii=False)
"""
_CALL = f"""\
def {CALL}(name, arguments=None):
    return mcpzip_json.loads({NOW}(name, {VALUE}([[], arguments or {{}}])))
async def {CALL}{AWAITED}(name, arguments=None):
    return mcpzip_json.loads(await {LATER}(name, {VALUE}([[], arguments or {{}}])))
"""
_TOOL = f"""\
def %s(*arguments, **named):
    return mcpzip_json.loads({NOW}("%s", {VALUE}([arguments, named])))
async def %s{AWAITED}(*arguments, **named):
    return mcpzip_json.loads(await {LATER}("%s", {VALUE}([arguments, named])))
"""


def prelude(tools: Iterable[str], *, is_first: bool) -> str:
    """The program that defines what a program with these ``tools`` needs, "" for nothing. tools: their names
    in it, all of them Python names. is_first: whether no program ran before in the same session.
    """
    found = [_BEFORE] if is_first else []
    found += [_CALL if name == CALL else _TOOL % (name, name, name, name) for name in tools]
    return "".join(found)


def binding(name: str) -> str:
    """The program that gives the variable ``name`` the value of the input `KEPT`."""
    return f"{name} = mcpzip_json.loads({KEPT})\n{KEPT} = None"
