"""The store of sign-ins: what is saved comes back, for its own server only, whatever is on the disk."""

import os
import string
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from helpers.grant_stores import GRANT, ISSUER, OTHER, SECRETS, URL, Place
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpzip.auth import codec
from mcpzip.auth.grant import Grant
from mcpzip.auth.store import PersonStore, Store, WholeStore
from mcpzip.model import limits
from mcpzip.system import private_files
from mcpzip.system.files import remove_drafts

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes, and links need a right there")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
objects = st.dictionaries(st.text(), json_values, max_size=4).map(
    lambda made: {name: value for name, value in made.items() if name != "issuer"}
)
grants = st.builds(
    Grant,
    url=st.just(URL),
    issuer=st.text(),
    client=objects,
    access_token=st.text(),
    refresh_token=st.text(max_size=3_000),
    scope=st.text(),
    expires_at=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    server_metadata=st.none() | objects,
    resource_metadata=st.none() | objects,
    refused=st.text(),
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "auth")


@pytest.fixture(params=["files", "keyring"])
def store(place: Place, request: pytest.FixtureRequest) -> Store:
    found: Store = getattr(place, request.param)
    return found


# --- what is kept -------------------------------------------------------------------------------------------


def test_what_is_saved_comes_back_until_it_is_removed(place: Place, store: Store) -> None:
    assert store.load(URL) is None
    assert store.all() == []
    assert not store.remove(URL)
    assert not place.path.exists()  # looking makes nothing
    store.save(GRANT)
    other = msgspec.structs.replace(GRANT, url=OTHER, access_token="another")
    store.save(other)
    assert (store.load(URL), store.load(OTHER)) == (GRANT, other)
    assert store.all() == [GRANT, other]
    assert store.remove(URL)
    assert not store.remove(URL)
    assert (store.load(URL), store.all()) == (None, [other])
    assert place.warnings == []


def test_what_a_person_signed_in_with_is_theirs_alone(place: Place, store: WholeStore) -> None:
    ann, bob = (PersonStore(store, ("https://login.example", name)) for name in ("ann", "bob"))
    theirs = msgspec.structs.replace(GRANT, person=ann.person, access_token="of-ann")
    store.save(GRANT)
    assert (ann.load(URL), ann.signature(URL), ann.remove(URL)) == (None, None, False)
    before = store.signature(URL)
    ann.save(theirs)
    assert (ann.load(URL), store.load(URL), bob.load(URL)) == (theirs, GRANT, None)
    assert (bob.signature(URL), store.signature(URL)) == (None, before)
    for wrong in (GRANT, msgspec.structs.replace(theirs, person=bob.person)):
        with pytest.raises(ValueError, match="another person's"):
            ann.save(wrong)
    os.replace(place.file(URL, ann.person), place.file(URL, bob.person))  # somebody puts it there
    assert bob.load(URL) is None
    assert "or person" in place.warnings[0]
    assert (store.remove(URL), ann.load(URL)) == (True, None)


