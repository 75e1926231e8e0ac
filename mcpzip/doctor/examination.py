"""Runs all checks."""

from collections.abc import Mapping

from mcpzip.doctor.client_checks import check_clients, check_installation, check_processes
from mcpzip.doctor.config_checks import check_commands, check_config, check_environment
from mcpzip.doctor.daemon_checks import check_daemon
from mcpzip.doctor.file_checks import check_files
from mcpzip.doctor.finding import Finding, in_order
from mcpzip.doctor.pin_checks import check_pins
from mcpzip.doctor.server_checks import Tried, check_servers, check_tools
from mcpzip.doctor.setup import Setup
from mcpzip.doctor.text_checks import check_said, check_texts
from mcpzip.proxy.proxy import Proxy


def examine(setup: Setup, proxy: Proxy | None, tried: Mapping[str, Tried]) -> list[Finding]:
    """Every finding, by group, the worst first. proxy: None if the config can't be used. tried: the servers
    that were asked; a server whose command can't be started is told once.
    """
    findings = [
        *check_config(setup),
        *check_environment(setup),
        *check_files(setup),
        *check_pins(setup),
        *check_clients(setup),
        *check_installation(setup),
        *check_processes(setup),
        *check_daemon(setup),
        *check_said(setup),
    ]
    commands = list(check_commands(setup))
    told = {finding.subject for finding in commands if finding.level == "error"}
    findings += commands
    if proxy is not None:
        findings += check_servers(setup, {name: one for name, one in tried.items() if name not in told})
        findings += check_tools(setup, proxy)
        findings += check_texts(setup, proxy)
    return in_order(findings)
