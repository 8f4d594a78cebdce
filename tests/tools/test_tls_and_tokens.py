"""Servers that prove who they are, and want to know who calls."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sayso_api.runtimeconfig import TlsSettings
from sayso_runtime.tools.outcome import NotSent


@dataclass(frozen=True)
class Authority:
    """A private certificate authority, and a server's certificate for 127.0.0.1 signed by it."""

    pem: str
    certificate: Path
    key: Path


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A new one."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "shop authority")])
    key_ids = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())

    def builder(name: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    ca = (
        builder(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(key_ids, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    host = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        builder(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "orders")]), key.public_key())
        .add_extension(host, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_ids), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    certificate_file, key_file = tmp_path / "server.pem", tmp_path / "server.key"
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Authority(ca.public_bytes(serialization.Encoding.PEM).decode(), certificate_file, key_file)


@pytest.fixture
def secure(counting: Any, authority: Authority) -> Any:
    """A counting server over TLS."""
    return counting("http", arguments=("--tls-cert", str(authority.certificate), "--tls-key", str(authority.key)))


def url(server: Any) -> str:
    """The server's address over TLS."""
    return f"https://127.0.0.1:{server.port}/mcp"


async def test_a_server_of_a_private_authority_is_trusted_when_that_is_named(
    secure: Any, connect: Any, authority: Authority
) -> None:
    settings = secure.settings(url=url(secure), tls=TlsSettings(ca_env="SHOP_CA"))
    connection = await connect(settings, {"SHOP_CA": authority.pem})

    assert (await connection.call("refund", {"order_id": "A-1", "amount": 1}))["isError"] is False


async def test_a_server_of_an_unknown_authority_is_not_spoken_to(secure: Any, connect: Any) -> None:
    connection = await connect(secure.settings(url=url(secure)))

    assert "certificate" in connection.status.lower()
    with pytest.raises(NotSent, match="TLS settings"):
        await connection.call("refund", {"order_id": "A-1", "amount": 1})
    assert secure.executions() == []


async def test_a_check_that_is_turned_off_is_off(secure: Any, connect: Any) -> None:
    settings = secure.settings(url=url(secure), tls=TlsSettings(insecure_skip_verify=True))
    connection = await connect(settings)

    assert connection.connected


async def test_an_authority_that_is_no_certificate_is_named(secure: Any, connect: Any) -> None:
    settings = secure.settings(url=url(secure), tls=TlsSettings(ca_env="SHOP_CA"))
    connection = await connect(settings, {"SHOP_CA": "not a certificate"})

    assert "SHOP_CA holds no PEM certificate" in connection.status


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_server_that_refuses_the_token_says_so_in_the_status(
    counting: Any, connect: Any, transport: str
) -> None:
    server = counting(transport, token="right")
    headers = [{"name": "Authorization", "from_env": "TOKEN"}]

    refused = await connect(server.settings(headers=headers), {"TOKEN": "Bearer wrong"})
    accepted = await connect(server.settings(headers=headers), {"TOKEN": "Bearer right"})

    assert "401" in refused.status
    assert "wrong" not in refused.status
    assert accepted.connected
