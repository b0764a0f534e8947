"""The policy with which recorded load is decided on: a strategy, and the options of a broker.conf."""

import os
from pathlib import Path

from controller.cycle import Policy
from controller.model.errors import SettingsError
from controller.model.pulsar_version import PulsarVersion
from controller.settings.broker_conf import origin_of, read_broker_conf
from controller.settings.guardrails import GuardrailSettings
from controller.settings.pairs import PLACEMENT, SHEDDER, needed_by
from controller.settings.policy import versioned_policy
from controller.settings.trimtab_toml import DecisionSettings


def recorded_policy(
    strategy: str,
    placement: str | None,
    broker_conf: Path | None,
    *,
    split: bool,
    period_ms: int,
    pulsar: PulsarVersion | None = None,
) -> Policy:
    """The policy of the options.  What --strategy needs besides is the default of the other options.

    *pulsar*: the version of Pulsar; None: what the load says.
    """
    file = broker_conf or Path(os.devnull)
    conf = read_broker_conf(file, os.environ)
    own = needed_by(strategy)
    asked = {SHEDDER: strategy} | ({} if placement is None else {PLACEMENT: placement})
    decisions = DecisionSettings(mode="active", split=split)
    try:
        merged = {**own, **{k: v for k, v in conf.items() if v}, **asked}
        return versioned_policy(merged, decisions, GuardrailSettings(), 1, "", period_ms, pulsar=pulsar)
    except SettingsError as error:
        where = "--strategy, --placement"
        if broker_conf is not None:
            where = f"{where}, {origin_of(file, os.environ)}"
        raise SettingsError(f"{where}: {error}") from error
