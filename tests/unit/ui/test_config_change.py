"""What a change of the config means, and the changes that wait for being saved."""

import json

from mcpzip.config import Config, parse
from mcpzip.ui.config_meaning import meaning
from mcpzip.ui.drafts import Draft, Drafts
from mcpzip.ui.limits import DRAFTS

A = {"command": "a"}


def config(servers: dict[str, object], **more: object) -> Config:
    return parse(json.dumps({"mcpServers": servers, **more}).encode(), "config.json", {})


def test_what_happens_to_each_server_is_said() -> None:
    before = config({"gone": A, "off": A, "on": {**A, "disabled": True}, "moved": A, "tuned": A, "same": A})
    after = config(
        {
            "new": A,
            "off": {**A, "disabled": True},
            "on": A,
            "moved": {"command": "b"},
            "tuned": {**A, "timeout": 5},
            "same": A,
        },
        idle_timeout_minutes=3,
        log={"level": "debug"},
    )
    assert meaning(before, after) == [
        ("Servers added", ["new"]),
        ("Servers removed: their processes end", ["gone"]),
        ("Servers switched on", ["on"]),
        ("Servers switched off: their processes end", ["off"]),
        ("Servers with another connection: they are restarted", ["moved"]),
        ("Servers with other settings", ["tuned"]),
        ("Settings that are used at once", ["idle_timeout_minutes"]),
        ("Settings that are used when mcpzip is started again", ["log.level"]),
    ]
    assert meaning(before, before) == []
    assert meaning(None, config({"a": A})) == [("Servers that it has", ["a"])]


def test_the_newest_changes_wait() -> None:
    drafts = Drafts()
    names = [drafts.add(Draft(str(number), None, b"")) for number in range(DRAFTS + 2)]
    assert len(set(names)) == DRAFTS + 2
    assert [drafts.get(name) for name in names[:2]] == [None, None]
    found = drafts.get(names[2])
    assert found is not None
    assert found.title == "2"
    drafts.remove(names[2])
    assert drafts.get(names[2]) is None
    assert drafts.get("") is None
