"""Sign-ins in a keyring: the secrets are in it and nowhere else, and without one there is an error."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring.core
import msgspec
import pytest
from helpers.grant_stores import GRANT, SECRETS, URL, Place, Ring
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import KeyringLocked

from mcpzip.auth import codec, keyring_store
from mcpzip.auth.keyring_store import KeyringStore
from mcpzip.auth.store import open_store
from mcpzip.config.schema import Config
from mcpzip.model.errors import ConfigError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "auth")


@pytest.fixture
def no_keyring_chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("PYTHON_KEYRING_BACKEND", raising=False)
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)
    return


def config_for(tmp_path: Path) -> Config:
    return Config(str(tmp_path / "config.json"), {}, auth_store="keyring")


@pytest.mark.usefixtures("no_keyring_chosen")
def test_the_config_says_which_store(tmp_path: Path) -> None:
    warnings: list[str] = []
    ring = Ring()
    keyring.set_keyring(ring)
    in_keyring = open_store(config_for(tmp_path), warnings.append)
    in_keyring.save(GRANT)
    assert open_store(config_for(tmp_path), warnings.append).load(URL) == GRANT
    assert ring.kept
    in_files = open_store(Config(str(tmp_path / "config.json"), {}), warnings.append)
    assert warnings == []
    assert in_files.load(URL) is None
    assert 'set "auth.store" to "keyring"' in warnings[0]


@pytest.mark.usefixtures("no_keyring_chosen")
@pytest.mark.parametrize("backend", [fail.Keyring, null.Keyring])
def test_without_a_keyring_there_is_an_error_and_never_a_file(
    tmp_path: Path, backend: type[KeyringBackend]
) -> None:
    keyring.set_keyring(backend())
    with pytest.raises(ConfigError, match=r'no keyring was found here.*or set it to "file"') as raised:
        open_store(config_for(tmp_path), pytest.fail)
    assert raised.value.path == "auth.store"
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("no_keyring_chosen")
def test_files_in_the_clear_are_only_for_who_chose_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ring, "priority", 0.5)
    keyring.set_keyring(Ring())
    with pytest.raises(ConfigError):
        open_store(config_for(tmp_path), pytest.fail)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "their.choice")
    assert isinstance(open_store(config_for(tmp_path), pytest.fail), KeyringStore)


@pytest.mark.usefixtures("no_keyring_chosen")
def test_a_keyring_that_cannot_be_opened_and_one_that_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "no.such.backend")
    with pytest.raises(ConfigError, match="correct PYTHON_KEYRING_BACKEND"):
        open_store(config_for(tmp_path), pytest.fail)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"pip install \"mcpzip\[keyring\]\""):
        open_store(config_for(tmp_path), pytest.fail)


def test_secrets_are_in_the_keyring_and_in_no_file(place: Place) -> None:
    place.keyring.save(GRANT)
    data = place.file().read_bytes()
    assert not [secret for secret in SECRETS if secret in data]
    assert b"mcp.example" in data
    assert len(place.ring.kept) == 1


def test_long_tokens_are_split_and_nothing_of_the_last_is_left(place: Place) -> None:
    for length in (10, 5_000, 100, 900, 20_000, 1):
        grant = msgspec.structs.replace(GRANT, access_token="é" * length)
        place.keyring.save(grant)
        assert place.keyring.load(URL) == grant
        found = place.folder.read(codec.key(URL))
        assert found is not None
        assert found.keyring is not None
        assert len(place.ring.kept) == found.keyring.parts
    assert place.keyring.remove(URL)
    assert place.ring.kept == {}


def test_a_keyring_that_fails_midway_leaves_what_was_there(place: Place) -> None:
    place.keyring.save(GRANT)
    before = dict(place.ring.kept)
    place.ring.left = 2
    with pytest.raises(OSError, match="the keyring answers with ValueError") as raised:
        place.keyring.save(msgspec.structs.replace(GRANT, access_token="x" * 9_000))
    assert raised.value.__cause__ is None
    assert place.ring.kept == before
    assert place.keyring.load(URL) == GRANT


def test_a_locked_keyring_is_a_warning_to_who_reads_and_an_error_to_who_writes(place: Place) -> None:
    place.keyring.save(GRANT)
    place.ring.broken = KeyringLocked("prompt dismissed")
    assert (place.keyring.load(URL), place.keyring.all()) == (None, [])
    assert place.warnings == [
        "A sign-in can't be read: the keyring answers with KeyringLocked; unlock the keyring."
    ]
    for change in (lambda: place.keyring.save(GRANT), lambda: place.keyring.remove(URL)):
        with pytest.raises(OSError, match="KeyringLocked"):
            change()
    place.ring.broken = None
    assert place.keyring.load(URL) == GRANT


def test_tokens_that_are_gone_from_the_keyring_or_were_changed_are_no_sign_in(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_store, "_PAUSE", 0)
    place.keyring.save(GRANT)
    (name,) = place.ring.kept
    place.ring.kept[name] = "bm8="
    assert place.keyring.load(URL) is None
    place.ring.kept.clear()
    assert place.keyring.load(URL) is None
    assert len(place.warnings) == 1
    assert "The keyring lacks the tokens" in place.warnings[0]


def test_a_sign_in_kept_in_a_file_is_taken_over(place: Place) -> None:
    place.files.save(GRANT)
    assert place.keyring.load(URL) == GRANT
    assert not [secret for secret in SECRETS if secret in place.file().read_bytes()]
    assert place.keyring.all() == [GRANT]
    assert place.warnings == []


def test_a_sign_in_that_cannot_be_taken_over_is_used_all_the_same(place: Place) -> None:
    place.files.save(GRANT)
    place.ring.left = 0
    assert place.keyring.load(URL) == GRANT
    assert "still has its tokens in the clear" in place.warnings[0]
    assert place.files.load(URL) == GRANT
