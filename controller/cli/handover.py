"""``trimtab take-over`` and ``trimtab hand-back``: who balances, the brokers or trimtab.

Both change the brokers' dynamic settings and then check that every broker has applied them.  Neither needs the log or
a controller.  Two balancers must never work at once, so one stops before the other begins.
"""

import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final

import typer

from controller.adapters.election.controls import ControlStore
from controller.adapters.outages import Part
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarAdmin, PulsarError
from controller.cli import controls
from controller.cli.controls import By, ReasonOption
from controller.cli.shared import failures
from controller.cli.shared.console import DEFAULT_CONF, Conf, command_line, console
from controller.cli.shared.layout import print_line
from controller.cli.shared.reachable import require
from controller.cli.shared.signing import KeyOption, signer_with
from controller.model.balancing import SHEDDING, SPLITTING
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings
from controller.wire.controls_text import pauses_text

_ANSWER_SECONDS: Final = 5.0
#: Brokers receive a dynamic setting through the metadata store, usually within a second.
_HEARD_SECONDS: Final = 30.0
_LOOK_AGAIN_SECONDS: Final = 1.0

_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def take_over(
    conf: Conf = DEFAULT_CONF,
    reason: ReasonOption = "take over",
    by: By = "",
    key: KeyOption = None,
    yes: _Yes = False,
) -> None:
    """Switch off the brokers' own shedding and splitting, then let trimtab act: asks before each step.

    Where [approvals] demands signatures, the mode is proposed with --key: nobody balances until others approve it.
    Refused while trimtab is paused, as it is after hand-back: nobody would balance.

    Exit codes: 0 trimtab is active; 1 a broker did not confirm, trimtab is paused, or you said no: nothing is issued
    beside brokers that balance; 2 the settings name no brokers, or there is no terminal to ask and no --yes.
    """
    settings = read_settings(conf)
    # Refused now, and not once nobody balances any more.
    signer_with(settings, key, by)
    require(settings, Part.ELECTION)
    controls.with_store(settings, lambda store: _refuse_paused(settings, store, conf))
    with closing(_admin(settings)) as admin:
        switches = dict.fromkeys(_ours(settings), "false")
        _say_what_is_set(admin, switches)
        _agreed("1. Switch off the brokers' own balancing? Nothing is balanced until step 2.", yes=yes)
        _set(admin, switches)
        _say("   Write the same into broker.conf, so that a restart of a broker keeps it.")
    _agreed(f"2. Set the mode of {settings.cluster.name} to active? Controllers then issue commands.", yes=yes)
    controls.mode(controls.Mode.ACTIVE, conf=conf, reason=reason, by=by, key=key)
    _say(f"   Watch it with `{command_line('status', conf=conf)}`.")


def hand_back(conf: Conf = DEFAULT_CONF, reason: ReasonOption = "hand back", by: By = "", yes: _Yes = False) -> None:
    """Pause trimtab, then switch the brokers' own shedding and splitting on again: asks before each step.

    For when trimtab is to be stopped, or is dead.  Needs neither the log nor a controller; where the election cannot be
    reached either, no controller leads, and the brokers' balancing is switched on anyway.  Exit codes: 0 the brokers
    balance; 1 a broker did not confirm, or you said no; 2 the settings name no brokers, or there is nobody to ask and
    no --yes.
    """
    settings = read_settings(conf)
    with closing(_admin(settings)) as admin:
        switches = dict.fromkeys(_ours(settings), "true")
        _say_what_is_set(admin, switches)
        _agreed(f"1. Pause trimtab on {settings.cluster.name}?", yes=yes)
        try:
            controls.pause(conf=conf, reason=reason, by=by)
        except TrimtabError as error:
            failures.say(f"trimtab is not paused: {error}")
            _agreed("   Go on without? Do so where no controller runs.", yes=yes)
        _agreed("2. Switch on the brokers' own balancing?", yes=yes)
        _set(admin, switches)
    _say("   End collectors, controllers and executors; and write the same into broker.conf.")


def _refuse_paused(settings: Settings, store: ControlStore, conf: Path) -> None:
    known, _ = store.read()
    now_ms = int(time.time() * 1000)
    if known.is_paused(now_ms, paused=settings.decisions.paused):
        by = pauses_text(known.pauses_at(now_ms)) or "the settings"
        raise TrimtabError(
            f"{settings.cluster.name} is paused by {by}. Nobody would balance; `{command_line('resume', conf=conf)}`"
            " first: trimtab issues nothing while the brokers balance"
        )


def _admin(settings: Settings) -> PulsarAdmin:
    return pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS)


def _ours(settings: Settings) -> tuple[str, ...]:
    """The switches of what trimtab does in place of the brokers."""
    decisions = settings.decisions
    keys = [key for key, does in ((SHEDDING, decisions.shed), (SPLITTING, decisions.split)) if does]
    if not keys:
        raise SettingsError("decisions.shed and decisions.split are both false: trimtab balances nothing here")
    return tuple(keys)


def _say_what_is_set(admin: PulsarAdmin, switches: Mapping[str, str]) -> None:
    brokers = admin.brokers()
    if not brokers:
        raise TrimtabError("no broker is active: there is no broker to hand over to")
    for name in brokers:
        current = _switches_of(admin, name, switches)
        text = (
            ", ".join(f"{key}={value}" for key, value in current.items()) if current else "does not show its settings"
        )
        _say(f"{name}: {text}")


def _switches_of(admin: PulsarAdmin, broker: str, switches: Mapping[str, str]) -> dict[str, str]:
    """The *switches* keys with what *broker* runs with; empty where it does not say."""
    try:
        runs_with = admin.configuration(broker)
    except PulsarError:
        return {}
    return {key: runs_with.get(key, "").strip().lower() for key in switches}


def _set(admin: PulsarAdmin, switches: Mapping[str, str]) -> None:
    """Set *switches* for all brokers; TrimtabError unless every active broker runs with it within a while."""
    for key, value in switches.items():
        admin.change_dynamic_configuration(key, value)
        _say(f"   {key}={value} is set for all brokers.")
    ends = time.monotonic() + _HEARD_SECONDS
    waiting = set(admin.brokers())
    while waiting:
        waiting = {name for name in waiting if _switches_of(admin, name, switches) != dict(switches)}
        if waiting and time.monotonic() > ends:
            values = ", ".join(f"{key}={value}" for key, value in switches.items())
            raise TrimtabError(
                f"{', '.join(sorted(waiting))}: did not confirm {values} within {_HEARD_SECONDS:.0f} s; the values are"
                " set, so look at these brokers and run the command again"
            )
        if waiting:
            time.sleep(_LOOK_AGAIN_SECONDS)
    _say("   Every active broker runs with it.")


def _agreed(question: str, *, yes: bool) -> None:
    """Return if the person says yes; TrimtabError if they say no, SettingsError if there is no terminal to ask."""
    if yes:
        _say(question)
        return
    if not sys.stdin.isatty():
        raise SettingsError(f"{question} There is no terminal to ask: give --yes")
    if not typer.confirm(question, default=False):
        raise TrimtabError("stopped, because you answered no; run the command again to continue")


def _say(text: str) -> None:
    print_line(console(), text)
