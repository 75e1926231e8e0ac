"""Headers that a program prints: real programs, and a server that counts what it is shown."""

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.auth import headers as module
from mcpzip.auth.headers import HeadersCommand, Printed, read_printed
from mcpzip.config import ServerConfig
from mcpzip.model.errors import LoginError

URL = "https://x.example/mcp"

COUNT = """
import os, pathlib
runs = pathlib.Path(sys.argv[1])
with runs.open("a") as file:
    file.write("run\\n")
count = len(runs.read_text().splitlines())
"""


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """A server, and a program that makes the headers for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        self.runs = folder / "runs"
        self.seen: list[httpx.Headers] = []
        self.answer: Callable[[httpx.Request], int] = lambda request: 200

    def program(self, body: str, name: str = "it") -> HeadersCommand:
        """The auth of a server whose program is ``body``; ``say(object)`` prints and ``count`` is its run."""
        script = self.folder / "headers.py"
        begin = "import json, sys\nsay = lambda found: print(json.dumps(found))\n" + COUNT
        script.write_text(begin + textwrap.dedent(body), "utf-8")
        command = (sys.executable, str(script), str(self.runs))
        server = ServerConfig(name, "http", url=URL, headers_command=command)
        return HeadersCommand(server, now=self.clock)

    def client(self, auth: httpx.Auth) -> httpx.AsyncClient:
        def handle(request: httpx.Request) -> httpx.Response:
            self.seen.append(request.headers.copy())
            return httpx.Response(self.answer(request))

        return httpx.AsyncClient(auth=auth, transport=httpx.MockTransport(handle))

    @property
    def times(self) -> int:
        return len(self.runs.read_text().splitlines()) if self.runs.exists() else 0


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_what_it_prints_is_sent_and_kept(stage):
    auth = stage.program('say({"Authorization": "Bearer t", "X-Count": str(count)})')
    async with stage.client(auth) as client:
        for _ in range(3):
            assert (await client.post(URL, headers={"x-count": "0"})).status_code == 200
    assert [(each["authorization"], each["x-count"]) for each in stage.seen] == [("Bearer t", "1")] * 3
    assert stage.times == 1


async def test_it_is_told_for_whom(stage, monkeypatch):
    monkeypatch.setenv("OUR_OWN", "ours")
    auth = stage.program(
        'say({"X": "|".join(os.environ[k] for k in ("MCPZIP_SERVER_NAME", "MCPZIP_SERVER_URL", "OUR_OWN"))})',
        name="mine",
    )
    async with stage.client(auth) as client:
        await client.post(URL)
    assert stage.seen[0]["x"] == f"mine|{URL}|ours"


@pytest.mark.parametrize(
    ("body", "good_for", "bad_at"),
    [
        ('say({"X": str(count)})', 299, 300),
        ('say({"headers": {"X": str(count)}}) ', 299, 300),
        ('say({"headers": {"X": str(count)}, "expires_in": 50})', 44, 45),
        ('say({"headers": {"X": str(count)}, "expires_in": 3600})', 3589, 3590),
        ('say({"headers": {"X": str(count)}, "expires_at": 1700001000 + (count - 1) * 2000})', 989, 990),
    ],
)
async def test_it_runs_again_before_its_headers_expire(stage, body, good_for, bad_at):
    auth = stage.program(body)
    async with stage.client(auth) as client:
        for at in (0, good_for, bad_at):
            stage.clock.now = 1_700_000_000 + at
            await client.post(URL)
    assert [each["x"] for each in stage.seen] == ["1", "1", "2"]


async def test_one_run_is_enough_for_everybody(stage):
    auth = stage.program('say({"X": str(count)})')
    async with stage.client(auth) as client:
        await asyncio.gather(*(client.post(URL) for _ in range(8)))
    assert [each["x"] for each in stage.seen] == ["1"] * 8
    assert stage.times == 1


async def test_who_gives_up_waiting_spoils_nothing_for_others(stage):
    auth = stage.program('say({"X": str(count)})')
    async with stage.client(auth) as client:
        first, second = (asyncio.create_task(client.post(URL)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).status_code == 200
    assert (stage.times, len(stage.seen)) == (1, 1)


async def test_after_a_401_it_runs_again_once_for_everybody(stage):
    stage.answer = lambda request: 401 if request.headers["x"] == "1" else 200
    auth = stage.program('say({"X": str(count)})')
    async with stage.client(auth) as client:
        answers = await asyncio.gather(*(client.post(URL) for _ in range(5)))
        assert {each.status_code for each in answers} == {200}
    assert stage.times == 2
    assert sorted(each["x"] for each in stage.seen) == ["1"] * 5 + ["2"] * 5


async def test_a_server_that_always_refuses_does_not_keep_it_running(stage):
    stage.answer = lambda request: 401
    auth = stage.program('say({"X": str(count)})')
    async with stage.client(auth) as client:
        for _ in range(5):
            assert (await client.post(URL)).status_code == 401
        assert (stage.times, len(stage.seen)) == (2, 6)
        stage.clock.now += 60
        await client.post(URL)
        assert stage.times == 3


async def test_the_same_headers_are_not_sent_again(stage):
    stage.answer = lambda request: 401
    auth = stage.program('say({"X": "always"})')
    async with stage.client(auth) as client:
        assert (await client.post(URL)).status_code == 401
    assert (stage.times, len(stage.seen)) == (2, 1)


async def test_another_origin_sees_none_of_it(stage):
    auth = stage.program('say({"X-Key": "k"})')
    async with stage.client(auth) as client:
        for elsewhere in ("https://y.example/mcp", "http://x.example/mcp", "https://x.example:8443/mcp"):
            await client.post(elsewhere)
        assert stage.times == 0
        await client.post("https://x.example:443/other")
    assert ["x-key" in each for each in stage.seen] == [False, False, False, True]


async def failure(stage: Stage, auth: HeadersCommand) -> str:
    async with stage.client(auth) as client:
        with pytest.raises(LoginError) as raised:
            await client.post(URL)
    assert stage.seen == []
    return str(raised.value)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("sys.exit(3)", "exited with code 3. Run it by hand to see what is wrong with it."),
        (
            'print("first\\nno such vault\\n", file=sys.stderr); sys.exit(1)',
            "exited with code 1: no such vault. Run it by hand to see what is wrong with it.",
        ),
        ('print("Bearer abc")', 'printed no JSON object. It has to print one of headers, such as {"X-Key"'),
        ("say([1])", "printed no JSON object. It has"),
        ("pass", "printed no JSON object. It has"),
        ('say({"X": 7})', "printed a header 'X' that is no string. Put it in double quotes."),
        ('say({"X": "a\\r\\nY: b"})', "printed a header 'X' that can't be one. Use one line of printable"),
        ('say({"X": "é"})', "printed a header 'X' that can't be one."),
        ('say({"Bearer s3cret": "x"})', "printed a header that can't be one."),
        ('say({"Host": "y"})', "printed a header 'Host', which is part of the message itself. Leave it out."),
        ('say({"headers": {"X": "x"}, "expires_in": "1h"})', 'printed an "expires_in" that is no number of'),
        ('say({"headers": {"X": "x"}, "expires_at": 1700000000000})', 'printed an "expires_at" that is no'),
        ('print("x" * (2 << 20))', "printed more than 1,048,576 bytes."),
    ],
)
async def test_what_is_wrong_is_a_sentence(stage, body, sentence):
    assert (await failure(stage, stage.program(body))).startswith(f"its headersCommand {sentence}")
    assert stage.times == 1


@pytest.mark.parametrize(
    "said",
    [
        "+ echo Authorization: Bearer s3cret-token",
        "login failed for password=s3cret-token",
        '{"access_token": "s3cret-token"}',
        "api_key = 's3cret-token'",
        "Basic s3cret-token",
    ],
)
async def test_its_last_words_hold_no_credentials(stage, said):
    told = await failure(stage, stage.program(f"print({said!r}, file=sys.stderr); sys.exit(1)"))
    assert "exited with code 1: " in told
    assert "s3cret" not in told


async def test_what_was_printed_before_is_not_said_either(stage):
    auth = stage.program("""
        if count == 1:
            say({"headers": {"X-Key": "k-0123456789"}, "expires_in": 0})
        else:
            sys.exit("cannot use k-0123456789 any more")
    """)
    async with stage.client(auth) as client:
        await client.post(URL)
        with pytest.raises(LoginError) as raised:
            await client.post(URL)
    assert "cannot use … any more" in str(raised.value)


async def test_a_program_that_is_not_there_is_named(stage):
    server = ServerConfig("it", "http", url=URL, headers_command=("no-such-program-anywhere",))
    assert (await failure(stage, HeadersCommand(server))).startswith(
        "its headersCommand was not found: 'no-such-program-anywhere'. Install it"
    )


async def test_a_program_that_hangs_is_ended_with_what_it_started(stage, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 4.0)
    auth = stage.program("""
        import subprocess, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path(sys.argv[1] + ".pid").write_text(str(child.pid))
        time.sleep(600)
    """)
    assert (await failure(stage, auth)).startswith(
        "its headersCommand did not end within 4 s. Run it by hand"
    )
    started = int((stage.folder / "runs.pid").read_text())
    if os.name != "nt":
        while alive(started):  # noqa: ASYNC110 - nobody tells us when a process of another's is gone
            await asyncio.sleep(0.01)
    # The next request begins anew.
    monkeypatch.setattr(module, "TIMEOUT", 60.0)
    auth = stage.program('say({"X": str(count)})')
    async with stage.client(auth) as client:
        assert (await client.post(URL)).status_code == 200


def alive(pid: int) -> bool:
    """Whether the process runs, and is no corpse that somebody else has to bury."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return state != "Z"


@given(
    st.binary(max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: st.dictionaries(
            st.sampled_from(["headers", "expires_in", "expires_at", "X", "Host"]) | st.text(max_size=3),
            inner,
            max_size=3,
        ),
        max_leaves=6,
    ).map(lambda found: json.dumps(found).encode())
)
def test_any_output_is_headers_or_a_sentence(out):
    sentence = ""
    try:
        found = read_printed(out, 1_000.0)
    except LoginError as error:
        sentence = str(error)
    else:
        assert isinstance(found, Printed)
        httpx.Request("POST", URL, headers=dict(found.headers))
    assert not sentence or (sentence.startswith("its headersCommand printed ") and sentence.endswith("."))