@settings(max_examples=settings().max_examples // 3)
@given(first=grants, second=grants)
def test_any_grant_comes_back_as_it_was_from_either_store(
    tmp_path_factory: pytest.TempPathFactory, first: Grant, second: Grant
) -> None:
    place = Place(tmp_path_factory.mktemp("store"))
    place.files.save(first)
    assert place.files.load(URL) == first
    place.keyring.save(second)
    assert place.keyring.load(URL) == second
    assert place.keyring.remove(URL)
    assert place.warnings == []
    assert place.ring.kept == {}


def test_another_process_sees_that_something_changed(place: Place, store: Store) -> None:
    seen = [store.signature(URL)]
    for token in ("one", "two", "one"):
        store.save(msgspec.structs.replace(GRANT, access_token=token))
        seen.append(store.signature(URL))
    assert store.signature(URL) == seen[-1]
    assert store.signature(OTHER) is None
    store.remove(URL)
    assert (seen[0], store.signature(URL)) == (None, None)
    assert all(before != after for before, after in pairwise(seen))


def test_what_cannot_be_written_down_is_an_error_and_changes_nothing(place: Place, store: Store) -> None:
    store.save(GRANT)
    for scope in ("\ud800", "x" * (limits.SIGN_IN + 1)):
        with pytest.raises(OSError, match="can't be written down"):
            store.save(msgspec.structs.replace(GRANT, scope=scope))
    assert store.load(URL) == GRANT


def test_nothing_shows_a_secret(place: Place, store: Store) -> None:
    store.save(GRANT)
    shown = repr((store, place.folder, place.folder.read(codec.key(URL)), store.signature(URL)))
    read = private_files.read_private(str(place.file()), 1 << 20)
    assert not [secret for secret in SECRETS if secret.decode() in shown + repr(read)]


# --- whose it is --------------------------------------------------------------------------------------------


def test_the_name_of_a_file_is_half_of_the_sha_256_of_the_url() -> None:
    assert codec.key("https://mcp.example/mcp") == "b1b747a21dbf8cf489c9454f642df5eb"


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("HTTPS://MCP.Example/Mcp?Q#frag", "https://mcp.example/Mcp?Q"),
        ("https://User:Pass@MCP.Example:8443", "https://User:Pass@mcp.example:8443"),
        ("https://[::FFFF]/a#", "https://[::ffff]/a"),
        ("https://a.example/A/../B/", "https://a.example/A/../B/"),
        ("https://\u212a.example/", "https://\u212a.example/"),  # a Kelvin sign is no k
        ("https://a\t.example/\n", "https://a\t.example/\n"),
        ("no url", "no url"),
    ],
)
def test_scheme_and_host_in_small_letters_and_no_fragment(url: str, canonical: str) -> None:
    assert codec.canonical(url) == canonical


@given(st.text(string.ascii_letters + ":/?#@[].\u212a\u0130\ud800%-", max_size=30))
def test_canonical_is_idempotent_and_changes_letters_only(rest: str) -> None:
    for url in (rest, f"https://{rest}"):
        once = codec.canonical(url)
        assert codec.canonical(once) == once
        assert url[: len(once)].casefold() == once.casefold()
        assert url[len(once) :][:1] in ("", "#")


def test_a_spelling_that_means_the_same_server_finds_its_grant(store: Store) -> None:
    store.save(GRANT)
    again = "HTTPS://MCP.EXAMPLE/mcp#x"
    assert store.load(again) == msgspec.structs.replace(GRANT, url=again)
    assert store.remove(again)


LOOK_ALIKES = (
    URL + "/",
    URL + "?",
    URL + "?a",
    "https://mcp.example/MCP",
    "https://mcp.example:443/mcp",
    "http://mcp.example/mcp",
    "https://a@mcp.example/mcp",
    "https://mcp.example./mcp",
    "https://mcp.example/mcp%20",
)


@pytest.mark.parametrize("url", LOOK_ALIKES)
def test_a_url_that_looks_alike_finds_nothing(store: Store, url: str) -> None:
    store.save(GRANT)
    assert store.load(url) is None
    assert not store.remove(url)
    assert store.load(URL) == GRANT


@pytest.mark.parametrize("url", LOOK_ALIKES)
def test_a_file_under_anothers_name_is_not_used(place: Place, store: Store, url: str) -> None:
    store.save(GRANT)
    place.file(url).write_bytes(place.file().read_bytes())
    os.chmod(place.file(url), 0o600)
    assert store.load(url) is None
    assert store.all() == [GRANT]
    assert len(place.warnings) == 1
    assert "holds the sign-in of another server" in place.warnings[0]


