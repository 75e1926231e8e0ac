"""Makes the pictures of docs/ from the real program: each runs commands in a new home and draws their output.

    python tools/screenshots.py             all but those of real clients
    python tools/screenshots.py --clients   those of real clients, which `nox -s clients` installs
    python tools/screenshots.py --check     draws nothing; fails if a command prints something else now

A picture holds its text in ``<desc>``, for screen readers and for ``--check``, which ignores numbers: they
are times and sizes.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

from rich.console import Console
from rich.text import Text

from mcpzip.cli.console import SVG

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"
WIDTH = 100
"""Columns of the terminal."""
_OTHERS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""Control sequences that set no colour."""
_DESCRIPTION = re.compile(r"<desc>(.*?)</desc>", re.DOTALL)

FAKES = {name: {"command": "mcpzip-fake", "args": [name]} for name in ("slack", "todoist", "github")}


@dataclass(frozen=True)
class Picture:
    """name: of the file; commands: lines of a shell. prepare: fills the home folder before."""

    name: str
    commands: tuple[str, ...]
    prepare: Callable[[Path], None]


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n", "utf-8")


def configured(home: Path) -> None:
    """The three fakes are in mcpzip's config."""
    write(home / ".config/mcpzip/config.json", {"mcpServers": FAKES})


def broken(home: Path) -> None:
    """One server can't start, and another's variable is not set."""
    faulty = {
        "github": {"command": "mcpzip-fake", "args": ["github"], "env": {"TOKEN": "${GITHUB_TOKEN}"}},
        "notes": {"command": "mcpzip-fake", "args": ["notes.json"]},
    }
    write(home / ".config/mcpzip/config.json", {"mcpServers": {**FAKES, **faulty}})


def client_file(
    name: str, key: str, form: Callable[[dict[str, object]], object] = dict
) -> Callable[[Path], None]:
    """The fakes are in a client's config ``name``, under ``key``."""

    def prepare(home: Path) -> None:
        write(home / name, {key: {each: form(entry) for each, entry in FAKES.items()}})

    return prepare


def codex(home: Path) -> None:
    lines = [f'[mcp_servers.{name}]\ncommand = "mcpzip-fake"\nargs = ["{name}"]\n' for name in FAKES]
    write(home / ".codex/config.toml", "\n".join(lines))


def goose(home: Path) -> None:
    lines = [
        f"  {name}:\n    enabled: true\n    type: stdio\n    name: {name}\n"
        f"    cmd: mcpzip-fake\n    args: [{name}]\n"
        for name in FAKES
    ]
    write(home / ".config/goose/config.yaml", "extensions:\n" + "".join(lines))


CODE = ".config/Code/User"
CLIENTS: Mapping[str, Callable[[Path], None]] = {
    "claude-code": client_file(".claude.json", "mcpServers", lambda entry: {"type": "stdio", **entry}),
    "claude-desktop": client_file(".config/Claude/claude_desktop_config.json", "mcpServers"),
    "cursor": client_file(".cursor/mcp.json", "mcpServers"),
    "vscode": client_file(f"{CODE}/mcp.json", "servers", lambda entry: {"type": "stdio", **entry}),
    "windsurf": client_file(".codeium/windsurf/mcp_config.json", "mcpServers"),
    "codex": codex,
    "gemini": client_file(".gemini/settings.json", "mcpServers"),
    "opencode": client_file(
        ".config/opencode/opencode.json",
        "mcp",
        lambda entry: {"type": "local", "command": ["mcpzip-fake", *entry["args"]], "enabled": True},  # type: ignore[misc]
    ),
    "zed": client_file(
        ".config/zed/settings.json", "context_servers", lambda entry: {"source": "custom", **entry}
    ),
    "goose": goose,
    "cline": client_file(
        f"{CODE}/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "mcpServers"
    ),
}

RUN_HERE = ("claude-code", "codex", "gemini", "opencode")
"""The clients with a picture of their own."""

PICTURES = (
    Picture("servers", ("mcpzip servers",), configured),
    Picture(
        "search",
        (
            "mcpzip search 'ping my coworkers' -n 3",
            "mcpzip call slack__send_message channel='#team' text=Lunch",
        ),
        configured,
    ),
    Picture("tokens", ("mcpzip tokens",), configured),
    Picture("doctor", ("mcpzip doctor",), broken),
    *(
        Picture(f"migrate-{name}", (f"mcpzip migrate --yes --from {name}", "mcpzip servers"), prepare)
        for name, prepare in CLIENTS.items()
        if name not in RUN_HERE
    ),
)


