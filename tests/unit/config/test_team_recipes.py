"""The recipes for a team, with Docker Compose and in Kubernetes: they fit each other, and mcpzip."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcpzip.config import Config
from mcpzip.config.reading import parse
from mcpzip.server.http.monitoring import HEALTH, READY

FOLDER = Path(__file__).parents[3] / "docs" / "recipes" / "team"
KEY = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
VALUES = {
    "MCPZIP_PUBLIC_URL": "https://mcp.example.org/mcp",
    "MCPZIP_REPLICA_KEY": KEY,
    "MCPZIP_REPLICA_ADDRESS": "10.0.0.7",
}


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8")))


def kubernetes() -> dict[str, Any]:
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8"))
    return {document["kind"]: document for document in documents}


def container() -> dict[str, Any]:
    return dict(kubernetes()["Deployment"]["spec"]["template"]["spec"]["containers"][0])


def read(text: str) -> Config:
    return parse(text.encode(), "/data/config.json", VALUES)


def configs() -> list[Config]:
    of_kubernetes = kubernetes()["ConfigMap"]["data"]["config.json"]
    return [read((FOLDER / "config.json").read_text("utf-8")), read(of_kubernetes)]


@pytest.mark.parametrize("config", configs(), ids=["compose", "kubernetes"])
def test_the_config_is_one(config: Config) -> None:
    assert not config.warnings
    assert config.variables - {"GEMINI_API_KEY"} == set(VALUES)
    assert config.replicas is not None
    assert config.replicas.listen.endswith(":8940")
    assert config.telemetry is not None
    assert config.telemetry.listen.endswith(":9464")
    assert config.http.api_keys.startswith("/etc/mcpzip/")


def test_compose_has_what_its_parts_name() -> None:
    found = compose()
    services = found["services"]
    replicas = [name for name, service in services.items() if service.get("image") == "mcpzip"]
    assert len(replicas) == 2
    for name in replicas:
        service = services[name]
        assert set(service["environment"]) == set(VALUES)
        assert service["environment"]["MCPZIP_REPLICA_ADDRESS"] == name
        assert service["secrets"] == [{"source": "keys", "target": configs()[0].http.api_keys}]
        assert service["command"] == ["serve", "--http", "0.0.0.0:8931"]
        assert not (service["build"].keys() - {"context", "args"})
        assert (FOLDER / service["build"]["context"] / "Dockerfile").is_file()
    nginx = (FOLDER / "nginx.conf").read_text("utf-8")
    assert re.findall(r"server (\S+):8931;", nginx) == replicas
    targets = yaml.safe_load(found["configs"]["prometheus"]["content"])["scrape_configs"][0]["static_configs"]
    assert targets[0]["targets"] == [f"{name}:9464" for name in replicas]
    for service in services.values():
        for kind in ("configs", "secrets"):
            assert {each["source"] for each in service.get(kind, ())} <= set(found[kind])
        assert {each.partition(":")[0] for each in service.get("volumes", ())} <= set(found["volumes"])
        assert set(service.get("depends_on", ())) <= set(services)
    files = [
        each["file"] for kind in ("configs", "secrets") for each in found[kind].values() if "file" in each
    ]
    assert [name for name in files if not (FOLDER / name).is_file()] == ["keys.json"]  # which is a secret


def test_kubernetes_has_what_its_parts_name() -> None:
    found, of_mcpzip = kubernetes(), container()
    assert {each["name"] for each in of_mcpzip["env"]} == set(VALUES)
    ports = {each["name"]: each["containerPort"] for each in of_mcpzip["ports"]}
    assert ports == {"mcp": 8931, "replicas": 8940, "metrics": 9464}
    assert of_mcpzip["args"][:3] == ["serve", "--http", f"0.0.0.0:{ports['mcp']}"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = of_mcpzip[probe]["httpGet"]
        assert (asked["path"] in (HEALTH, READY), asked["port"]) == (True, "metrics")
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert {each["name"] for each in of_mcpzip["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    keys = next(each for each in of_mcpzip["volumeMounts"] if each["name"] == "keys")
    assert configs()[1].http.api_keys == f"{keys['mountPath']}/keys.json"
    replicas = configs()[1].replicas
    assert replicas is not None
    assert pod["terminationGracePeriodSeconds"] > replicas.drain + 10
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels
    assert found["Service"]["spec"]["ports"][0]["targetPort"] in ports


def test_the_page_has_the_config_of_nginx() -> None:
    page = (FOLDER.parents[1] / "teams.md").read_text("utf-8")
    ours = (FOLDER / "nginx.conf").read_text("utf-8")
    for line in re.findall(r"^ +(proxy_\S+ [^;]*;|client_\S+ [^;]*;)", ours, re.MULTILINE):
        assert line.replace("$http_host", "$host") in page, line
    assert json.loads((FOLDER / "config.json").read_text("utf-8"))["http"]["public_url"]
