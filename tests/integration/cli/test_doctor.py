"""`mcpzip doctor` names each prepared fault and its remedy, and the remedy mends it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.doctor_faults import (
    FAULTS,
    LONG,
    Fault,
    greets,
    leftover,
    sign_in,
)
from helpers.doctor_place import GOOD, TOKEN, Place, posix_only
from helpers.doctor_place import place as place
from helpers.driver import ROOT, Json

from mcpzip.cli.commands import run
from mcpzip.doctor import client_checks
from mcpzip.doctor.finding import GROUPS
from mcpzip.system.log_writer import LogWriter
from mcpzip.system.orphans import MARK_VARIABLE, OrphanProcess, can_see_environments, find_left


@posix_only
@pytest.mark.parametrize("fault", FAULTS, ids=[f"{at}-{fault.check}" for at, fault in enumerate(FAULTS)])
def test_a_fault_is_named_and_its_remedy_mends_it(place: Place, fault: Fault) -> None:
    fault.prepare(place)
    found = [each for each in place.doctor(*fault.words) if each["check"] == fault.check]
    assert found
    finding = found[0]
    assert fault.says in json.dumps(finding, ensure_ascii=False).replace('\\"', '"')
    assert finding["remedy"] or finding["command"]
    if fault.mend is None:
        place.shell(finding["command"])
    else:
        fault.mend(place, finding)
    assert [each for each in place.doctor(*fault.words) if each["check"] == fault.check] == []


def test_there_are_thirty_faults_and_every_group_has_some() -> None:
    assert len(FAULTS) >= 30
    groups = {fault.check.partition(".")[0] for fault in FAULTS}
    assert set(GROUPS) - groups == {"sign-in", "processes"}  # below


@pytest.mark.skipif(not can_see_environments(), reason="this system hides the environments of processes")
def test_a_process_that_a_killed_mcpzip_left_is_named_and_can_be_ended(place: Place) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = Path(f"/proc/{owner.pid}/stat").read_text().rpartition(")")[2].split()[19]
    mark = f"{owner.pid}-{started}-{'a1' * 16}"
    command = [sys.executable, "-c", "print('up', flush=True)\ninput()", "left-behind"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, MARK_VARIABLE: mark}
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        place.write({"a": GOOD})
        place.patch.setattr(client_checks, "find_left", lambda: ours(find_left()))

        def ours(found: list[OrphanProcess]) -> list[OrphanProcess]:
            return [one for one in found if one.pid == server.pid]

        assert not [each for each in place.doctor("--offline") if each["check"] == "processes.leftover"]
        owner.communicate(b"\n")
        (found,) = [each for each in place.doctor("--offline") if each["check"] == "processes.leftover"]
        assert found["evidence"][0].startswith(f"{server.pid}: ")
        assert "input() left-behind" in found["evidence"][0]  # on one line
        place.shell(found["command"])
        server.wait(10)
        assert not [each for each in place.doctor("--offline") if each["check"] == "processes.leftover"]


@pytest.mark.skipif(not can_see_environments(), reason="this system hides the environments of processes")
def test_what_a_mcpzip_that_ended_just_now_is_ending_is_not_left(place: Place) -> None:
    """doctor named the servers of a mcpzip that was just about to end them."""
    place.write({"a": GOOD})
    ended = OrphanProcess(os.getpid(), os.getpid(), started="0")
    place.patch.setattr(client_checks, "find_left", lambda: [ended])
    assert not [each for each in place.doctor("--offline") if each["check"] == "processes.leftover"]


@posix_only
@pytest.mark.parametrize(
    ("settings", "trusted", "named"),
    [
        ({}, {}, True),
        ({}, {"here": "TRUST_FOLDER"}, False),
        ({}, {"home": "TRUST_FOLDER"}, False),
        ({}, {"here": "DO_NOT_TRUST", "home": "TRUST_FOLDER"}, True),
        ({}, {"here": "TRUST_PARENT"}, False),
        ({"security": {"folderTrust": {"enabled": False}}}, {}, False),
    ],
)
def test_a_folder_in_which_gemini_starts_no_server_is_named(
    place: Place, settings: Json, trusted: dict[str, str], named: bool
) -> None:
    place.write({"a": GOOD})
    here = place.home / "here"
    here.mkdir()
    place.patch.chdir(here)
    path = place.client({"mcpzip": {"command": "mcpzip", "args": ["serve"]}}, ".gemini/settings.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    rules = {str(here if name == "here" else place.home): rule for name, rule in trusted.items()}
    (path.parent / "trustedFolders.json").write_text(json.dumps(rules))
    found = [each for each in place.doctor("--offline") if each["check"] == "clients.untrusted-folder"]
    assert bool(found) == named


@posix_only
def test_nothing_is_wrong(place: Place) -> None:
    place.write({"a": greets(place)})
    place.client({"mcpzip": {"command": "mcpzip", "args": ["serve"]}})
    assert run(["doctor"]) == 0
    said = place.capsys.readouterr().out
    assert said.splitlines()[:-2] == [f"{title}: fine" for title in GROUPS.values()]
    assert said.endswith("nothing is wrong.\n")
    assert place.doctor() == []


@posix_only
def test_an_entry_that_only_its_client_can_fill_in_is_noted_without_a_command(place: Place) -> None:
    """doctor said to migrate what migrate leaves where it is."""
    place.write({"a": greets(place)})
    stays = {"command": "node", "args": ["${workspaceFolder}/serve.js"]}
    mcpzip = {"command": "mcpzip", "args": ["serve"]}
    place.client({"mcpzip": mcpzip, "ws": stays, "b": {"command": "b"}}, ".cursor/mcp.json")
    direct = [each for each in place.doctor("--offline") if each["check"] == "clients.direct"]
    assert [(each["level"], each["command"]) for each in direct] == [
        ("warning", "mcpzip migrate --from cursor"),
        ("note", ""),
    ]
    assert "starts b itself" in direct[0]["problem"]
    assert (
        "starts ws itself, beside mcpzip: only the client can replace ${workspaceFolder}"
        in (direct[1]["problem"])
    )


@posix_only
def test_without_servers_to_move_it_says_how_to_register(place: Place) -> None:
    place.write({"a": greets(place)})
    place.client({})
    (none,) = [each for each in place.doctor("--offline") if each["check"] == "clients.none"]
    assert none["command"] == "mcpzip init"


@posix_only
def test_the_log_is_named_where_it_has_something(place: Place) -> None:
    """doctor sent people to a log that was empty, and did not say where it lies."""
    place.write({"b": {"command": "sh", "args": ["-c", "exit 3"]}})
    (failing,) = [each for each in place.doctor() if each["check"] == "servers.failing"]
    assert failing["command"] == "mcpzip servers b"
    folder = place.config.parent / "logs"
    writer = LogWriter(str(folder), "config.json", "info", str)
    writer.note("error", "b", "failed", "it exited with code 3")
    writer.close(10.0)
    (failing,) = [each for each in place.doctor() if each["check"] == "servers.failing"]
    assert failing["command"] == "mcpzip logs b"
    run(["doctor"])
    assert place.capsys.readouterr().out.endswith(f"The log is in {folder}: mcpzip logs\n")


@posix_only
def test_the_tools_of_one_server_are_one_finding_whose_command_works(place: Place) -> None:
    """Each tool was a finding of its own, and a name that ended in _ was proposed, which rename refuses."""
    servers = {"git-hub": greets(place), "github": greets(place), "my_long_server": greets(place)}
    place.write(servers, expose="direct")
    place.known({"name": "run"}, {"name": "stop"}, {"name": LONG}, {"name": f"{LONG}_too"})
    found = {
        (each["check"], each["subject"]): each
        for each in place.doctor("--offline")
        if each["check"] in ("tools.clash", "tools.long-name")
    }
    assert set(found) == {
        ("tools.clash", "github"),
        *(("tools.long-name", server) for server in servers),
    }
    assert "4 tools differ from another server's" in found["tools.clash", "github"]["problem"]
    long = found["tools.long-name", "my_long_server"]
    assert len(long["evidence"]) == 2
    assert found["tools.long-name", "github"]["command"] == ""  # its name is short already
    assert long["command"] == "mcpzip rename my_long_server my_long"
    place.shell(long["command"])


@posix_only
def test_fix_mends_what_is_marked(place: Place) -> None:
    sign_in(place)
    leftover(place)
    run(["doctor", "--offline"])
    assert "--fix fixes what is marked with *" in place.capsys.readouterr().out
    assert {each["check"] for each in place.doctor("--offline") if each["fixable"]} == {
        "files.sign-ins",
        "files.leftover",
    }
    run(["doctor", "--offline", "--fix"])
    said = place.capsys.readouterr().out
    assert "Only you can read" in said
    assert "Deleted" in said
    assert not [each for each in place.doctor("--offline") if each["fixable"]]


@posix_only
def test_a_bundle_has_everything_but_secrets(place: Place, tmp_path: Path) -> None:
    place.patch.setenv("HTTPS_PROXY", f"http://me:{TOKEN}@proxy.example:80a")
    servers = {
        "a": {"command": "no-such", "env": {"API_TOKEN": TOKEN}, "args": ["-y", "some-mcp", "--key", TOKEN]},
        "b": {"type": "tcp", "env": {"X": TOKEN}, "headers": {"X": f"Bearer {TOKEN}"}},
        "c d": {"command": f"npx x --key {TOKEN}", "args": [f"--key={TOKEN}", TOKEN], "oauth": {"x": TOKEN}},
        "e": {"url": f"https://me:{TOKEN}@e.example/{TOKEN}?key={TOKEN}", "headersCommand": ["x", TOKEN]},
        "f": TOKEN,
        "g": [TOKEN],
    }
    place.write(servers, gemini_api_key=TOKEN, search={"semantic": {"provider": "openai", "api_key": TOKEN}})
    run(["doctor", "--json"])
    run(["config", "show"])
    said = place.capsys.readouterr()
    assert TOKEN not in said.out + said.err
    bundle = tmp_path / "bug.json"
    assert run(["doctor", "--bundle", str(bundle)]) == 1
    text = bundle.read_text()
    assert TOKEN not in text
    found = json.loads(text)
    assert {each["check"] for each in found["findings"]} >= {"commands.missing"}
    assert found["config"]["mcpServers"]["a"]["command"] == "no-such"
    assert os.stat(bundle).st_mode & 0o777 == 0o600
    assert run(["doctor", "--bundle", str(bundle)]) == 2
    assert "already" in place.capsys.readouterr().err
    assert bundle.read_text() == text


@posix_only
def test_one_server_can_be_asked(place: Place) -> None:
    place.write({"a": greets(place), "b": {"command": "sh", "args": ["-c", "exit 3"]}})
    assert [each for each in place.doctor("a") if each["check"] == "servers.failing"] == []
    assert [each["subject"] for each in place.doctor("b") if each["check"] == "servers.failing"] == ["b"]
    assert run(["doctor", "c"]) == 2


def test_a_process_of_another_version_is_named(place: Place) -> None:
    from mcpzip.server.run_file import Run

    place.write({"a": GOOD})
    old = Run(
        version="0.0.1",
        pid=4711,
        host=client_checks.socket.gethostname(),
        started_at=1.0,
        config=str(place.config),
        project="",
        address="",
        searches=0,
        clients=(),
        servers=(),
    )
    place.patch.setattr(client_checks, "running", lambda path: [old])
    (found,) = [each for each in place.doctor("--offline") if each["check"] == "processes.version"]
    assert found["command"] == "kill 4711"
    assert found["evidence"] == ["4711: 0.0.1"]


def test_the_documentation_lists_every_check() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "mcpzip" / "doctor").glob("*_checks.py"))
    groups = "|".join(GROUPS)
    named = set(re.findall(rf'"((?:{groups})\.[a-z-]+)"', source))
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    assert set(re.findall(rf"^\| `((?:{groups})\.[a-z-]+)` \|", page, re.MULTILINE)) == named


@posix_only
@pytest.mark.parametrize(
    ("url", "key", "found"),
    [
        ("${STORE_URL}", "${STORE_KEY}", False),
        ("redis://127.0.0.1:1", "${STORE_KEY}", False),
        ("redis://u:hush@127.0.0.1:1", "${STORE_KEY}", True),
        ("${STORE_URL}", "k" * 43, True),
    ],
)
def test_secrets_of_the_store_are_for_no_other_user(place: Place, url: str, key: str, *, found: bool) -> None:
    place.patch.setenv("STORE_URL", "redis://127.0.0.1:1")
    place.patch.setenv("STORE_KEY", "k" * 43)
    place.write({"a": GOOD}, store={"url": url, "keys": [key]})
    place.config.chmod(0o644)
    assert ("config.permissions" in {finding["check"] for finding in place.doctor()}) is found
