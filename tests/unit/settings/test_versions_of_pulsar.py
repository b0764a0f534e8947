"""What a broker.conf means by version: the defaults of what it leaves out, its class names, and what is refused."""

from pathlib import Path

import pytest

from controller.cycle import Policy
from controller.model import pulsar_version
from controller.model.errors import SettingsError
from controller.model.pulsar_version import DEFAULTS, KNOWN_SINCE, ClassMeaning, PulsarVersion, other_defaults
from controller.settings.guardrails import GuardrailSettings
from controller.settings.known_options import KNOWN_KEYS, options_table
from controller.settings.pairs import PLACEMENT, SHEDDER
from controller.settings.policy import policy_of, read_policy
from controller.settings.trimtab_toml import DecisionSettings, read_settings
from controller.strategies.filters.fewest_bundles import FewestBundles
from controller.strategies.shedding.uniform_load_shedder import UniformLoadShedder

_IMPL = "org.apache.pulsar.broker.loadbalance.impl."


def on(version: str, **conf: str) -> Policy:
    found = PulsarVersion.parse(version)
    assert found is not None
    return policy_of(conf, DecisionSettings(), GuardrailSettings(), 1, "demo", 60_000, pulsar=found)


def names(policy: Policy) -> tuple[str, str]:
    return type(policy.shedder).__name__, type(policy.placement).__name__


@pytest.mark.parametrize(
    ("version", "strategies"),
    [
        ("2.9.3", ("OverloadShedder", "LeastLongTermMessageRate")),
        ("4.0.8", ("ThresholdShedder", "LeastLongTermMessageRate")),
        ("4.2.4", ("ThresholdShedder", "LeastLongTermMessageRate")),
        ("5.0.1", ("AvgShedder", "AvgShedder")),
    ],
)
def test_a_conf_that_names_no_strategy_gets_those_of_the_version(version: str, strategies: tuple[str, str]) -> None:
    assert names(on(version)) == strategies
    assert names(on(version, **{SHEDDER: "", PLACEMENT: ""})) == strategies, "an empty value is none"


@pytest.mark.parametrize("placement", ["", "AvgShedder", f"{_IMPL}AvgShedder"])
@pytest.mark.parametrize("shedder", ["ThresholdShedder", f"{_IMPL}OverloadShedder", "PeakShedder"])
def test_5_0_places_by_message_rate_where_the_shedder_is_another_class_than_avgshedder(
    shedder: str, placement: str
) -> None:
    assert names(on("5.0.1", **{SHEDDER: shedder, PLACEMENT: placement}))[1] == "LeastLongTermMessageRate"


def test_5_0_takes_avgshedder_with_another_placement_and_4_2_is_refused() -> None:
    conf = {SHEDDER: "AvgShedder", PLACEMENT: "LeastResourceUsageWithWeight"}
    assert names(on("5.0.0", **conf)) == ("AvgShedder", "LeastResourceUsageWithWeight")
    with pytest.raises(SettingsError, match="it plans where each bundle goes"):
        on("4.2.4", **conf)


def test_with_the_extensible_load_manager_5_0_has_the_strategies_of_that_manager() -> None:
    conf = {"loadManagerClassName": "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"}
    assert names(on("5.0.1", **conf)) == ("TransferShedder", "ExtLeastResourceUsageWithWeight")


@pytest.mark.parametrize(
    ("version", "share", "slack"), [("2.11.0", 0.2, 1000), ("4.1", 0.2, 1000), ("4.2.0", 0.2, 0), ("5.0.1", 0.5, 0)]
)
def test_uniform_load_shedder_has_the_options_of_the_version(version: str, share: float, slack: int) -> None:
    shedder = on(version, **{SHEDDER: "UniformLoadShedder"}).shedder
    assert isinstance(shedder, UniformLoadShedder)
    assert (shedder.share_to_unload, shedder.slack) == (share, slack)


def test_what_is_written_down_holds_in_every_version_also_where_it_is_an_older_default() -> None:
    conf = {SHEDDER: "UniformLoadShedder", "maxUnloadPercentage": "0.2", "trimtabUniformLoadShedderSlack": "1000"}
    shedder = on("5.0.1", **conf).shedder
    assert isinstance(shedder, UniformLoadShedder)
    assert (shedder.share_to_unload, shedder.slack) == (0.2, 1000)


@pytest.mark.parametrize(("version", "evenly"), [("4.2.4", True), ("5.0.1", False)])
def test_bundles_are_spread_evenly_by_default_up_to_4_2(version: str, evenly: bool) -> None:
    [filter_] = [each for each in on(version).filters if isinstance(each, FewestBundles)]
    assert filter_.enabled is evenly


def test_a_class_may_mean_another_strategy_in_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    since = PulsarVersion(5, 0, 0)
    toy = {(SHEDDER, "OverloadShedder"): (ClassMeaning(since, "UniformLoadShedder"),)}
    monkeypatch.setattr(pulsar_version, "MEANINGS", toy)
    conf = {SHEDDER: f"{_IMPL}OverloadShedder", PLACEMENT: "LeastLongTermMessageRate"}
    assert [names(on(version, **conf))[0] for version in ("4.2.4", "5.0.1")] == [
        "OverloadShedder",
        "UniformLoadShedder",
    ]


def test_every_option_of_the_table_is_one_that_trimtab_knows() -> None:
    assert {*DEFAULTS, *KNOWN_SINCE} <= KNOWN_KEYS


def test_the_oldest_row_or_the_declared_default_is_what_trimtab_options_prints() -> None:
    declared = {row.key: row.default for row in options_table()}
    for version in (PulsarVersion(2, 8), PulsarVersion(4, 2), PulsarVersion(5, 0)):
        printed = {row.key: row.default for row in options_table(version)}
        assert {key: text for key, text in printed.items() if text != declared[key]} == other_defaults(version)


def test_an_option_that_a_version_does_not_know_is_marked() -> None:
    [row] = [row for row in options_table(PulsarVersion(4, 0)) if row.key == "loadBalancerSheddingExcludedNamespaces"]
    assert row.meaning.endswith("(not an option of brokers of Pulsar 4.0)")


def written(tmp_path: Path, pulsar: str) -> Path:
    (tmp_path / "broker.conf").write_text("loadBalancerEnabled=true\n")
    conf = tmp_path / "trimtab.toml"
    conf.write_text(
        f'[cluster]\nname = "demo"\n{pulsar}\n[log]\nkind = "folder"\n[log.folder]\npath = "log"\n'
        '[election]\nkind = "file"\npath = "election"\n[checkpoint]\npath = "checkpoint"\n'
    )
    return conf


@pytest.mark.parametrize(
    ("line", "pinned", "shedder"),
    [
        ("", None, "ThresholdShedder"),
        ('pulsar = "auto"', None, "ThresholdShedder"),
        ('pulsar = "5.0"', "5.0", "AvgShedder"),
        ('pulsar = "2.8.4"', "2.8.4", "OverloadShedder"),
    ],
)
def test_the_settings_name_a_version_or_leave_it_to_the_brokers(
    tmp_path: Path, line: str, pinned: str | None, shedder: str
) -> None:
    policy = read_policy(read_settings(written(tmp_path, line)), {})
    assert policy.versions is not None
    assert (policy.versions.pinned and str(policy.versions.pinned)) == pinned
    assert type(policy.shedder).__name__ == shedder


@pytest.mark.parametrize("text", ["latest", "6.0", "2.7.1", "4", "4.0.x", "", "AUTO"])
def test_a_version_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"cluster\.pulsar.*2\.8, .*5\.0"):
        read_settings(written(tmp_path, f'pulsar = "{text}"'))
