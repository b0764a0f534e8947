"""What [log.kafka.client] may not change, and that no error shows a secret, wherever it stands in the settings."""

from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.log import KafkaLogSettings
from controller.settings.redaction import printable_value, without_userinfo
from controller.settings.trimtab_toml import Settings, read_settings

SECRET = "hunter2"
START = """
cluster.name = "demo"
election.kind = "zookeeper"
election.hosts = "zk:2181"
election.path = "/trimtab"
checkpoint.path = "checkpoint"
log.kind = "kafka"
[log.kafka]
bootstrap = "kafka:9092"
"""


def written(folder: Path, text: str) -> Settings:
    return read(folder, START + text)


def read(folder: Path, text: str) -> Settings:
    path = folder / "trimtab.toml"
    path.write_text(text, encoding="utf-8")
    return read_settings(path)


def refusal(folder: Path, text: str) -> str:
    return refusal_of(folder, START + text)


def refusal_of(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        read(folder, text)
    assert caught.value.__cause__ is None, "the cause holds the values"
    assert caught.value.__context__ is None
    return str(caught.value)


def client_of(folder: Path, text: str) -> dict[str, str | int | float | bool]:
    log = written(folder, f"[log.kafka.client]\n{text}").log.kafka
    assert log is not None
    return log.client


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ('"enable.auto.commit" = true', "commits the offsets of commands in one transaction with their results"),
        ('"group.id" = "mine"', "[executor] group"),
        ('"isolation.level" = "read_uncommitted"', "trimtab reads committed records only"),
        ('"transactional.id" = "mine"', "Kafka fences earlier writers by it"),
        ('"enable.idempotence" = false', "a record could be lost, or be written twice"),
        ('"acks" = 0', "a record could be lost"),
        ('"bootstrap.servers" = "other:9092"', "[log.kafka] bootstrap names the brokers"),
        ('"metadata.broker.list" = "other:9092"', "[log.kafka] bootstrap names the brokers"),
        ('"auto.offset.reset" = "latest"', "the checkpoint and the consumer group determine where reading begins"),
        ('"enable.partition.eof" = false', "needs it to know that it has read a partition to its end"),
        ('"message.max.bytes" = 1000', "the topics' max.message.bytes is the limit"),
        ('"session.timeout.ms" = 1', "[executor] session_timeout_seconds"),
        ('"partitioner" = "random"', "must be in one partition"),
        ('"sasl.jaas.config" = "x"', "use sasl.mechanism, sasl.username and sasl.password_file"),
        ('"enable.ssl.certificate.verification" = false', "ssl.ca.location"),
        ('"plugin.library.paths" = "evil.so"', "loads code"),
    ],
)
def test_options_that_safety_needs_are_refused_with_the_setting_to_use_instead(
    tmp_path: Path, option: str, instead: str
) -> None:
    name = option.split('"')[1]
    told = refusal(tmp_path, f"[log.kafka.client]\n{option}")
    assert f"[log.kafka.client] {name} is trimtab's own: " in told
    assert instead in told


def test_an_option_of_no_known_family_is_refused_and_all_flaws_are_told_at_once(tmp_path: Path) -> None:
    told = refusal(tmp_path, '[log.kafka.client]\n"acks" = 1\n"stats.interval.ms" = 5\n"securty" = "x"')
    assert "acks is trimtab's own" in told
    assert "stats.interval.ms is not an option that may be set here; allowed are security.protocol, sasl.*" in told
    assert "securty is not an option" in told


def test_options_of_connections_security_and_batching_are_passed_on(tmp_path: Path) -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "ssl.endpoint.identification.algorithm": "https",
        "socket.keepalive.enable": True,
        "client.id": "lab",
        "client.dns.lookup": "use_all_dns_ips",
        "metadata.max.age.ms": 60000,
        "reconnect.backoff.max.ms": 2000,
        "compression.type": "zstd",
        "linger.ms": 10,
    }
    text = "\n".join(
        f'"{key}" = {str(value).lower() if isinstance(value, bool) else repr(value)}' for key, value in given.items()
    )
    assert client_of(tmp_path, text) == given


