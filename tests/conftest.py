"""Isolation: each test has a home of its own and meets no proxy on its way to loopback."""

import gc
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from mcpzip_fakes.pytest_plugin import fake_mcp as fake_mcp

from mcpzip.model import redaction

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_HOMES = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

# Started in the background of a shell, the suite ignores Ctrl-C, and so would every process that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # the same for nohup
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The suite starts about 2,000 Python processes. Without .pyc files each would compile what it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadline: how long an example takes says more of the machine than of the code.
# `HYPOTHESIS_PROFILE=thorough` is for a long look after a change of the pure core.
settings.register_profile("brief", deadline=None, max_examples=10)  # on a second Python: does it run there
settings.register_profile("quick", deadline=None, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


LONGEST_TURNS = "MCPZIP_TEST_LONGEST_TURNS"
"""Names the file in which `helpers/event_loop_watchdog.py` keeps the longest turns of the event loop."""


THROUGH_DAEMON = "MCPZIP_TEST_THROUGH_DAEMON"
"""Set, every `mcpzip serve` that a test starts is served by a daemon: ``MCPZIP_TEST_THROUGH_DAEMON=1 pytest
tests/integration/serve``.
"""


NO_CERTIFICATES = "MCPZIP_TEST_NO_CERTIFICATES"
"""Names the empty folder in which tests look for the certificates of authorities. Set to "", they look where
this machine has them: for tests of what is installed from a registry.
"""


def pytest_configure(config: pytest.Config) -> None:
    """One file for all test processes; no daemon, unless a test wants one; and no certificates of
    authorities: no test leaves this machine, and to read them takes each client 15 ms.
    """
    if NO_CERTIFICATES not in os.environ:
        os.environ[NO_CERTIFICATES] = tempfile.mkdtemp(prefix="mcpzip-certificates-")
        config.add_cleanup(lambda: os.rmdir(os.environ.pop(NO_CERTIFICATES)))
    if os.environ[NO_CERTIFICATES]:
        os.environ.pop("SSL_CERT_FILE", None)
        os.environ["SSL_CERT_DIR"] = os.environ[NO_CERTIFICATES]
    if THROUGH_DAEMON not in os.environ:
        os.environ["MCPZIP_DAEMON"] = "off"
    if LONGEST_TURNS not in os.environ:
        handle, os.environ[LONGEST_TURNS] = tempfile.mkstemp(prefix="mcpzip-turns-")
        os.close(handle)
        config.add_cleanup(lambda: os.unlink(os.environ.pop(LONGEST_TURNS)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how long the longest turn of mcpzip's event loop was in the tests that play faults."""
    with open(os.environ[LONGEST_TURNS], encoding="utf-8") as turns:
        if longest := max(turns, default="", key=lambda line: float(line.split()[0])):
            terminalreporter.write_line(f"longest turn of the event loop, in s: {longest.strip()}")


def pytest_xdist_auto_num_workers() -> int:
    """Four test processes more than there are cores: half of the tests mostly wait for what they start."""
    return (os.cpu_count() or 1) + 4


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The garbage collector doesn't run during collection, and never looks at what collection made.

    Ten thousand tests are a million objects that live until the end; each full collection would look at all.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of unit tests, which compute, stand evenly between the others, which often wait for what they
    start: so the processors have work in every minute.
    """
    files = list(dict.fromkeys(item.path for item in items))
    unit = Path(__file__).parent / "unit"
    place: dict[Path, float] = {}
    for computing in (False, True):
        group = [file for file in files if file.is_relative_to(unit) is computing]
        place |= {file: number / len(group) for number, file in enumerate(group)}
    items.sort(key=lambda item: place[item.path])


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Gives paths for homes, each once. `tmp_path_factory.mktemp` reads the whole folder for each number."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def isolated(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home that is only this test's, no proxies, no secrets of other tests. Gives the home."""
    monkeypatch.setattr(redaction, "_REGISTER", redaction.Secrets())
    home = next(homes)
    home.mkdir(mode=0o700)
    for name in _HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    # Where a pytest that a test starts has its folders. It deletes old ones when it ends; in the usual place
    # those are what whole runs have left: minutes.
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(home.parent))
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return home
