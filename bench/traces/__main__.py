"""Replays public traces of agents: what keeping large results saves, and what it costs.

    python -m bench.traces FOLDER… [--again] [--json FILE]

A FOLDER is a checkout of a collection of traces: Toolathlon (trajs/), MCPMark (messages.json) or LiveMCPBench
(baseline/output/). It prints Markdown; docs/context.md says where the traces are, what is assumed, and what
was found. No model is called and nothing is sent.
"""

import argparse
import sys
from pathlib import Path

from bench.traces.readers import FORMATS, UnreadableTraceError, format_of
from bench.traces.replay import play_folder
from bench.traces.report import as_json, page
from mcpzip.cli.token_counter import token_counter
from mcpzip.system.files import write_atomic


def main(arguments: list[str] | None = None) -> None:
    """Reads the command line, replays, and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.traces",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to it")
    parser.add_argument(
        "--again", action="store_true", help="what the model was given before counts as read again, if quoted"
    )
    options = parser.parse_args(arguments)
    forms = []
    for folder in options.folders:
        if (form := format_of(folder)) is None:
            known = ", ".join(each.files for each in FORMATS)
            parser.error(f"{folder} has no traces of a known format ({known})")
        forms.append(form)
    count, unit = token_counter()
    corpora = []
    try:
        for folder, form in zip(options.folders, forms, strict=True):
            corpora.append(play_folder(folder, form, count, _note, options.again))
    except UnreadableTraceError as error:
        parser.error(str(error))
    print(page(corpora, unit))
    if options.json:
        write_atomic(str(options.json), as_json(corpora, unit), 0o644)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
