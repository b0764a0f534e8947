"""Options of broker.conf one letter off a known one are errors; unknown options of Pulsar's own are not."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.model.option import option
from controller.settings.broker_conf import read_broker_conf
from controller.settings.misspelt import keys_of, refuse_misspelt
from controller.settings.policy import known_keys

_KNOWN = known_keys({})


@dataclass(frozen=True, kw_only=True)
class OwnStrategy:
    percent: float = option("loadBalancerMyPercentage", default=1.0, meaning="", aliases=("loadBalancerMyPercent",))


@pytest.mark.parametrize(
    "key",
    [
        "loadBalancerBrokerThresholdShedderPercentag",
        "loadBalancerBrokerThresholdShedderPercentagee",
        "loadBalancerBrokerThresholdShedderPercemtage",
        "loadBalancerBrokerThresholdShedderPercentaeg",
        "loadbalancerbrokerthresholdshedderpercentage",
    ],
)
def test_one_letter_off_is_an_error_that_names_the_option_that_was_meant(key: str) -> None:
    with pytest.raises(SettingsError, match=f"{key}: no such option; did you mean .*ShedderPercentage\\?"):
        refuse_misspelt({"loadBalancerEnabled": "true", key: "10"}, _KNOWN)


@pytest.mark.parametrize(
    "key",
    [
        "managedLedgerDefaultEnsembleSize",
        "loadBalancerDebugModeEnabled",
        "loadBalancerOverrideBrokerNicSpeedGbps",
        "loadBalancerBandwithInResourceWeight",
        "my.own.key",
        "a",
    ],
)
def test_other_options_are_no_error(key: str) -> None:
    refuse_misspelt({key: "1"}, _KNOWN)


def test_an_option_of_trimtabs_own_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(SettingsError, match="did you mean trimtabAvgShedderFixed"):
        refuse_misspelt({"trimtabAvgShedderIsFixed": "true"}, _KNOWN)


def test_options_of_a_strategy_that_a_user_wrote_are_known() -> None:
    known = known_keys({"loadBalancerLoadSheddingStrategy": f"{__name__}.OwnStrategy"})
    assert keys_of([OwnStrategy]) == {"loadBalancerMyPercentage", "loadBalancerMyPercent"} <= known


def test_settings_of_trimtab_in_place_of_a_broker_conf_are_refused_with_the_line(tmp_path: Path) -> None:
    conf = tmp_path / "trimtab.toml"
    conf.write_text('# settings\n\n[cluster]\nname = "lab"\n')
    with pytest.raises(SettingsError, match=r"line 3: \[cluster\] begins a section of TOML.*is this trimtab.toml"):
        read_broker_conf(conf)
