"""Writes dist/mcpzip-VERSION.mcpb: mcpzip as a bundle that desktop clients install with a click.

Run it with ``nox -s bundle``, which makes the wheel first, or ``python tools/bundle.py WHEEL``. The bundle is
a zip archive of a manifest, the wheel, and a project that says what to install; the client runs it with uv,
which brings Python and the dependencies. The same wheel makes the same bytes. docs/packaging.md says more.
"""

import argparse
import json
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENTRY = "server.py"
_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip archive can have; a time of building would make each archive another."""
_MODE = 0o100644 << 16

_SERVER = '''\
"""Starts `mcpzip serve` for a desktop client."""

import os
import sys

from mcpzip.cli.main import main

# A client that was told no value can leave the name of the setting in its place.
if os.environ.get("MCPZIP_CONFIG", "").startswith("${"):
    del os.environ["MCPZIP_CONFIG"]
sys.argv[1:] = ["serve"]
main()
'''

_TOOLS = {
    "search_tools": "Find tools by what they should do, in plain words.",
    "describe_tool": "Show the description and the parameters of a tool.",
    "execute_tool": "Call a tool by its name.",
}


def manifest(project: dict[str, str]) -> dict[str, object]:
    """manifest.json. It has the version 0.4 of its format, the first whose servers uv may run."""
    return {
        "manifest_version": "0.4",
        "name": project["name"],
        "display_name": "mcpzip",
        "version": project["version"],
        "description": "All your MCP servers behind one, which shows three tools: search, describe, execute.",
        "long_description": (
            "mcpzip stands between the client and your MCP servers. The model sees three tools instead of "
            "hundreds, searches in plain words, and calls what it found. It needs a config with your "
            "servers: `uvx mcpzip init` makes one, and moves the servers of your clients to it if you like."
        ),
        "author": {"name": "The mcpzip authors"},
        "license": project["license"],
        "keywords": ["mcp", "proxy", "tool-search"],
        "server": {
            "type": "uv",
            "entry_point": ENTRY,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--project", "${__dirname}", "${__dirname}/" + ENTRY],
                "env": {"MCPZIP_CONFIG": "${user_config.config}"},
            },
        },
        "tools": [{"name": name, "description": says} for name, says in _TOOLS.items()],
        "tools_generated": True,
        "prompts_generated": True,
        "user_config": {
            "config": {
                "type": "file",
                "title": "Config",
                "description": "The JSON file with your servers. Empty: the usual place, which "
                "`uvx mcpzip config path` prints.",
                "required": False,
                "default": "",
            }
        },
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": project["requires-python"]},
        },
    }


def project_file(project: dict[str, str], wheel: str) -> str:
    """The bundle's pyproject.toml, which installs the wheel in the bundle."""
    return f"""\
[project]
name = "{project["name"]}-bundle"
version = "{project["version"]}"
requires-python = "{project["requires-python"]}"
dependencies = ["{project["name"]}=={project["version"]}"]

[tool.uv]
package = false

[tool.uv.sources]
{project["name"]} = {{ path = "{wheel}" }}
"""


def build(wheel: Path, folder: Path, root: Path = ROOT) -> Path:
    """Writes the bundle of ``wheel`` into ``folder``. Returns its path. Raises ValueError if the wheel is one
    of another version.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    if not wheel.name.startswith(f"{name}-{version}-") or wheel.suffix != ".whl":
        raise ValueError(f"{wheel.name} is no wheel of {name} {version}: make one with pip wheel --no-deps .")
    text = json.dumps(manifest(project), indent=2, ensure_ascii=False) + "\n"
    contents = {
        "manifest.json": text.encode(),
        "pyproject.toml": project_file(project, wheel.name).encode(),
        ENTRY: _SERVER.encode(),
        "LICENSE": (root / "LICENSE").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.mcpb"
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in contents.items():
            info = zipfile.ZipInfo(member, _TIME)
            info.external_attr, info.create_system = _MODE, 3
            info.compress_type = zipfile.ZIP_STORED if member.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return path


def main(argv: list[str]) -> str | None:
    """Does what the command line says. Returns what is wrong, if anything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="the wheel of mcpzip")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where to (default: dist)")
    options = parser.parse_args(argv)
    try:
        print(build(options.wheel, options.folder))
    except (OSError, ValueError) as error:
        return str(error)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
