"""Which names and URIs would reach something that is held."""

import pytest

from mcpzip.pins.held import NOTHING, Held
from mcpzip.pins.record import Hold


def held(*keys: str, rejected: bool = False) -> Held:
    return Held({key: Hold(b"", b"", 0.0, rejected=rejected) for key in keys})


@pytest.mark.parametrize("name", ["pay_bill", "payBill", "pay-bill", "PAY_BILL", "pay.bill"])
def test_a_name_in_any_spelling(name: str) -> None:
    assert held("tool pay_bill").has_name("tool", name)
    assert not held("tool pay_bill").has_name("prompt", name)
    assert not held("tool pay").has_name("tool", name)


def test_names_of_signs_alone_are_no_spelling_of_each_other() -> None:
    assert held("tool _").has_name("tool", "_")
    assert not held("tool _").has_name("tool", "-")


@pytest.mark.parametrize("uri", ["file:///a b", "file:///a%20b", "FILE:///A%20b", "file:///%61%20b"])
def test_a_uri_in_any_spelling(uri: str) -> None:
    assert held("resource file:///a b").has_uri(uri)
    assert held("resource file:///a b").is_uri(uri)
    assert not held("resource file:///a").has_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///secret/a#x",
        "file:///secret/a%00.txt",
        "file:///secret//a/",
        "file:///secret/./a",
        "file:///public/../secret/a",
        "file://localhost/secret/a",
        "file:/secret/a",
        "file:///secret%252Fa",
        "file:///secret\\a",
        " file:///secret/a",
        "FILE:///Secret/A",
    ],
)
@pytest.mark.parametrize("key", ["resource file:///secret/a", "template file:///Secret/{name}"])
def test_another_way_to_the_same_place(key: str, uri: str) -> None:
    assert held(key).has_uri(uri)
    assert not held(key).has_uri(uri.replace("secret", "public").replace("Secret", "public"))


@pytest.mark.parametrize("uri", ["", ":", "#", "%", "file:", "x:..", "{", "a:{#b}"])
def test_any_text_has_a_spelling(uri: str) -> None:
    assert held(f"resource {uri}").has_uri(uri)
    assert held(f"template {uri}").has_uri(uri)
    assert not held("resource x:y").has_uri(uri)


def test_a_uri_that_a_held_template_makes() -> None:
    template = held("template file:///secret/{name}")
    assert template.has_uri("file:///secret/{name}")
    assert template.has_uri("file:///secret/a")
    assert template.has_uri("file%3A///secret/a")
    assert not template.has_uri("file:///public/a")
    assert not template.has_uri("file:///secret/a", ["file:///{folder}/{name}"])
    assert template.has_uri("file:///secret/a", ["file:///public/{name}"])
    assert template.has_uri("file:///secret/a/b?c=1")
    assert not template.has_uri("file:///secrets/a")
    assert held("template {+uri}").has_uri("x:y")
    assert not template.is_uri("file:///secret/a")


def test_too_much_to_compare_is_held() -> None:
    one = held("template x:{a}")
    assert one.has_uri("x:1", ["y:{a}" * 400_000])
    assert not one.has_uri("y:1", ["y:{a}" * 400_000])


def test_what_is_counted() -> None:
    assert NOTHING.summary == ""
    assert held("tool a").summary == "1 tool"
    assert held("tool a", "tool b", "prompt c").summary == "2 tools and 1 prompt"
    assert held("tool a", "prompt b", "template c", "instructions ").summary == (
        "1 tool, 1 prompt, 1 resource template and 1 text of instructions"
    )
    assert held("tool a", rejected=True).summary == ""
