"""The fixture ``mcp_cassette``, as a stranger's tests use it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcpzip_fakes.launch import FakeServer, importable

from mcpzip.cassettes import files

SERVER = """\
name = "desk"
[[tools]]
name = "look"
result = { text = "An invoice." }
[[tools]]
name = "pay"
result = { text = "Paid {id}.", fill = true }
"""
TEST = """\
import pytest

@pytest.mark.mcp_cassette(MARKED)
def test_desk(mcp_cassette, many_clients):
    server = mcp_cassette(SERVER)
    (client,) = many_clients([server.command, *server.args], 1, env=server.env).result()
    assert client.opening["serverInfo"]["name"] == "desk"
    assert client.call("look").result().text == "An invoice."
    BODY
    client.disconnect().result()
    assert server.records is RECORDS
"""


class Project:
    """A folder with a test and, while it is there, a real server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cassette = folder / "cassettes" / "desk.toml"
        (folder / "desk.toml").write_text(SERVER, "utf-8")

    def test(
        self, *options: str, records: bool, marked: str = '"desk"', body: str = "pass", ci: str = ""
    ) -> str:
        """Runs pytest. marked: the arguments of the marker. Returns what it printed."""
        server = repr([sys.executable, "-m", "mcpzip_fakes", str(self.folder / "desk.toml")])[1:-1]
        text = TEST.replace("SERVER", server).replace("MARKED", marked).replace("BODY", body)
        (self.folder / "test_desk.py").write_text(text.replace("RECORDS", str(records)), "utf-8")
        return self.run(*options, CI=ci)

    def run(self, *options: str, **environment: str) -> str:
        """Runs pytest with the test that is there. Returns what it printed."""
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_desk.py"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=100,
            env={
                **{name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
                **importable(),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTEST_PLUGINS": "mcpzip_fakes.pytest_plugin",
                "CI": "",
                **environment,
            },
        )
        return done.stdout + done.stderr

    def forget_server(self) -> None:
        """From now on there is no real server."""
        (self.folder / "desk.toml").unlink()

    @property
    def sessions(self) -> int:
        return len(files.load(str(self.cassette)).sessions)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_once_records_and_then_plays_without_the_server(project: Project) -> None:
    said = project.test(records=True)
    assert "1 passed" in said, said
    assert project.sessions == 1
    project.forget_server()
    before = project.cassette.read_bytes()
    for mode in ("once", "none"):
        said = project.test(f"--mcp-record={mode}", records=False)
        assert "1 passed" in said, said
    assert project.cassette.read_bytes() == before


def test_none_never_records(project: Project) -> None:
    for options, ci in ((["--mcp-record=none"], ""), ([], "true")):
        said = project.test(*options, records=True, ci=ci)
        assert "1 failed" in said, said
        assert "Record it with --mcp-record=once." in said
        assert not project.cassette.exists()


def test_all_records_anew(project: Project) -> None:
    for marked, options in (("'desk', record_mode='all'", []), ("'desk'", ["--mcp-record=all"])):
        said = project.test(*options, records=True, marked=marked)
        assert "1 passed" in said, said
        assert project.sessions == 1


def test_a_request_that_is_not_in_the_cassette_is_told_with_what_differs(project: Project) -> None:
    pay = 'assert client.call("pay", {"id": NUMBER}).result().text == "Paid NUMBER."'
    assert "1 passed" in project.test(records=True, body=pay.replace("NUMBER", "7"))
    said = project.test(records=False, body=pay.replace("NUMBER", "8"))
    assert "1 failed" in said, said
    assert "a request that is not in the cassette" in said
    assert "tools/call “pay” is not in desk.toml. The nearest is exchange 4" in said
    assert "      - 7\n      + 8\n" in said
    assert "error" not in said.splitlines()[-1], said
    ignored = project.test(
        records=False,
        body=pay.replace("NUMBER", "8").replace("Paid 8", "Paid 7"),
        marked="'desk', ignore=['pay:arguments.id']",
    )
    assert "1 passed" in ignored, ignored


def test_a_test_that_swallows_the_error_fails_too(project: Project) -> None:
    assert "1 passed" in project.test(records=True)
    swallowed = """
    try:
        client.call("pay", {"id": 8}).result()
    except Exception:
        pass
"""
    said = project.test(records=False, body=swallowed)
    assert "1 passed, 1 error" in said, said
    assert "tools/call “pay” is not in desk.toml" in said
    assert "Record them with --mcp-record=new_episodes" in said
    allowed = project.test(records=False, body=swallowed, marked="'desk', allow_unmatched=True")
    assert "1 passed in" in allowed, allowed


