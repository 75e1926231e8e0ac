"""The Inspector's `mcpdo`, whose connection lives on, in front of the installed command, over stdio and HTTP,
in both eras: it is asked by the server, hears logs and updates, and takes a call back.
"""

import json
import os

import pytest
from helpers.inspector import PATIENCE, Connection, Json
from helpers.inspector_targets import KNOCK, RESOURCE, ROOT, Referee, columns
from mcpzip_fakes.record import Record

pytestmark = pytest.mark.npm

BUILD = ["compiling", {"line": 3, "text": "unused import"}]
"""What the tool of that name logs."""


@columns
def test_a_whole_conversation(referee: Referee, server: str, era: str) -> None:
    with referee.inspector.connection(server, era) as connection:
        assert connection.era == era
        what_is_asked_during_a_call_is_answered(connection)
        logs_arrive(connection)
        a_change_of_a_resource_is_heard_of(connection)
        arguments_are_completed(connection)
        if os.name != "nt":  # Ctrl-C at a terminal is POSIX's here
            a_call_taken_back_is_cancelled_upstream(connection, referee.shop.record)


def what_is_asked_during_a_call_is_answered(connection: Connection) -> None:
    asked = connection.call("shop__book_table")  # pinned: by its own name
    question = asked.result["elicitationPending"]
    assert (question["mode"], question["message"]) == ("form", "For how many?")
    assert question["requestedSchema"]["properties"]["people"] == {"type": "integer", "minimum": 1}
    booked = connection.reply(asked, "people:=4")
    assert json.loads(booked.text) == {"action": "accept", "content": {"people": 4}}

    asked = connection.execute("shop__sign_in")
    question = asked.result["elicitationPending"]
    assert (question["mode"], question["url"]) == ("url", "https://example.com/sign-in")
    assert json.loads(connection.reply(asked, "--done").text) == {"action": "accept"}

    assert json.loads(connection.execute("shop__where_am_i").text) == {"roots": [ROOT]}


def logs_arrive(connection: Connection) -> None:
    if connection.era == "legacy":  # in the other each request says its level
        assert connection.on("logging/setLevel", "info").result == {}
    with connection.hearing("logging/tail") as logs:
        # It doesn't say when it has begun to listen, which may be in the midst of a call.
        logs.says(bool, lambda: connection.execute("shop__knock"))
        connection.execute("shop__build")
        logs.says(lambda said: len(said) - data(said).count(KNOCK) >= len(BUILD))
        heard = data(logs.said())
    assert heard[heard.count(KNOCK) :] == BUILD


def data(said: list[Json]) -> list[object]:
    return [told["message"]["params"]["data"] for told in said]


def a_change_of_a_resource_is_heard_of(connection: Connection) -> None:
    with connection.hearing("resources/subscribe", RESOURCE) as updates:
        updates.says(lambda said: said == [{"type": "subscribed", "uri": RESOURCE}])
        assert connection.execute("shop__write").text == "written"
        updates.says(lambda said: {"type": "resources/updated", "uri": RESOURCE} in said)


def arguments_are_completed(connection: Connection) -> None:
    what = ("--complete-ref-type", "ref/prompt", "--complete-ref", "shop__review")
    begun = ("--complete-arg-name", "tone", "--complete-arg-value", "s")
    assert connection.on("prompts/complete", *what, *begun).result["values"] == ["strict", "sober"]


def a_call_taken_back_is_cancelled_upstream(connection: Connection, record: Record) -> None:
    asked, cancelled = len(record.calls("slow")), slow_ones_cancelled(record)
    with connection.calling("execute_tool", {"name": "shop__slow"}):
        record.wait_for(lambda seen: len(seen.calls("slow")) > asked, PATIENCE)
    record.wait_for(lambda seen: slow_ones_cancelled(seen) > cancelled, PATIENCE)


def slow_ones_cancelled(record: Record) -> int:
    return sum(line.detail["name"] == "slow" for line in record.events("cancelled"))