def test_a_secret_can_lie_in_a_file_and_paths_are_seen_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{SECRET}\n")
    found = client_of(
        tmp_path, '"sasl.password_file" = "password"\n"ssl.ca.location" = "ca.pem"\n"ssl.crl.location" = "/etc/crl.pem"'
    )
    assert found == {
        "sasl.password": SECRET,
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.crl.location": "/etc/crl.pem",
    }
    assert client_of(tmp_path, '"ssl.ca.location" = "probe"') == {"ssl.ca.location": "probe"}


def test_a_secret_in_the_settings_and_in_a_file_at_once_is_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, f'[log.kafka.client]\n"sasl.password" = "{SECRET}"\n"sasl.password_file" = "password"')
    assert "sasl.password and sasl.password_file are both given" in told
    assert SECRET not in told


@pytest.mark.parametrize(
    "text",
    [
        f'[pulsar]\npassword = "{SECRET}"',
        f'[pulsar]\ntoken = "{SECRET}"',
        f'[pulsar]\npasswrod = "{SECRET}"',
        f'pulsar = "{SECRET}"',
        f'pulsra = "{SECRET}"',
        f'[pulsra]\nuser = "{SECRET}"',
        f'[pulsar]\nuser = "me"\npassword_file = ["{SECRET}"]',
        f'[pulsar]\nadmin_url = ["http://me:{SECRET}@broker:8080"]',
        f'[pulsar]\nadmin_url = "http://me:{SECRET}@broker:8080"',
        f'[pulsar]\nuser = "{SECRET}"',
        f'[log.kafka.client]\n"sasl.password" = ["{SECRET}"]',
        f'[log.kafka.client]\n"sasl.password" = {{ value = "{SECRET}" }}',
        f'[log.kafka.client]\n"sasl.passwrod" = "x"\n"acks" = "{SECRET}"',
        f'[log.kafka.client]\n"sasl.password_file" = "{SECRET}"',
        f'[log.kafka.client]\n"pasword" = "{SECRET}"',
        f'[log.kafka]\nclient = "{SECRET}"',
        f'[election.auth]\nscheme = "digest"\nuser = "me"\npassword = "{SECRET}"',
        f'[election.auth]\nscheme = "{SECRET}"',
        f'[election]\nauth = "{SECRET}"',
        f'[election]\nauth = "me:{SECRET}"',
        f'[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = ["{SECRET}"]',
        f'[spark]\nconf = "{SECRET}"',
        f'[collector]\nservice_url = "pulsar://me:{SECRET}@broker:6650"',
        f'[collector]\nzookeeper_auth = {{ scheme = "sasl", user = "me", secret = "{SECRET}" }}',
    ],
)
def test_a_secret_in_the_wrong_place_is_never_shown(tmp_path: Path, text: str) -> None:
    start = START
    for there_already in ("log.kafka", "election"):
        if text.startswith(f"[{there_already}]\n"):
            text = f"{there_already}.{text.splitlines()[1]}"
            start = start.replace("[log.kafka]\nbootstrap", "log.kafka.bootstrap")
    before = "" if text.startswith("[") else text
    told = refusal_of(tmp_path, f"{before}\n{start}\n{text if not before else ''}")
    assert SECRET not in told
    assert "trimtab.toml: " in told


def test_settings_that_are_printed_show_no_secret(tmp_path: Path) -> None:
    settings = written(
        tmp_path,
        f"""
        [log.kafka.client]
        "sasl.username" = "me"
        "sasl.password" = "{SECRET}"
        [spark.conf]
        "spark.hadoop.fs.s3a.secret.key" = "{SECRET}"
        """,
    )
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings.log)
    # Nor does the error of a section that is made by itself.
    with pytest.raises(ValueError, match="bootstrap") as caught:
        KafkaLogSettings.model_validate({"client": {"sasl.password": SECRET}})
    assert SECRET not in str(caught.value)


def test_values_are_hidden_by_the_names_around_them_and_in_urls() -> None:
    assert printable_value(["log", "sasl.password"], SECRET) == "'<hidden>'"
    assert printable_value(["pulsar"], {"token": SECRET, "user": "me"}) == "{'token': '<hidden>', 'user': 'me'}"
    assert printable_value(["pulsar", "token_file"], SECRET) == "'<hidden>'"
    assert printable_value(["intervals", "keep"], [1, "a"]) == "[1, 'a']"
    assert without_userinfo(f"http://me:{SECRET}@broker:8080/x") == "http://<hidden>@broker:8080/x"
    assert without_userinfo("host:2181,other:2181/chroot") == "host:2181,other:2181/chroot"
