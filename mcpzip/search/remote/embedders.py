"""Which embedder a config means."""

from mcpzip.config.schema import SemanticConfig
from mcpzip.search.remote.embeddings import Embedder, EmbeddingServer
from mcpzip.search.remote.service import Clock


def embedder(config: SemanticConfig, clock: Clock) -> Embedder:
    """The embedder of a provider that has one: "onnx", "ollama" or "openai"."""
    if config.provider == "onnx":
        from mcpzip.search.remote.onnx import Transformer

        return Transformer(clock, config.deadline)
    return EmbeddingServer(config, clock)
