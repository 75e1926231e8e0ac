"""OAuth that is loaded when a server first needs it: how often it is, and how often a request goes out."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import cast

import httpx
import pytest

from mcpzip.auth.deferred import DeferredOAuth
from mcpzip.auth.flow import OAuth
from mcpzip.model.errors import LoginError

URL = "https://mcp.example/mcp"


class Signer:
    """OAuth as `DeferredOAuth` sees it: has no token at first, and can have one anew after a refusal."""

    def __init__(self, token: str = "", renewed: str = "new") -> None:
        self.token, self._renewed = token, renewed
        self.refusals: list[httpx.Response] = []
        self.flows = 0

    async def flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        self.flows += 1
        if self.token:
            request.headers["Authorization"] = self.token
        response = yield request
        if response.status_code in (401, 403):
            self.refusals.append(response)
            if self._renewed:
                self.token = self._renewed
                request.headers["Authorization"] = self.token
                yield request


class Stage:
    """A server, and OAuth that can be loaded for it. seen: the tokens it was shown."""

    def __init__(self, signer: Signer, *, known: bool = False) -> None:
        self.signer, self.known = signer, known
        self.loads = 0
        self.threads: set[threading.Thread] = set()
        self.seen: list[str] = []
        self.answer: Callable[[httpx.Request], int] = lambda request: 200
        self.auth = DeferredOAuth(self.load, lambda: self.known)

    def load(self) -> OAuth:
        self.loads += 1
        self.threads.add(threading.current_thread())
        return cast(OAuth, self.signer)

    def client(self) -> httpx.AsyncClient:
        async def handle(request: httpx.Request) -> httpx.Response:
            self.seen.append(request.headers.get("authorization", ""))
            await asyncio.sleep(0)
            return httpx.Response(self.answer(request), content=b"said", headers={"x": self.seen[-1]})

        return httpx.AsyncClient(auth=self.auth, transport=httpx.MockTransport(handle))


def guarded(status: int) -> Callable[[httpx.Request], int]:
    return lambda request: 200 if request.headers.get("authorization") == "new" else status


async def test_nothing_is_loaded_while_the_server_accepts() -> None:
    stage = Stage(Signer())
    async with stage.client() as client:
        for status in (200, 202, 404, 500, 307):
            stage.answer = lambda request, status=status: status  # type: ignore[misc]
            assert (await client.post(URL)).status_code == status
    assert (stage.loads, stage.seen) == (0, [""] * 5)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_loads_it_and_it_goes_on_from_that_refusal(status: int) -> None:
    stage = Stage(Signer())
    stage.answer = guarded(status)
    async with stage.client() as client:
        response = await client.post(URL, content=b"x")
        assert response.status_code == 200
        assert stage.seen == ["", "new"]
        assert [refusal.status_code for refusal in stage.signer.refusals] == [status]
        assert (await client.post(URL)).status_code == 200
    assert stage.seen == ["", "new", "new"]
    assert (stage.loads, stage.signer.flows) == (1, 2)
    assert threading.current_thread() not in stage.threads


async def test_a_refusal_that_it_can_do_nothing_about_stands_and_was_asked_for_once() -> None:
    stage = Stage(Signer(renewed=""))
    stage.answer = lambda request: 401
    async with stage.client() as client:
        response = await client.post(URL)
    assert (response.status_code, response.text) == (401, "said")
    assert stage.seen == [""]
    assert len(stage.signer.refusals) == 1


async def test_a_token_that_was_had_meanwhile_is_tried_before_another_is_had() -> None:
    stage = Stage(Signer(token="new", renewed="newer"))
    stage.answer = guarded(401)
    async with stage.client() as client:
        assert (await client.post(URL)).status_code == 200
    assert stage.seen == ["", "new"]
    assert stage.signer.refusals == []


async def test_it_is_loaded_at_once_where_a_sign_in_is_known() -> None:
    stage = Stage(Signer(token="new"), known=True)
    stage.answer = guarded(401)
    async with stage.client() as client:
        assert (await client.post(URL)).status_code == 200
    assert (stage.loads, stage.seen) == (1, ["new"])


async def test_a_sign_in_that_becomes_known_later_is_used_from_then_on() -> None:
    stage = Stage(Signer(token="new"))
    async with stage.client() as client:
        await client.post(URL)
        stage.known = True
        await client.post(URL)
    assert (stage.loads, stage.seen) == (1, ["", "new"])


async def test_what_was_loaded_before_is_not_loaded_again() -> None:
    stage = Stage(Signer(token="new"))
    stage.auth = DeferredOAuth.loaded(cast(OAuth, stage.signer))
    async with stage.client() as client:
        await client.post(URL)
    assert (stage.loads, stage.seen) == (0, ["new"])


async def test_several_first_refusals_are_one_sign_in() -> None:
    stage = Stage(Signer())
    stage.answer = guarded(401)
    async with stage.client() as client:
        answers = await asyncio.gather(*(client.post(URL) for _ in range(5)))
        assert [answer.status_code for answer in answers] == [200] * 5
        before = stage.loads
        assert (await client.post(URL)).status_code == 200
    assert stage.loads == before
    assert stage.seen.count("") == 5
    assert stage.seen.count("new") == 6


async def test_a_failure_to_load_ends_the_request_and_the_next_tries_again() -> None:
    stage = Stage(Signer())
    stage.answer = guarded(401)
    broken = [LoginError("The sign-ins can't be read: mend them.")]

    def load() -> OAuth:
        if broken:
            raise broken.pop()
        return stage.load()

    stage.auth = DeferredOAuth(load, lambda: False)
    async with stage.client() as client:
        with pytest.raises(LoginError):
            await client.post(URL)
        assert (await client.post(URL)).status_code == 200
    assert stage.seen == ["", "", "new"]


async def test_who_leaves_while_it_is_loaded_spoils_nothing_for_the_next() -> None:
    stage = Stage(Signer())
    stage.answer = guarded(401)
    begun, gate = threading.Event(), threading.Event()

    def load() -> OAuth:
        begun.set()
        gate.wait()
        return stage.load()

    stage.auth = DeferredOAuth(load, lambda: False)
    async with stage.client() as client:
        leaving = asyncio.create_task(client.post(URL))
        await asyncio.to_thread(begun.wait)
        leaving.cancel()
        await asyncio.wait({leaving})
        assert leaving.cancelled()
        gate.set()
        assert (await client.post(URL)).status_code == 200
    assert stage.seen == ["", "", "new"]
