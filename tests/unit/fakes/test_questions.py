"""Questions to the client, in both eras; lists that change, and who hears of it; without a transport."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from mcpzip_fakes.engine import Engine
from mcpzip_fakes.request import Refused, Request
from mcpzip_fakes.scenario import Scenario

Json = dict[str, Any]
META = "io.modelcontextprotocol/"
ABLE: Json = {"elicitation": {}, "sampling": {}, "roots": {}}


class Client:
    """Answers what it is asked, and keeps what it is told."""

    def __init__(self, *answers: Json) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Json]] = []
        self.told: list[tuple[str, Json]] = []
        self._more = asyncio.Condition()

    async def notify(self, method: str, params: Json) -> None:
        async with self._more:
            self.told.append((method, params))
            self._more.notify_all()

    async def hears(self, count: int) -> None:
        """Wait until it was told so many things."""
        async with self._more:
            await self._more.wait_for(lambda: len(self.told) >= count)

    async def ask(self, method: str, params: Json) -> object:
        self.asked.append((method, params))
        if not self.answers:
            raise Refused(-1, "not today")
        return self.answers.pop(0)


def form(name: str, message: str = "?", **more: object) -> Json:
    params = {"message": message, "requestedSchema": {"type": "object", "properties": {}}}
    return {"name": name, "method": "elicitation/create", "params": json.dumps(params), **more}


def accept(**content: object) -> Json:
    return {"action": "accept", "content": content}


def engine(**result: object) -> Engine:
    return Engine(Scenario.from_mapping({"tools": [{"name": "t", "result": result}]}))


async def answer(
    told: Engine,
    method: str = "tools/call",
    client: Client | None = None,
    *,
    modern: bool = False,
    able: Json = ABLE,
    session: object = 1,
    meta: Json | None = None,
    **params: object,
) -> Json:
    if method == "tools/call":
        params.setdefault("name", "t")
    request = Request(
        method=method,
        params={**params, **({"_meta": meta} if meta else {})},
        channel=client or Client(),
        version="2026-07-28" if modern else "2025-11-25",
        capabilities=able,
        session=session,
        id=7,
    )
    result: Json = msgspec.json.decode(await told.answer(request))
    await told.answered(request)
    return result


def said(result: Json) -> str:
    return str(result["content"][0]["text"])


TWO_ROUNDS: Json = {
    "text": "{a.content.x} and {b.content.y} for {who}",
    "fill": True,
    "ask": [form("a", "Hello {who}"), form("b", "After {a.content.x}", round=2)],
}


async def test_a_legacy_client_is_asked_round_by_round() -> None:
    client = Client(accept(x=1), accept(y="two"))
    result = await answer(engine(**TWO_ROUNDS), client=client, arguments={"who": "Ada"})
    assert said(result) == "1 and two for Ada"
    assert [params["message"] for _, params in client.asked] == ["Hello Ada", "After 1"]


async def test_a_modern_client_brings_the_answers_round_by_round() -> None:
    told, arguments = engine(**TWO_ROUNDS), {"who": "Ada"}
    first = await answer(told, modern=True, arguments=arguments)
    assert first["resultType"] == "input_required"
    assert list(first["inputRequests"]) == ["a"]
    given = {"a": accept(x=1)}
    second = await answer(
        told, modern=True, arguments=arguments, inputResponses=given, requestState=first["requestState"]
    )
    assert second["inputRequests"]["b"]["params"]["message"] == "After 1"
    assert second["requestState"] != first["requestState"]
    given = {"b": accept(y="two")}
    third = await answer(
        told, modern=True, arguments=arguments, inputResponses=given, requestState=second["requestState"]
    )
    assert (third["resultType"], said(third)) == ("complete", "1 and two for Ada")


async def test_questions_of_one_round_are_asked_together() -> None:
    told = engine(ask=[form("a"), {"name": "r", "method": "roots/list"}])
    asked = await answer(told, modern=True)
    assert list(asked["inputRequests"]) == ["a", "r"]
    replies = {"a": accept(), "r": {"roots": []}, "nobody asked": {}}
    done = await answer(told, modern=True, inputResponses=replies, requestState=asked["requestState"])
    assert json.loads(said(done)) == {"a": accept(), "r": {"roots": []}}
    again = await answer(
        told, modern=True, inputResponses={"a": accept()}, requestState=asked["requestState"]
    )
    assert list(again["inputRequests"]) == ["r"]


async def test_without_state_the_answers_alone_are_enough() -> None:
    told = engine(ask=form("a"), state=False)
    assert "requestState" not in await answer(told, modern=True)
    assert json.loads(said(await answer(told, modern=True, inputResponses={"a": accept(x=1)}))) == accept(x=1)


@pytest.mark.parametrize("responses", [None, {}, {"b": {}}])
async def test_a_modern_client_without_an_answer_is_asked_again(responses: object) -> None:
    told = engine(ask=form("a"), state=False)
    assert "a" in (await answer(told, modern=True, inputResponses=responses))["inputRequests"]


async def test_an_answer_must_be_an_object() -> None:
    with pytest.raises(Refused, match=r"inputResponses\.a must be an object") as refused:
        await answer(engine(ask=form("a"), state=False), modern=True, inputResponses={"a": 12345})
    assert refused.value.code == -32602


@pytest.mark.parametrize(
    "spoil", [lambda s: s + "x", lambda s: "x" + s, lambda s: "", lambda s: None, lambda s: 5]
)
async def test_a_state_that_was_changed_is_refused(spoil: Any) -> None:
    told = engine(ask=form("a"))
    state = (await answer(told, modern=True))["requestState"]
    with pytest.raises(Refused, match="requestState") as refused:
        await answer(told, modern=True, inputResponses={"a": accept()}, requestState=spoil(state))
    assert refused.value.code == -32602


async def test_a_state_is_good_for_its_own_request_only() -> None:
    tools = [{"name": name, "result": {"ask": form("a")}} for name in ("t", "u")]
    told = Engine(Scenario.from_mapping({"tools": tools}))
    state = (await answer(told, modern=True, name="u"))["requestState"]
    with pytest.raises(Refused, match="requestState"):
        await answer(told, modern=True, inputResponses={"a": accept()}, requestState=state)


@pytest.mark.parametrize(
    ("question", "able", "lacking"),
    [
        ({"method": "sampling/createMessage"}, {}, {"sampling": {}}),
        (
            {"method": "sampling/createMessage", "params": '{"tools": []}'},
            {"sampling": {}},
            {"sampling": {"tools": {}}},
        ),
        (form("a"), {"sampling": {}}, {"elicitation": {}}),
        (form("a"), {"elicitation": {"url": {}}}, {"elicitation": {}}),
        (
            {"method": "elicitation/create", "params": '{"mode": "url"}'},
            {"elicitation": {}},
            {"elicitation": {"url": {}}},
        ),
        ({"method": "roots/list"}, {}, {"roots": {}}),
    ],
)
async def test_what_a_client_cannot_answer_is_not_asked(question: Json, able: Json, lacking: Json) -> None:
    with pytest.raises(Refused) as refused:
        await answer(engine(ask=question), modern=True, able=able)
    assert (refused.value.code, refused.value.data) == (-32021, {"requiredCapabilities": lacking})
    client = Client({})
    result = await answer(engine(ask=question), client=client, able=able)
    assert result["isError"]
    assert said(result) == f"this client does not offer {next(iter(lacking))}"
    assert client.asked == []
    optional = engine(ask={**question, "optional": True}, text="well then")
    for modern in (False, True):
        assert said(await answer(optional, modern=modern, able=able)) == "well then"


async def test_a_legacy_client_that_refuses_makes_the_call_fail() -> None:
    result = await answer(engine(ask=form("a")), client=Client())
    assert (result["isError"], said(result)) == (True, "not today")


@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_prompts_and_resources_ask_too(method: str) -> None:
    told = Engine(
        Scenario.from_mapping(
            {
                "prompts": [{"name": "p", "messages": '["{a.content.x}"]', "ask": form("a"), "state": False}],
                "resources": [{"uri": "x://p", "text": "<{a.content.x}>", "ask": form("a"), "state": False}],
            }
        )
    )
    where = {"name": "p"} if method == "prompts/get" else {"uri": "x://p"}
    asked = await answer(told, method, modern=True, **where)
    assert asked["inputRequests"]["a"]["method"] == "elicitation/create"
    replies = {"a": accept(x="y")}
    for result in (
        await answer(told, method, modern=True, **where, inputResponses=replies),
        await answer(told, method, Client(accept(x="y")), **where),
    ):
        assert result.get("messages") == ["y"] or result["contents"][0]["text"] == "<y>"


async def test_the_level_of_logs_is_the_sessions() -> None:
    told = engine(log=[{"level": "debug", "data": 1}, {"level": "warning", "data": 2}, {"level": "error"}])

    async def heard(session: object, *, modern: bool = False, meta: Json | None = None) -> list[str]:
        client = Client()
        await answer(told, client=client, session=session, modern=modern, meta=meta)
        return [params["level"] for _, params in client.told]

    assert await heard(1) == ["debug", "warning", "error"]
    assert await answer(told, "logging/setLevel", level="warning") == {}
    assert await heard(1) == ["warning", "error"]
    assert await heard(2) == ["debug", "warning", "error"]
    told.audience.leaves(1)
    assert await heard(1) == ["debug", "warning", "error"]
    with pytest.raises(Refused, match="Unknown log level: loud"):
        await answer(told, "logging/setLevel", level="loud")
    assert await heard(1, modern=True) == []
    assert await heard(1, modern=True, meta={f"{META}logLevel": "error"}) == ["error"]


async def test_any_notification_can_be_sent() -> None:
    client = Client()
    await answer(engine(notify=[{"method": "x/y", "params": '{"a": null}'}, {"method": "z"}]), client=client)
    assert client.told == [("x/y", {"a": None}), ("z", {})]


CHANGING: Json = {
    "tools": [
        {"name": "t", "result": {"changes": ["tools", "prompts", "resources"]}},
        {"name": "touch", "result": {"updates": ["x://1"]}},
        {"name": "late", "late": True},
    ],
    "prompts": [{"name": "p"}, {"name": "late", "late": True}],
    "resources": [{"uri": "x://1"}, {"uri": "x://2", "late": True}],
    "resource_templates": [{"uriTemplate": "x://t/{n}", "late": True}],
}


async def test_what_comes_late_is_there_after_a_change_and_gone_after_the_next() -> None:
    told = Engine(Scenario.from_mapping(CHANGING))
    lists = {"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources"}
    lists["resources/templates/list"] = "resourceTemplates"

    async def count() -> list[int]:
        return [len((await answer(told, method))[key]) for method, key in lists.items()]

    assert await count() == [2, 1, 1, 0]
    with pytest.raises(Refused, match="Unknown tool: late"):
        await answer(told, name="late")
    await answer(told)
    assert await count() == [3, 2, 2, 1]
    assert said(await answer(told, name="late", arguments={})) == "{}"
    await answer(told)
    assert await count() == [2, 1, 1, 0]


async def test_what_changes_is_promised() -> None:
    promised = Engine(Scenario.from_mapping(CHANGING)).greeting()["capabilities"]
    changing = {"listChanged": True}
    assert promised == {
        "tools": changing, "resources": {"subscribe": True, **changing}, "prompts": changing,
    }  # fmt: skip
    assert Engine(Scenario()).greeting()["capabilities"] == {"tools": {}}


async def test_sessions_hear_of_lists_and_of_the_resources_they_subscribed_to() -> None:
    told = Engine(Scenario.from_mapping(CHANGING))
    one, two = Client(), Client()
    told.audience.joins(1, one)
    told.audience.joins(2, two)
    await answer(told)
    kinds = [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")]
    assert [method for method, _ in one.told] == kinds
    assert await answer(told, "resources/subscribe", session=2, uri="x://1") == {}
    await answer(told, name="touch")
    await answer(told, "resources/unsubscribe", session=2, uri="x://1")
    await answer(told, name="touch")
    assert two.told[3:] == [("notifications/resources/updated", {"uri": "x://1"})]
    assert len(one.told) == 3


async def test_listeners_hear_what_their_filter_names() -> None:
    told = Engine(Scenario.from_mapping(CHANGING))
    client = Client()
    wanted = {
        "promptsListChanged": True,
        "resourceSubscriptions": ["x://1"],
        "toolsListChanged": False,
        "other": 1,
    }
    listening = asyncio.ensure_future(
        answer(told, "subscriptions/listen", client, modern=True, notifications=wanted)
    )
    await client.hears(1)
    await answer(told)
    await answer(told, name="touch")
    await client.hears(3)
    listening.cancel()
    await asyncio.wait({listening})
    honoured = {"promptsListChanged": True, "resourceSubscriptions": ["x://1"]}
    assert [
        (method, {k: v for k, v in params.items() if k != "_meta"}) for method, params in client.told
    ] == [
        ("notifications/subscriptions/acknowledged", {"notifications": honoured}),
        ("notifications/prompts/list_changed", {}),
        ("notifications/resources/updated", {"uri": "x://1"}),
    ]
    assert all(params["_meta"] == {f"{META}subscriptionId": 7} for _, params in client.told)
    await answer(told)
    assert len(client.told) == 3


async def test_templates_fill_their_text_and_complete_their_places() -> None:
    template = {
        "uriTemplate": "x://{id}/data",
        "text": '{"id":"{id}","uri":"{uri}"}',
        "complete": {"id": ["12", "13", "2"]},
    }
    told = Engine(Scenario.from_mapping({"resource_templates": [template]}))
    [held] = (await answer(told, "resources/read", uri="x://12/data"))["contents"]
    assert held["text"] == '{"id":"12","uri":"x://12/data"}'
    ref = {"type": "ref/resource", "uri": "x://{id}/data"}
    done = await answer(told, "completion/complete", ref=ref, argument={"name": "id", "value": "1"})
    assert done["completion"]["values"] == ["12", "13"]
    with pytest.raises(Refused, match="Unknown resource template"):
        await answer(told, "completion/complete", ref={"type": "ref/resource", "uri": "no"}, argument={})
