"""The page *Review*: what is held is shown field by field, and decided only as it was shown, by a person."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.acting_markup import acting
from helpers.ui_client import Page, page_of, terminal_page_of
from helpers.ui_places import MARKUP, change, hold_back

from mcpzip.config import load
from mcpzip.config.paths import pins_path, refused_path, trust_path
from mcpzip.pins.review import Review
from mcpzip.policy.allowances import Allowance, AllowedFile

ACTING = set("\u202e\u200b\x1b\x07")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")


def config_of(folder: Path) -> Path:
    """The config of the server of `hold_back`."""
    config = folder / "config.json"
    config.write_text('{"mcpServers": {}}')
    hold_back(config)
    return config


def held(config: Path) -> dict[str, bool]:
    """Whether each held item is rejected, by name."""
    return {item.name: item.hold.rejected for item in Review(load(str(config), os.environ)).held(["shop"])}


def link_of(page: Page, name: str) -> str:
    """The address of the page of a held item."""
    found = re.search(rf'href="[^"]+?(/review/shop[?]item=[0-9a-f]+)">tool {name}', page.get("/review").text)
    assert found
    return found[1]


def form_of(page: Page, link: str) -> dict[str, str]:
    """What the form on the page of a held item says of the item."""
    return dict(re.findall(r'name="(item|held|approved)" value="([^"]*)"', page.get(link).text))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = config_of(tmp_path_factory.mktemp("review"))
    project = config.parent / "<b>project<"
    project.mkdir()
    (project / ".mcpzip.json").write_text("{}")
    file = str(project / ".mcpzip.json")
    trusted = Path(trust_path(str(config)))
    trusted.parent.mkdir(mode=0o700, exist_ok=True)
    trusted.write_text(json.dumps({file: {"sha256": MARKUP, "at": 1.0}}))
    now = time.time()
    AllowedFile(str(config)).allow(Allowance(MARKUP, now + 60, now, MARKUP))
    call = {"id": MARKUP, "name": MARKUP, "definition": "", "arguments": MARKUP, "at": now}
    kept = {"format": "mcpzip-refused", "version": 1, "calls": [call]}
    Path(refused_path(str(config))).write_text(json.dumps(kept))
    return config


@pytest.fixture(scope="module")
def page(place: Path) -> Iterator[Page]:
    with page_of(place) as page:
        yield page.sign_in()


def test_what_is_held_and_pinned_and_happened_is_listed(page: Page) -> None:
    words = page.get("/review").words
    assert "3 items" in words
    assert "tool pay shop held" in words
    assert "/description has characters that change the direction of text" in words
    assert "mcpzip allow --call" in words
    assert "changed, so not used" in words
    assert "shop held tool send" in words
    words = page.get("/review?find=SEN").words
    assert "1 item of 3" in words
    assert "tool pay shop held" not in words


def test_an_item_is_shown_field_by_field(page: Page) -> None:
    words = page.get(link_of(page, "pay")).words
    assert r'description Approved Does a thing. Held "\"><img src=x onerror=alert(1)>' in words
    assert "inputSchema.properties.bcc.type Held string" in words
    assert r"<U+202E><U+200B>\u001b]0;t\u0007" in words
    assert "inputSchema.type" not in words, "it is as it was approved"


def test_hostile_texts_are_only_text(page: Page) -> None:
    links = re.findall(r'href="[^"]+?(/review/[^"]+)"', page.get("/review").text)
    assert len(links) == 3
    for path in ("/review", "/review?find=%3Cscript%3E&page=-1&done=%3Cb%3E", *links):
        answer = page.get(path)
        assert answer.status == 200
        assert acting(answer.text) == []
        assert not set(answer.text) & ACTING
    for path in ("/review/%3Cscript%3E?item=%22%3E", "/review/shop?item=%3Cb%3E", "/review/shop"):
        answer = page.get(path)
        assert answer.status == 404
        assert acting(answer.text) == []


def test_without_a_terminal_nothing_is_approved(page: Page, place: Path) -> None:
    link = link_of(page, "pay")
    assert "Only a person at a terminal can approve" in page.get(link).words
    assert ">Approve</button>" not in page.get(link).text
    assert page.submit("/review/shop/approve", **form_of(page, link)).status == 403
    assert "pay" in held(place)


def test_a_forged_form_decides_nothing(page: Page, place: Path) -> None:
    form = form_of(page, link_of(page, "send"))
    before = held(place)
    for action in ("approve", "reject"):
        assert page.post(f"/review/shop/{action}", form).status == 403
        assert page.post(f"/review/shop/{action}", form, Cookie=None).status == 401
        assert page.post(f"/review/shop/{action}", form, Origin="http://evil.example").status == 403
        assert page.get(f"/review/shop/{action}").status == 404
    assert held(place) == before


def test_only_what_was_shown_is_decided(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with page_of(config) as page:
        page.sign_in()
        pay, send = (form_of(page, link_of(page, name)) for name in ("pay", "send"))
        for wrong in (
            pay | {"held": send["held"]},
            pay | {"approved": send["approved"] + "0"},
            pay | {"approved": ""},
            {"item": pay["item"]},
        ):
            assert page.submit("/review/shop/reject", **wrong).status == 409
        assert page.submit("/review/shop/reject", item="0" * 64, held=pay["held"]).status == 303
        assert page.submit("/review/nobody/reject", **pay).headers["location"].endswith("done=gone")
        assert not any(held(config).values())
        change(config, "Pays <i>twice</i>.\u200b")
        late = page.submit("/review/shop/reject", **pay)
        assert late.status == 409
        assert "The server has changed it since it was shown" in late.words
        assert "Pays <i>twice</i>.<U+200B>" in late.words
        assert not any(held(config).values())
        done = page.submit("/review/shop/reject", **form_of(page, link_of(page, "pay")))
        assert done.headers["location"] == f"{page.root}/review?done=rejected"
        assert held(config)["pay"]
        assert "It was rejected" in page.get("/review?done=rejected").words


@posix_only
def test_a_person_at_a_terminal_approves(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with terminal_page_of(config) as page:
        page.sign_in()
        link = link_of(page, "pay")
        form = form_of(page, link)
        assert ">Approve</button>" in page.get(link).text
        assert page.submit("/review/shop/approve", **(form | {"held": "0" * 64})).status == 409
        assert "pay" in held(config)
        done = page.submit("/review/shop/approve", **form)
        assert done.headers["location"] == f"{page.root}/review?done=approved"
        assert "pay" not in held(config)
        assert len(held(config)) == 2, "nothing else was approved"
        assert page.get(link).status == 404
        assert page.submit("/review/shop/approve", **form).headers["location"].endswith("done=gone")


def test_a_file_of_pins_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    with page_of(config) as page:
        page.sign_in()
        form = form_of(page, link_of(page, "pay"))
        Path(pins_path(str(config))).write_text("<script>")
        answer = page.get("/review")
        assert answer.status == 200
        assert "Until then nothing new or changed of a server is offered" in answer.words
        assert "--repair" in answer.words
        assert acting(answer.text) == []
        assert page.submit("/review/shop/reject", **form).status == 503
