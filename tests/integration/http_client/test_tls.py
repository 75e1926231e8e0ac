"""The HTTP connections to a server over TLS, whose certificate is made here."""

import asyncio
import gc
import ssl
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from helpers.loopback_server import OK, Handler, Site, connections_to, got, request, site

from mcpzip.http import connections as module
from mcpzip.transport.http_errors import failure


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a test")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path: Path = tmp_path_factory.mktemp("tls") / "both.pem"
    path.write_bytes(made.public_bytes(pem) + private)
    return path


@asynccontextmanager
async def secure_site(handler: Handler, certificate: Path) -> AsyncIterator[Site]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with site(handler, tls) as made:
        yield made


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That certificate is one that we trust."""
    context = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(module, "tls_context", lambda environment: context)


async def test_much_comes_and_goes_over_tls(certificate: Path, trusted: None) -> None:
    body = bytes(range(256)) * (1 << 14)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            received = await reader.readexactly(len(body))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
            writer.write(received)
            await writer.drain()

    async with secure_site(echo, certificate) as server:
        url = server.url.replace("http", "https", 1)
        async with connections_to(url) as connections:
            for _ in range(2):
                response = await connections.handle_async_request(request(url, body))
                assert await response.aread() == body
            assert server.met == 1


async def test_a_request_over_tls_that_is_cancelled_leaves_no_connection(
    certificate: Path, trusted: None
) -> None:
    reached, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            reached.set()
            await reader.read()
        finally:
            gone.set()

    async def cancelled(server: Site) -> None:
        url = server.url.replace("http", "https", 1)
        async with connections_to(url) as connections:
            asked = asyncio.create_task(got(connections, url))
            await reached.wait()
            asked.cancel()
            async with asyncio.timeout(20):
                await asyncio.wait({asked})
                await gone.wait()  # the pool is still open
            assert asked.cancelled()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        async with secure_site(silent, certificate) as server:
            await cancelled(server)
        gc.collect()
    assert [str(warning.message) for warning in told] == []


async def test_a_certificate_that_we_do_not_trust_is_said(certificate: Path) -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("it was spoken to")

    async with secure_site(never, certificate) as server:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        url = server.url.replace("http", "https", 1)
        async with connections_to(url) as connections:
            with pytest.raises(httpx.ConnectError) as caught:
                await connections.handle_async_request(request(url))
        told = failure(caught.value, httpx.URL(url))
        assert told.reason.startswith(f"{url[:-1]} has no certificate we trust (")
        assert server.met == 0


async def test_what_does_not_speak_tls_is_a_connect_error(trusted: None) -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(OK)
        await reader.read()

    async with site(plain) as server:
        url = server.url.replace("http", "https", 1)
        async with connections_to(url) as connections:
            with pytest.raises(httpx.ConnectError):
                await connections.handle_async_request(request(url))
        await server.quiet()


LEAN = """
import sys
from mcpzip.system.lean_imports import import_asyncio, import_msgspec
import_msgspec()
import_asyncio()
assert not {"ssl", "typing_extensions"} & set(sys.modules)
import asyncio

async def serve(reader, writer):
    writer.write(await reader.readline())
    writer.close()

async def main(certificate):
    before = asyncio.get_running_loop()
    import mcpzip.system.network, ssl
    server_side, client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    server_side.load_cert_chain(certificate)
    client_side.load_verify_locations(certificate)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side)
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", server.sockets[0].getsockname()[1], ssl=client_side)
    writer.write(b"hello\\n")
    print((await reader.read()).decode().strip(), writer.get_extra_info("cipher") is not None)
    writer.close()
    server.close()

asyncio.run(main(sys.argv[1]))
"""
"""A process that begins as `mcpzip serve` does, and makes a TLS connection while its event loop runs."""


def test_a_start_imports_no_tls_and_has_it_once_it_is_needed(certificate: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAN, str(certificate)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout.split(), done.returncode) == (["hello", "True"], 0), done.stderr


async def test_each_environment_trusts_its_own_certificates(certificate: Path, tmp_path: Path) -> None:
    """All of a daemon's agents had the certificates of the one that had started it."""
    (tmp_path / "empty.pem").write_text("")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)

    async with secure_site(answer, certificate) as server:
        url = server.url.replace("http", "https", 1)
        for file, trusts in ((certificate, True), (tmp_path / "empty.pem", False), (certificate, True)):
            connections = module.Connections(url, {"SSL_CERT_FILE": str(file)})
            try:
                if trusts:
                    assert (await connections.handle_async_request(request(url))).status_code == 200
                else:
                    with pytest.raises(httpx.ConnectError):
                        await connections.handle_async_request(request(url))
            finally:
                await connections.aclose()
