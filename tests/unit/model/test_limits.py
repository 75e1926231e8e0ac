"""The budget for hostile input: the table for people says what the code does."""

import ast
import re
from pathlib import Path

from mcpzip.model import limits
from mcpzip.ui import limits as page_limits
from mcpzip.ui.team import limits as team_limits

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "docs" / "security.md"


def rows() -> dict[str, str]:
    """The rows of the table in docs/security.md: name -> limit as it is written."""
    proxy, _, _ = TABLE.read_text("utf-8").partition("### The page")
    found = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \|", proxy, re.MULTILINE)
    assert len(found) == len(dict(found)), "a row stands there twice"
    return dict(found)


def written(value: float) -> set[str]:
    """The ways to write a limit: with its thousands apart, or as whole KiB, MiB or GiB."""
    ways = {f"{value:,}" if isinstance(value, int) else f"{value:g}"}
    for unit, size in (("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)):
        if value >= size and value % size == 0:
            ways.add(f"{value // size:,} {unit}")
    return ways


def budget() -> dict[str, float]:
    return {name: value for name, value in vars(limits).items() if name.isupper()}


def test_every_limit_is_in_the_table_and_nothing_else_is():
    assert rows().keys() == budget().keys()


def test_the_table_says_what_the_code_does() -> None:
    said = rows()
    assert [name for name, value in budget().items() if said[name] not in written(value)] == []


def test_the_table_of_the_page_says_what_the_code_does() -> None:
    _, _, page = TABLE.read_text("utf-8").partition("### The page")
    rows = re.findall(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| ([^|]+) \|", page, re.MULTILINE)
    said = {
        name: value
        for names, values in rows
        for name, value in zip(re.findall("[A-Z_]+", names), values.split(", "), strict=True)
    }
    named = {**vars(page_limits), **vars(team_limits)}
    numbers = {name: value for name, value in named.items() if isinstance(value, int | float)}
    assert said == {name: f"{int(value):,}" for name, value in numbers.items() if name.isupper()}


def test_every_limit_says_what_is_counted_and_what_happens():
    body = ast.parse(Path(limits.__file__).read_text("utf-8")).body
    named = {
        node.targets[0].id: following
        for node, following in zip(body, [*body[1:], None], strict=True)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    silent = [
        name
        for name in budget()
        if not (isinstance(named[name], ast.Expr) and isinstance(named[name].value, ast.Constant))
    ]
    assert silent == []
