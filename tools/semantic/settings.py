"""What the table is made with: every number that was chosen, and the seeds (pure).

Which were chosen on what stands in README.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Weights:
    """What a tool's vector is made of: weights of the unit vectors of its texts."""

    name: float = 0.5
    server: float = 0.3
    description: float = 1.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """rows: of the whole table; pairs: those of two words; least: texts that a whole word must be in."""

    rows: int = 44_000
    pairs: int = 8_000
    least: int = 3


@dataclass(frozen=True, slots=True)
class Adapt:
    dimension: int = 256
    hidden: int = 0
    epochs: int = 5
    rate: float = 1e-3
    temperature: float = 0.05
    keep: float = 20.0  # weight of the loss that keeps the corpus's cosines
    batch: int = 256  # pairs, about
    seed: int = 5
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True, slots=True)
class Train:
    dimension: int = 256
    layer: int = 256  # hidden units of the layer that queries pass
    epochs: int = 4
    rate: float = 3e-3
    batch: int = 2048  # texts of the corpus
    pairs_batch: int = 1536  # tools, about
    pairs_weight: float = 0.4  # of the loss between requests and tools
    pairs_count: int = 5  # how often a text of a pair counts in the vocabulary
    temperature: float = 0.1
    drop: float = 0.1  # of rows, corpus
    pairs_drop: float = 0.25  # of rows, pairs
    percentile: float = 99.5  # of the sizes of values; beyond it they are clipped
    rounded_epochs: int = 1  # at the end, in which the rows are seen as the file will hold them
    named_weight: float = 0.05  # of the loss between names and texts of the corpus
    named_batch: int = 512
    named_temperature: float = 0.05
    hidden: Mapping[str, float] = field(
        default_factory=lambda: {"name": 0.3, "server": 0.3, "description": 0.15}
    )  # how often a field of a tool is hidden
    seed: int = 11  # of the first table
    tables: int = 4  # that are trained, with a seed each, and averaged
    sizes: Sizes = field(default_factory=Sizes)
    weights: Weights = field(default_factory=Weights)


@dataclass(frozen=True, slots=True)
class Transformer:
    """Of the adapter of the transformer."""

    rank: int = 32
    rounds: int = 16  # in which each tool comes once, with one of its requests
    rate: float = 2e-3  # at most; it falls to 0
    rising: int = 20  # steps at the beginning in which the rate rises
    longest: int = 48  # word pieces of a text
    temperature: float = 0.03
    batch: int = 512  # tools, about
    names: float = 0.15  # how often a tool is seen without its description
    seed: int = 1


ADAPT = Adapt()
TRAIN = Train()
TRANSFORMER = Transformer()
