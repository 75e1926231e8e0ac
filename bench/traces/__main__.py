"""Replays public traces of agents: what keeping large results saves, and what it costs.

    python -m bench.traces FOLDER… [--again] [--json FILE]
    python -m bench.traces FOLDER… --programs [--json FILE]

A FOLDER is a checkout of a collection of traces: Toolathlon (trajs/), MCPMark (messages.json) or LiveMCPBench
(baseline/output/). It prints Markdown; docs/context.md says where the traces are, what is assumed, and what
was found. No model is called and nothing is sent.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from bench.traces.program_report import programs_json, programs_page
from bench.traces.programs import replace_all
from bench.traces.readers import FORMATS, UnreadableTraceError, format_of
from bench.traces.replay import play_folder
from bench.traces.report import as_json, page
from mcpzip.model.errors import McpzipError
from mcpzip.server.token_counter import token_counter
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
    parser.add_argument(
        "--programs", action="store_true", help="measure programs in place of some series of calls instead"
    )
    options = parser.parse_args(arguments)
    forms = []
    for folder in options.folders:
        if (form := format_of(folder)) is None:
            known = ", ".join(each.files for each in FORMATS)
            parser.error(f"{folder} has no traces of a known format ({known})")
        forms.append(form)
    count, unit = token_counter()
    folders = list(zip(options.folders, forms, strict=True))
    try:
        if options.programs:
            found, missing = asyncio.run(replace_all(folders, count, _note))
            shown, written = programs_page(found, missing, unit), programs_json(found, missing, unit)
        else:
            corpora = [play_folder(folder, form, count, _note, options.again) for folder, form in folders]
            shown, written = page(corpora, unit), as_json(corpora, unit)
    except (UnreadableTraceError, McpzipError) as error:
        parser.error(str(error))
    print(shown)
    if options.json:
        write_atomic(str(options.json), written, 0o644)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
