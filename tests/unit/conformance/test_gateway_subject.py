"""Subject files of gateways: tokens, replicas, and what of them changes."""

from pathlib import Path

import pytest
from helpers.subject_files import GOOD, HTTP, TEAM, load
from mcpzip_conformance.errors import SubjectError

PROTECTED = 'servers = "{servers}", issuer = "{issuer}" }'
WITH_KEY = 'servers = "{servers}", k = "{key}" }'
WITH_STORE = 'servers = "{servers}", s = "redis://{store}" }'
CHANGING = """
[replicas]
key_rotation = [{ config = { keys = ["{new_key}", "{key}"] } }, { env = { KEY = "{new_key}" } }]
[replicas.other_version]
command = ["{here}/old/p", "{config}", "--port", "{port}"]
[replicas.store]
command = ["{here}/start", "{store_port}", "{store_folder}"]
"""


def test_commands_of_other_versions_and_stores_begin_beside_the_file(tmp_path: Path) -> None:
    config = 'servers = "{servers}", keys = ["{key}"], store = "{store}" }'
    subject = load(tmp_path, HTTP.replace('servers = "{servers}" }', config) + CHANGING)
    assert {"key-rotation", "versions", "store"}.isdisjoint(subject.missing())
    assert subject.replicas is not None
    assert subject.replicas.other_version is not None
    assert subject.replicas.store is not None
    here = str(tmp_path.resolve())
    assert subject.replicas.other_version.command[:2] == (f"{here}/old/p", "{config}")
    assert subject.replicas.store.command == (f"{here}/start", "{store_port}", "{store_folder}")
    assert subject.replicas.key_rotation[1].env == {"KEY": "{new_key}"}


def test_a_subject_for_a_team(tmp_path: Path) -> None:
    keys = 'servers = "{servers}", keys = ["{token}", "{other_token}"] }'
    assert "people" not in load(tmp_path, HTTP.replace('servers = "{servers}" }', keys)).missing()
    team = HTTP.replace('servers = "{servers}" }', PROTECTED) + "[authorization]\n[replicas]\ncount = 3\n"
    assert load(tmp_path, team).missing().keys() & TEAM == {"key-rotation", "versions", "store"}
    with_port = HTTP.replace(', "--port", "{port}"', "").replace(
        'servers = "{servers}" }', 'servers = "{servers}", port = "{port}" }'
    )
    assert load(tmp_path, with_port).start.url


@pytest.mark.parametrize(
    ("config", "more", "says"),
    [
        ("", "[authorization]\n", "authorization: nothing in start and config uses {issuer} or {jwks}; say"),
        (PROTECTED, "", "authorization: it is missing and {issuer} is used; add the table"),
        (PROTECTED[:-2] + ', s = "{scope}" }', "[authorization]\n", "authorization.scope: it is missing and"),
        (PROTECTED[:-2] + ', k = "{token}" }', "[authorization]\n", "{token} is used beside it,"),
        (
            PROTECTED,
            '[authorization]\nresource = "{url}"\n',
            "there is no place {url} here; the places are {port}",
        ),
        (
            'servers = "{servers}", k = "{token}" }',
            "",
            "start: one of {token} and {other_token} is used; use both",
        ),
        ("", "[replicas]\ncount = 1\n", "replicas: count is 1; write 2, 3 or 4."),
        ("", "[replicas]\nnumber = 2\n", "replicas: there is no key 'number' here;"),
        (
            "",
            '[replicas]\nkey_rotation = [{ env = { K = "{new_key}" } }]\n',
            "replicas.key_rotation: nothing in start and config uses {key}; begin with {key} alone;",
        ),
        (
            WITH_KEY[:-2] + ', n = "{new_key}" }',
            '[replicas]\nkey_rotation = [{ config = { k = "{new_key}" } }]\n',
            "replicas.key_rotation: {new_key} is in start or config; begin with",
        ),
        (
            WITH_KEY,
            '[replicas]\nkey_rotation = [{ config = { k = ["{new_key}", "{key}"] } }]\n',
            "replicas.key_rotation: the last change has {key}; end with {new_key} alone.",
        ),
        (
            WITH_KEY,
            '[replicas]\nkey_rotation = [{ config = { k = "{url}" } }]\n',
            "replicas.key_rotation[0].config: there is no place {url} here; the places are",
        ),
        ("", "[replicas.other_version]\n", "replicas.other_version: it changes nothing; write its config,"),
        (
            "",
            '[replicas.other_version]\nargs = ["a"]\n',
            "replicas.other_version: there is no key 'args' here;",
        ),
        ("", "[replicas.store]\n", "replicas.store: it has no command"),
        ("", '[replicas.store]\naddress = "6379"\n', "replicas.store: '6379' is no address; write HOST:PORT"),
        (WITH_STORE, "[replicas]\n", "replicas.store: it is missing and {store} is used; say how the store"),
        (
            "",
            '[replicas.store]\ncommand = ["r", "{store_port}"]\n',
            "replicas.store: nothing in start and config uses {store}; say how it is told",
        ),
        (
            WITH_STORE,
            '[replicas.store]\ncommand = ["r"]\n',
            "replicas.store.command: nothing in it uses {store_port}; say how",
        ),
        (
            WITH_STORE,
            '[replicas.store]\ncommand = ["r", "{port}"]\n',
            "replicas.store: there is no place {port} here; the places are {here}, {python}, {store_folder},",
        ),
    ],
)
def test_a_mistake_in_what_a_team_needs(tmp_path: Path, config: str, more: str, says: str) -> None:
    with pytest.raises(SubjectError) as caught:
        load(tmp_path, HTTP.replace('servers = "{servers}" }', config or 'servers = "{servers}" }') + more)
    assert says in str(caught.value)


def test_only_a_subject_over_http_has_replicas(tmp_path: Path) -> None:
    with pytest.raises(
        SubjectError, match="replicas: it stands for a subject that isn't reached over Stream"
    ):
        load(tmp_path, GOOD + "[replicas]\n")
