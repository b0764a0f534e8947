"""Addresses that no client could use are refused with the settings, and say what is allowed."""

from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.settings.addresses import host_and_port
from controller.settings.trimtab_toml import CollectorSettings, MetricsSettings, PulsarSettings, Settings, read_settings

_CONF = """
[cluster]
name = "lab"
[log]
kind = "kafka"
[log.kafka]
bootstrap = "{bootstrap}"
{topics}
[election]
kind = "zookeeper"
hosts = "{hosts}"
path = "/trimtab"
[checkpoint]
path = "checkpoint"
[pulsar]
admin_url = ["{admin_url}"]
[collector]
service_url = "{service_url}"
"""
_USABLE = {
    "bootstrap": "kafka:9092",
    "hosts": "zk:2181",
    "admin_url": "http://a:8080",
    "service_url": "",
    "topics": "",
}


def read(folder: Path, **values: str) -> Settings:
    conf = folder / "trimtab.toml"
    conf.write_text(_CONF.format(**_USABLE | values))
    return read_settings(conf)


@pytest.mark.parametrize("text", ["a:9092", "a:9092, b:9093", "[::1]:9092", "SSL://a.example.com:9093", "10.0.0.1:1"])
def test_brokers_of_kafka_have_a_host_and_a_port(tmp_path: Path, text: str) -> None:
    log = read(tmp_path, bootstrap=text).log.kafka
    assert log is not None
    assert log.bootstrap == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("127.0.0.1", "'127.0.0.1' has no port: allowed is host:port"),
        ("a:9092,b", "'b' has no port"),
        ("a:9092,", "'' is not an address"),
        ("a:kafka", "'a:kafka' is not an address"),
        ("a:70000", "'a:70000' has port 70000"),
        ("http://a/b:1", "is not an address"),
        ("kafka..svc:9092", "'kafka..svc:9092' has a part between two dots that is empty or longer than 63 characters"),
        (f"a:1,{'b' * 64}.com:9092", "has a part between two dots that is empty or longer than 63 characters"),
    ],
)
def test_an_address_of_kafka_that_cannot_be_used_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsError) as failure:
        read(tmp_path, bootstrap=text)
    assert "log.kafka.bootstrap" in str(failure.value)
    assert told in str(failure.value)


def test_hosts_that_no_resolver_takes_are_refused_wherever_one_is_named() -> None:
    for make in (
        lambda host: PulsarSettings(admin_url=(f"http://{host}:8080",)),
        lambda host: CollectorSettings(zookeeper=f"{host}:2181"),
        lambda host: CollectorSettings(service_url=f"pulsar://{host}:6650"),
        lambda host: host_and_port(f"{host}:9640"),
    ):
        make("pulsar-0.pulsar.svc.")
        with pytest.raises(ValueError, match="has a part between two dots that is empty"):
            make("pulsar..svc")


@pytest.mark.parametrize("text", ["zk", "zk:2181,zk2:2181", "zk:2181/pulsar/one", "[::1]:2181"])
def test_zookeeper_may_have_its_usual_port_and_a_chroot(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, hosts=text).election.hosts == text


@pytest.mark.parametrize("text", ["zk:abc", "zk:2181,,zk2:2181", "zk:0", "zk:2181/", "http://zk:2181"])
def test_an_address_of_zookeeper_that_cannot_be_used_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"election\.hosts"):
        read(tmp_path, hosts=text)


@pytest.mark.parametrize("url", ["http://a:8080", "https://a:8443/", "http://[::1]:8080", "https://proxy"])
def test_the_admin_api_is_named_by_its_url(tmp_path: Path, url: str) -> None:
    pulsar = read(tmp_path, admin_url=url).pulsar
    assert pulsar is not None
    assert pulsar.admin_url == (url,)


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "localhost", "pulsar://a:6650", "http://", "http://a:99999", "http://a:8080/admin/v2"]
)
def test_an_admin_url_that_cannot_be_used_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError) as failure:
        read(tmp_path, admin_url=url)
    assert "pulsar.admin_url" in str(failure.value)
    assert "allowed is http://host:port or https://host:port" in str(failure.value)
    assert str(failure.value).count("\n") == 0, "one mistake is one line"


def test_a_service_url_has_the_scheme_of_pulsar(tmp_path: Path) -> None:
    assert read(tmp_path, service_url="pulsar+ssl://a:6651").collector.service_url == "pulsar+ssl://a:6651"
    with pytest.raises(SettingsError, match=r"collector\.service_url"):
        read(tmp_path, service_url="http://a:8080")


def test_one_topic_has_one_purpose(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="results_topic and journal_topic are both 'x'"):
        read(tmp_path, topics='results_topic = "x"\njournal_topic = "x"')


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("127.0.0.1:9640", "127.0.0.1", 9640), ("[::1]:1", "::1", 1), ("localhost:65535", "localhost", 65535)],
)
def test_an_address_to_listen_at_has_a_host_and_a_port(address: str, host: str, port: int) -> None:
    assert host_and_port(address) == (host, port)


@pytest.mark.parametrize(
    "address",
    ["9640", ":9640", "127.0.0.1", "a:0", "a:65536", "http://a:1", "a:1,b:2", "a:1/x", "::1:1", "a :1", "a:1\n"],
)
def test_an_address_that_nobody_can_listen_at_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"expected host:port|allowed is a number"):
        host_and_port(address)


def test_metrics_are_served_nowhere_unless_the_settings_say_where(tmp_path: Path) -> None:
    assert read(tmp_path).metrics == MetricsSettings(controller="", collector="", executor="")
    with pytest.raises(SettingsError, match=r"metrics\.executor.*'9640' is not an address: expected host:port"):
        read(tmp_path, service_url='"\n[metrics]\nexecutor = "9640')
