"""A name or a URI that is longer than any can be is compared with nothing, and not repeated whole.

300,000 characters asked of 2,000 tools once kept every client of the proxy waiting for over 90 s.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Listed, merge, name_index
from mcpzip.model.errors import UnknownPromptError, UnknownResourceError, UnknownToolError
from mcpzip.model.limits import (
    ASKED_NAME,
    ECHO,
    NAME,
    NAME_COMPARED,
    REPAIRED,
    TEMPLATE_WORK,
    UNKNOWN_WORDS,
    URI,
)
from mcpzip.proxy import argument_repair, prompts_and_resources
from mcpzip.proxy.argument_repair import repair_keys, repair_name
from mcpzip.proxy.search_reply import shortened
from mcpzip.proxy.search_request import read_search_request
from mcpzip.search.index import Index
from mcpzip.search.query import matching_servers
from mcpzip.search.suggestions import nearest_words

SENTENCE = ECHO + 200
LONG = "発" * 300_000


def catalog_of(*tools: str) -> Catalog:
    raws = tuple(json.dumps({"name": tool}).encode() for tool in tools)
    return merge(Catalog(), [Listed("shop", raws, 1.0)])


SHOP = catalog_of(*(f"tool_{number}_{'x' * (number % 40)}" for number in range(200)))


@pytest.mark.parametrize("name", [LONG, "shop__" + LONG, "a" * (ASKED_NAME + 1)])
def test_a_long_name_is_compared_with_no_tool(name):
    shop = catalog_of("pay")
    with pytest.raises(UnknownToolError) as refused:
        repair_name(name, shop, servers=("shop",))
    assert "_names" not in vars(shop)  # nothing to compare with was even made
    assert len(str(refused.value)) < SENTENCE
    assert shop.nearest(name) == shop.alike(name) == ()


def test_a_name_of_a_tool_that_is_there_is_found_whatever_its_length():
    shop = catalog_of("n" * NAME)
    assert repair_name("shop__" + "n" * NAME, shop)[1] is None


@pytest.mark.parametrize("error", [UnknownToolError, UnknownPromptError, UnknownResourceError])
def test_what_was_asked_for_is_repeated_on_one_line_and_cut(error):
    told = str(error(LONG))
    assert len(told) < SENTENCE
    assert "…" in told
    assert "\n" not in str(error("a\n\x1b]52;b"))
    assert "\x1b" not in str(error("a\n\x1b]52;b"))
    assert "'pay now'" in str(error("pay now"))


@given(st.text(max_size=40), st.integers(0, 3_000))
def test_names_are_compared_by_so_many_letters_only(text, times):
    assert len(name_index._pairs(text * times)) <= NAME_COMPARED + 1


def test_names_of_any_length_are_compared_in_so_many_letters(monkeypatch):
    looked_at = []
    original = name_index._similarity

    def similarity(pairs, folded):
        looked_at.append(len(pairs))
        return original(pairs, folded)

    monkeypatch.setattr(name_index, "_similarity", similarity)
    long = catalog_of(*(f"{number}" + "abcdefghij" * 20 for number in range(50)))
    assert long.nearest("".join(map(chr, range(0x4E00, 0x4E00 + NAME)))) == ()
    assert looked_at
    assert max(looked_at) <= NAME_COMPARED + 1


def test_no_slip_is_looked_for_in_a_longer_name(monkeypatch):
    monkeypatch.setattr(argument_repair, "EditDistance", None)  # it would be called
    shop = catalog_of("send" * 60 + "x")
    with pytest.raises(UnknownToolError):
        repair_name("shop__" + "send" * 60 + "xyab", shop, servers=("shop",))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ({"properties": {f"p_{number}": {} for number in range(REPAIRED // 8)}}, b'{"P1":1}'),
        ({"properties": {"file_path": {}}}, b'{"filePath":"%b"}' % (b"x" * REPAIRED)),
    ],
)
def test_the_spelling_of_keys_is_mended_up_to_a_size(tool, arguments):
    raw = json.dumps({"name": "pay", "inputSchema": {"type": "object", **tool}}).encode()
    (entry,) = merge(Catalog(), [Listed("shop", (raw,), 1.0)]).entries
    assert repair_keys(entry, arguments) == (arguments, ())


# --- prompts and resources ----------------------------------------------------------------------------------


def _offers(*templates: str, prompts=("sum",)) -> prompts_and_resources.PromptsAndResources:
    listed = Listed(
        "docs",
        (),
        1.0,
        prompts=tuple(json.dumps({"name": name}).encode() for name in prompts),
        templates=tuple(json.dumps({"uriTemplate": each}).encode() for each in templates),
    )
    return prompts_and_resources.PromptsAndResources(("docs", "wiki"), merge(Catalog(), [listed]))


def test_a_long_name_is_compared_with_no_prompt():
    shown = _offers()
    with pytest.raises(UnknownPromptError) as refused:
        shown.route_prompt(LONG)
    assert "_prompts" not in vars(shown)
    assert len(str(refused.value)) < SENTENCE


def test_a_long_uri_is_compared_with_no_resource():
    shown = _offers("a://{b}")
    with pytest.raises(UnknownResourceError) as refused:
        shown.route_uri("a://" + LONG)
    assert "_templates" not in vars(shown)
    assert len(str(refused.value)) < SENTENCE
    assert len(refused.value.name) <= ECHO


def test_a_uri_is_compared_with_so_many_templates_only(monkeypatch):
    work = []
    original = prompts_and_resources.matches

    def matches(template, uri):
        work.append(len(uri) * template.count("{"))
        return original(template, uri)

    monkeypatch.setattr(prompts_and_resources, "matches", matches)
    hostile = _offers(*("x" + "{+a}x" * 50 + f"{number}" for number in range(2_000)))
    assert hostile._expanding("x" * URI) == []
    assert sum(work) <= TEMPLATE_WORK
    work.clear()
    ordinary = _offers(*(f"note://{number}/{{id}}" for number in range(2_000)))
    assert ordinary._expanding("note://1999/7") == ["docs"]
    assert len(work) == 1  # those that begin otherwise cost nothing


# --- search -------------------------------------------------------------------------------------------------


def test_a_long_filter_names_no_server():
    assert matching_servers(["shop", "発"], LONG) == []
    assert matching_servers(["shop"], "SHOP") == ["shop"]


def test_of_a_long_query_so_much_is_shown_and_so_many_unknown_words_are_compared(monkeypatch):
    question = read_search_request(json.dumps({"query": LONG, "server": LONG}).encode(), 5)
    assert question.query == LONG
    assert len(shortened(question.query)) <= ECHO

    compared = []
    index = Index()
    monkeypatch.setattr(
        type(index.vocabulary), "nearest", lambda self, word, most: compared.append(word) or []
    )
    nearest_words(index, [f"unknown{number}" for number in range(128)])
    assert len(compared) == UNKNOWN_WORDS
