"""Names in the settings: those that Pulsar cannot have are refused, with what is meant."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.adapters.recordings.manifest import RecordedSettings, recorded_settings
from controller.settings.access import KafkaPrincipals
from controller.settings.log import KafkaLogSettings
from controller.settings.policy import read_policy
from controller.settings.pulsar_log import PulsarLogSettings
from controller.settings.pulsar_names import namespace_or_bundle
from controller.settings.trimtab_toml import ClusterSettings, Settings

BUNDLE = "tenant/ns-2/0x08000000_0x10000000"


def refusal(name: str) -> str:
    with pytest.raises(ValueError, match=r"^.+") as caught:
        namespace_or_bundle(name)
    return str(caught.value)


def test_names_of_namespaces_and_bundles_stay_as_they_are() -> None:
    names = (
        "tenant/ns",
        "a-=:._b/0xab",
        "tenant/*",
        "*/prod-*-eu",
        "acme/20240101-20240131",
        "acme/1a2b3c4d-5e6f7a8b",
        "acme/00112233.44556677",
        "acme/0x08000000-0x10000000",
        "prop/cluster/ns",
        "prop/cluster/2024-01",
        BUNDLE,
        f"prop/cluster/{BUNDLE[7:]}",
    )
    assert [namespace_or_bundle(name) for name in names] == list(names)


def test_a_range_that_pulsar_does_not_write_so_is_refused_with_the_one_that_is_meant() -> None:
    for name in (
        "tenant/ns-2/0x08000000-0x10000000",
        "tenant/ns-2/0x8000000_0x10000000",
        "tenant/ns-2/0x08000000_10000000",
        "tenant/ns-2/08000000_10000000",
        "tenant/ns-2/08000000-10000000",
        "tenant/ns-2/0X8000000:0x10000000",
    ):
        assert f"Pulsar writes {BUNDLE}" in refusal(name), name


def test_what_names_nothing_is_refused() -> None:
    for name, told in {
        "tenant": "is not a namespace; expected tenant/namespace, or",
        "": "is not a namespace",
        "tenant/": "is not a namespace",
        "*": "is not a namespace",
        "tenant/prod-?": "'prod-?' is not a valid name in Pulsar",
        "tenant/*/0x00000000_0x80000000": "a bundle's namespace is a name, and no pattern",
        "größe/ns": "'größe' is not a valid name in Pulsar",
        "tenant/n s": "'n s' is not a valid name in Pulsar",
        "persistent://tenant/ns": "is not a namespace",
        "0x00000000_0x80000000": "is not a namespace",
        "ns/0x00000000_0x80000000": "'ns' is not a namespace with its tenant",
        "ns/0X8000000_0x10000000": "'ns' is not a namespace with its tenant",
        "ten*/ns/0x00000000_0x80000000": "'ten*' is not a valid name in Pulsar: allowed",
        "tenant/ns/0x00000000": "is not the range of a bundle",
        "tenant/ns/0xfoo_0xbar": "is not the range of a bundle",
        "tenant/ns/0x000000000_0x80000000": "is not the range of a bundle",
        "tenant/ns/0x80000000_0x00000000": "with lower < upper",
    }.items():
        assert told in refusal(name), name


def settings(folder: Path, excluded: list[str]) -> Settings:
    (folder / "broker.conf").touch()
    return Settings.model_validate(
        {
            "cluster": {"name": "lab", "broker_conf": str(folder / "broker.conf")},
            "log": {"kind": "folder", "folder": {"path": str(folder / "log")}},
            "election": {"kind": "file", "path": str(folder / "election")},
            "checkpoint": {"path": str(folder / "checkpoint")},
            "decisions": {"excluded": excluded},
        }
    )


def test_a_recording_excludes_what_the_settings_do(tmp_path: Path) -> None:
    given = settings(tmp_path, ["tenant/ns/0x98000000_0xA0000000", "tenant/ns"])
    kept = recorded_settings(given)
    assert kept.policy("lab").excluded == read_policy(given).excluded
    assert RecordedSettings.model_validate_json(kept.model_dump_json(by_alias=True)) == kept


def test_other_names_that_pulsar_and_kafka_do_not_have_are_refused() -> None:
    in_pulsar = {"service_url": "pulsar://a:6650", "admin_url": ["http://a:8080"]}
    for section, key, values, wrong in (
        (ClusterSettings, "name", {}, ("größe", "a b", "a/b", ".", "..")),
        (KafkaLogSettings, "metrics_topic", {"bootstrap": "a:9092"}, ("a b", "größe", "..", "", "a" * 250, "a/b")),
        (PulsarLogSettings, "namespace", in_pulsar, ("größe/ns", "tenant/*", "tenant", "a/b/c", "tenant/")),
        (PulsarLogSettings, "metrics_topic", in_pulsar, ("größe", "a b")),
        (KafkaPrincipals, "reader", {}, ("trimtab-reader", "User:", ":name")),
    ):
        for name in wrong:
            with pytest.raises(ValidationError, match=key):
                section.model_validate({**values, key: name})
