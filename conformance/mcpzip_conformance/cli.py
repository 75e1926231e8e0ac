"""``mcpzip-conformance``: judge proxies. Each command is a file in `commands`."""

import io
import sys

import click
from mcpzip_fakes.click_errors import SafeCommand

from mcpzip.model.errors import McpzipError
from mcpzip_conformance.commands.compare import compare_command
from mcpzip_conformance.commands.completion import completion_command
from mcpzip_conformance.commands.explain import explain_command
from mcpzip_conformance.commands.install import install_command, uninstall_command
from mcpzip_conformance.commands.listing import list_command, schema_command, show_command, subjects_command
from mcpzip_conformance.commands.report import report_command
from mcpzip_conformance.commands.run import run_command


class _Usage(SafeCommand, click.Group):
    """Our errors as click's: one sentence, exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except McpzipError as error:
            raise click.UsageError(str(error)) from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_Usage, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Judge MCP proxies: the same scenes straight to a fake server and through the proxy, and what differs.

    A subject is the name of a shipped one or a .toml file that describes a proxy (docs/conformance.md).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a report has characters that not every code page has
            stream.reconfigure(errors="backslashreplace")


for command in (
    run_command,
    explain_command,
    compare_command,
    report_command,
    list_command,
    show_command,
    subjects_command,
    schema_command,
    install_command,
    uninstall_command,
    completion_command,
):
    main.add_command(command)
