"""Before a controller acts: the brokers must not balance by themselves."""

import logging

from controller.doctor.balancing import balancing_off
from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, listed
from controller.doctor.gather import Patience, pulsar_facts
from controller.model.errors import SettingsError
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)


def refuse_rivals(settings: Settings, *, mode: str = "", must_know: bool = True) -> None:
    """Refuse active mode, with a SettingsError, where brokers shed or split by themselves.

    With *must_know* also where no broker can be asked: a leader that takes over in the middle of an outage goes on,
    one that starts does not.  Without a section [pulsar] nobody is asked.  *mode* is the one in force, by default the
    settings'.
    """
    if (mode or settings.decisions.mode) != "active":
        return
    if settings.pulsar is None:
        log.info("no section [pulsar]: whether the brokers balance by themselves is not checked")
        return
    pulsar = pulsar_facts(settings, Patience(answer=5, brokers=8), thorough=False)
    unasked = pulsar.error or ("" if any(each.settings is not None for each in pulsar.brokers) else "no broker answers")
    if unasked:
        if must_know:
            raise SettingsError(
                f"mode = 'active': the brokers could not be asked whether they balance by themselves: {unasked};"
                " correct [pulsar], or see `trimtab doctor`"
            )
        log.warning("whether the brokers balance by themselves could not be checked: %s", unasked)
        return
    findings = list(balancing_off(Facts(settings=settings, now_ms=0, pulsar=pulsar)))
    for finding in findings:
        if finding.severity == "warning":
            log.warning("%s: %s", finding.code, finding.seen)
    rivals = [finding for finding in findings if finding.severity == "error"]
    if rivals:
        raise SettingsError("mode = 'active': " + "\n".join(map(_told, rivals)))


def _told(finding: Finding) -> str:
    return f"{finding.seen} (brokers: {listed(finding.objects)}); {finding.advice}"
