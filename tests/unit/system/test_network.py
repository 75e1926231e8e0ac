"""Which HTTP proxy an upstream is reached through."""

import urllib.request

import pytest

from mcpzip.system.network import _proxies, environment_proxy

PROXY = "http://proxy.example:3128"
OTHER = "http://other.example:8080"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_without_one_none_is_used() -> None:
    assert environment_proxy("https://mcp.example/mcp") is None


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("http://mcp.example/mcp", PROXY),
        ("https://mcp.example/mcp", OTHER),
        ("https://inside.example/mcp", None),
        ("http://localhost:3000/mcp", None),
        ("http://127.0.0.1:3000/mcp", None),
        ("http://[::1]:3000/mcp", None),
    ],
)
def test_the_environment_decides_by_scheme_and_host(
    monkeypatch: pytest.MonkeyPatch, url: str, wanted: str | None
) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    monkeypatch.setenv("HTTPS_PROXY", OTHER)
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert environment_proxy(url) == wanted


def test_one_for_all_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", PROXY)
    assert environment_proxy("https://mcp.example/mcp") == PROXY


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_that_of_another_environment_is_its_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("HTTPS_PROXY", OTHER)
    monkeypatch.setenv("NO_PROXY", "*")
    url = "https://mcp.example/mcp"
    assert environment_proxy(url, {}) is None
    assert environment_proxy(url, {name: PROXY}) == PROXY
    assert environment_proxy(url, {name: PROXY, "NO_PROXY": "mcp.example"}) is None


def test_it_is_what_the_standard_library_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[dict[str, str]] = [
        {"HTTP_PROXY": PROXY, "http_proxy": OTHER},
        {"HTTP_PROXY": PROXY, "http_proxy": ""},
        {"Http_Proxy": PROXY},
        {"REQUEST_METHOD": "GET", "HTTP_PROXY": PROXY},
        {"REQUEST_METHOD": "GET", "HTTP_PROXY": PROXY, "http_proxy": OTHER},
        {"_PROXY": PROXY, "NO_PROXY": ".example"},
    ]
    for variables in cases:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            wanted = urllib.request.getproxies_environment()
        assert _proxies(variables) == wanted, variables
