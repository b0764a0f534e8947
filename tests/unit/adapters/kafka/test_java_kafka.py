"""One set of options for both of Kafka's clients."""

from pathlib import Path

import pytest

from controller.adapters.kafka.java_options import java_options
from controller.model.errors import SettingsError


def test_what_both_clients_call_the_same_stays_as_it_is() -> None:
    assert java_options({"client.id": "trimtab", "request.timeout.ms": 5000, "check.crcs": True}) == {
        "client.id": "trimtab",
        "request.timeout.ms": "5000",
        "check.crcs": "true",
    }


def test_who_lets_answers_take_longer_lets_them_in_both_clients() -> None:
    assert java_options({"socket.timeout.ms": 45_000}) == {"request.timeout.ms": "45000"}


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "org.apache.kafka.common.security.plain.PlainLoginModule"),
        ("SCRAM-SHA-512", "org.apache.kafka.common.security.scram.ScramLoginModule"),
    ],
)
def test_a_user_becomes_a_jaas_entry_with_its_quotes_kept(mechanism: str, module: str) -> None:
    found = java_options(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": mechanism,
            "sasl.username": "lab",
            "sasl.password": 'a"b\\c',
        }
    )
    assert found == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="lab" password="a\\"b\\\\c";',
    }


def test_a_user_without_a_mechanism_that_takes_one_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"sasl\.mechanism = one of PLAIN.*'GSSAPI'"):
        java_options({"sasl.mechanism": "GSSAPI", "sasl.username": "lab"})


def test_certificates_are_handed_on_as_text(tmp_path: Path) -> None:
    for name in ("ca", "own", "key"):
        (tmp_path / name).write_text(f"-----{name}-----")
    found = java_options(
        {
            "ssl.ca.location": str(tmp_path / "ca"),
            "ssl.certificate.location": str(tmp_path / "own"),
            "ssl.key.location": str(tmp_path / "key"),
            "ssl.key.password": "secret",
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    assert found == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----ca-----",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "-----own-----",
        "ssl.keystore.key": "-----key-----",
        "ssl.key.password": "secret",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_a_file_that_is_not_there_is_named_with_its_option(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location = .*missing"):
        java_options({"ssl.ca.location": str(tmp_path / "missing")})
