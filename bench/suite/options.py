"""The command line of `python -m bench`."""

import argparse
import signal
import sys
import time
from pathlib import Path

from bench.subjects import installed, interpreter_of
from bench.suite import machine
from bench.suite.figures import GROUPS, TOOLS, Results, added, text
from bench.suite.plots import every_plot
from bench.suite.probes import Probe, probes
from bench.suite.run import grow, measure
from bench.suite.subjects import Subject, every
from bench.suite.tables import page

_EPILOG = """\
examples:
  python -m bench --quick                                      # a first look, in less than a minute
  python -m bench                                              # everything but growth, in ten minutes
  python -m bench --growth --out results                       # everything; JSON, Markdown and plots as files
  python -m bench --only latency --subjects mcpzip,direct      # one group of two subjects
  mcpzip-conformance install dmcp fastmcp                      # peers that are to be measured beside it
"""
_QUICK = ("catalog", "startup", "latency")
_QUICK_SECONDS = 40.0


def main(arguments: list[str] | None = None) -> None:
    """Measures, and prints Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures mcpzip beside a direct connection, a relay, an empty server on the SDK and its "
        "peers, one after another in every round. POSIX; memory needs Linux.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, and what is quickly measured")
    parser.add_argument("--growth", action="store_true", help="also with up to 100,000 tools, 300 upstreams")
    parser.add_argument("--only", metavar="GROUP,…", help=f"of {', '.join(GROUPS)}, growth")
    parser.add_argument("--subjects", metavar="NAME,…", help="only these; --list shows them")
    parser.add_argument("--list", action="store_true", help="list the subjects, and end")
    parser.add_argument("--rounds", type=int, help="at most so many of each")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all rounds; as many for growth (10)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write JSON, Markdown and SVG plots to it")
    parser.add_argument("--mcpzip", metavar="PATH", help="the installed command")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _run(parser, options)
    except KeyboardInterrupt:  # all that was started has been ended
        sys.exit("Interrupted.")


def _run(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    command = installed(options.mcpzip)
    python = interpreter_of(command)
    subjects, skipped = every(command, python, machine.version_of(command))
    if options.list:
        print("\n".join([f"{one.key:18} {one.shown.about}" for one in subjects] + skipped))
        return
    groups = _named(parser, options.only, (*GROUPS, "growth"), "group")
    chosen = _chosen(parser, options.subjects, subjects)
    wanted = [one for one in probes() if one.group in (groups or (_QUICK if options.quick else GROUPS))]
    if options.quick:  # what takes least time comes first
        setups = {one: one.setup for one in sorted(wanted, key=lambda one: one.seconds)}
        wanted = [one for one, of in setups.items() if of.tools <= TOOLS and not of.wait and not of.hung]
    seconds = _QUICK_SECONDS if options.quick else options.minutes * 60
    before, begun = machine.load(), time.monotonic()
    figures = measure(_limited(wanted, 2 if options.quick else options.rounds), chosen, python, seconds)
    if options.growth or "growth" in groups:
        figures += grow(chosen, python, options.minutes * 60, figures)
    took = time.monotonic() - begun
    results = Results(
        machine.described(command, python, before, took),
        tuple(one.shown for one in chosen),
        tuple(added(figures)),
        tuple(skipped) if options.subjects is None else (),
    )
    print(page(results))
    if options.out:
        write(results, options.out)


def write(results: Results, folder: Path) -> None:
    """Writes `performance.json`, `performance.md` and a plot for each row to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "performance.json").write_text(text(results), "utf-8")
    (folder / "performance.md").write_text(page(results) + "\n", "utf-8")
    for name, svg in every_plot(results).items():
        (folder / f"{name}.svg").write_text(svg, "utf-8")


def _limited(wanted: list[Probe], rounds: int | None) -> list[Probe]:
    from dataclasses import replace

    return [replace(one, rounds=min(one.rounds, rounds or one.rounds)) for one in wanted]


def _chosen(parser: argparse.ArgumentParser, given: str | None, subjects: list[Subject]) -> list[Subject]:
    names = _named(parser, given, tuple(one.key for one in subjects), "subject")
    return [one for one in subjects if not names or one.key in names]


def _named(
    parser: argparse.ArgumentParser, given: str | None, known: tuple[str, ...], what: str
) -> list[str]:
    names = [name.strip() for name in (given or "").split(",") if name.strip()]
    for name in names:
        if name not in known:
            parser.error(f"there is no {what} {name!r}; there are {', '.join(known)}")
    return names
