"""One process of several that use a store of sign-ins at the same time.

Runs the programs it reads, a line of JSON each: ``{"config": …, "store": "file", "steps": [["load", 0]]}``.
Answers each with a line: which refresh tokens were exchanged here, and what was wrong. A token says which
server it is for and is never made twice. A step ``hold`` prints a line and never ends.
"""

import asyncio
import itertools
import json
import os
import sys

from mcpzip.auth.grant import Grant
from mcpzip.auth.store import Store, open_store
from mcpzip.config.schema import Config

URLS = (
    "https://mcp.example/a",
    "https://mcp.example/a/",
    "https://mcp.example/A",
    "https://mcp.example/a?x",
    "https://mcp.example.org/a",
    "http://mcp.example/a",
    "https://user@mcp.example/a",
)
"""Of servers that look alike."""

_count = itertools.count()


def minted(number: int) -> Grant:
    """A grant of the server ``number``, with tokens that nobody had before: short ones and long ones."""
    serial = f"{number}.{os.getpid()}.{next(_count)}"
    long = "x" * (number * 1_000)
    return Grant(
        url=URLS[number],
        resource=URLS[number],
        issuer="https://as.example",
        server_metadata={"issuer": "https://as.example"},
        client={"client_id": f"client-{number}", "client_secret": f"secret.{serial}"},
        access_token=f"access.{serial}.{long}",
        refresh_token=f"refresh.{serial}",
    )


def wrong(grant: Grant | None, number: int) -> list[str]:
    """What of ``grant`` is not the server's with this number, or not of one piece."""
    if grant is None:
        return []
    serial = grant.refresh_token.removeprefix("refresh.")
    fine = (
        grant.url == URLS[number]
        and serial.split(".")[0] == str(number)
        and grant.access_token == f"access.{serial}.{'x' * (number * 1_000)}"
        and grant.client == {"client_id": f"client-{number}", "client_secret": f"secret.{serial}"}
    )
    return [] if fine else [f"{grant.refresh_token} at {URLS[number]}"]


async def step(store: Store, kind: str, number: int, exchanged: list[str]) -> list[str]:
    url = URLS[number]
    match kind:
        case "load":
            return wrong(store.load(url), number)
        case "all":
            return [each for grant in store.all() for each in wrong(grant, URLS.index(grant.url))]
        case "login":
            async with store.locked(url):
                store.save(minted(number))
        case "login unlocked":
            store.save(minted(number))
        case "refresh":
            async with store.locked(url):
                before = store.load(url)
                if before:
                    exchanged.append(before.refresh_token)
                    await asyncio.sleep(0)
                    store.save(minted(number))
                return wrong(before, number)
        case "logout":
            async with store.locked(url):
                store.remove(url)
        case "logout unlocked":
            store.remove(url)
        case "hold":
            async with store.locked(url):
                print("held", flush=True)
                await asyncio.Event().wait()
        case "login on and on":
            while True:
                store.save(minted(number))
                print("saved", flush=True)
    return []


async def play(program: dict) -> dict:
    amiss: list[str] = []
    exchanged: list[str] = []
    store = open_store(Config(program["config"], {}, auth_store=program["store"]), amiss.append)
    for kind, number in program["steps"]:
        try:
            amiss += await step(store, kind, number, exchanged)
        except OSError as error:
            amiss.append(f"{kind} {number}: {error!r}")
    return {"exchanged": exchanged, "amiss": amiss}


if __name__ == "__main__":
    os.fsync = lambda handle: None  # it is for power cuts; without it far more happens at once here
    for line in sys.stdin:
        program = json.loads(line)
        os.environ["KEYRING_FOLDER"] = program["config"] + ".keyring"
        print(json.dumps(asyncio.run(play(program))), flush=True)
