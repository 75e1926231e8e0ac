"""Prompts and resources of all servers: shown under names that lead back, and never guessed at."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.catalog import Catalog, Listed, merge
from mcpzip.model.errors import UnknownPromptError, UnknownResourceError
from mcpzip.proxy.offers import Offers

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


def offers(*updates: Listed, servers: tuple[str, ...] = SERVERS, through: str | None = None) -> Offers:
    return Offers(servers, merge(Catalog(), updates), through)


BOTH = offers(
    listed("docs", ["sum", "tell"], ["file:///a", "file:///both"], ["file:///{+path}"]),
    listed("Wiki", ["sum", "edit__page"], ["wiki://Main", "file:///both"], ["wiki://{page}"]),
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
        ("file:///a", ("docs", "file:///a")),
        ("wiki://Main", ("Wiki", "wiki://Main")),
        ("file:///{+path}", ("docs", "file:///{+path}")),
        ("file:///some/other", ("docs", "file:///some/other")),
        ("wiki://Other", ("Wiki", "wiki://Other")),
    ],
)
def test_a_uri_goes_to_the_server_it_says_or_to_the_one_that_can_have_meant_it(uri, route):
    assert BOTH.route_uri(uri) == route


def test_a_uri_that_nobody_lists_goes_to_the_only_server_with_resources():
    for update in (
        listed("docs", uris=["x:y"]),
        listed("docs", templates=["x:{y}"]),
        listed("docs", capabilities=b'{"resources":{}}'),
    ):
        assert offers(update, listed("Wiki", ["sum"])).route_uri("any://thing") == ("docs", "any://thing")


def test_a_uri_of_two_servers_is_not_guessed():
    with pytest.raises(UnknownResourceError) as raised:
        BOTH.route_uri("file:///both")
    assert (raised.value.name, raised.value.several) == ("file:///both", True)
    assert raised.value.nearest == ("mcpzip://Wiki/file:///both", "mcpzip://docs/file:///both")
    assert str(raised.value) == (
        "More than one server has the resource 'file:///both'. "
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
            "More than one server has the prompt 'sum'. Ask for one of these: Wiki__sum, docs__sum.",
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
