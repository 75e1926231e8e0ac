"""The fake Gemini and the fake embedding server, as processes, and as whoever speaks HTTP meets them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from helpers.driver import until
from mcpzip_fakes.embeddings import FakeEmbeddings, vector
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.gemini import FakeGemini
from mcpzip_fakes.launch import importable
from mcpzip_fakes.pytest_plugin import fake_embeddings as fake_embeddings
from mcpzip_fakes.pytest_plugin import fake_gemini as fake_gemini
from mcpzip_fakes.record import Record

GENERATE = "/v1beta/models/gemini-x:generateContent"
TOOLS = "I want to send a message.\n- slack__send_message: Send a message\n- todo__add: Add a task"


def asking(text: str) -> dict[str, object]:
    return {"contents": [{"parts": [{"text": text}], "role": "user"}]}


@contextmanager
def running(*words: str) -> Iterator[str]:
    """``mcpzip-fake`` with these words, and where it listens."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip_fakes", *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **importable()},
    )
    with process:
        assert process.stdout
        said, url = process.stdout.readline().split()
        assert said == "listening"
        yield url
        process.kill()


def test_gemini_as_a_process(tmp_path: Path) -> None:
    told, record = tmp_path / "told.toml", tmp_path / "seen.jsonl"
    told.write_text(
        'key = "k"\nanswers = { "send" = ["todo__add"] }\n'
        'faults = [{ kind = "status", status = 429, retry_after = 1.5, times = 1 }]\n'
    )
    with running("gemini", "--port", "0", "--settings", str(told), "--record", str(record)) as url:
        busy = httpx.post(url + GENERATE, json=asking(TOOLS), headers={"x-goog-api-key": "k"})
        wrong = httpx.post(url + GENERATE, json=asking(TOOLS))
        right = httpx.post(url + GENERATE, json=asking(TOOLS), headers={"x-goog-api-key": "k"})
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1.5")
    assert busy.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert (wrong.status_code, wrong.json()["error"]["details"][0]["reason"]) == (400, "API_KEY_INVALID")
    (candidate,) = right.json()["candidates"]
    assert json.loads(candidate["content"]["parts"][0]["text"]) == {"tools": ["todo__add"]}
    assert [line.detail["path"] for line in Record.load(record).events("http")] == [GENERATE] * 3


def test_embeddings_as_a_process(tmp_path: Path) -> None:
    told = tmp_path / "told.toml"
    told.write_text('dimensions = 16\nmodels = ["m"]\n')
    with running("embeddings", "--settings", str(told)) as url:
        ollama = httpx.post(f"{url}/api/embed", json={"model": "m:latest", "input": ["a", "b"]}).json()
        openai = httpx.post(f"{url}/v1/embeddings", json={"model": "m", "input": "a", "dimensions": 8}).json()
        missing = httpx.post(f"{url}/api/embed", json={"model": "n", "input": ["a"]})
    assert ollama["embeddings"] == [vector("a", 16), vector("b", 16)]
    assert openai["data"] == [{"object": "embedding", "index": 0, "embedding": vector("a", 8)}]
    assert (missing.status_code, missing.json()["error"]) == (
        404,
        'model "n" not found, try pulling it first',
    )


def test_a_mistake_in_what_it_is_told_is_one_sentence(tmp_path: Path) -> None:
    told = tmp_path / "told.toml"
    for words, text, said in (
        (["gemini", "--settings", str(told)], "kee = 1", "there is no key 'kee' here; the nearest is 'key'"),
        (["gemini", "--settings", str(told)], "= 1", "not TOML"),
        (
            ["gemini", "--settings", str(told)],
            'faults = ["nan"]',
            "kind: found 'nan'; use status, slow, hang",
        ),
        (["embeddings", "--settings", str(told)], 'faults = [{ kind = "slow", second = 1 }]', "'seconds'"),
        (["embeddings", "--settings", str(tmp_path / "none")], "", "it can't be read"),
        (["slack", "--settings", str(told)], "", "--settings is for gemini and embeddings"),
    ):
        told.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "mcpzip_fakes", *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **importable()},
        )
        assert done.returncode != 0
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_without_answers_the_words_decide(fake_gemini: Callable[..., FakeGemini]) -> None:
    gemini = fake_gemini()
    answer = httpx.post(gemini.url + GENERATE, json=asking(TOOLS)).json()
    text = answer["candidates"][0]["content"]["parts"][0]["text"]
    assert json.loads(text) == {"tools": ["slack__send_message", "todo__add"]}
    assert gemini.prompts == [TOOLS]
    assert httpx.post(gemini.url + "/v1/models", json={}).status_code == 404


def test_faults_can_be_told_while_it_runs(fake_embeddings: Callable[..., FakeEmbeddings]) -> None:
    server = fake_embeddings(faults=[{"kind": "status", "status": 503, "nth": 2, "times": 1}])

    def statuses(count: int) -> list[int]:
        body = {"model": "m", "input": ["a"]}
        return [httpx.post(f"{server.url}/api/embed", json=body).status_code for _ in range(count)]

    assert statuses(3) == [200, 503, 200]
    server.faults = ["status"]
    assert statuses(2) == [500, 500]
    with pytest.raises(ScenarioError, match="found 'statuss'"):
        server.faults = ["statuss"]
    assert server.texts == ["a"] * 5
    server.stop()
    with pytest.raises(httpx.ConnectError):
        statuses(1)


def test_a_request_that_waits_ends_with_the_fake() -> None:
    with FakeEmbeddings(faults=["hang"]) as server:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/api/embed", json={"input": ["a"]}, timeout=httpx.Timeout(20, read=0.1))
        until(lambda: server.requests)
        assert len(server.requests) == 1


def test_texts_that_share_words_are_near() -> None:
    def cosine(a: str, b: str) -> float:
        return sum(x * y for x, y in zip(vector(a), vector(b), strict=True))

    assert vector("Send a message") == vector("send a MESSAGE")
    assert cosine("send a message", "send messages") > 0.5
    assert cosine("send a message", "delete the calendar") < 0.3
    assert cosine("", "") == pytest.approx(1)
