"""Who is refused by `mcpzip ui`: other sites, other users, forged forms, and texts that want to be markup."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.acting_markup import acting
from helpers.driver import PATIENCE, command, ended, environment, run, until
from helpers.ui_client import Page, page_of
from helpers.ui_places import MARKUP, hostile_place

from mcpzip.ui.pages import ROUTES

EVIL = "http://evil.example"
SYSTEM_PYTHON = "/usr/bin/python3"
"""Which other users can run too."""
CAN_BE_ANOTHER = os.name == "posix" and os.geteuid() == 0 and os.path.exists(SYSTEM_PYTHON)
FORMS = ("/sign-out", *(path.replace("*", "evil") for method, path in ROUTES if method == "POST"))
"""Where each form is sent."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with a hostile server."""
    return hostile_place(tmp_path_factory.mktemp("ui"))


@pytest.fixture(scope="module")
def page(place: Path) -> Iterator[Page]:
    with page_of(place) as page:
        yield page.sign_in()


def test_without_a_sign_in_nothing_is_shown(page: Page) -> None:
    for path in ("/", "/servers", "/servers/evil", "/search?query=x", "/events", "/nothing", "/%ff/.."):
        for cookie in (None, "mcpzip-ui-1=x", page.cookie[:-1], page.cookie + "x"):
            answer = page.get(path, Cookie=cookie)
            assert answer.status == 401
            assert "evil" not in answer.text
    for path in FORMS:
        assert page.post(path, {}, Cookie=None).status == 401


def test_pages_are_under_a_path_that_only_who_is_signed_in_knows(page: Page) -> None:
    """Browsers send cookies of 127.0.0.1 to every port there, so to a server of another user too."""
    other = Page(page.url)
    other.cookie = page.cookie
    for path in ("/", "/servers", "/x/", f"{page.root}x/", page.root[:-1] + "/", f"/{page.root}/"):
        assert other.get(path).status == 401
        assert page.root not in other.get(path).text
    assert other.get(f"{page.root}/").status == 200
    assert len(page.root) > 20


def test_a_wrong_token_is_refused(page: Page) -> None:
    for fields in ({}, {"token": ""}, {"token": page.token[:-1]}, {"other": page.token}):
        answer = page.post("/sign-in", fields)
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    # the token works as the body of a form only: never in a URL, which is logged
    assert page.get(f"/?token={page.token}", Cookie=None).status == 401
    assert page.get(f"/sign-in?token={page.token}", Cookie=None).status == 401


def test_dns_rebinding_is_refused(page: Page) -> None:
    for host in ("evil.example", f"evil.example:{page.host.partition(':')[2]}", "127.0.0.1"):
        assert page.get("/", Host=host).status == 421
        assert page.post("/sign-in", {"token": page.token}, Host=host, Origin=f"http://{host}").status == 421


def test_requests_of_other_sites_are_refused(page: Page) -> None:
    for path in ("/", "/events", "/static/script.js"):
        assert page.get(path, Origin=EVIL).status == 403
        assert page.get(path, Sec_Fetch_Site="cross-site").status == 403
    token = page.get("/").form_token
    for path in FORMS:
        assert page.post(path, {"form_token": token}, Origin=EVIL).status == 403
    for headers in ({"Origin": EVIL}, {"Origin": "null"}, {"Origin": None}, {"Sec_Fetch_Site": "cross-site"}):
        assert page.post("/servers/evil/stop", {"form_token": token}, **headers).status == 403
        assert page.post("/sign-in", {"token": page.token}, **headers).status == 403


def test_a_forged_form_is_refused(page: Page) -> None:
    other = Page(page.url).sign_in()
    for fields in ({}, {"form_token": ""}, {"form_token": "x"}, {"form_token": other.get("/").form_token}):
        for path in FORMS:
            assert page.post(path, fields).status == 403
    assert page.get("/").status == 200


def test_a_form_in_another_encoding_is_refused(page: Page) -> None:
    token = page.get("/").form_token
    body = json.dumps({"form_token": token})
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x"):
        headers = {"Content-Type": kind}
        assert page.ask("POST", "/servers/evil/stop", body, headers).status == 403