@pytest.mark.parametrize(
    ("issuer", "stated", "usable"),
    [
        (ISSUER, ISSUER, True),
        (ISSUER, f"{ISSUER}/", True),
        (ISSUER, "https://as.example.org", False),
        (ISSUER, "https://AS.example", False),
        (ISSUER, f"{ISSUER}/tenant", False),
        (ISSUER, 3, False),
        (ISSUER, None, True),
        ("", ISSUER, True),
    ],
)
def test_tokens_of_one_issuer_are_not_given_back_with_the_metadata_of_another(
    place: Place, store: Store, issuer: str, stated: object, usable: bool
) -> None:
    grant = msgspec.structs.replace(GRANT, issuer=issuer, server_metadata={"issuer": stated})
    store.save(grant)
    assert store.load(URL) == (grant if usable else None)
    assert len(place.warnings) == (not usable)


@pytest.mark.parametrize("resource", ["https://mcp.example.org/mcp", "http://mcp.example/mcp", "nonsense"])
def test_tokens_for_another_resource_are_not_given_back(place: Place, store: Store, resource: str) -> None:
    store.save(msgspec.structs.replace(GRANT, resource=resource))
    assert store.load(URL) is None
    assert "holds tokens for another server" in place.warnings[0]


# --- files that are not as they should be -------------------------------------------------------------------

WHOLE = codec.encode(GRANT)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"null", "is damaged"),
        (b"[" * 100_000, "is damaged"),
        (WHOLE[:-2], "is damaged"),
        (WHOLE.replace(b'"hush-access"', b"7"), "is damaged"),
        (b'{"access_token":"hush-access"}', "is damaged"),
        (b'{"format":"other","version":1}', "isn't a sign-in of mcpzip"),
        (b'{"format":"mcpzip-sign-in","version":2,"all":"new"}', "was written by a newer version of mcpzip"),
        (b" " * (limits.SIGN_IN + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_none_and_one_warning_and_stays(
    place: Place, store: Store, data: bytes, why: str
) -> None:
    place.path.mkdir(mode=0o700)
    place.file().write_bytes(data)
    os.chmod(place.file(), 0o600)
    for _ in range(2):
        assert store.load(URL) is None
        assert store.all() == []
    assert len(place.warnings) == 1
    assert why in place.warnings[0]
    assert "mcpzip auth login NAME" in place.warnings[0]
    assert "hush" not in place.warnings[0]
    assert place.file().read_bytes() == data
    store.save(GRANT)
    assert store.load(URL) == GRANT
    assert store.remove(URL)


@given(st.data())
def test_no_damage_makes_it_raise(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    place = Place(tmp_path_factory.mktemp("store"))
    place.keyring.save(GRANT)
    whole = data.draw(st.sampled_from((WHOLE, place.file().read_bytes())))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, len(whole)))
    place.file().write_bytes(whole[:start] + data.draw(st.binary(max_size=5)) + whole[end:])
    for store in (place.files, place.keyring):
        found = store.load(URL)
        assert found is None or found.url == URL


@posix
def test_a_folder_in_the_place_of_a_file_and_a_pipe_are_not_waited_for(place: Place, store: Store) -> None:
    place.path.mkdir(mode=0o700)
    os.mkfifo(place.file())
    place.file(OTHER).mkdir()
    assert (store.load(URL), store.load(OTHER)) == (None, None)
    assert (store.signature(URL), store.signature(OTHER)) == (None, None)
    assert len(place.warnings) == 2


def test_a_file_in_the_place_of_the_folder(place: Place, store: Store) -> None:
    place.path.write_bytes(b"")
    assert (store.load(URL), store.all()) == (None, [])
    assert place.warnings
    with pytest.raises(OSError, match="auth"):
        store.save(GRANT)


def test_what_a_killed_writer_left_is_cleared_away(place: Place, store: Store) -> None:
    store.save(GRANT)
    draft = place.path / f".{place.file().name}.0123456789ab.tmp"
    draft.write_bytes(WHOLE)
    mine = place.path / ".note.tmp"
    mine.write_bytes(b"")
    store.save(GRANT)
    assert draft.exists()  # it is a second old: somebody may still be writing it
    os.utime(draft, (0, 0))
    store.remove(URL)
    assert (draft.exists(), mine.exists()) == (False, True)
    remove_drafts(str(place.path / "none"), 0)
