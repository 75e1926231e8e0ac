"""The settings file of the fakes that are no MCP servers (Gemini, embeddings), and their process.

    key = "k"
    answers = { "send a message" = ["slack__send_message"] }     # gemini
    dimensions = 32                                               # embeddings
    faults = [{ kind = "status", status = 429, retry_after = 1, times = 1 }]

The rule: the keys are those parameters of the endpoint's class that a file can contain.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mcpzip_fakes.errors import ScenarioError, scenario_error

if TYPE_CHECKING:
    from mcpzip_fakes.endpoint import Endpoint

T = TypeVar("T", bound=msgspec.Struct)

ENDPOINTS: Mapping[str, str] = {
    "gemini": "the Gemini API, for searches that ask a model",
    "embeddings": "an embedding server: Ollama's API and OpenAI's",
}
"""Name -> description."""


class _Gemini(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str = ""
    answers: dict[str, list[str]] = {}
    models: list[str] = []
    text: str | None = None
    faults: list[dict[str, object] | str] = []


class _Embeddings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    key: str = ""
    models: list[str] = []
    dimensions: int = 64
    faults: list[dict[str, object] | str] = []


def run(name: str, file: str | None, record: str | None, port: int) -> None:
    """Run the endpoint until the process is ended; prints ``listening URL`` first. Raises ScenarioError."""
    if name == "gemini":
        from mcpzip_fakes.gemini import FakeGemini

        gemini = _read(file, _Gemini)
        endpoint: Endpoint = FakeGemini(
            key=gemini.key,
            answers=gemini.answers,
            models=gemini.models,
            text=gemini.text,
            faults=gemini.faults,
            record=record,
            port=port,
        )
    else:
        from mcpzip_fakes.embeddings import FakeEmbeddings

        server = _read(file, _Embeddings)
        endpoint = FakeEmbeddings(
            key=server.key,
            models=server.models,
            dimensions=server.dimensions,
            faults=server.faults,
            record=record,
            port=port,
        )
    print(f"listening {endpoint.url}", flush=True)
    endpoint.wait()


def _read(file: str | None, kind: type[T]) -> T:
    if file is None:
        return kind()
    try:
        return msgspec.convert(tomllib.loads(Path(file).read_text(encoding="utf-8")), kind)
    except OSError as error:
        raise ScenarioError(file, "", f"it can't be read ({error.strerror})", "name another file") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(file, "", f"not TOML ({error})", "correct it") from error
    except msgspec.ValidationError as error:
        raise scenario_error(file, error, {"": kind.__struct_fields__}) from error
