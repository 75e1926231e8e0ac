"""The text of a cassette: whatever was recorded is read as it was."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcpzip.cassettes import files, layout
from mcpzip.cassettes.cassette import Cassette, Check, Event, Exchange, Masked, Match, Response, Session
from mcpzip.cassettes.files import CassetteError, CassetteWriter
from mcpzip.cassettes.toml_values import toml_key, toml_string, toml_value

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
MESSAGES = st.one_of(
    TEXTS.map(str.encode),
    st.binary(max_size=20),
    st.sampled_from([b"", b"{}", b"it's", b"''' '", b"a\r\n", b'{"a":"\\u0000 it\'s"}']),
)
SECONDS = st.integers(0, 10**9).map(lambda millionths: millionths / 1e6)
HEADERS = st.dictionaries(TEXTS, TEXTS, max_size=3)
EVENTS = st.one_of(
    st.builds(
        Event,
        kind=st.sampled_from(["send", "receive", "reply", "stderr"]),
        after=SECONDS,
        data=MESSAGES,
        fields=st.lists(TEXTS, max_size=2).map(tuple),
    ),
    st.builds(
        Event,
        kind=st.just("end"),
        after=SECONDS,
        data=MESSAGES,
        code=st.none() | st.integers(-9, 255),
        cut=st.booleans(),
    ),
)
EXCHANGES = st.builds(
    Exchange,
    session=st.integers(1, 3),
    at=SECONDS,
    request=MESSAGES,
    verb=st.sampled_from(["", "POST", "GET"]),
    headers=HEADERS,
    response=st.none() | st.builds(Response, status=st.integers(100, 599), headers=HEADERS),
    events=st.lists(EVENTS, max_size=4).map(lambda events: tuple(sorted(events, key=lambda e: e.after))),
)
CASSETTES = st.builds(
    Cassette,
    name=TEXTS,
    transport=st.sampled_from(["stdio", "http", "sse"]),
    command=st.lists(TEXTS, max_size=3).map(tuple),
    url=TEXTS,
    recorder=TEXTS,
    match=st.builds(Match, ignore=st.lists(TEXTS, max_size=2).map(tuple), repeat=st.booleans()),
    check=st.builds(
        Check,
        ignore=st.lists(TEXTS, max_size=2).map(tuple),
        shape=st.booleans(),
        call=st.lists(TEXTS, max_size=2).map(tuple),
    ),
    sessions=st.lists(st.builds(Session, number=st.integers(1, 9), started=TEXTS), max_size=2).map(tuple),
    masked=st.lists(st.builds(Masked, mask=TEXTS, where=TEXTS, why=TEXTS), max_size=2).map(tuple),
)


@given(st.text(st.characters(exclude_categories=("Cs",))) | st.text("'\"\\a \n"))
def test_any_text_is_a_toml_string_on_one_line(text: str) -> None:
    written = toml_string(text)
    assert tomllib.loads(f"x = {written}") == {"x": text}
    table = f"[t]\n{toml_key(text)} = 1\n[u]\nx = {{ {toml_key(text)} = 2 }}"
    assert tomllib.loads(table) == {"t": {text: 1}, "u": {"x": {text: 2}}}
    assert "\n" not in written
    assert "\x1b" not in written


def test_json_stays_readable() -> None:
    assert toml_string('{"a":"b\\n"}') == """'{"a":"b\\n"}'"""


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(ValueError, match="lone surrogates"):
        toml_string("\ud800")


@given(SECONDS)
def test_seconds_keep_their_millionths(seconds: float) -> None:
    assert tomllib.loads(f"x = {toml_value(seconds)}") == {"x": pytest.approx(seconds, abs=1e-6)}


@given(CASSETTES, st.lists(EXCHANGES, max_size=4))
def test_what_is_written_is_read_again(cassette: Cassette, exchanges: list[Exchange]) -> None:
    cassette = cassette.with_exchanges(exchanges)
    bodies: dict[str, bytes] = {}

    def keep(data: bytes, request: bytes) -> str:
        if len(data) < 15:
            return ""
        bodies[f"c.bodies/{len(bodies)}.json"] = data
        return list(bodies)[-1]

    text = layout.cassette_text(cassette, keep, {"faults": ["crash"]})
    data = tomllib.loads(text)
    assert data["faults"] == ["crash"]
    assert layout.from_mapping(data, bodies.__getitem__) == cassette


def test_several_writers_add_to_one_file(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "time.toml")
    large = b'{"method":"tools/list","x":"%b"}' % (b"x" * files.INLINE)
    with CassetteWriter(path, Cassette(name="time")) as one, CassetteWriter(path, Cassette()) as other:
        other.add(Exchange(session=other.session, at=0.5, request=b"{}"))
        one.add(Exchange(session=one.session, at=1.0, request=large))
        one.add(Exchange(session=one.session, at=0.5, request=large))
        one.add_masked(Masked(mask="[masked 1]", where="request 1: params.token", why="asked for"))
        assert one.add_session() == 3
    read = files.load(path)
    assert read.name == "time"
    assert [each.number for each in read.sessions] == [1, 2, 3]
    assert [(each.session, each.at, each.request) for each in read.exchanges] == [
        (1, 0.5, large),
        (1, 1.0, large),
        (2, 0.5, b"{}"),
    ]
    assert len(read.masked) == 1
    assert [file.name[:11] for file in (tmp_path / "deep" / "time.bodies").iterdir()] == ["tools-list-"]
    assert not (tmp_path / "deep" / "time.toml.lock").exists()


def test_saving_removes_bodies_that_nothing_names(tmp_path: Path) -> None:
    path, large = str(tmp_path / "c.toml"), b"x" * (files.INLINE + 1)
    files.save(path, Cassette().with_exchanges([Exchange(request=large)]), {"era": "legacy"})
    assert len(list((tmp_path / "c.bodies").iterdir())) == 1
    assert files.read_data(path)["era"] == "legacy"
    files.save(path, Cassette())
    assert not (tmp_path / "c.bodies").exists()


def test_a_body_that_was_edited_is_not_written_over(tmp_path: Path) -> None:
    path, large = str(tmp_path / "c.toml"), b"x" * (files.INLINE + 1)
    files.save(path, Cassette().with_exchanges([Exchange(request=large)]))
    (body,) = (tmp_path / "c.bodies").iterdir()
    body.write_bytes(b"edited")
    with CassetteWriter(path, Cassette()) as writer:
        writer.add(Exchange(session=writer.session, request=large))
    assert [each.request for each in files.load(path).exchanges] == [b"edited", large]


def test_a_session_is_changed_afterwards(tmp_path: Path) -> None:
    """Only the exchanges of this writer, and with the keys and the bodies of the others."""
    path, large = str(tmp_path / "c.toml"), b"secret" + b"x" * files.INLINE
    files.save(path, Cassette(), {"era": "legacy"})
    with CassetteWriter(path, Cassette()) as one, CassetteWriter(path, Cassette()) as other:
        for writer in (one, other):
            writer.add(Exchange(session=writer.session, request=large))
        assert not one.change(lambda each: each)
        assert one.change(lambda each: replace(each, request=each.request.replace(b"secret", b"mask")))
        one.add(Exchange(session=one.session, at=1.0, request=large))
    data = files.read_data(path)
    assert data["era"] == "legacy"
    requests = [each.request for each in files.load(path).exchanges]
    assert requests == [large.replace(b"secret", b"mask"), large, large]


def test_nothing_is_added_that_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CASSETTE", 500)
    path = str(tmp_path / "c.toml")
    with CassetteWriter(path, Cassette()) as writer:
        exchange = Exchange(session=writer.session, request=b"x" * 300)
        writer.add(exchange)
        with pytest.raises(CassetteError, match="it is full"):
            writer.add(exchange)
    assert len(files.load(path).exchanges) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "correct the syntax"),
        ("name = 'a'", "it is no cassette: the key 'cassette' is missing"),
        ("cassette = 2", "cassette is 2, a newer format than 1; use a newer mcpzip"),
        ("cassette = 1\n[[exchanges]]\nat = 'x'", "exchanges"),
        ("cassette = 1\n[[exchanges]]\nrequest = { file = '../x' }", "outside of the cassette's folder"),
        ("cassette = 1\n[[exchanges]]\nrequest = { file = 'x' }", "can't be read"),
        ("cassette = 1\n[[exchanges]]\nrequest = { base64 = '!' }", "something else than Base64"),
        ("cassette = 1\n[[exchanges]]\n[[exchanges.events]]\nafter = 1", "write exactly one"),
    ],
)
def test_a_file_that_is_no_cassette(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(CassetteError) as caught:
        files.load(str(tmp_path / "c.toml"))
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "c.toml"))


def test_what_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CASSETTE", 100)
    with pytest.raises(CassetteError, match="more than the 100 that can be read"):
        files.save(str(tmp_path / "c.toml"), Cassette().with_exchanges([Exchange(request=b"x" * 100)]))
    assert not (tmp_path / "c.toml").exists()
