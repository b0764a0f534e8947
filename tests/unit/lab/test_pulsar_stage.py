"""The demo's namespace on real Pulsar: its topics, its rates, and how it comes to one broker."""

from itertools import pairwise
from typing import Any

import pytest

from controller.adapters.pulsar.admin import PulsarError
from controller.lab.pulsar_stage import StageAdmin, set_stage
from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle, topic_hash

A, B = "a:8080", "b:8080"
#: As Pulsar makes them: evenly.
CUTS = tuple(min(n * 2**32 // 24, 0xFFFFFFFF) for n in range(25))


class StubAdmin(StageAdmin):
    """Bundles go where they are sent, at the second request; those that nobody has go to B."""

    def __init__(self) -> None:
        super().__init__(["http://nowhere"], cluster="lab")
        self.created: list[tuple[str, int]] = []
        self.owners: dict[str, str] = {}
        self.refused: set[str] = set()
        self.stats: dict[str, dict[str, Any]] = {A: {}, B: {}}

    def create_namespace(self, name: str, bundles: int) -> None:
        self.created.append((name, bundles))

    def boundaries(self, _: str) -> tuple[int, ...]:
        return CUTS

    def lookup(self, bundle: str) -> str:
        return self.owners.setdefault(bundle, B)

    def unload(self, bundle: str, destination: str = "") -> None:
        assert bundle in self.owners, "a destination for a bundle that nobody has steers another one"
        if bundle not in self.refused:
            self.refused.add(bundle)
            raise PulsarError("not now", status=503)
        self.owners[bundle] = destination

    def topic_stats(self, broker: str) -> dict[str, Any]:
        return self.stats[broker]


def test_every_bundle_has_a_topic_and_few_of_them_are_hot() -> None:
    admin = StubAdmin()
    stage = set_stage(admin, "demo/orders", 24)
    assert admin.created == [("demo/orders", 24)]
    for bundle, (lower, upper), topic in zip(stage.bundles, pairwise(CUTS), stage.topics, strict=True):
        name = parse_bundle(bundle)
        assert (name.lower, name.upper) == (lower, upper)
        assert lower <= topic_hash(topic) < upper
        assert topic.startswith("persistent://demo/orders/")
    rates = sorted(stage.rates.values(), reverse=True)
    assert (len(rates), rates[:4]) == (24, [60.0, 60.0, 60.0, 20.0])


def test_all_bundles_are_brought_to_one_broker_also_where_that_takes_more_than_one_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("controller.lab.pulsar_stage._AGAIN_SECONDS", 0)
    admin = StubAdmin()
    stage = set_stage(admin, "demo/orders", 24)
    stage.gather(A)
    assert admin.owners == dict.fromkeys(stage.bundles, A)


def test_a_bundle_that_does_not_come_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.lab.pulsar_stage._AGAIN_SECONDS", 0)
    monkeypatch.setattr(StubAdmin, "unload", lambda *_: None)
    stage = set_stage(StubAdmin(), "demo/orders", 24)
    with pytest.raises(TrimtabError, match=f"{stage.bundles[0]} does not go to {A}"):
        stage.gather(A)


def test_rates_are_those_in_and_out_of_its_own_topics_on_each_broker() -> None:
    admin = StubAdmin()
    stage = set_stage(admin, "demo/orders", 24)
    topics = {"one": {"msgRateIn": 10.0, "msgRateOut": 9.5}, "two": {"msgRateIn": 1.0}}
    other = {"msgRateIn": 1000.0, "msgRateOut": 1000.0}
    admin.stats[A] = {
        "demo/orders": {"0x00000000_0x0aaaaaaa": {"persistent": topics}, "0x0aaaaaaa_0x15555555": {}},
        "demo/other": {"0x00000000_0xffffffff": {"persistent": {"three": other}}},
    }
    assert stage.msg_rates([A, B]).tolist() == [20.5, 0.0]
