"""The namespace that trimtab's own log lies in is never moved or split."""

from dataclasses import replace
from pathlib import Path

import pytest

from controller.cycle.protected import ProtectedBundles
from controller.model.decision import Reason
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings
from tests.cluster import broker, bundle, view

OWN = "ops/trimtab/0x00000000_0x80000000"
OTHER = "ops/trimtab-2/0x00000000_0x80000000"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    conf = tmp_path / "broker.conf"
    conf.write_text("")
    log = {"service_url": "pulsar://a:6650", "admin_url": ["http://a:8080"], "namespace": "ops/trimtab"}
    return Settings.model_validate(
        {
            "cluster": {"name": "lab", "broker_conf": str(conf)},
            "log": {"kind": "pulsar", "pulsar": log},
            "election": {"kind": "file", "path": str(tmp_path / "election")},
            "checkpoint": {"path": str(tmp_path / "checkpoint")},
            "decisions": {"excluded": ["acme/quiet"]},
        }
    )


def test_its_bundles_are_untouchable_however_busy_they_are(settings: Settings) -> None:
    policy = read_policy(settings)
    busy = replace(broker("busy"), bundles={name: bundle(1, msg_rate=1e6) for name in (OWN, OTHER)})
    untouchable = ProtectedBundles.of(view(busy, broker("idle")), policy.initial_memory(0), policy)
    found = untouchable.verdict(OWN)
    assert found is not None
    assert found.reason is Reason.EXCLUDED
    assert untouchable.verdict(OTHER) is None
    assert untouchable.rest().bundles.names == (OTHER,)


def test_what_the_settings_exclude_stays_excluded(settings: Settings) -> None:
    assert read_policy(settings).excluded == {"acme/quiet", "ops/trimtab"}
