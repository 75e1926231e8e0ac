"""One process of several that share the sign-ins in a store, and call one server.

Reads a line of JSON: the config's path, and optionally where this process ends itself. Then, for each line
with the time (Unix s), makes some calls at once, and answers with a line: their statuses, and what is wrong.

    {"config": "…/config.json", "dies": "begun"}
    {"now": 1764230400.0, "calls": 3}

It dies like a process that is killed: "locked" with the lease, "begun" before the token is shown, "answered"
before what was granted is written, "written" before the lease is given back.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable

from helpers.grant_caller import Caller

from mcpzip.auth.grant import Grant
from mcpzip.auth.shared_store import SharedStore, Times
from mcpzip.auth.sign_ins import SignIns
from mcpzip.config.reading import load

TIMES = Times(lease=1.0, grace=1.5, poll=0.5)
"""As long as a test can wait."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(store: SharedStore, where: str) -> None:
    begin, save = store.about_to_refresh, store.save

    def about_to_refresh(grant: Grant) -> None:
        if where == "locked":
            die()
        begin(grant)
        if where == "begun":
            die()

    def saving(grant: Grant) -> Grant:
        if where == "answered":
            die()
        kept = save(grant)
        if where == "written":
            die()
        return kept

    store.about_to_refresh, store.save = about_to_refresh, saving  # type: ignore[method-assign]


async def main(read: Callable[[], str]) -> None:
    SharedStore.__init__.__defaults__ = (TIMES,)  # type: ignore[attr-defined]
    told = json.loads(read())
    config = load(told["config"], os.environ)
    warnings: list[str] = []
    async with SignIns(config, warnings.append) as sign_ins:
        store = sign_ins.store
        assert isinstance(store, SharedStore)
        if told.get("dies"):
            dying(store, told["dies"])
        now = 0.0
        async with Caller(store, config.servers["shop"], lambda: now) as client:
            print("{}", flush=True)
            while line := await asyncio.to_thread(read):
                asked = json.loads(line)
                now = asked["now"]
                statuses = await asyncio.gather(
                    *(client.status() for _ in range(asked["calls"])), return_exceptions=True
                )
                failure = client.oauth.failure
                answer = {
                    "statuses": [each if isinstance(each, int) else repr(each) for each in statuses],
                    "failure": failure and failure.reason,
                    "needs_login": failure is not None and failure.needs_login,
                    "warnings": warnings,
                }
                print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.stdin.readline))
