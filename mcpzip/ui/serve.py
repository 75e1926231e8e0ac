"""The run of `mcpzip ui`: listens on loopback, opens the browser, and serves until it is told to end."""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape

import msgspec

from mcpzip.config.paths import run_folder
from mcpzip.model.errors import ConfigError
from mcpzip.server.http.access import LOOPBACK, Address, take
from mcpzip.server.http.application_server import ApplicationServer
from mcpzip.system.browser import open_page, why_no_browser
from mcpzip.system.descriptors import raise_descriptor_limit
from mcpzip.system.files import make_folders, remove_file
from mcpzip.system.signals import stop_on_signals
from mcpzip.system.state_files import write_state
from mcpzip.system.threads import in_thread
from mcpzip.ui.application import PageApplication
from mcpzip.ui.limits import LIMITS
from mcpzip.ui.sign_in import SignIn
from mcpzip.ui.sources import Sources

_LAUNCHER = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}"><title>mcpzip</title><a href="{url}">Open</a></html>
"""


class Options(msgspec.Struct, frozen=True):
    """What `mcpzip ui` is told. config, project: paths, "" for no project. port: 0 for any that is free.
    opens: whether a browser is opened.
    """

    config: str
    project: str
    port: int = 0
    opens: bool = True


def listen(port: int) -> socket.socket:
    """A socket that listens on loopback. Raises ConfigError when the port is taken or not ours to take."""
    try:
        return take(Address(LOOPBACK, LOOPBACK, port))
    except ConfigError as error:
        raise ConfigError("--port", "", error.found, error.remedy) from error


async def serve(
    options: Options,
    listening: socket.socket,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
    environment: Mapping[str, str],
) -> None:
    """Serves until a signal ends it; closes ``listening``. tell: is told what a person has to know, such as
    the URL. warn: is told what is wrong.
    """
    done = asyncio.Event()
    stop_on_signals(done)
    port = listening.getsockname()[1]
    sign_in = SignIn()
    url = f"http://{LOOPBACK}:{port}/#token={sign_in.token}"
    launcher = _Launcher(options, url, environment)
    sources = Sources(options.config, options.project, warn)
    application = PageApplication(sources, sign_in, port, warn, launcher.remove)
    room = max(1, raise_descriptor_limit(LIMITS.connections + LIMITS.turned_away) - LIMITS.turned_away)
    server = ApplicationServer(application, listening, LIMITS, min(room, LIMITS.connections))
    await server.start()
    opening = asyncio.create_task(launcher.open(tell), name="browser")
    ahead = asyncio.create_task(sources.open_ahead(), name="open-ahead")
    try:
        await done.wait()
    finally:
        opening.cancel()
        launcher.remove()
        server.shutdown()
        await application.close()
        await server.close()
        await asyncio.wait({ahead})
        await sources.close()


class _Launcher:
    """The file that takes the browser to the page.

    Other users see the command lines of our processes, so the URL with its token is not in one: it is in a
    file that only its owner can read, for as long as nobody has signed in.
    """

    def __init__(self, options: Options, url: str, environment: Mapping[str, str]) -> None:
        self._options, self._url, self._environment = options, url, environment
        folder = run_folder(options.config)
        self._path = os.path.abspath(os.path.join(folder, f"ui-{os.getpid()}.html"))
        self._written = False

    async def open(self, tell: Callable[[str], None]) -> None:
        """Opens the browser, or says why not; tells the URL in any case."""
        why = why_no_browser(self._environment) if self._options.opens else ""
        tell(f"The page: {self._url}")
        if why:
            tell(f"No browser was opened, because {why}. Open the address in a browser on this machine.")
        elif self._options.opens and not await in_thread(self._open, "browser", lambda _: self.remove()):
            tell("No browser could be opened. Open the address in a browser on this machine.")
        tell("Whoever has this address can use the page until this command ends: Ctrl-C.")

    def _open(self) -> bool:
        try:
            make_folders(os.path.dirname(self._path))
            write_state(self._path, _LAUNCHER.format(url=escape(self._url)).encode())
            self._written = True
        except OSError:
            return False
        return open_page(self._path, self._environment)

    def remove(self) -> None:
        """Removes the file, if there is one."""
        if self._written:
            with suppress(OSError):
                remove_file(self._path)
