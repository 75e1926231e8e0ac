"""docs/modules.md lists every module, docs/commands.md every command, and docs/architecture.md names only
modules that exist.
"""

import re
import runpy
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[1]
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def modules_named() -> set[str]:
    """The modules in docs/architecture.md that are written with their folder; ``a/{b,c}.py`` names two."""
    written = re.findall(r"`([\w/]+/(?:\w+|\{[\w,]+\})\.py)`", ARCHITECTURE.read_text("utf-8"))
    parts = [
        [part.strip("{}").split(",") for part in re.split(r"(\{[\w,]+\})", path) if part] for path in written
    ]
    return {"".join(names) for path in parts for names in product(*path)}


def test_the_list_of_modules_is_up_to_date() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "modules.py"))
    current = (ROOT / "docs" / "modules.md").read_text("utf-8")
    assert current == tool["page"](), "run: python tools/modules.py"


def test_the_list_of_commands_is_up_to_date() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "commands.py"))
    current = (ROOT / "docs" / "commands.md").read_text("utf-8")
    assert current == tool["page"](), "run: python tools/commands.py"


def test_the_tables_of_config_keys_are_up_to_date() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "config_keys.py"))
    current = (ROOT / "docs" / "config.md").read_text("utf-8")
    assert current.count("<!-- keys: ") == 19
    assert current == tool["page"](), "run: python tools/config_keys.py"


def test_every_module_says_what_it_is_for() -> None:
    page = (ROOT / "docs" / "modules.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+\.py)` \|  \|$", page, re.MULTILINE) == []


def test_the_architecture_names_modules_that_exist() -> None:
    named = modules_named()
    assert "transport/pool.py" in named
    missing = {name for name in named if not any((ROOT / top / name).exists() for top in ("mcpzip", "."))}
    assert missing == set()
