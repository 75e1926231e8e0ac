"""To which places a server may send us when it is signed in to."""

import pytest

from mcpzip.auth.discovery import find_server
from mcpzip.auth.url_policy import Zone, check_resolved_url, check_url, zone_of
from mcpzip.model.errors import LoginError

WORLD = "https://93.184.216.34/mcp"
NAMED = "https://mcp.example/mcp"
NETWORK = "https://10.1.2.3/mcp"


@pytest.mark.parametrize(
    ("address", "zone"),
    [
        ("93.184.216.34", Zone.PUBLIC),
        ("2606:2800:220:1::1", Zone.PUBLIC),
        ("127.0.0.1", Zone.LOOPBACK),
        ("127.1.2.3", Zone.LOOPBACK),
        ("0.0.0.0", Zone.LOOPBACK),
        ("::1", Zone.LOOPBACK),
        ("::", Zone.LOOPBACK),
        ("::ffff:127.0.0.1", Zone.LOOPBACK),
        ("64:ff9b::7f00:1", Zone.LOOPBACK),
        ("2002:7f00:1::", Zone.LOOPBACK),
        ("10.0.0.1", Zone.PRIVATE),
        ("172.16.0.1", Zone.PRIVATE),
        ("192.168.1.1", Zone.PRIVATE),
        ("100.64.0.1", Zone.PRIVATE),
        ("fd00::1", Zone.PRIVATE),
        ("::ffff:10.0.0.1", Zone.PRIVATE),
        ("224.0.0.1", Zone.PRIVATE),
        ("169.254.169.254", Zone.LINK_LOCAL),
        ("fe80::1%eth0", Zone.LINK_LOCAL),
    ],
)
def test_every_address_is_somewhere(address: str, zone: Zone) -> None:
    assert zone_of(address) is zone


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.1/admin",
        "https://[fd00::1]/",
        "https://192.168.1.1:8443/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://127.0.0.1/",
    ],
)
async def test_a_server_out_in_the_world_sends_us_to_no_private_address(url: str) -> None:
    """Only this very machine was refused."""
    with pytest.raises(LoginError, match="a server elsewhere can't send us there"):
        check_url("its authorization server", url, (WORLD,))
    with pytest.raises(LoginError, match="can't send us there"):
        await find_server(url, WORLD)
    with pytest.raises(LoginError, match="can't send us there"):
        await check_resolved_url("the page to sign in on", url, (WORLD,))


@pytest.mark.parametrize(
    ("url", "server_urls"),
    [
        ("https://10.0.0.1/", (NETWORK,)),
        ("https://10.0.0.1/", (WORLD, "https://192.168.0.1/issuer")),
        ("https://10.0.0.1/", ("http://localhost:3000/mcp",)),
        ("http://127.0.0.1:9/", ("http://localhost:3000/mcp",)),
        ("https://10.1.2.3:9/", (NETWORK,)),
        ("https://169.254.1.1/", ("https://169.254.1.2/",)),
        ("https://as.example/", (WORLD,)),
        ("https://93.184.216.35/", (NETWORK,)),
    ],
)
def test_what_is_near_the_server_or_in_the_config_may_be_private(
    url: str, server_urls: tuple[str, ...]
) -> None:
    check_url("it", url, server_urls)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "https://169.254.169.254/"])
def test_a_server_in_a_private_network_may_name_its_neighbours_only(url: str) -> None:
    with pytest.raises(LoginError):
        check_url("it", url, (NETWORK,))
