"""A cassette without the secrets that are still in it."""

from helpers.cassette_maker import asked, cassette
from mcpzip_fakes.cassettes.redacting import redacted
from msgspec.structs import replace

from mcpzip.cassettes.cassette import Event, Masked, Response

SECRET = "k7Qp2xV9mT4wZ8rB1nC5"


def test_a_secret_is_masked_wherever_it_is() -> None:
    stderr = Event(kind="stderr", after=0.1, data=f"login with {SECRET}".encode())
    made = cassette(
        asked(1, "tools/list", result={"note": SECRET}, before=[stderr]),
        asked(2, "tools/call", {"name": "pay", "arguments": {"api_key": SECRET}}, result={}),
        command=("server", "--token", SECRET),
    )
    headers = {"authorization": f"Bearer {SECRET}"}
    first = replace(made.exchanges[0], headers=headers, response=Response(status=200, headers=headers))
    whole, found = redacted(made.with_exchanges([first, made.exchanges[1]]), {}, [])
    assert SECRET not in repr(whole)
    assert [each.mask for each in found] == ["[masked 1]"]
    assert whole.masked == tuple(found)
    assert whole.exchanges[0].headers == {"authorization": "Bearer [masked 1]"}
    assert redacted(whole, {}, []) == (whole, [])


def test_paths_and_values_that_are_given() -> None:
    made = cassette(
        asked(1, "tools/call", {"name": "pay", "arguments": {"pin": 1234}}, result={"said": "open sesame"}),
        masked=(Masked(mask="[masked 4]", where="request 1: params.x", why="by name"),),
    )
    whole, found = redacted(made, {"open sesame": "it is in values.txt"}, ["params.arguments.pin"])
    assert b'"pin":"[masked 5]"' in whole.exchanges[0].request
    assert b'"said":"[masked 6]"' in (whole.exchanges[0].reply or b"")
    assert [each.why for each in found] == ["the path was given", "it is in values.txt"]
    assert [each.mask for each in whole.masked] == ["[masked 4]", "[masked 5]", "[masked 6]"]
