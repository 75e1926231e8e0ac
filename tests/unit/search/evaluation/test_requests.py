"""Requests made from a catalog: always the same, never a tool's own name, and read again as written."""

import json
from string import ascii_letters

import pytest
from helpers.search_tools import tool
from helpers.small_catalog import entries as small_catalog
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model.entry import Entry
from mcpzip.search.evaluation import request_file
from mcpzip.search.evaluation.requests import KINDS, OWN, Request, build, first_sentence, sample, terms
from mcpzip.search.query_syntax import parse_query

_WORDS = "create list issue message send file delete picture Slack email the of user's 天气 naïve -draft a:b"
texts = st.lists(st.sampled_from(_WORDS.split()) | st.text(max_size=8), max_size=8).map(" ".join)
entries = st.lists(
    st.builds(
        tool,
        st.sampled_from(["slack", "git-hub"]),
        st.text(min_size=1, max_size=20) | texts.filter(bool),
        texts,
    ),
    max_size=6,
)


def queries(*tools: Entry) -> dict[str, str]:
    """The query of each kind for tools of which each makes one at most."""
    return {request.kind: request.query for request in build(tools)}


def test_each_kind_says_the_same_in_other_words() -> None:
    send = tool("slack", "send_message", "Send a message to a Slack channel or a person. Then wait.")
    found = queries(send)
    assert found["sentence"] == "Send a message to a channel or a person"
    assert found["typo"] != "send message"
    assert "message" not in terms(found["unnamed"])
    assert list(found) == [kind for kind in KINDS if kind in found]
    for kind in ("paraphrase", "synonyms"):
        assert "send" not in terms(found[kind])


def test_a_name_of_one_word_is_completed_from_the_description() -> None:
    found = queries(tool("web", "fetch", "Download a page from the internet"))
    assert {"page", "internet"} <= terms(found["synonyms"]) | terms(found["typo"])
    assert queries(tool("web", "fetch")) == {}


def test_tools_that_make_the_same_request_are_both_right() -> None:
    both = [tool(server, "send_message", "Tell the team something new") for server in ("slack", "chat")]
    request = next(one for one in build(both) if one.kind == "sentence")
    assert request.needs == (frozenset({"slack__send_message", "chat__send_message"}),)
    assert request.tools == ("chat__send_message", "slack__send_message")


@given(entries)
def test_no_request_is_a_name_or_has_operators(tools: list[Entry]) -> None:
    by_name = {one.name: one for one in tools}
    made = build(tools)
    assert made == build(reversed(tools))
    for request in made:
        assert set(request.tools) <= set(by_name)
        parsed = parse_query(request.query)
        assert not parsed.servers
        assert not parsed.phrases
        assert not parsed.excluded_words
        for name in request.tools:
            own = by_name[name]
            assert terms(request.query) not in (terms(own.tool), terms(own.name))


def test_a_description_is_read_to_its_first_full_stop() -> None:
    assert first_sentence("\n  - Lists `files`: all of them! More.") == "Lists files all of them"
    assert first_sentence("") == ""
    assert len(first_sentence("word " * 100).split()) == 16


@given(st.lists(st.text(ascii_letters, min_size=1, max_size=5), unique=True), st.integers(0, 9))
def test_a_sample_is_stable(names: list[str], most: int) -> None:
    tools = [tool("s", name) for name in names]
    some = sample(tools, most)
    assert len(some) == min(most, len(tools))
    assert sample(tools[::-1], most) == some
    more = sample([*tools, tool("s", "another one")], most)
    assert len(set(more) - set(some)) <= 1


# --- files --------------------------------------------------------------------------------------------------

names = st.text(ascii_letters + "_é日", min_size=1, max_size=12)
requests = st.builds(
    Request,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(str.strip).filter(bool),
    st.lists(st.frozensets(names, min_size=1, max_size=3), min_size=1, max_size=3, unique=True).map(tuple),
    st.sampled_from([*KINDS, OWN]),
    st.sampled_from(["", "meant"]),
)


@given(st.lists(requests, max_size=5))
def test_a_file_is_read_as_it_was_written(some: list[Request]) -> None:
    assert request_file.parse(request_file.render(some)) == some


def test_requests_of_the_catalog_are_read_as_they_were_written() -> None:
    made = build(small_catalog())
    assert len({request.kind for request in made}) == len(KINDS)
    assert request_file.parse(request_file.render(made)) == made


def test_both_forms_may_be_mixed() -> None:
    data = (
        b"\xef\xbb\xbftell the team\tslack__send\tfiles__read\r\n\n"
        b'{"query": "read", "tools": [["a__b", "a__c"], "d__e"], "more": 1}\n'
    )
    one, other = request_file.parse(data)
    assert one == Request("tell the team", (frozenset({"slack__send"}), frozenset({"files__read"})))
    assert other.needs == (frozenset({"a__b", "a__c"}), frozenset({"d__e"}))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"no tab", "no tool is named"),
        (b"\tslack__send", "the query is empty"),
        (b'{"query": "x", "tools": []}', "no tool is named"),
        (b'{"query": "x", "tools": [[]]}', "no tool is named"),
        (b'{"query": "x", "tools": ["a", ""]}', "no tool is named"),
        (b'{"query": "x"}', "missing required field"),
        (b'{"query": 5, "tools": ["a"]}', "got `int`"),
        (b"{", "write"),
        (b"\xff\ta", "not UTF-8"),
        (b'{"query": "\xff", "tools": ["a"]}', "not UTF-8"),
        (b"[" * 5_000 + b"\ta" + b"\tb" * 200, "more than 100 tools"),
        (b"x" * 20_001 + b"\ta", "20,001 characters"),
        (b'{"query": "x", "tools": ' + b"[" * 3_000, "write"),
    ],
)
def test_a_wrong_line_is_named_with_what_to_write(line: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2: ") as raised:
        request_file.parse(b"good\ttool\n" + line + b"\n")
    assert reason in str(raised.value)


def test_a_file_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_file, "MOST_REQUESTS", 2)
    with pytest.raises(ValueError, match="line 3: a file has 2 requests at most"):
        request_file.parse(b"a\tb\n" * 3)


@given(st.binary(max_size=60))
def test_no_file_is_more_than_wrong(data: bytes) -> None:
    try:
        request_file.parse(data)
    except ValueError as error:
        told = str(error)
    else:
        told = "line 0"
    assert told.startswith("line ")


def test_a_lone_surrogate_of_a_server_can_be_saved() -> None:
    saved = request_file.render([Request("\ud800 a", (frozenset({"b"}),))])
    assert json.loads(saved)["query"] == "\ud800 a"
