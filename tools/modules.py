"""Writes docs/modules.md: every module of the three packages, with the first sentence of its docstring.

Run it with ``python tools/modules.py`` or ``nox -s modules``. A test compares the page.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "modules.md"
PACKAGES = ("mcpzip", "fakes/mcpzip_fakes", "conformance/mcpzip_conformance")
"""Folders of the packages, from the root of the repository."""

_INTRODUCTION = """\
# Every module, and what it is for

How the modules work together: [architecture.md](architecture.md).

`nox -s modules` writes this page from the first sentence of each module's docstring.
"""


def purpose(source: str) -> str:
    """The first sentence of a module's docstring as Markdown on one line; empty without a docstring."""
    paragraph, _, _ = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(paragraph.split()), maxsplit=1)[0]
    return sentence.replace("``", "`").replace("|", "\\|")


def folders() -> Iterator[Path]:
    """Every package and subpackage, those of one package together."""
    for package in PACKAGES:
        yield from sorted(path.parent for path in (ROOT / package).rglob("__init__.py"))


def page() -> str:
    """The text of docs/modules.md."""
    parts = [_INTRODUCTION]
    for folder in folders():
        about = purpose((folder / "__init__.py").read_text("utf-8"))
        rows = [
            f"| `{path.name}` | {purpose(path.read_text('utf-8'))} |"
            for path in sorted(folder.glob("*.py"))
            if path.name != "__init__.py"
        ]
        table = ["", "| module | what it is for |", "|---|---|", *rows] if rows else []
        parts.append("\n".join([f"## {folder.relative_to(ROOT).as_posix()}/", "", about, *table, ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8", newline="\n")
