"""No secret of any kind survives in what is recorded from a server on stdio."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from mcpzip_fakes.launch import importable

from mcpzip.cassettes.files import load

PEM = "PRIVATE " + "KEY"
"""So that nothing takes this file for one that holds a key."""

SERVER = r"""
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    for text in asked.get("params", {}).get("stderr", ()):
        sys.stderr.write(text + "\n")
    sys.stderr.flush()
    for message in asked.get("params", {}).get("say", ()):
        print(json.dumps(message), flush=True)
    if "id" in asked:
        told = {"env": dict(os.environ), "argv": sys.argv, "back": asked.get("params")}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
print(os.environ["SEED_TOKEN"], end="", flush=True)
"""


def seed(number: int) -> str:
    """A secret that only a name or a given value shows."""
    return f"s33d-{number:02}-Qx{number * 7919:05}"


def jwt(number: int) -> str:
    parts = [{"alg": "HS256"}, {"sub": f"user-{number}"}, {"signature": number}]
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts
    )


def test_none_survives_in_the_cassette_or_in_what_the_recorder_says(tmp_path: Path) -> None:
    basic = base64.b64encode(f"me:{seed(20)}".encode()).decode()
    body = "MIIEow" + "IBAAKCAQEA7s3cr3tb0dy"
    github, slack, token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2", "xoxb-" + "1234-abcd-5678", jwt(3)
    environment = {
        "SEED_TOKEN": seed(1),
        "PLAIN": seed(2),
        "DATABASE_URL": f"postgres://app:{seed(3)}@db/x",
        "GOOGLE_CREDENTIALS": json.dumps({"type": "service_account", "private_key": seed(4)}),
        "MULTI_SECRET": f"first-line-{seed(5)}\nsecond-line-{seed(6)}",
    }
    arguments = {
        "password": seed(7),
        "nested": {"Client-Secret": seed(8), "list": [{"apiKey": seed(9)}]},
        "text": json.dumps({"access_token": seed(10), "deep": json.dumps({"api_key": seed(11)})}),
        "headers": {"Authorization": f"Bearer {seed(12)}", "Cookie": f"sid={seed(13)}"},
        "url": f"https://x.test/a?api_key={seed(14)}&next=https%3A%2F%2Fu:{seed(15)}@y.test#access_token={seed(16)}",
        "env": [{"name": "API_KEY", "value": seed(17)}],
        "pin": 83746152,
        "dotenv": f"A=1\nDB_PASSWORD={seed(18)}\nexport NPM_TOKEN='{seed(19)}'\n",
        "basic": f"Basic {basic}",
        "keys": [github, slack, token, f"-----BEGIN {PEM}-----\n{body}\n-----END {PEM}-----\n"],
        seed(1): "a name of a member",
        "encoded": [
            quote(seed(1)),
            base64.b64encode(f"x{seed(2)}y".encode()).decode(),
            seed(2).encode().hex(),
        ],
        "escaped": "".join(f"\\u{ord(char):04x}" for char in seed(2)),
    }
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": f"it is {seed(21)}, yes"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"say": [log], "note": seed(21)}},
        {"jsonrpc": "2.0", "id": 2, "method": "x", "params": {"arguments": arguments}},
        {"jsonrpc": "2.0", "id": seed(1), "method": "x", "params": {"token": seed(21)}},
        {
            "jsonrpc": "2.0",
            "id": 4,
            "method": "x",
            "params": {
                "stderr": [f"token={seed(22)}", f"-----BEGIN {PEM}-----", body, f"-----END {PEM}-----"]
            },
        },
    ]
    command = ["mcpzip_fakes", "record", "c.toml", "--secret", "PLAIN", "--mask", "params.arguments.pin"]
    server = [sys.executable, "-c", SERVER, "--api-key", seed(23), f"--url=https://u:{seed(24)}@z.test"]
    done = subprocess.run(
        [sys.executable, "-m", *command, "--", *server],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, **importable(), **environment},
        timeout=60,
        check=True,
    )
    assert seed(23) in done.stdout  # for the client nothing is masked
    report = done.stderr[done.stderr.index("mcpzip-fake record:") :]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    written = report.encode() + b"".join(path.read_bytes() + str(path).encode() for path in files)
    secrets = [*map(seed, range(1, 25)), basic, body, github, slack, token, "83746152"]
    spellings = [
        spelling
        for secret in secrets
        for spelling in (secret, secret.encode().hex(), base64.b64encode(f"x{secret}y".encode()).decode())
    ]
    assert [each for each in [*spellings, arguments["escaped"]] if str(each).encode() in written] == []
    assert written.count(b"[masked ") > 40
    read = load(str(tmp_path / "c.toml"))
    for exchange in read.exchanges:
        for data in (exchange.request, *(event.data for event in exchange.events if event.kind != "stderr")):
            assert not data.startswith(b"{") or json.loads(data)
    masks = [each.mask for each in read.masked]
    assert len(masks) == len(set(masks))
    assert all(mask in report for mask in masks[:50])
