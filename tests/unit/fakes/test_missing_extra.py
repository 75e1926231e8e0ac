"""Fakes over HTTP, where the extra is not installed."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner
from mcpzip_conformance.cli import main as conformance
from mcpzip_fakes.cli import main as fake
from mcpzip_fakes.launch import Fakes
from mcpzip_fakes.sdk import SdkMissingError, check_sdk

INSTALL = "run: pip install 'mcpzip[fakes]'."


@pytest.fixture(params=["", "1.27.0", "2.30.1"])
def installed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of ``mcp`` that is installed."""

    def version(package: str) -> str:
        if not request.param:
            raise PackageNotFoundError(package)
        return str(request.param)

    monkeypatch.setattr("importlib.metadata.version", version)
    return str(request.param)


def test_what_is_installed_here_will_do() -> None:
    check_sdk()


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_the_command_says_what_to_install(installed: str, transport: str) -> None:
    done = CliRunner().invoke(fake, ["echo", "--transport", transport])
    assert done.exit_code == 1
    assert done.output.startswith("Error: Fakes over HTTP need the package mcp 2.3, and ")
    assert (installed or "it is not") in done.output
    assert done.output.endswith(f"{INSTALL}\n")


def test_the_runner_says_what_to_install(installed: str) -> None:
    done = CliRunner().invoke(conformance, ["run", "direct"])
    assert done.exit_code == 2
    assert INSTALL in done.output


def test_the_fixture_says_what_to_install(installed: str, tmp_path: Path) -> None:
    with Fakes(tmp_path) as fakes, pytest.raises(SdkMissingError, match="mcpzip"):
        fakes.start(tools=["echo"], transport="http")
