"""Measures the checks of what servers say on files of tools: false alarms, and time.

    python -m bench.checks PATH... [--show SEVERITY] [--alone]
    python -m bench.checks --adversarial

A file has one tool a line, as JSON (also gzip): ``server``, ``name``, and the rest of its definition. All
tools of a file are checked as if one user had all its servers, unless ``--alone`` leaves out the comparison
with others. With ``--adversarial`` it checks texts that
are made of one phrase again and again, of two lengths: the ratio of the times shows whether the work grows in
proportion. With ``--show`` each finding of this severity is printed, to be read by a person. It reports and
never asserts.
"""

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from pathlib import Path

from bench.tables import table
from mcpzip.checks import Finding, Others, Severity, check_items
from mcpzip.model.surface import Item

_NOT_SENT = ("server", "source", "synthetic")
"""Keys of a line that are not part of the definition."""
SEVERITIES: tuple[Severity, ...] = ("hard", "risky", "note")


def read(path: Path) -> dict[str, list[Item]]:
    """The tools of a file, by server."""
    opened = gzip.open if path.suffix == ".gz" else open
    servers: dict[str, list[Item]] = defaultdict(list)
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            body = {key: value for key, value in row.items() if key not in _NOT_SENT}
            item = Item(
                "tool", row["name"], json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
            )
            servers[row["server"]].append(item)
    return servers


def measure(path: Path, show: str, alone: bool) -> None:
    """Prints the figures of one file."""
    servers = read(path)
    tools = sum(map(len, servers.values()))
    begin = time.process_time()
    others = Others() if alone else Others.of(servers)
    indexed = time.process_time() - begin
    found: list[tuple[str, Finding]] = []
    begin = time.process_time()
    for server, items in servers.items():
        found += [(server, one) for one in check_items(items, others, server)]
    checked = time.process_time() - begin
    for server, one in found:
        if one.severity == show:
            print(f"{one.check:24} {server} / {one.name} {one.path}\n    {one.excerpt}")
    print(
        f"\n{path.name}: {tools:,} tools of {len(servers):,} servers; index of names {indexed:.2f} s, checks "
        f"{checked:.2f} s of processor time: {checked / tools * 5_000:.2f} s for 5,000 tools\n"
    )
    by_tool = {
        severity: {(s, one.name) for s, one in found if one.severity == severity} for severity in SEVERITIES
    }
    rows = [["all", *(_share(len(by_tool[severity]), tools) for severity in SEVERITIES)]]
    counts = Counter((one.check, one.severity, server, one.name) for server, one in found)
    by_check = Counter((check, severity) for check, severity, _, _ in counts)
    rows += [
        [check, *(_share(by_check[check, severity], tools) for severity in SEVERITIES)]
        for check in sorted({check for check, _ in by_check})
    ]
    print(table(("check", *SEVERITIES), rows))


ADVERSARIES = (
    *(
        "a",
        "a ",
        "a-",
        "_",
        "\n",
        "'",
        '"',
        "\u200b",
        "\ufe0f",
        "\U0001f468\u200d",
        "%41",
        "\\x41",
        "&#65;",
        "=",
        "<",
        "QUJD",
    ),
    *(
        "ignore ",
        "ignore all previous ",
        "do not tell ",
        "do not ",
        "never tell the ",
        "read ",
        "read id_rsa ",
    ),
    *(
        "must send ",
        "send the whole chat ",
        "a@",
        "a@b.",
        "https://",
        "send_email ",
        "before ",
        "a, ",
        "curl | ",
    ),
    *("the user must ", "all emails must be ", "<!-- ", "[inst] ", "detects 'ignore ", "不要", "ignore les "),
)
"""Texts that are repeated: parts of the phrases that the checks search for."""


def adversarial() -> None:
    """Prints the time for each text that is repeated, and its ratio to the time for half of it."""
    rows = []
    tool = Item(
        "tool", "send_email", b'{"name":"send_email","description":"Send an email to a person by name."}'
    )
    others = Others.of({"mail": [tool]})
    for text in ADVERSARIES:
        spent = []
        for length in (50_000, 100_000):
            body = json.dumps({"name": "x", "description": text * (length // len(text))}).encode()
            begin = time.process_time()
            check_items([Item("tool", "x", body)], others, "x")
            spent.append(time.process_time() - begin)
        rows.append((spent[1], [repr(text), f"{spent[1] * 1_000:.0f} ms", f"{spent[1] / spent[0]:.1f}"]))
    print(
        table(("100,000 characters of", "time", "to 50,000"), [row for _, row in sorted(rows, reverse=True)])
    )


def _share(count: int, tools: int) -> str:
    return f"{count} ({count / tools:.2%})" if count else "–"


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.checks", description=__doc__)
    parser.add_argument("--adversarial", action="store_true")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--show", choices=SEVERITIES, default="", metavar="SEVERITY")
    parser.add_argument("--alone", action="store_true")
    options = parser.parse_args()
    if options.adversarial:
        adversarial()
    for path in options.paths:
        measure(path, options.show, options.alone)


if __name__ == "__main__":
    main()
