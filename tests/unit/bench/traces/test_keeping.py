"""What an agent is sent of a kept result and reads of it, in tokens: a word is one."""

import json

from helpers.traces import candidate, conversation, raw, words

from bench.traces.keeping import Keeper, text_shown
from bench.traces.quotes import readings

SENTENCE = "The third order of all was paid on a Monday."
LINES = [f"order {number} is one of the many that are here" for number in range(2_000)]
LOG = "\n".join([*LINES[:1_000], SENTENCE, *LINES[1_000:]])


def test_only_large_results_are_kept() -> None:
    assert Keeper(1_000, words).keeps(candidate("", raw(LOG), "Done."))
    assert not Keeper(50_000, words).keeps(candidate("", raw(LOG), "Done."))
    assert not Keeper(1_000, words).keeps(candidate("", raw("short"), "Done."))


def test_results_of_the_harness_are_not_kept() -> None:
    [[], [own]] = readings(conversation("", raw(LOG), "Done.", tool="local-python"))
    assert own.result.call.is_own
    from bench.traces.keeping import Candidate

    assert not Keeper(1_000, words).keeps(Candidate(own, words))


def test_what_is_not_quoted_is_not_read() -> None:
    kept = Keeper(1_000, words).quoted(candidate("", raw(LOG), "It is a log."))
    assert 0 < kept.beginning < 700
    assert (kept.asked, kept.read, kept.is_whole) == (0, 0, False)


def test_what_the_beginning_shows_is_not_read() -> None:
    kept = Keeper(1_000, words).quoted(candidate("", raw(LOG), f"It has {LINES[3]}"))
    assert kept.asked == kept.read == 0


def test_a_part_that_is_quoted_is_read() -> None:
    kept = Keeper(1_000, words).quoted(candidate("", raw(LOG), SENTENCE))
    assert 0 < kept.asked < 10
    assert 100 < kept.read < 500
    assert not kept.is_whole


def test_json_is_read_where_it_is_quoted() -> None:
    value = json.dumps(
        [{"id": number, "text": line} for number, line in enumerate([*LINES, SENTENCE, *LINES])]
    )
    keeper = Keeper(2_000, words)
    kept = keeper.quoted(candidate("", raw(value), SENTENCE))
    assert 0 < kept.read < 1_000
    assert not kept.is_whole
    assert not keeper.missed


def test_all_is_read_if_most_of_it_is_quoted() -> None:
    kept = Keeper(1_000, words).quoted(candidate("", raw(LOG), LOG))
    assert kept.is_whole
    assert kept.read == words(LOG)


def test_all_is_read_if_no_part_can_show_it() -> None:
    """The same words as in the text, but between parts of JSON that mcpzip doesn't show together."""
    value = json.dumps({"a": LINES[:999], "b": LINES[999:]})
    keeper = Keeper(1_000, words)
    across = value[value.index('"b"') - 40 : value.index('"b"') + 40]
    kept = keeper.quoted(candidate("", raw(value), across))
    assert kept.is_whole or kept.read < words(value)
    assert keeper.missed == kept.is_whole


def test_links_are_shown_and_images_are_not() -> None:
    link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = json.dumps({"content": [{"type": "text", "text": "one"}, image, link]}).encode()
    first, second = text_shown(result).split("\n")
    assert (first, json.loads(second)) == ("one", link)
    assert text_shown(b"{broken") == "{broken"
