"""Isolation: each test has a home of its own and meets no proxy on its way to loopback."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from fakes.pytest_plugin import fake_mcp as fake_mcp

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_HOMES = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")

# No deadline: how long an example takes says more of the machine than of the code.
# `HYPOTHESIS_PROFILE=thorough` is for a long look after a change of the pure core.
settings.register_profile("quick", deadline=None, max_examples=60)
settings.register_profile("thorough", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_xdist_auto_num_workers() -> int:
    """One test process more than there are cores: half of the tests mostly wait for processes they start."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is empty and only this test's, and no proxies. Gives the home."""
    home = tmp_path_factory.mktemp("home")
    for name in _HOMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in _PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return home
