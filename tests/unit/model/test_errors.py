"""The tree of exceptions that the docstring of mcpzip.model.errors draws is the one that the code has."""

import ast
import re
from pathlib import Path

from mcpzip.model import errors

PRODUCT = Path(errors.__file__).parents[1]
_DERIVED = re.compile(r"^ *class \w+\([^)]*Error\b", re.MULTILINE)
"""In a file with a class of these. A class of another name among them would be missing in the drawing."""


def drawn() -> dict[str, str]:
    """Each exception under the root in the docstring, with its parent."""
    parents: dict[str, str] = {}
    path: list[str] = []
    for indent, name in re.findall(r"^ {4}([ │├└─]*)(\w+Error)\b", errors.__doc__ or "", re.MULTILINE):
        path = [*path[: len(indent) // 4], name]
        if indent:
            parents[name] = path[-2]
    return parents


def defined() -> dict[str, str]:
    """Each subclass of McpzipError in the product, with its parent."""
    texts = [text for path in PRODUCT.rglob("*.py") if _DERIVED.search(text := path.read_text("utf-8"))]
    bases = {
        node.name: base.id
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        for base in reversed(node.bases)  # the first counts
        if isinstance(base, ast.Name)
    }
    found: dict[str, str] = {}
    while new := {
        name: base for name, base in bases.items() if name not in found and base in {"McpzipError", *found}
    }:
        found |= new
    return found


def test_the_tree_in_the_docstring_is_complete() -> None:
    assert drawn() == defined()
