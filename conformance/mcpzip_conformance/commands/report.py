"""``report``: show a saved run again, or several as one."""

import click

from mcpzip_conformance.commands import report_files
from mcpzip_conformance.commands.outputs import JsonCommand, Outputs, outputs


@click.command("report", cls=JsonCommand)
@click.argument("files", nargs=-1, required=True, metavar="FILE.json...", type=click.Path())
@outputs
def report_command(files: tuple[str, ...], **formats: str | None) -> None:
    """Show what `run --json FILE.json` saved. Several files become one report, their subjects side by side.

    Nothing is played, and the exit code doesn't depend on the results.
    """
    wanted = Outputs.of(**formats)
    wanted.deliver(report_files.merged([report_files.read(file) for file in files], files))
