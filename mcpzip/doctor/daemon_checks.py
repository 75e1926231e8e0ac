"""Checks of the daemon, which serves all agents: whether it answers, and whether there can be one."""

import os
import socket
from collections.abc import Iterator

from mcpzip.config.paths import run_folder
from mcpzip.doctor.finding import Finding
from mcpzip.doctor.setup import Setup
from mcpzip.doctor.shell import command_line, end_processes
from mcpzip.server.daemon import asking, protocol
from mcpzip.server.run_file import running
from mcpzip.system import local_socket

_MEANS = "Until then each agent's own mcpzip runs all servers."


def check_daemon(setup: Setup) -> Iterator[Finding]:
    """The daemon of this config."""
    if setup.config is not None and not setup.config.shared:
        return
    path = protocol.socket_and_lock(setup.path, setup.project)[0]
    try:
        asking.ask(setup.path, setup.project, "ping")
    except asking.DaemonSilentError:
        here = [run.pid for run in running(setup.path) if run.host == socket.gethostname()]
        yield Finding(
            "error",
            "processes.daemon-silent",
            path,
            "The daemon runs, and does not answer: it may be suspended.",
            tuple(f"process {pid} of mcpzip serves agents" for pid in here[:5]),
            f"Let it go on (kill -CONT), or end it: the next agent starts another one. {_MEANS}",
            end_processes(here),
        )
        return
    folder = os.path.dirname(path)
    try:
        usable = local_socket.can_listen_in(folder)
    except OSError as error:
        beside_config = folder == run_folder(setup.path)
        yield Finding(
            "warning",
            "processes.no-daemon",
            folder,
            f"There can be no daemon: its socket can't lie in this folder ({error.strerror or error}).",
            remedy=f"Move what lies there away, or make it yours. {_MEANS}",
            command=command_line("mv", folder, f"{folder}.old") if beside_config else "",
        )
        return
    if not usable:
        yield Finding(
            "warning",
            "processes.no-daemon",
            folder,
            "There can be no daemon, because other users can enter the folder of its socket.",
            remedy=f"Close it to them. {_MEANS}",
            command=command_line("chmod", "go-rwx", folder),
        )
