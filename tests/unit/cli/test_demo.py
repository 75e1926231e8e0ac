"""The transports of the demo's servers."""

from importlib.metadata import PackageNotFoundError

import pytest

from mcpzip.cli import demo


@pytest.mark.parametrize("installed", ["", "1.27.0", "2.30.1"])
def test_without_the_sdk_of_the_fakes_all_use_stdio(
    installed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A plain install, which has no SDK, ended with "the fake todoist server did not start".
    def version(package: str) -> str:
        if not installed:
            raise PackageNotFoundError(package)
        return installed

    monkeypatch.setattr(demo, "version", version)
    assert set(demo._transports().values()) == {"stdio"}


def test_with_it_each_has_its_own() -> None:
    assert demo._transports() == demo.SERVERS
