"""Sealed tokens: whoever has no key reads nothing in them, and can change nothing.

The rule: a token opens for the same purpose and the same associated data, with a key of the ring, before it
expires; anything else is refused.
"""

import base64
import builtins
import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.system.sealing import (
    LARGEST,
    LARGEST_SHORT,
    LONGEST_TOKEN,
    MOST_KEYS,
    KeyRing,
    SealError,
    SealingMissingError,
    bound_to,
    read_key,
)

KEYS = st.binary(min_size=32, max_size=48)
OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
NOW = 1_800_000_000.0


def refused(ring: KeyRing, purpose: str, token: str, associated: bytes = b"", now: float = NOW) -> None:
    with pytest.raises(SealError):
        ring.open(purpose, token, associated, now=now)


@given(KEYS, st.binary(max_size=200), st.binary(max_size=50), st.text(max_size=20))
def test_what_is_sealed_can_be_opened(key: bytes, content: bytes, associated: bytes, purpose: str) -> None:
    token = KeyRing([key]).seal(purpose, content, associated)
    assert KeyRing([key]).open(purpose, token, associated) == content
    assert len(token) <= LONGEST_TOKEN
    assert not set(token) - set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


@given(st.binary(max_size=60), st.data())
def test_a_changed_bit_is_refused(content: bytes, data: st.DataObject) -> None:
    ring = KeyRing([NEW, OLD])
    token = ring.seal("a", content, b"who")
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    bit = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[bit // 8] ^= 1 << bit % 8
    refused(ring, "a", base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), b"who")


@given(st.binary(max_size=60), st.data())
def test_another_text_than_the_token_is_refused(content: bytes, data: st.DataObject) -> None:
    ring = KeyRing([NEW])
    token = ring.seal("a", content)
    at = data.draw(st.integers(0, len(token) - 1))
    other = token[:at] + data.draw(st.sampled_from("AQgwx-_ \n=é")) + token[at + 1 :]
    for each in (other, token[:at], token + token[at], token + "="):
        if each != token:
            refused(ring, "a", each)


@given(st.text(), st.text(), st.binary(max_size=20), st.binary(max_size=20))
def test_another_purpose_and_other_associated_data_are_refused(
    purpose: str, other: str, associated: bytes, another: bytes
) -> None:
    ring = KeyRing([NEW])
    token = ring.seal(purpose, b"content", associated)
    if purpose != other:
        refused(ring, other, token, associated)
    if associated != another:
        refused(ring, purpose, token, another)


@given(KEYS, KEYS)
def test_another_key_is_refused(one: bytes, other: bytes) -> None:
    assume(one != other)
    refused(KeyRing([other]), "a", KeyRing([one]).seal("a", b"content"))


def test_a_rotation_in_three_steps_loses_nothing() -> None:
    before, both, ready, after = (KeyRing(keys) for keys in ([OLD], [OLD, NEW], [NEW, OLD], [NEW]))
    old = before.seal("a", b"1")
    assert both.open("a", old) == ready.open("a", old) == b"1"
    new = ready.seal("a", b"2")
    assert both.open("a", new) == after.open("a", new) == b"2"
    refused(after, "a", old)
    refused(before, "a", new)


@given(st.integers(1, 2**40), st.integers(0, 2**41))
def test_it_opens_until_it_expires(expires: int, now: int) -> None:
    ring = KeyRing([NEW])
    token = ring.seal("a", b"content", expires=expires)
    if now < expires:
        assert ring.open("a", token, now=now) == b"content"
    else:
        refused(ring, "a", token, now=now)


@given(st.binary(min_size=1, max_size=40), st.binary(max_size=20), st.binary(max_size=20), st.data())
def test_a_short_token_is_as_good(
    content: bytes, associated: bytes, another: bytes, data: st.DataObject
) -> None:
    old, both = KeyRing([OLD]), KeyRing([NEW, OLD])
    token = old.seal_short("a", content, associated)
    assert len(token) == len(content) + 16
    assert both.open_short("a", token, associated) == content
    bit = data.draw(st.integers(0, len(token) * 8 - 1))
    changed = bytearray(token)
    changed[bit // 8] ^= 1 << bit % 8
    wrong = [
        (both, "a", bytes(changed), associated),
        (both, "a", token[:-1], associated),
        (both, "b", token, associated),
        (KeyRing([NEW]), "a", token, associated),
        *([(both, "a", token, another)] if another != associated else []),
    ]
    for ring, purpose, given_token, bound in wrong:
        with pytest.raises(SealError):
            ring.open_short(purpose, given_token, bound)


@pytest.mark.parametrize("size", [0, LARGEST_SHORT + 1])
def test_a_short_token_has_a_size(size: int) -> None:
    ring = KeyRing([NEW])
    with pytest.raises(ValueError, match="bytes"):
        ring.seal_short("a", bytes(size))
    with pytest.raises(SealError):
        ring.open_short("a", bytes(size + 16))


def test_no_two_tokens_are_the_same() -> None:
    ring = KeyRing([NEW])
    assert len({ring.seal("a", b"content") for _ in range(100)}) == 100


@given(st.text(max_size=80))
def test_any_other_text_is_refused(text: str) -> None:
    refused(KeyRing([NEW]), "a", text)


def test_sizes_are_bounded() -> None:
    ring = KeyRing([NEW])
    token = ring.seal("a", bytes(LARGEST))
    assert ring.open("a", token) == bytes(LARGEST)
    assert len(token) == LONGEST_TOKEN
    with pytest.raises(ValueError, match="1,048,576 bytes"):
        ring.seal("a", bytes(LARGEST + 1))
    refused(ring, "a", "A" * (LONGEST_TOKEN + 1))


@pytest.mark.parametrize(
    "keys", [[], [b"short"], [NEW, NEW], [bytes([n]) * 32 for n in range(MOST_KEYS + 1)]]
)
def test_a_ring_has_proper_keys(keys: list[bytes]) -> None:
    with pytest.raises(ValueError, match="key"):
        KeyRing(keys)


@given(st.binary(min_size=32, max_size=100))
def test_keys_are_read_in_either_alphabet(key: bytes) -> None:
    for text in (base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()):
        assert read_key(text) == read_key(text.rstrip("=")) == read_key(f" {text}\n") == key


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not base64"),
        ("a secret of 32 bytes and some more", "not base64"),
        ("A" * 45, "not base64"),
        ("é" * 44, "not base64"),
        (base64.b64encode(bytes(31)).decode(), "31 bytes"),
        (base64.b64encode(bytes(1025)).decode(), "1,025 bytes"),
    ],
)
def test_a_text_that_is_no_key_is_refused_and_not_repeated(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        read_key(text)
    assert not text or text not in str(refusal.value)


def test_a_ring_shows_no_key() -> None:
    assert NEW.hex() not in repr(KeyRing([NEW]))
    assert repr(NEW) not in repr(KeyRing([NEW]))


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_different_texts_bind_differently(one: list[str], other: list[str]) -> None:
    assert (bound_to(*one) == bound_to(*other)) == (one == other)


def test_without_the_package_a_ring_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return usual(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SealingMissingError):
        KeyRing([NEW])


def test_the_package_is_imported_with_the_first_ring_only() -> None:
    loaded = "print('cryptography' in sys.modules)"
    code = f"import sys, mcpzip.system.sealing as s; {loaded}; s.KeyRing([b'k' * 32]); {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