def environment(home: Path) -> dict[str, str]:
    """For commands in ``home``, where ``.local/bin`` is the folder of this Python's programs."""
    programs = home / ".local" / "bin"
    programs.parent.mkdir(parents=True, exist_ok=True)
    programs.symlink_to(Path(sys.executable).parent, target_is_directory=True)
    keep = {name: os.environ[name] for name in ("LANG", "PYTHONPATH") if name in os.environ}
    terminal = {"TERM": "xterm-256color", "FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(WIDTH)}
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    return {**keep, "PATH": path, "HOME": str(home), "PWD": str(home), **terminal}


def printed(command: str, home: Path, env: Mapping[str, str]) -> str:
    """What ``command`` prints in ``home``, with its colours; the folder is shown as ``/home/me``."""
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=env,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    text = _OTHERS.sub("", done.stdout.decode()).replace("\r", "")
    return text.replace(str(home), "/home/me").strip("\n")


def run(picture: Picture) -> list[tuple[str, str]]:
    """The commands of ``picture`` and what each prints."""
    with tempfile.TemporaryDirectory(prefix="mcpzip-") as folder:
        home = Path(folder).resolve()
        picture.prepare(home)
        env = environment(home)
        return [(command, printed(command, home, env)) for command in picture.commands]


def plain(lines: list[tuple[str, str]]) -> str:
    """The text of a picture."""
    return "\n".join(f"$ {command}\n{Text.from_ansi(text).plain}" for command, text in lines)


def draw(name: str, lines: list[tuple[str, str]]) -> None:
    """Writes the picture, as an SVG without a font or anything else from another host."""
    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor"
    )
    for command, text in lines:
        console.print(Text("$ ", "green") + Text(command, "bold"), soft_wrap=True)
        console.print(Text.from_ansi(text), soft_wrap=False)
    svg = console.export_svg(title=name, code_format=SVG, unique_id=f"picture-{name}")
    svg = svg.replace("<style>", f"<desc>{escape(plain(lines))}</desc>\n    <style>", 1)
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.svg").write_text(svg, "utf-8")


def text_of(name: str) -> str:
    """The text that the picture ``name`` holds; "" if there is none."""
    path = FOLDER / f"{name}.svg"
    found = _DESCRIPTION.search(path.read_text("utf-8")) if path.exists() else None
    return unescape(found[1]) if found else ""


def masked(text: str) -> list[str]:
    """The lines of ``text`` without numbers, bars and the width of columns, which differ from run to run."""
    lines = (re.sub(r"[\d.,]+( ?(ms|s|min|h|MB|kB)\b)?", "0", line) for line in text.splitlines())
    return [re.sub(r"[\s█─]+", " ", line).strip() for line in lines]


def draw_clients() -> None:
    """Draws what real clients say after `mcpzip migrate`."""
    sys.path.insert(0, str(ROOT / "tests"))
    from clients.test_migrated_clients import CLIENTS as REAL
    from clients.test_migrated_clients import Machine

    for client in REAL:
        with tempfile.TemporaryDirectory(prefix="mcpzip-") as folder:
            machine = Machine(client, Path(folder).resolve())
            said = machine.run("migrate", "--yes", "--from", client.name)
            command = Path(client.program).name + " mcp list"
            said_lines = machine.mcp_list().splitlines()
            listed = "\n".join(
                line for line in said_lines if not line.startswith("WARNING")
            )  # of Codex, on /tmp
            replace = (
                (str(machine.home), "/home/me"),
                (str(Path(sys.executable).parent), "/home/me/.local/bin"),
            )
            lines = [(f"mcpzip migrate --yes --from {client.name}", said.rstrip()), (command, listed.strip())]
            for old, new in replace:
                lines = [(shown, _OTHERS.sub("", text).replace(old, new)) for shown, text in lines]
            draw(f"connected-{client.name}", lines)
            print(f"docs/pictures/connected-{client.name}.svg")


def main() -> int:
    if "--clients" in sys.argv[1:]:
        draw_clients()
        return 0
    wrong = 0
    for picture in PICTURES:
        lines = run(picture)
        if "--check" not in sys.argv[1:]:
            draw(picture.name, lines)
            print(f"docs/pictures/{picture.name}.svg")
        elif masked(text_of(picture.name)) != masked(plain(lines)):
            print(
                f"docs/pictures/{picture.name}.svg shows something else than the program prints now:",
                file=sys.stderr,
            )
            print(plain(lines), file=sys.stderr)
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
