"""Before a controller acts: settings, folders, the cluster's name, Kafka's dates; and whether it may be made to act."""

import logging
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from controller.adapters.disk.files import refuse_not_writable, why_not_writable
from controller.adapters.kafka.inspect import topics
from controller.adapters.pulsar.access import pulsar_admin
from controller.adapters.pulsar.admin import PulsarError
from controller.doctor.balancing import balancing_off
from controller.doctor.brokers import cluster_name
from controller.doctor.facts import BrokerFacts, Facts, KafkaFacts, PulsarFacts
from controller.doctor.finding import Finding, listed
from controller.doctor.gather import TimeLimits, pulsar_facts, written_folders
from controller.doctor.topics import timestamps
from controller.model.controls import MOVING_MODES
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.log import LogInKafka
from controller.settings.policy import read_policy
from controller.settings.trimtab_toml import Settings

log = logging.getLogger(__name__)

_ANSWER_SECONDS: Final = 10.0
_CLUSTER_SECONDS: Final = 4.0
#: The folders that every process writes to, and the keys that name folders.
_OF_ALL: Final = ("log", "election")
_KEYS: Final = {
    "log": "log.folder.path",
    "election": "election.path",
    "checkpoint": "checkpoint.path",
    "verdicts": "journal.verdicts_path",
}


def refuse_wrong_settings(settings: Settings, *, decides: bool) -> None:
    """Refuse, with a SettingsError, a broker.conf that cannot be used, and folders that cannot be written to.

    A disk that is full, or away, raises a TrimtabError: that may pass.
    Asks no server.  A process that does not decide (*decides* is False) does not use the checkpoint, and may have no
    broker.conf beside it: what is wrong with those is logged.
    """
    if decides or Path(settings.cluster.broker_conf).exists():
        read_policy(settings)
    else:
        log.warning("%s does not exist; the controller needs it", settings.cluster.broker_conf)
    for purpose, path in written_folders(settings).items():
        if decides or purpose in _OF_ALL:
            refuse_not_writable(_KEYS[purpose], path)
        elif problem := why_not_writable(Path(path)):
            log.warning("%s = %r: %s; the controller needs it", _KEYS[purpose], path, problem)


def refuse_another_cluster(settings: Settings) -> None:
    """Refuse, with a SettingsError, brokers of another cluster than that of the settings.

    Where the brokers do not say of which cluster they are, that is logged.  Without a section [pulsar] nobody is asked.
    """
    if settings.pulsar is None:
        return
    with closing(pulsar_admin(settings, answer_seconds=_CLUSTER_SECONDS)) as admin:
        problem = ""
        conf: Mapping[str, str] = {}
        clusters: tuple[str, ...] = ()
        try:
            clusters = admin.clusters()
            conf = admin.configuration()
        except PulsarError as error:
            problem = str(error)
    facts = PulsarFacts(clusters=clusters, brokers=(BrokerFacts(name="any", settings=conf),))
    for finding in cluster_name(Facts(settings=settings, now_ms=0, pulsar=facts)):
        if finding.severity == "error":
            raise SettingsError(f"[cluster] name = {settings.cluster.name!r}: {finding.observed}; set {finding.advice}")
    if problem:
        log.warning("cannot check whether the brokers belong to cluster %s: %s", settings.cluster.name, problem)


def require_broker_balancing_off(settings: Settings, *, mode: str) -> None:
    """Refuse a *mode* that moves load, with a SettingsError, where brokers shed or split by themselves.

    With a TrimtabError where no broker can be asked.  Without a section [pulsar] nobody is asked.  A controller that
    runs does not call this: what collectors read of the brokers makes it wait.
    """
    if mode not in MOVING_MODES:
        return
    if settings.pulsar is None:
        log.info("no section [pulsar]: whether the brokers balance by themselves is not checked")
        return
    pulsar = pulsar_facts(settings, TimeLimits(answer=5, brokers=8), thorough=False)
    unasked = pulsar.error or ("" if any(each.settings is not None for each in pulsar.brokers) else "no broker answers")
    if unasked:
        raise TrimtabError(
            f"mode = {mode!r}: cannot check whether the brokers balance by themselves: {unasked}; correct"
            " [pulsar] if it names other brokers, and see `trimtab doctor`"
        )
    findings = list(balancing_off(Facts(settings=settings, now_ms=0, pulsar=pulsar)))
    for finding in findings:
        if finding.severity == "warning":
            log.warning("%s: %s", finding.code, finding.observed)
    rivals = [finding for finding in findings if finding.severity == "error"]
    if rivals:
        raise SettingsError(f"mode {mode} is refused while the brokers balance: " + "\n".join(map(_text_of, rivals)))


def refuse_producers_clocks(settings: Settings) -> None:
    """Refuse, with a SettingsError, a log in Kafka whose records have the time that their producer gives them.

    Spark cannot read every such time: one record with a time far away would end the query at every start.
    TrimtabError where Kafka does not answer.
    """
    if not isinstance(settings.log, LogInKafka):
        return
    kafka = settings.log.kafka
    described, problem = topics(
        kafka.bootstrap,
        (kafka.metrics_topic, kafka.results_topic),
        client=kafka.client,
        answer_seconds=_ANSWER_SECONDS,
    )
    if problem:
        log.warning("cannot check whether Kafka sets the timestamps of the log's records: %s", problem)
    facts = Facts(settings=settings, now_ms=0, kafka=KafkaFacts(log=kafka, topics=described))
    for finding in timestamps(facts):
        raise SettingsError(
            f"topic {finding.objects[0]}: {finding.observed}, wanted {finding.expected}; {finding.advice}"
        )


def _text_of(finding: Finding) -> str:
    return f"{finding.observed} (brokers: {listed(finding.objects)}); {finding.advice}"
