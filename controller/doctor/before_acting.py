"""Before a controller acts: the brokers must not balance by themselves, and Kafka must date the records."""

import logging
from typing import Final

from controller.adapters.kafka.inspect import topics
from controller.doctor.balancing import balancing_off
from controller.doctor.facts import Facts, KafkaFacts
from controller.doctor.finding import Finding, listed
from controller.doctor.gather import TimeLimits, pulsar_facts
from controller.doctor.topics import timestamps
from controller.model.errors import SettingsError
from controller.settings.log import LogInKafka
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 10.0


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
    pulsar = pulsar_facts(settings, TimeLimits(answer=5, brokers=8), thorough=False)
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


def refuse_producers_clocks(settings: Settings) -> None:
    """Refuse, with a SettingsError, a log in Kafka whose records have the time that their producer gives them.

    Spark cannot read every such time: one record with a time far away would end the query at every start.
    TrimtabError where Kafka does not answer.
    """
    if not isinstance(settings.log, LogInKafka):
        return
    kafka = settings.log.kafka
    found, problem = topics(
        kafka.bootstrap,
        (kafka.metrics_topic, kafka.results_topic),
        client=kafka.client,
        answer_seconds=_ANSWER_SECONDS,
    )
    if problem:
        log.warning("whether Kafka dates the records of the log could not be checked: %s", problem)
    facts = Facts(settings=settings, now_ms=0, kafka=KafkaFacts(log=kafka, topics=found))
    for finding in timestamps(facts):
        raise SettingsError(f"topic {finding.objects[0]}: {finding.seen}, wanted {finding.wanted}; {finding.advice}")


def _told(finding: Finding) -> str:
    return f"{finding.seen} (brokers: {listed(finding.objects)}); {finding.advice}"