def test_every_response_forbids_frames_and_foreign_content(page: Page) -> None:
    paths = ("/", "/servers", "/search", "/nothing", "/static/style.css", "/static/../limits.py")
    answers = [page.get(path) for path in paths] + [page.get("/", Cookie=None), page.get("/", Host="evil")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in answer.headers


def test_so_does_the_answer_to_what_is_no_request(page: Page) -> None:
    port = int(page.host.rpartition(":")[2])
    for said in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n<script>\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(PATIENCE)
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while data := connection.recv(1 << 16):
                answer += data
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"content-security-policy: default-src 'none'" in answer
        assert b"<script>" not in answer


def test_the_test_sees_what_acts() -> None:
    assert "alert(1)" in acting(MARKUP)
    assert "img" in acting("<img src=x>")
    assert acting('<a href="//evil.example">') == ["a href=//evil.example"]
    assert acting('<a href="/servers" onclick="x">') == ["a onclick"]


def test_texts_of_a_server_are_only_text(page: Page) -> None:
    paths = {
        "/",
        "/servers",
        "/servers/evil",
        "/search?query=find+me",
        "/search?query=%3Cscript%3E&server=%3Cb%3E",
        "/doctor",
    }
    for name in ("plain", MARKUP):
        found = page.get("/servers/evil")
        links = re.findall(r'href="[^"]+?(/tools/[^"]+)"', found.text)
        assert len(links) == 2, name
        paths.update(links)
    for link in links:
        assert page.submit(link, json="{}").status == 200  # which fails, and is remembered with its name
    calls = re.findall(r'href="[^"]+?(/calls/[0-9]+)"', page.get("/calls").text)
    assert len(calls) >= 2
    paths |= {"/calls", "/calls?server=%3Cb%3E&tool=%3Cscript%3E&outcome=%22%3E&client=x", *calls}
    for path in paths:
        answer = page.get(path)
        assert answer.status == 200, path
        assert acting(answer.text) == [], path
        assert str(7919 * 7919) not in answer.text, path
        assert not set(answer.text) & set("\u202e\u200b\x1b\x07"), path
    assert "\\u202e\\u200b\\x1b]0;t\\x07" in page.get("/servers/evil").text


def test_hostile_paths_and_queries_are_only_text(page: Page) -> None:
    for path in (
        "/servers/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/tools/%3Cimg%20src=x%3E",
        "/servers?find=%22%3E%3Cscript%3E&page=99999999999999999999",
        "/servers/evil?done=%3Cscript%3E&find=%3Cimg%3E&page=-1",
        "/search?query=%3Cscript%3E%E2%80%AE&server=%22%3E&limit=%22%3E",
        "/search?query=%ff%00%1b",
        "/calls/%3Cscript%3E",
        "/calls?tool=%3Cscript%3E%E2%80%AE&page=%22%3E&server=%22%3E",
        "/tools/evil__plain?kept=%3Cscript%3E&from=%22%3E",
        "/tools/evil__plain?kept=r1-madnawbx2cwm5gkt&from=1",
    ):
        answer = page.get(path)
        assert answer.status in (200, 404)
        assert acting(answer.text) == []
        assert not set(answer.text) & set("\u202e\x00\x1b")
    assert page.get("/servers?" + "&".join(["a=1"] * 100)).status == 400
    assert page.submit("/tools/evil__plain", **{f"a{number}": "" for number in range(100)}).status == 400


def test_a_redirect_leads_nowhere_else(page: Page) -> None:
    answer = page.submit("/servers/evil%0d%0aX:%201/stop")
    assert answer.status in (303, 404)
    assert "X" not in answer.headers
    assert page.submit("/servers/evil/stop").headers["location"].startswith(f"{page.root}/servers/evil?")


def test_a_body_that_is_too_large_is_refused(page: Page) -> None:
    assert page.post("/sign-in", {"token": "x" * 300_000}).status == 413


def test_connections_are_bounded(page: Page) -> None:
    """Strangers that hold connections open give way to who is signed in."""
    port = int(page.host.rpartition(":")[2])
    held = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    try:
        assert page.get("/").status == 200
    finally:
        for one in held:
            one.close()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere 127.0.0.2 is no address")
def test_it_listens_at_one_address_only(page: Page) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", int(page.host.rpartition(":")[2])))


def test_a_port_that_is_taken_is_named(page: Page, place: Path) -> None:
    port = page.host.rpartition(":")[2]
    done = run("ui", "--no-open", "--port", port, "--config", str(place))
    assert done.returncode == 2
    assert f"--port: port {port} of 127.0.0.1 is in use".encode() in done.stderr


def test_a_browser_signs_out(page: Page) -> None:
    other = Page(page.url).sign_in()
    assert "Max-Age=0" in other.submit("/sign-out").headers["set-cookie"]
    assert other.get("/").status == 401
    assert page.get("/").status == 200


def test_the_token_is_in_no_command_line_and_in_no_file_that_others_can_read(
    place: Path, tmp_path: Path
) -> None:
    """Other users see command lines, so the browser is given a file, which goes once somebody signed in."""
    seen = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(seen)!r}, 'w').write(sys.argv[1])\n")
    browser.chmod(0o700)
    process = subprocess.Popen(
        command("ui", "--config", str(place)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(BROWSER=f"{browser} %s"),
    )
    with ended(process):
        assert process.stdout
        line = process.stdout.readline().decode()
        until(lambda: seen.exists() and seen.read_text())
        opened = seen.read_text()
        page = Page(line.partition(": ")[2].strip())
        assert opened.startswith("file://")
        assert page.token not in opened
        file = Path(opened.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert page.url in file.read_text()
        if CAN_BE_ANOTHER:
            assert of_another_user(file, page, process.pid) == ["refused", "refused", "401"]
        page.sign_in()
        until(lambda: not file.exists())
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert [name for name in os.listdir(file.parent) if name.startswith("ui-")] == []


_STRANGER = """
import sys, urllib.error, urllib.request

def read(path):
    try:
        return open(path, "rb").read()
    except OSError:
        return None

file, process, origin = sys.argv[1:]
print("refused" if read(file) is None else "read")
said = b"".join(filter(None, (read(f"/proc/{process}/{name}") for name in ("cmdline", "environ", "maps"))))
print("read" if b"#token=" in said else "refused")
try:
    print(urllib.request.urlopen(origin + "/").status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


def of_another_user(file: Path, page: Page, pid: int) -> list[str]:
    """What another user of this machine gets: of the file, of the process, and of the page."""
    argv = [SYSTEM_PYTHON, "-c", _STRANGER, str(file), str(pid), page.origin]
    done = subprocess.run(
        argv, user=65534, group=65534, extra_groups=[], cwd="/", capture_output=True, timeout=PATIENCE, env={}
    )
    return done.stdout.decode().split() or [done.stderr.decode()]
