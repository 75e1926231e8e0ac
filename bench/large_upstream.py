"""`bench/upstream.py` with two more tools: `log` and `rows`, each with ``bytes``, the size of its text.

    python -I -S large_upstream.py [options of upstream.py]

`log` answers with lines, `rows` with a JSON list of objects in a text, as most servers do.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import upstream

_SIZE = {"bytes": {"type": "integer", "description": "Length of the text to return"}}


def log(size: int) -> str:
    """Lines of about 80 characters."""
    line = "2026-01-01T00:00:00Z INFO  request {:07} of customer {:05} took {:04} ms: accepted\n"
    count = size // len(line.format(0, 0, 0)) + 1
    return "".join(line.format(number, number % 997, number % 1013) for number in range(count))[:size]


def rows(size: int) -> str:
    """A list of objects of about 250 characters; a little longer than ``size``."""
    parts: list[str] = []
    length = 2
    while length < size:
        number = len(parts)
        body = f"The search of customer {number % 997} doesn't find it. " * 4
        row = {"number": number, "title": f"Issue {number}", "labels": ["bug"], "closed": None, "body": body}
        parts.append(json.dumps(row, separators=(",", ":")))
        length += len(parts[-1]) + 1
    return f"[{','.join(parts)}]"


class Server(upstream.Server):
    """Makes each answer once."""

    def __init__(self, first: int, tools: int) -> None:
        super().__init__(first, tools)
        self._made: dict[tuple[str, int], bytes] = {}

    def _call(self, number: bytes, tool: str, arguments: dict[str, object]) -> bytes | None:
        make = {"log": log, "rows": rows}.get(tool)
        if make is None:
            return super()._call(number, tool, arguments)
        size = int(str(arguments["bytes"]))
        if (tool, size) not in self._made:
            self._made[tool, size] = upstream.text(json.dumps(make(size)).encode())
        return self._made[tool, size]


if __name__ == "__main__":
    upstream.PLAIN = (*upstream.PLAIN, ("log", _SIZE), ("rows", _SIZE))
    upstream.main(sys.argv[1:], Server)
