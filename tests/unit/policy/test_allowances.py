"""The file of what a person has allowed."""

import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcpzip.config.paths import allowed_path
from mcpzip.model.limits import ALLOWED, ALLOWED_CALLS
from mcpzip.policy.allowances import LONGEST, Allowance, AllowedError, AllowedFile

NOW = 1_795_489_200.0


def one(name: str = "git__merge", at: float = NOW, seconds: float = 3600, **more: str) -> Allowance:
    return Allowance(name, at + seconds, at, more.get("definition", "d"), more.get("arguments", ""))


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(tmp_path / "config.json")


def test_what_is_allowed_ends(config: str) -> None:
    assert AllowedFile(config).all(NOW) == []
    AllowedFile(config).allow(one())
    assert AllowedFile(config).all(NOW + 3_599) == [one()]
    assert AllowedFile(config).all(NOW + 3_600) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
def test_only_its_owner_can_read_it(config: str) -> None:
    AllowedFile(config).allow(one())
    assert stat.S_IMODE(os.stat(allowed_path(config)).st_mode) == 0o600
    assert json.loads(Path(allowed_path(config)).read_bytes())["format"] == "mcpzip-allowed"


def test_the_newest_for_the_same_calls_counts(config: str) -> None:
    AllowedFile(config).allow(one())
    AllowedFile(config).allow(one(arguments="x"))
    AllowedFile(config).allow(one(at=NOW + 5))
    assert AllowedFile(config).all(NOW + 6) == [one(arguments="x"), one(at=NOW + 5)]
    assert AllowedFile(config).revoke("git__merge", NOW + 6) == 2
    assert AllowedFile(config).revoke("git__merge", NOW + 6) == 0
    assert AllowedFile(config).all(NOW + 6) == []


def test_times_that_no_command_gave_do_not_count(config: str) -> None:
    for wrong in (one(at=NOW + 3_600), one(seconds=LONGEST + 1), one(seconds=float("inf"))):
        if wrong.until == float("inf"):
            continue
        AllowedFile(config).allow(wrong)
        assert AllowedFile(config).all(NOW) == []


def test_there_are_so_many_and_no_more(config: str) -> None:
    path = Path(allowed_path(config))
    AllowedFile(config).allow(one())
    document = json.loads(path.read_bytes())
    document["allowed"] = [{**document["allowed"][0], "name": f"git__{n}"} for n in range(ALLOWED_CALLS)]
    path.write_text(json.dumps(document))
    AllowedFile(config).allow(one("git__last"))
    found = AllowedFile(config).all(NOW)
    assert len(found) == ALLOWED_CALLS
    assert [found[0].name, found[-1].name] == ["git__1", "git__last"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is damaged"),
        (b'{"format":"mcpzip-allowed","version":1,"allowed":[{"name":"git__me', "is damaged"),
        (b'{"format":"mcpzip-allowed","version":1}', "is damaged"),
        (b'{"format":"other","version":1,"allowed":[]}', "isn't a list of allowed calls"),
        (b'{"format":"mcpzip-allowed","version":2,"allowed":[]}', "newer version"),
        (b" " * (ALLOWED + 1), "can't be used"),
    ],
)
def test_a_file_that_cannot_be_used_allows_nothing(config: str, content: bytes, why: str) -> None:
    AllowedFile(config).allow(one())
    path = Path(allowed_path(config))
    path.write_bytes(content)
    for work in (
        lambda: AllowedFile(config).all(NOW),
        lambda: AllowedFile(config).allow(one()),
        lambda: AllowedFile(config).revoke("a", NOW),
        lambda: AllowedFile(config).use("git__merge", "d", "x", NOW),
    ):
        with pytest.raises(AllowedError) as raised:
            work()
        assert why in str(raised.value)
        assert "Until you delete it, nothing counts as allowed" in str(raised.value)
    assert path.read_bytes() == content
    AllowedFile(config).clear()
    assert AllowedFile(config).all(NOW) == []
    AllowedFile(config).allow(one())
    assert AllowedFile(config).all(NOW) == [one()]


def test_a_folder_that_cannot_be_written_is_said(config: str) -> None:
    Path(config).parent.joinpath("allow").write_text("a file")
    with pytest.raises(AllowedError, match="can't be written"):
        AllowedFile(config).allow(one())


def test_commands_at_the_same_time_lose_nothing(config: str) -> None:
    names = [f"git__{n}" for n in range(8)]
    threads = [threading.Thread(target=AllowedFile(config).allow, args=(one(name),)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each.name for each in AllowedFile(config).all(NOW)) == names


def test_what_is_allowed_once_is_used_by_one(config: str) -> None:
    AllowedFile(config).allow(replace(one(arguments="x"), once=True))
    assert not AllowedFile(config).use("git__merge", "d", "y", NOW)
    assert not AllowedFile(config).use("git__merge", "other", "x", NOW)
    assert not AllowedFile(config).use("git__push", "d", "x", NOW)
    with ThreadPoolExecutor(8) as pool:
        used = list(pool.map(lambda _: AllowedFile(config).use("git__merge", "d", "x", NOW), range(8)))
    assert sorted(used) == [False] * 7 + [True]
    assert AllowedFile(config).all(NOW) == []


def test_what_is_allowed_for_long_is_not_used_up(config: str) -> None:
    single = replace(one(arguments="x"), once=True)
    AllowedFile(config).allow(single)
    AllowedFile(config).allow(one())
    assert AllowedFile(config).use("git__merge", "d", "x", NOW)
    assert AllowedFile(config).all(NOW) == [single, one()]
