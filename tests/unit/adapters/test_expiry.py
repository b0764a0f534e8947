"""When tokens and certificates expire, for an alert a day ahead."""

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from controller.adapters.expiry import ExpiringFile, expiring_files
from controller.adapters.metrics.collector import CollectorMetrics
from controller.settings.trimtab_toml import read_settings
from tests.pulsar_tokens import token

SOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
LATER = SOON + timedelta(days=300)


def certificate(expires: datetime) -> str:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(expires)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM).decode()


def expiring(tmp_path: Path, key: str, content: str) -> float | None:
    file = tmp_path / "file"
    file.write_text(content)
    return ExpiringFile(section="pulsar", key=key, file=str(file)).expires_at()


def test_a_token_says_when_it_expires(tmp_path: Path) -> None:
    assert expiring(tmp_path, "token_file", token("r", expires_at=SOON.timestamp()) + "\n") == SOON.timestamp()
    assert expiring(tmp_path, "token_file", token("r")) is None
    assert expiring(tmp_path, "token_file", "opaque") is None


def test_of_our_certificates_the_first_counts_and_of_authorities_the_last_to_expire(tmp_path: Path) -> None:
    both = certificate(SOON) + certificate(LATER)
    assert expiring(tmp_path, "certificate", both) == SOON.timestamp()
    assert expiring(tmp_path, "ssl.certificate.location", both) == SOON.timestamp()
    assert expiring(tmp_path, "trust_certs", both) == LATER.timestamp()
    assert expiring(tmp_path, "ssl.ca.location", both) == LATER.timestamp()


@pytest.mark.parametrize("key", ["token_file", "certificate", "trust_certs"])
@pytest.mark.parametrize("content", ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_file_that_cannot_be_read_has_no_expiry(tmp_path: Path, key: str, content: str) -> None:
    assert expiring(tmp_path, key, content) is None
    assert ExpiringFile(section="pulsar", key=key, file=str(tmp_path / "absent")).expires_at() is None


def test_every_file_of_the_settings_is_shown_as_a_metric_that_is_read_anew(tmp_path: Path) -> None:
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        """
        cluster.name = "lab"
        checkpoint.path = "checkpoint"
        [log]
        kind = "kafka"
        [log.kafka]
        bootstrap = "a:9092"
        client = {"security.protocol" = "SSL", "ssl.certificate.location" = "k.pem", "ssl.key.location" = "k.key"}
        [election]
        kind = "zookeeper"
        hosts = "a:2181"
        path = "/trimtab"
        tls = {trust_certs = "z.pem"}
        [pulsar]
        token_file = "token"
        tls = {certificate = "p.pem", key = "p.key"}
        """
    )
    files = expiring_files(read_settings(conf))
    assert sorted((each.section, each.key, Path(each.file).name) for each in files) == [
        ("election.tls", "trust_certs", "z.pem"),
        ("log.kafka.client", "ssl.certificate.location", "k.pem"),
        ("pulsar", "token_file", "token"),
        ("pulsar.tls", "certificate", "p.pem"),
    ]
    metrics = CollectorMetrics()
    metrics.show_expiry_of(files)

    def shown() -> float | None:
        labels = {"section": "pulsar.tls", "key": "certificate"}
        return metrics.registry.get_sample_value("trimtab_credential_expiry_timestamp_seconds", labels)

    assert math.isnan(shown() or 0)
    (tmp_path / "p.pem").write_text(certificate(SOON))
    assert shown() == SOON.timestamp()
