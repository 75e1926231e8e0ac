"""The environment of a server."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config.reading import parse
from mcpzip.system.environment import PASSED_ON, environment_key, server_environment

OWN = {
    "PATH": "/bin",
    "HTTPS_PROXY": "http://proxy.example:8080",
    "SSL_CERT_FILE": "/etc/company.pem",
    "LC_TIME": "de_DE",
    "UV_INDEX_URL": "https://pypi.example/simple",
    "UV_PUBLISH_TOKEN": "pypi-1",
    "npm_config_registry": "https://npm.example",
    "npm_config_//npm.example/:_authToken": "npm-1",
    "GITHUB_TOKEN": "gh-1",
    "SLACK_TOKEN": "sl-1",
    "OPENAI_API_KEY": "sk-1",
    "MCPZIP_HTTP_TOKEN": "mz-1",
}
USUAL = {"PATH", "HTTPS_PROXY", "SSL_CERT_FILE", "LC_TIME", "UV_INDEX_URL", "npm_config_registry"}


def names(*inherit: str, withheld: tuple[str, ...] = ()) -> set[str]:
    return set(server_environment(OWN, {}, inherit, withheld, system="linux"))


def test_a_program_gets_what_it_needs_to_run_and_no_credentials() -> None:
    assert names() == USUAL


def test_the_config_wins() -> None:
    assert server_environment(OWN, {"PATH": "/own", "A": "b"})["PATH"] == "/own"


def test_what_is_asked_for_is_passed_on() -> None:
    assert names("GITHUB_*") == USUAL | {"GITHUB_TOKEN"}
    assert names("*") == set(OWN) - {"MCPZIP_HTTP_TOKEN"}


def test_the_secret_of_another_server_is_passed_on_by_its_name_only() -> None:
    assert "SLACK_TOKEN" not in names("*", withheld=("SLACK_TOKEN",))
    assert "SLACK_TOKEN" not in names("SLACK_*", withheld=("SLACK_TOKEN",))
    assert "SLACK_TOKEN" in names("SLACK_TOKEN", withheld=("SLACK_TOKEN",))


def test_case_does_not_count_on_windows() -> None:
    own = {"Path": "C:", "SystemRoot": "C:", "Github_Token": "gh-1"}
    assert set(server_environment(own, {}, system="win32")) == {"Path", "SystemRoot"}
    assert set(server_environment(own, {}, ["github_*"], system="win32")) == set(own)
    assert set(server_environment(own, {}, system="linux")) == set()


def test_an_exported_function_is_never_passed_on() -> None:
    # A shell that starts runs what such a variable holds (CVE-2014-6271).
    assert server_environment({"PATH": "() { :; }; evil"}, {}, ["*"]) == {}


@given(st.dictionaries(st.text(min_size=1), st.text()), st.lists(st.text(max_size=5), max_size=3))
def test_nothing_is_made_up(own: dict[str, str], inherit: list[str]) -> None:
    assert server_environment(own, {}, inherit).items() <= own.items()


def test_the_config_says_it_for_one_and_for_all() -> None:
    data = b"""{"inheritEnv": ["A_*"], "mcpServers": {
        "usual": {"command": "x"},
        "own": {"command": "x", "inheritEnv": true, "env": {"T": "${OWN_TOKEN}"}},
        "none": {"command": "x", "inheritEnv": false, "args": ["${OTHER_TOKEN}", "$${LITERAL}"]},
        "remote": {"url": "https://a.example", "headers": {"X": "${REMOTE_TOKEN}"}}}}"""
    env = dict.fromkeys(("OWN_TOKEN", "OTHER_TOKEN", "REMOTE_TOKEN"), "v")
    servers = parse(data, "config.json", env).servers
    assert {name: server.inherit_env for name, server in servers.items()} == {
        "usual": ("A_*",),
        "own": ("*",),
        "none": (),
        "remote": (),
    }
    assert servers["own"].withheld_env == {"OTHER_TOKEN", "REMOTE_TOKEN", "GEMINI_API_KEY"}
    assert servers["usual"].withheld_env == {"OWN_TOKEN", "OTHER_TOKEN", "REMOTE_TOKEN", "GEMINI_API_KEY"}


def test_every_variable_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "config.md").read_text("utf-8")
    for purpose, patterns in PASSED_ON.items():
        assert f"| {purpose} | {', '.join(f'`{pattern}`' for pattern in patterns)} |" in page


def test_what_makes_two_environments_differ() -> None:
    own = {"TOKEN": "a", "PATH": "/bin", "TERM_SESSION_ID": "1", "AWS_PROFILE": "x", "HTTPS_PROXY": "p"}

    def key(globs: tuple[str, ...] = (), **changes: str) -> object:
        return environment_key({**own, **changes}, {"TOKEN", "UNSET"}, globs)

    assert key() == key(PATH="/usr/bin", TERM_SESSION_ID="2", AWS_PROFILE="y")
    assert key() != key(TOKEN="b")
    assert key() != key(UNSET="")
    assert key() != key(HTTPS_PROXY="q")
    assert key() != key(DOCKER_HOST="ssh://other")
    assert key(("AWS_*",)) != key(("AWS_*",), AWS_PROFILE="y")
    assert key(("*",)) == key(("*",), TERM_SESSION_ID="2")
    assert key(("*",)) != key(("*",), PATH="/usr/bin")