def test_new_episodes_asks_the_real_server_for_what_is_missing(project: Project) -> None:
    assert "1 passed" in project.test(records=True)
    (project.folder / "desk.toml").write_text(SERVER.replace("An invoice.", "A bill."), "utf-8")
    pay = """
    assert client.call("pay", {"id": 7}).result().text == "Paid 7."
    assert client.call("look").result().text == "An invoice."  # from the cassette
    assert client.call("pay", {"id": 8}).result().text == "Paid 8."
"""
    marked = "'desk', mask=['params.arguments.note'], secret=['HOME']"
    said = project.test("--mcp-record=new_episodes", records=True, body=pay, marked=marked)
    assert "1 passed" in said, said
    assert project.sessions == 2
    project.forget_server()
    said = project.test(records=False, body=pay, marked="'desk', allow_unused=False")
    assert "1 passed in" in said, said


_OVER_HTTP = """\
import os
import pytest

@pytest.mark.mcp_cassette("desk")
def test_desk(mcp_cassette, many_clients):
    server = mcp_cassette(url=os.environ["DESK"], headers={"x-desk": "mahogany-desk"})
    assert server.config == {"type": "http", "url": server.url}
    (client,) = many_clients(server.url, 1).result()
    assert client.call("look").result().text == "An invoice."
    if number := os.environ.get("PAY"):
        client.call("pay", {"id": number}).result()
    client.disconnect().result()
"""


def test_a_server_with_a_url(project: Project, fake_mcp: Callable[..., FakeServer]) -> None:
    real = fake_mcp(project.folder / "desk.toml", transport="http")
    (project.folder / "test_desk.py").write_text(_OVER_HTTP, "utf-8")
    said = project.run(DESK=real.url)
    assert "1 passed" in said, said
    assert files.load(str(project.cassette)).transport == "http"
    said = project.run("--mcp-record=new_episodes", DESK=real.url, PAY="9")
    assert "1 passed" in said, said
    assert [call["arguments"] for call in real.record.calls("pay")] == [{"id": "9"}]
    told = real.record.received("tools/call")
    assert all("'x-desk': 'mahogany-desk'" in str(line.detail["headers"]) for line in told)
    assert "mahogany" not in project.cassette.read_text("utf-8")
    real.stop()
    said = project.run("--mcp-record=none", DESK="http://127.0.0.1:1/mcp", PAY="9")
    assert "1 passed" in said, said
    said = project.run("--mcp-record=none", DESK="http://127.0.0.1:1/mcp")
    assert "1 passed" in said, said
    said = project.run("--mcp-record=none", DESK="http://127.0.0.1:1/mcp", PAY="8")
    assert "a request that is not in the cassette" in said, said
    assert "tools/call: desk.toml" in said or "tools/call “pay” is not in desk.toml" in said, said


def test_a_server_with_a_url_that_cant_be_recorded(project: Project) -> None:
    (project.folder / "test_desk.py").write_text(_OVER_HTTP, "utf-8")
    said = project.run("--mcp-record=new_episodes", DESK="nowhere")
    assert "1 failed" in said, said
    assert "nowhere can't be recorded" in said


def test_unused_requests_can_be_refused(project: Project) -> None:
    assert "1 passed" in project.test(records=True, body='client.call("pay", {"id": 7}).result()')
    assert "1 passed in" in project.test(records=False)
    said = project.test(records=False, marked="'desk', allow_unused=False")
    assert "desk.toml has requests that were not sent:\nexchange 4: tools/call pay" in said, said


def test_the_folder_and_the_name(project: Project) -> None:
    (project.folder / "pytest.ini").write_text("[pytest]\nmcp_cassette_dir = tapes\n", "utf-8")
    assert "1 passed" in project.test(records=True)
    assert (project.folder / "tapes" / "desk.toml").exists()
    test = (project.folder / "test_desk.py").read_text("utf-8")
    (project.folder / "test_desk.py").write_text(test.replace('("desk")', ""), "utf-8")
    assert [line for line in test.splitlines() if line.startswith("@")] == [
        '@pytest.mark.mcp_cassette("desk")'
    ]


def test_what_is_wrong_with_a_marker_is_told(project: Project) -> None:
    said = project.test(records=True, marked="'desk', colour='red'")
    assert "it got an unexpected keyword argument 'colour'; write mcp_cassette(name=None" in said, said
    said = project.test(records=True, marked="'desk', record_mode='always'")
    assert "record_mode is 'always'; choose from once, none, new_episodes, all" in said, said
    assert "mcp_cassette(name=None" in project.test("--markers", records=True)
