r"""Files of requests: what `mcpzip eval --queries` reads and `--save` writes (pure).

A line is a request, in one of two forms, which may be mixed; empty lines are skipped:

    {"query": "tell the team", "tools": ["slack__send_message"], "kind": "chat"}
    tell the team<TAB>slack__send_message

``tools`` lists what is needed: recall is the share of it that is found. A list in it is one need that any of
its tools meets: ``["files__read_file", ["slack__send_message", "teams__post"]]``. In the second form every
column after the first is a need. ``kind`` groups requests in the report and may be missing; ``meant`` is the
same request without its typing mistake. Other members are ignored.
"""

import json
from collections.abc import Iterable

import msgspec

from mcpzip.search.evaluation.requests import OWN, Request

MOST_BYTES = 16 << 20
"""Of a file."""
MOST_REQUESTS = 20_000
MOST_NEEDS = 100
"""Of a request; and tools of a need."""
_LONGEST = 20_000  # characters of a query, as in a search
_NOT_UTF_8 = "not UTF-8; save the file as UTF-8"
_KIND = 60  # characters of the name of a kind


class _Line(msgspec.Struct):
    query: str
    tools: list[str | list[str]]
    kind: str = OWN
    meant: str = ""


def parse(data: bytes) -> list[Request]:
    """The requests in ``data``, in order. Raises ValueError, whose text begins with the number of the line
    and says what to write instead.
    """
    found: list[Request] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        if len(found) == MOST_REQUESTS:
            raise ValueError(f"line {number}: a file has {MOST_REQUESTS:,} requests at most; split it")
        try:
            found.append(_request(line.strip(b"\r")))
        except ValueError as error:  # msgspec's and UnicodeDecodeError are ValueErrors too
            raise ValueError(f"line {number}: {error}") from None
    return found


def render(requests: Iterable[Request]) -> bytes:
    """``requests`` as JSON lines, which `parse` reads again."""
    return b"".join(_rendered(request) + b"\n" for request in requests)


def _request(line: bytes) -> Request:
    if line.lstrip().startswith(b"{"):
        try:
            read = msgspec.json.decode(line, type=_Line)
        except UnicodeDecodeError:
            raise ValueError(_NOT_UTF_8) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(
                f'{error}; write {{"query": "…", "tools": ["server__tool"]}}, or query, tab, tool'
            ) from None
        needs = [[each] if isinstance(each, str) else each for each in read.tools]
        query, kind, meant = read.query, read.kind[:_KIND] or OWN, read.meant
    else:
        try:
            query, *tools = line.decode("utf-8").split("\t")
        except UnicodeDecodeError:
            raise ValueError(_NOT_UTF_8) from None
        needs = [[tool.strip()] for tool in tools if tool.strip()]
        kind, meant = OWN, ""
    if not query.strip():
        raise ValueError("the query is empty; write in plain words what is to be done")
    if len(query) > _LONGEST:
        raise ValueError(f"the query has {len(query):,} characters; {_LONGEST:,} at most are searched for")
    if not needs or not all(needs) or not all(tool for need in needs for tool in need):
        raise ValueError("no tool is named; write after the query the tool that it should find")
    if max(len(needs), *map(len, needs)) > MOST_NEEDS:
        raise ValueError(f"more than {MOST_NEEDS} tools are named; name those that should be found")
    return Request(query.strip(), tuple(dict.fromkeys(map(frozenset, needs))), kind, meant)


def _rendered(request: Request) -> bytes:
    tools = [sorted(need) if len(need) > 1 else min(need) for need in request.needs]
    line: dict[str, object] = {"query": request.query, "tools": tools, "kind": request.kind}
    if request.meant:
        line["meant"] = request.meant
    try:
        return json.dumps(line, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate from a server's own escape
        return json.dumps(line).encode()
