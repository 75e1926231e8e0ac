"""Which tools a person may use: the rules, and their properties."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.reading import parse
from mcpzip.model.entry import Entry
from mcpzip.model.principal import Principal
from mcpzip.policy.access import AccessRules

SERVERS = {name: {"command": name} for name in ("crm", "files", "time")}


def rules(*access: object) -> AccessRules:
    text = json.dumps({"mcpServers": SERVERS, "access": list(access)})
    return AccessRules(parse(text.encode(), "/c/config.json", {}))


def entry(server: str, tool: str, **annotations: bool) -> Entry:
    return Entry.parse(server, json.dumps({"name": tool, "annotations": annotations}).encode())


def person(*groups: str, scopes: tuple[str, ...] = ()) -> Principal:
    return Principal("https://i", "s", "n", frozenset(groups), frozenset(scopes))


READS = {"readOnlyHint": True}


def may(found: AccessRules, who: Principal, tool: Entry) -> bool:
    return found.permit(found.applying(who), tool)


def test_what_nothing_allows_is_forbidden() -> None:
    assert not may(rules(), person("a"), entry("time", "now"))
    assert may(rules({"allow": "time"}), person(), entry("time", "now"))
    assert not may(rules({"allow": "time"}), person(), entry("crm", "now"))


def test_a_denial_counts_whatever_others_allow() -> None:
    found = rules({"allow": "*"}, {"groups": ["guests"], "deny": "crm__delete_*"})
    assert may(found, person("a"), entry("crm", "delete_all"))
    assert not may(found, person("a", "guests"), entry("crm", "delete_all"))
    assert may(found, person("guests"), entry("crm", "get"))


def test_one_group_of_several_and_all_scopes() -> None:
    found = rules({"groups": ["a", "b"], "scopes": ["x", "y"], "allow": "crm"})
    tool = entry("crm", "get")
    assert may(found, person("b", scopes=("x", "y", "z")), tool)
    assert not may(found, person("b", scopes=("x",)), tool)
    assert not may(found, person("c", scopes=("x", "y")), tool)


def test_classes() -> None:
    reader = rules({"allow": "*", "risk": "reads"})
    assert may(reader, person(), entry("crm", "get", **READS))
    assert not may(reader, person(), entry("crm", "put", destructiveHint=False))
    assert not may(reader, person(), entry("crm", "unknown"))
    writer = rules({"allow": "*", "risk": ["reads", "writes"]})
    assert may(writer, person(), entry("crm", "put", destructiveHint=False))
    assert not may(writer, person(), entry("crm", "drop"))
    careful = rules({"allow": "*"}, {"deny": "*", "risk": "reaches_out"})
    assert may(careful, person(), entry("crm", "get", openWorldHint=False))
    assert not may(careful, person(), entry("crm", "get", **READS))


def test_prompts_and_resources_go_with_the_server() -> None:
    found = rules({"allow": ["crm", "files__*"]}, {"groups": ["g"], "deny": "crm"})
    assert found.open_server(found.applying(person()), "crm")
    assert not found.open_server(found.applying(person("g")), "crm")
    assert not found.open_server(found.applying(person()), "files")
    assert not found.open_server(found.applying(person()), "time")
    reads = rules({"allow": "crm", "risk": "reads"}, {"allow": "files", "risk": "writes"})
    assert reads.open_server(reads.applying(person()), "crm")
    assert not reads.open_server(reads.applying(person()), "files")


def test_the_scopes_that_are_missing() -> None:
    found = rules(
        {"groups": ["a"], "scopes": ["x", "y"], "allow": "crm"},
        {"scopes": ["x"], "allow": "crm__get_*"},
        {"groups": ["b"], "deny": "crm"},
    )
    get, put = entry("crm", "get_it"), entry("crm", "put")
    assert found.missing_scopes(person("a"), get) == ("x",)
    assert found.missing_scopes(person("a", scopes=("x",)), put) == ("x", "y")
    assert found.missing_scopes(person(), put) == ()
    assert found.missing_scopes(person("a", "b"), get) == ()
    assert found.missing_scopes(person("a"), entry("time", "now")) == ()


names = st.sampled_from(["a", "b", "c"])
globs = st.sampled_from(["*", "crm", "files", "crm__*", "*__get_*", "files__put", "t*", "*__*"])
rule = st.fixed_dictionaries(
    {},
    optional={
        "groups": st.lists(names, min_size=1, max_size=2),
        "scopes": st.lists(names, min_size=1, max_size=2, unique=True),
    },
).flatmap(
    lambda who: st.one_of(
        st.fixed_dictionaries(
            {"allow": st.lists(globs, min_size=1, max_size=2)},
            optional={"risk": st.lists(st.sampled_from(["reads", "writes", "destroys"]), min_size=1)},
        ),
        st.fixed_dictionaries(
            {"deny": st.lists(globs, min_size=1, max_size=2)},
            optional={"risk": st.lists(st.sampled_from(["reads", "destroys", "reaches_out"]), min_size=1)},
        ),
    ).map(lambda what: {**who, **what})
)
people = st.builds(
    lambda groups, scopes: person(*groups, scopes=tuple(scopes)), st.sets(names), st.sets(names)
)
tools = st.builds(
    lambda server, tool, hints: entry(server, tool, **hints),
    st.sampled_from(["crm", "files", "time"]),
    st.sampled_from(["get_it", "put", "now"]),
    st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint", "openWorldHint"]), st.booleans()),
)


@given(st.lists(rule, max_size=5), people, tools)
def test_a_tool_that_may_be_used_has_a_server_that_may_have_it(
    access: list[object], who: Principal, tool: Entry
) -> None:
    found = rules(*access)
    applying = found.applying(who)
    if found.permit(applying, tool) or found.open_server(applying, tool.server):
        assert found.may_have(applying, tool.server)


@given(st.lists(rule, max_size=5), rule, people, tools)
def test_a_denial_more_never_allows(
    access: list[object], more: dict[str, object], who: Principal, tool: Entry
) -> None:
    if "deny" in more and may(rules(*access, more), who, tool):
        assert may(rules(*access), who, tool)


@given(st.lists(rule, max_size=5), people, tools)
def test_scopes_that_are_said_to_be_missing_help(access: list[object], who: Principal, tool: Entry) -> None:
    found = rules(*access)
    if scopes := found.missing_scopes(who, tool):
        assert not may(found, who, tool)
        assert may(found, person(*who.groups, scopes=(*who.scopes, *scopes)), tool)
