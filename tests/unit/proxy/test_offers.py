"""Prompts and resources of all servers: shown under names that lead back, and never guessed at."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Failed, Listed, merge
from mcpzip.model.errors import UnknownPromptError, UnknownResourceError
from mcpzip.proxy.prompts_and_resources import PromptsAndResources

SERVERS = ("docs", "Wiki", "idle")


def raws(key: str, *names: str) -> tuple[bytes, ...]:
    return tuple(json.dumps({key: name}).encode() for name in names)


def listed(server: str, prompts=(), uris=(), templates=(), capabilities: bytes = b"{}") -> Listed:
    return Listed(
        server,
        (),
        1.0,
        prompts=raws("name", *prompts),
        resources=raws("uri", *uris),
        templates=raws("uriTemplate", *templates),
        capabilities=capabilities,
    )


def offers(
    *updates: Listed, servers: tuple[str, ...] = SERVERS, through: str | None = None
) -> PromptsAndResources:
    return PromptsAndResources(servers, merge(Catalog(), updates), through)


BOTH = offers(
    listed("docs", ["sum", "tell"], ["file:///a", "file:///both"], ["file:///{+path}"]),
    listed("Wiki", ["sum", "edit__page"], ["wiki://Main", "file:///both"], ["wiki://{page}"]),
    listed("idle"),
)


def test_everything_is_shown_as_it_came_but_for_the_name_that_says_its_server():
    prompt = b'{ "title":"\\u00e9", "name" : "sum", "x":1E2, "arguments":[ ] }'
    resource = b'{"uri" : "file:///a b" , "size": 1.0,"_meta":{"k":null}}'
    template = b'{"name":"n","uriTemplate":"file:///{+path}{?q}"}'
    update = Listed("docs", (), 1.0, prompts=(prompt,), resources=(resource,), templates=(template,))
    shown = offers(update)
    assert shown.prompts_page() == b'{"prompts":[%b]}' % prompt.replace(b'"sum"', b'"docs__sum"')
    assert shown.resources_page() == b'{"resources":[%b]}' % resource.replace(
        b"file:", b"mcpzip://docs/file:"
    )
    assert shown.templates_page() == b'{"resourceTemplates":[%b]}' % template.replace(
        b"file:", b"mcpzip://docs/file:"
    )
    untouched = offers(update, through="docs")
    assert untouched.prompts_page() == b'{"prompts":[%b]}' % prompt
    assert untouched.resources_page() == b'{"resources":[%b]}' % resource
    assert untouched.templates_page() == b'{"resourceTemplates":[%b]}' % template


def test_the_offers_of_all_servers_are_one_list():
    assert [each["name"] for each in json.loads(BOTH.prompts_page())["prompts"]] == [
        "Wiki__edit__page",
        "Wiki__sum",
        "docs__sum",
        "docs__tell",
    ]
    assert len(json.loads(BOTH.resources_page())["resources"]) == 4
    assert offers().resources_page() == b'{"resources":[]}'


TEXTS = st.text(min_size=1, max_size=6) | st.sampled_from(
    ["a__b", "mcpzip://docs/x", "docs__x", "file:///{id}"]
)


@given(
    prompts=st.lists(TEXTS, max_size=4),
    uris=st.lists(TEXTS, max_size=4),
    templates=st.lists(TEXTS, max_size=4),
)
def test_every_name_shown_leads_back_to_whose_it_is(prompts, uris, templates):
    shown = offers(*(listed(server, prompts, uris, templates) for server in SERVERS))
    routes = [shown.route_prompt(each["name"]) for each in json.loads(shown.prompts_page())["prompts"]]
    assert sorted(routes) == sorted((server, name) for server in SERVERS for name in set(prompts))
    pages = (
        (shown.resources_page(), "resources", "uri", uris),
        (
            shown.templates_page(),
            "resourceTemplates",
            "uriTemplate",
            templates,
        ),
    )
    for page, member, key, said in pages:
        routes = [shown.route_uri(each[key]) for each in json.loads(page)[member]]
        assert sorted(routes) == sorted((server, uri) for server in SERVERS for uri in set(said))


@pytest.mark.parametrize(
    ("uri", "route"),
    [
        ("mcpzip://docs/file:///a", ("docs", "file:///a")),
        ("mcpzip://docs/never listed", ("docs", "never listed")),
        ("mcpzip://idle/x:y", ("idle", "x:y")),
        ("mcpzip://wiki/wiki://Main", ("Wiki", "wiki://Main")),
        ("MCPZIP://WIKI/wiki://Main", ("Wiki", "wiki://Main")),
    ],
)
def test_a_uri_goes_to_the_server_it_says(uri, route):
    assert BOTH.route_uri(uri) == route
    assert BOTH.route_uri(uri, {"docs", "Wiki"}, {"idle"}) == route


@pytest.mark.parametrize("uri", ["file:///a", "file:///{+path}", "file:///some/other", "x:nobody lists it"])
def test_a_bare_uri_goes_to_the_server_whose_result_named_it_whoever_lists_it(uri):
    for server in SERVERS:
        assert BOTH.route_uri(uri, {server}) == (server, uri)


@pytest.mark.parametrize(
    ("uri", "named", "doubtful", "told"),
    [
        # What a server lists is no evidence: the other has resources, too.
        ("file:///a", (), (), ("docs", "Wiki")),
        ("file:///some/other", (), (), ("docs", "Wiki")),
        ("file:///a", ("docs", "Wiki"), (), ("Wiki", "docs")),
        ("x:1", ("docs", "idle"), (), ("docs", "idle")),
        ("x:1", ("docs",), ("idle",), ("docs", "idle")),
        ("file:///both", ("docs",), ("docs", "Wiki"), ("docs", "Wiki")),
    ],
)
def test_a_bare_uri_that_may_be_of_more_than_one_server_is_refused_and_told_how_to_ask(
    uri, named, doubtful, told
):
    with pytest.raises(UnknownResourceError) as raised:
        BOTH.route_uri(uri, named, doubtful)
    assert raised.value.several
    assert raised.value.nearest == tuple(f"mcpzip://{server}/{uri}" for server in told)


@pytest.mark.parametrize("other", [Failed("Wiki", "it crashed", 2.0), None])
def test_a_server_that_is_not_known_may_have_any_resource_and_any_prompt(other):
    known = [listed("docs", ["sum"], ["file:///a"])] + ([] if other is None else [listed("Wiki"), other])
    shown = offers(*known, servers=("docs", "Wiki"))
    with pytest.raises(UnknownResourceError):
        shown.route_uri("file:///a")
    with pytest.raises(UnknownPromptError):
        shown.route_prompt("sum")
    assert offers(*known, servers=("docs",)).route_uri("file:///a") == ("docs", "file:///a")


def test_what_says_a_server_that_is_disabled_goes_to_no_other():
    evil = listed("evil", ["slack__sum", "slack_sum"], ["mcpzip://slack/x:y"], ["{+any}"])
    shown = PromptsAndResources(["evil"], merge(Catalog(), [evil]), configured=["evil", "slack"])
    for uri in ("mcpzip://slack/x:y", "MCPZIP://Slack/x:y"):
        with pytest.raises(UnknownResourceError):
            shown.route_uri(uri, {"evil"})
    for name in ("slack__sum", "slack_sum"):
        with pytest.raises(UnknownPromptError):
            shown.route_prompt(name)


def test_a_uri_that_nobody_lists_goes_to_the_only_server_with_resources():
    for update in (
        listed("docs", uris=["x:y"]),
        listed("docs", templates=["x:{y}"]),
        listed("docs", capabilities=b'{"resources":{}}'),
    ):
        shown = offers(update, listed("Wiki", ["sum"]), listed("idle"))
        assert shown.route_uri("any://thing") == ("docs", "any://thing")


def test_a_uri_of_two_servers_is_not_guessed():
    with pytest.raises(UnknownResourceError) as raised:
        BOTH.route_uri("file:///both")
    assert (raised.value.name, raised.value.several) == ("file:///both", True)
    assert raised.value.nearest == ("mcpzip://Wiki/file:///both", "mcpzip://docs/file:///both")
    assert str(raised.value) == (
        "More than one server may have the resource 'file:///both'. "
        "Ask for one of these: mcpzip://Wiki/file:///both, mcpzip://docs/file:///both."
    )
    both = offers(listed("docs", templates=["x:{a}"]), listed("Wiki", templates=["{+any}"]))
    with pytest.raises(UnknownResourceError, match="More than one server"):
        both.route_uri("x:1")


@pytest.mark.parametrize(
    ("uri", "nearest"),
    [
        ("wiki:main", ("mcpzip://Wiki/wiki://Main",)),
        ("mcpzip://wikki/wiki://Main", ("mcpzip://Wiki/wiki://Main",)),
        ("zzz", ()),
        ("", ()),
    ],
)
def test_a_uri_of_nobodys_is_told_the_nearest(uri, nearest):
    with pytest.raises(UnknownResourceError) as raised:
        BOTH.route_uri(uri)
    assert raised.value.nearest[:1] == nearest
    hint = "The nearest: mcpzip://Wiki/wiki://Main" if nearest else "List the resources."
    assert str(raised.value).startswith(f"There is no resource {uri!r}. {hint}")


@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("docs__sum", ("docs", "sum")),
        ("wiki__edit__page", ("Wiki", "edit__page")),
        ("idle__never listed", ("idle", "never listed")),
        ("tell", ("docs", "tell")),
        ("edit__page", ("Wiki", "edit__page")),
    ],
)
def test_a_prompt_goes_to_the_server_it_says_or_to_the_only_one_that_has_it(name, route):
    assert BOTH.route_prompt(name) == route


@pytest.mark.parametrize(
    ("name", "several", "said"),
    [
        (
            "sum",
            True,
            "More than one server may have the prompt 'sum'. Ask for one of these: Wiki__sum, docs__sum.",
        ),
        ("docks__tell", False, "There is no prompt 'docks__tell'. The nearest: docs__tell."),
        ("zzz", False, "There is no prompt 'zzz'. List the prompts."),
    ],
)
def test_a_prompt_that_is_not_one_servers_is_told_which_are(name, several, said):
    with pytest.raises(UnknownPromptError) as raised:
        BOTH.route_prompt(name)
    assert (raised.value.several, str(raised.value)) == (several, said)


def test_servers_that_differ_in_case_are_told_apart_by_it():
    shown = offers(servers=("Docs", "docs"))
    assert shown.route_prompt("Docs__x") == ("Docs", "x")
    assert shown.route_uri("mcpzip://docs/x") == ("docs", "x")
    with pytest.raises(UnknownResourceError):
        shown.route_uri("mcpzip://DOCS/x")


def test_with_one_server_to_go_through_everything_goes_there_as_it_is():
    shown = offers(listed("docs", ["sum"], ["file:///a"]), servers=("docs",), through="docs")
    for name in ("sum", "docs__sum", "unknown", ""):
        assert shown.route_prompt(name) == ("docs", name)
    for uri in ("file:///a", "mcpzip://docs/file:///a", "unknown"):
        assert shown.route_uri(uri) == ("docs", uri)
