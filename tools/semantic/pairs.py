"""The requests and the tools that they are for.

Input: `tools/semantic/requests/*.tsv`. A line `# server` begins a server; each further line is a tool: its
name, its description and its requests (` | ` between them), a tab between the columns. The first four
requests share no word with the tool ("far"), the fifth is a step of a plan, the sixth has details. Most
tools have a seventh, which fits them and not the tools beside them ("contrast"), and some an eighth, which is
plain.
Output: tools in the order of the files; the division of the servers into those that are learnt from and
those that are held out.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

REQUESTS = Path(__file__).parent / "requests"
FAR = 4
"""How many requests of a tool, from the first on, share no word with it."""
HELD_OUT_PERCENT = 15


@dataclass(frozen=True, slots=True)
class Tool:
    server: str
    name: str
    description: str
    requests: tuple[str, ...]


def read(folder: Path = REQUESTS) -> list[Tool]:
    """All tools, the files by name. Raises `ValueError` naming file and line of one that is not so."""
    return [tool for file in sorted(folder.glob("*.tsv")) for tool in read_file(file)]


def read_file(file: Path) -> list[Tool]:
    tools: list[Tool] = []
    server = ""
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.startswith("# "):
            server = line[2:].strip()
        elif line.strip():
            columns = [c.strip() for c in line.split("\t")]
            if len(columns) != 3 or not server or not all(columns):
                raise ValueError(f"{file.name}:{number}: write name, description and requests, tabs between.")
            requests = tuple(dict.fromkeys(r.strip() for r in columns[2].split(" | ") if r.strip()))
            tools.append(Tool(server, columns[0], columns[1], requests))
    return tools


def held_out(server: str) -> bool:
    """Whether a server is kept from learning: by a checksum of its name, so that more servers move none."""
    return zlib.crc32(f"held out {server}".encode()) % 100 < HELD_OUT_PERCENT
