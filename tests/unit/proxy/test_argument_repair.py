"""The argument doctor: near-miss names and keys, and what must be left alone."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Listed, merge
from mcpzip.model.entry import Entry
from mcpzip.model.errors import InvalidArgumentsError, UnknownToolError
from mcpzip.proxy.argument_repair import REPAIR, repair_arguments, repair_keys, repair_meta, repair_name
from mcpzip.proxy.arguments import read_call

Json = dict[str, Any]


def tool(name: str, parameters: Sequence[str] = (), **schema: object) -> bytes:
    known = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return json.dumps({"name": name, "inputSchema": {**known, **schema}}).encode()


def catalog(**servers: Sequence[str]) -> Catalog:
    listed = (Listed(name, tuple(map(tool, tools)), 1.0) for name, tools in servers.items())
    return merge(Catalog(), listed)


def entry(*parameters: str, **schema: object) -> Entry:
    return Entry.parse("shop", tool("pay", parameters, **schema))


# Names

OFFERED = catalog(
    slack=["send_message", "list_channels", "get_user", "v1_export"],
    crm=["set_user", "delete_users", "sendMessageNow", "send_message_now"],
    a=["b"],
)


def meant(name: str, **more: Any) -> tuple[str, str | None]:
    found, repair = repair_name(name, OFFERED, servers=("slack", "crm", "a", "billing"), **more)
    return found.name, repair


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("Slack__SendMessage", "slack__send_message"),
        ("slack.send-message", "slack__send_message"),
        ("send_message", "slack__send_message"),
        ("SLACK_LIST_CHANNELS", "slack__list_channels"),
        ("slack__send_mesage", "slack__send_message"),
        ("slack__sned_message", "slack__send_message"),
        ("slcak__list_channels", "slack__list_channels"),
        ("slack__list_chanmnels", "slack__list_channels"),
    ],
)
def test_a_name_that_can_mean_one_tool_means_it(name: str, right: str) -> None:
    assert meant(name) == (right, f"name: {name} → {right}")


@pytest.mark.parametrize("name", [each.name for each in OFFERED.entries])
def test_a_right_name_is_not_repaired(name: str) -> None:
    assert meant(name) == (name, None)


@pytest.mark.parametrize(
    "name",
    [
        "crm__SEND_MESSAGE_NOW",  # two are spelt so
        "crm__send_message",  # it is another server's
        "slack__set_user",  # a word of its own, though only a letter away
        "crm__get_user",
        "crm__delete_user",  # one, or all of them
        "slack__v2_export",
        "slack__v1_exports",
        "slack__semd_mesage",  # two slips
        "crm__delete_uzers_",
        "billing__send_message",  # the server is away; the message isn't for slack
        "a__c",  # too short
        "",
        "_",
        "nobody",
    ],
)
def test_a_name_that_would_have_to_be_guessed_is_refused(name: str) -> None:
    with pytest.raises(UnknownToolError) as refused:
        meant(name)
    assert refused.value.nearest == OFFERED.nearest(name)


def test_two_slips_away_is_too_near_for_another_tool() -> None:
    tools = catalog(shop=["remarkable", "remakeable"])
    with pytest.raises(UnknownToolError):
        repair_name("shop__remarkeable", tools)
    assert repair_name("shop__remarrkable", catalog(shop=["remarkable"]))[0].tool == "remarkable"


@pytest.mark.parametrize("name", ["slack__delete_message", "slack__DeleteMessage", "slack__delete_mesage"])
def test_what_the_config_hides_is_never_meant_and_nothing_else_in_its_place(name: str) -> None:
    known = catalog(slack=["send_message", "delete_message"], other=["slack_delete_message"])
    visible = catalog(slack=["send_message"], other=["slack_delete_message"])
    with pytest.raises(UnknownToolError) as refused:
        repair_name(name, visible, known=known)
    assert "slack__delete_message" not in refused.value.nearest


NAMES = st.text(st.sampled_from("abA_-. é1"), min_size=1, max_size=12)


@given(st.lists(NAMES, max_size=6), st.lists(NAMES, max_size=6), NAMES)
def test_a_repair_is_always_to_a_tool_there_is_and_a_right_name_stays(
    one: list[str], two: list[str], name: str
) -> None:
    tools = catalog(one=one, two=two)
    for each in tools.entries:
        assert repair_name(each.name, tools) == (each, None)
    try:
        found, repair = repair_name(name, tools)
    except UnknownToolError:
        return
    assert found in tools.entries
    assert (repair is None) == (found.name == name)


# Keys


@pytest.mark.parametrize(
    ("given", "sent", "repairs"),
    [
        ('{"channelID":1,"text":"x"}', '{"channel_id":1,"text":"x"}', ("channelID → channel_id",)),
        ('{"Text":1.0,"CHANNEL ID":1e5}', '{"text":1.0,"channel_id":1e5}', None),
        (
            '{ "channel.Id" : { "channelId" : 1 } , "x":2 }',
            '{ "channel_id" : { "channelId" : 1 } , "x":2 }',
            None,
        ),
        (r'{"channel\u0049D":"\ud800"}', r'{"channel_id":"\ud800"}', None),
        ('{"Text":1,"Text":2}', '{"text":1,"text":2}', ("Text → text",)),
    ],
)
def test_a_key_that_can_mean_one_property_means_it(
    given: str, sent: str, repairs: tuple[str, ...] | None
) -> None:
    mended, told = repair_keys(entry("channel_id", "text"), given.encode())
    assert mended.decode() == sent
    assert told == repairs if repairs else told


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ('{"channel_id":1,"text":2}', {}),
        ('{"channelId":1,"ChannelID":2}', {}),  # which of them?
        ('{"channelId":1,"channel_id":2}', {}),  # it is given
        ('{"message":1}', {}),
        ("{}", {}),
        ('{"channelId":1}', {"additionalProperties": True}),
        ('{"channelId":1}', {"additionalProperties": {"type": "integer"}}),
        ('{"channelId":1}', {"additionalProperties": {}}),
        ('{"channelId":1}', {"patternProperties": {"^c": {}}}),
        ('{"channelId":1}', {"unevaluatedProperties": True}),
        ('{"channelId":1}', {"allOf": [{"properties": {"channelId": {}}}]}),
        ('{"channelId":1}', {"anyOf": [{"$ref": "#/$defs/x"}]}),
        ('{"channelId":1}', {"$ref": "#/$defs/x"}),
        ('{"channelId":1}', {"if": {}, "then": {"properties": {"channelId": {}}}}),
        ('{"channelId":1}', {"properties": {"channel_id": {}, "channel-id": {}}}),
        ('{"channelId":1}', {"properties": {}}),
        ('{"channelId":1}', {"properties": []}),
        ('{"channelId":1}', {"allOf": 5}),
    ],
)
def test_a_key_that_may_be_meant_as_it_is_stays(given: str, schema: Json) -> None:
    raw = given.encode()
    mended, told = repair_keys(entry("channel_id", "text", **schema), raw)
    assert mended is raw
    assert told == ()


def test_a_schema_that_says_no_more_keys_or_only_which_are_required_is_mended() -> None:
    for schema in ({"additionalProperties": False}, {"anyOf": [{"required": ["id"]}, {"required": ["no"]}]}):
        assert repair_keys(entry("id", "no", **schema), b'{"ID":1}')[0] == b'{"id":1}'


def test_a_tool_without_a_schema_takes_anything() -> None:
    raw = b'{"a":1}'
    for definition in (
        b'{"name":"pay"}',
        b'{"name":"pay","inputSchema":5}',
        b'{"name":"pay","inputSchema":{}}',
    ):
        assert repair_keys(Entry.parse("shop", definition), raw) == (raw, ())


KEYS = st.text(st.sampled_from("abAB_- ."), max_size=4)


@given(
    st.lists(KEYS, unique=True, max_size=4),
    st.lists(st.tuples(KEYS, st.integers() | st.text(max_size=3)), max_size=6),
)
def test_no_key_is_dropped_no_value_changed_and_twice_is_once(
    properties: list[str], pairs: list[tuple[str, object]]
) -> None:
    shop = entry(*properties)
    raw = b"{%b}" % b" , ".join(f"{json.dumps(key)}: {json.dumps(value)}".encode() for key, value in pairs)
    mended, told = repair_keys(shop, raw)
    after = json.loads(mended, object_pairs_hook=list)
    assert [value for _, value in after] == [value for _, value in pairs]
    changed = {(before, key) for (before, _), (key, _) in zip(pairs, after, strict=True) if before != key}
    assert {f"{before} → {key}" for before, key in changed} == set(told)
    assert all(key in properties and before not in properties for before, key in changed)
    assert len(dict(after)) == len(dict(pairs))  # no two became one
    again, more = repair_keys(shop, mended)
    assert again is mended
    assert more == ()
    if dict(pairs).keys() <= set(properties):
        assert mended is raw


# The whole call


def fitted(raw: bytes, tool: Entry) -> tuple[str, tuple[str, ...]]:
    call = repair_arguments(read_call(raw), tool)
    return call.arguments.decode(), call.repairs


def test_an_exact_call_is_the_same_call() -> None:
    call = read_call(b'{"name":"shop__pay","arguments":{"id":1},"timeout":5}')
    assert repair_arguments(call, entry("id", "timeout")) is call


@pytest.mark.parametrize(
    ("raw", "arguments", "repairs"),
    [
        ('{"name":"x","args":{"id":1}}', '{"id":1}', ["execute_tool: args → arguments"]),
        ('{"name":"x","Tool_Input":{"id":1}}', '{"id":1}', ["execute_tool: Tool_Input → arguments"]),
        (
            '{"name":"x","parameters":"{\\"ID\\":1}"}',
            '{"id":1}',
            ["execute_tool: parameters → arguments", "arguments: JSON string decoded", "ID → id"],
        ),
        (
            '{"name":"x","Arguments":null}',
            "{}",
            ["execute_tool: Arguments → arguments", "arguments: null taken as {}"],
        ),
        ('{"name":"x","ID":1}', '{"id":1}', ["arguments: taken from beside 'name'", "ID → id"]),
    ],
)
def test_arguments_by_another_name_are_found(raw: str, arguments: str, repairs: list[str]) -> None:
    assert fitted(raw.encode(), entry("id")) == (arguments, tuple(repairs))


@pytest.mark.parametrize(
    ("raw", "tool"),
    [
        ('{"name":"x","params":{"id":1}}', entry("id", "params")),
        ('{"name":"x","params":{"id":1}}', entry("id", additionalProperties=True)),
        ('{"name":"x","params":{"id":1}}', entry()),
        ('{"name":"x","params":{"id":1},"more":2}', entry("id")),
        ('{"name":"x","input":"some text"}', entry("id")),
        ('{"name":"x","input":""}', entry("id")),
        ('{"name":"x","input":null}', entry("id")),
        ('{"name":"x","input":[1]}', entry("id")),
    ],
)
def test_a_key_that_may_be_the_tools_own_is_no_other_name_of_arguments(raw: str, tool: Entry) -> None:
    arguments, repairs = fitted(raw.encode(), tool)
    assert json.loads(arguments) == {key: value for key, value in json.loads(raw).items() if key != "name"}
    assert repairs == ("arguments: taken from beside 'name'",)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"name":"x","arguments":"id=1"}', "'arguments' is not a JSON object. shop__pay [id:string*"),
        (b'{"name":"x","arguments":{"id":1},"b":2}', "put it inside 'arguments'. shop__pay [id:string*"),
        (
            b'{"name":"x","id":1,"timeout":2}',
            "could be the tool's or execute_tool's; .* shop__pay [id:string*",
        ),
    ],
)
def test_what_can_t_be_read_is_refused_with_the_signature(raw: bytes, said: str) -> None:
    shop = entry("id", "timeout", required=["id"])
    with pytest.raises(
        InvalidArgumentsError, match=said.replace("[", r"\[").replace("*", r"\*").replace(r".\*", ".*")
    ):
        repair_arguments(read_call(raw), shop)


def test_what_is_missing_is_for_the_upstream_to_say() -> None:
    assert fitted(b'{"name":"x"}', entry("id", required=["id"])) == ("{}", ())


# What is said of it


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (b'{"content":[]}', b'{"content":[],"_meta":{"%b":["a \xe2\x86\x92 b"]}}'),
        (b'{"_meta":{"x":1.0} , "n":1e5}', b'{"_meta":{"x":1.0,"%b":["a \xe2\x86\x92 b"]} , "n":1e5}'),
        (b'{"_meta":null}', b'{"_meta":{"%b":["a \xe2\x86\x92 b"]}}'),
        (b'{"_meta":{"%b":[ "c" ]}}', b'{"_meta":{"%b":["c","a \xe2\x86\x92 b"]}}'),
        (b'{"_meta":{"%b":[]}}', b'{"_meta":{"%b":["a \xe2\x86\x92 b"]}}'),
        (b'{"_meta":5}', b'{"_meta":5}'),
        (b"[]", b"[]"),
    ],
)
def test_repairs_are_named_in_the_result(result: bytes, told: bytes) -> None:
    key = REPAIR.encode()
    assert repair_meta(result.replace(b"%b", key), ["a → b"]) == told.replace(b"%b", key)


def test_no_repair_no_word_of_it() -> None:
    result = b'{"content":[]}'
    assert repair_meta(result, ()) is result


MEMBERS = st.dictionaries(
    st.text(max_size=4),
    st.integers() | st.text(max_size=4) | st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)


@given(MEMBERS, MEMBERS | st.none(), st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_naming_repairs_changes_nothing_else(result: Json, meta: Json | None, repairs: list[str]) -> None:
    assume("_meta" not in result)
    sent = result if meta is None else {**result, "_meta": meta}
    heard = json.loads(repair_meta(json.dumps(sent).encode(), repairs))
    assert heard["_meta"].pop(REPAIR) == repairs
    assert heard == {**result, "_meta": meta or {}}
