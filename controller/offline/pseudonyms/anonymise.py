"""Replaces the names in the records of a recording, and everything else in them that trimtab does not read.

Only what decisions depend on is written: free texts, headers and unknown fields are left out.  A record that cannot be
used, or that is another cluster's, keeps its place and nothing else.  What becomes of each text of each record,
tests/unit/offline/test_anonymised_fields.py tells, and a new one fails it until somebody has decided.
"""

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from controller.adapters.recordings.manifest import Manifest, RecordedSettings
from controller.adapters.recordings.record_log import Extents, RecordedTopic, RecordLog, StoredRecord
from controller.cycle.commands import command_id
from controller.model.errors import TrimtabError, WireError
from controller.model.name_patterns import is_pattern
from controller.offline.pseudonyms.isolation import IsolationPseudonyms
from controller.offline.pseudonyms.memory import JournalPseudonyms
from controller.offline.pseudonyms.names import Pseudonyms
from controller.settings.broker_conf import names_in
from controller.settings.brokers_own import brokers_own_rows
from controller.settings.pairs import LOAD_MANAGER, SUPPORTED_ALGORITHMS
from controller.settings.policy import LOAD_MANAGERS, known_keys
from controller.settings.strategy_kinds import STRATEGY_KINDS
from controller.strategies.catalogue import SPLIT_ALGORITHMS, is_python_name, short_name
from controller.strategies.filters.shedding_excluded_namespaces import EXCLUDED_NAMESPACES
from controller.strategies.rebalance.membership import PROTOCOLS
from controller.wire import metrics, results
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.base import encode, read_object
from controller.wire.journal_records import PartEntry, PartJoiner, parse_record
from controller.wire.sweep import ArrowSweep, BrokerSweep, SweepHeader, encode_sweep_arrow

#: In place of the class of a strategy that is no part of trimtab.
OWN_STRATEGY: Final = "own.Strategy"
#: Numbers, lists and ranges of numbers, and switches.
_PLAIN: Final = re.compile(rf"[0-9.,+\-eE ]{{0,100}}|true|false|{'|'.join(PROTOCOLS)}", re.IGNORECASE | re.ASCII)


def anonymised_settings(settings: RecordedSettings, names: Pseudonyms) -> RecordedSettings:
    """*settings* with other *names*; of broker.conf only numbers, switches, and names of strategies of trimtab."""
    pattern = next(filter(is_pattern, (*settings.decisions.excluded, *settings.decisions.only)), None)
    if pattern is not None:
        raise TrimtabError(
            f"{pattern!r} in [decisions] is a pattern, and pseudonyms would not match it: omit --anonymise, or name"
            " each namespace in the settings before the next recording"
        )
    excluded = tuple(map(names.namespace_or_bundle, settings.decisions.excluded))
    only = tuple(map(names.namespace, settings.decisions.only))
    decisions = settings.decisions.model_copy(update={"excluded": excluded, "only": only})
    return settings.model_copy(update={"decisions": decisions, "broker_conf": _options(settings.broker_conf, names)})


def _options(conf: Mapping[str, str], names: Pseudonyms) -> dict[str, str]:
    # Without the options of a strategy that somebody wrote, and without those that only brokers read.
    known = known_keys({}) - {row.key for row in brokers_own_rows()}
    options = {key: _option_value(key, value, names) for key, value in conf.items() if key in known}
    return {key: value for key, value in options.items() if value is not None}


def _option_value(key: str, value: str, names: Pseudonyms) -> str | None:
    """The *value* of option *key* where it holds nothing but numbers and words of Pulsar and trimtab; else None.

    Namespaces get other *names*.
    """
    if key == EXCLUDED_NAMESPACES:
        return ",".join(sorted(map(names.namespace_or_bundle, names_in(value))))
    if key == SUPPORTED_ALGORITHMS:
        return ",".join(each for each in value.split(",") if each in SPLIT_ALGORITHMS)
    for kind in STRATEGY_KINDS:
        if key == kind.key:
            return OWN_STRATEGY if is_python_name(value) else _known(value, kind.catalogue)
    if key == LOAD_MANAGER:
        # Also of a class in a package that looks like Python: a load manager is a Java class.
        return _known(value.rpartition(".")[2], LOAD_MANAGERS)
    return value if _PLAIN.fullmatch(value) else None


def _known(value: str, names: Collection[str]) -> str | None:
    short = short_name(value)
    return short if short in names else None


#: The topics of an anonymised recording.  Commands and journal are full of names, also in sentences: a replay makes
#: them anew.
ANONYMISED: Final[tuple[RecordedTopic, ...]] = ("metrics", "results")
#: Replaces a record that is not stored.
REMOVED: Final = b'{"v":1,"type":"removed"}'
#: The parts of a version that are stored: numbers, and the kind of pre-release.
_VERSION: Final = re.compile(
    r"\d{1,9}(?:\.\d{1,9}){0,3}(?:-(?:rc|alpha|beta|SNAPSHOT)(?:[.-]?\d{1,9}){0,4})?", re.ASCII
)


class Anonymiser:
    """Rewrites the records of one cluster in *log*.

    The names in *metrics_extents* are gathered first, and the commands in *journal_extents*, which results belong to.
    *begin*: records of metrics that tell what was known before.
    """

    def __init__(
        self,
        log: RecordLog,
        metrics_extents: Extents,
        journal_extents: Extents,
        begin: Sequence[bytes] = (),
        *,
        settings: RecordedSettings,
        cluster: str,
        key: bytes,
    ) -> None:
        self._settings, self._cluster = settings, cluster
        values = chain(begin, (record.value for record in log.read("metrics", metrics_extents)))
        brokers, namespaces = _names(values)
        self._names = Pseudonyms(key, brokers=brokers)
        self._isolation = IsolationPseudonyms(self._names, brokers, namespaces)
        self.cluster = self._names.text("clu", cluster)
        self.settings = anonymised_settings(settings, self._names)
        self._commands = self._renamed_commands(log.read("journal", journal_extents))
        #: For the other contents of the journal.
        self.journal = JournalPseudonyms(self.cluster, self._names, self._command_id)

    def manifest(self, manifest: Manifest) -> Manifest:
        """*manifest* without true names."""
        return manifest.model_copy(update={"cluster": self.cluster, "settings": self.settings, "anonymised": True})

    def rewrite(self, topic: RecordedTopic, record: StoredRecord) -> StoredRecord:
        """*record* of *topic* with other names."""
        value = self._decoded(topic, record)
        key = None if record.key is None else self._names.text("key", record.key.decode("latin-1")).encode()
        return record._replace(key=key, headers=(), value=REMOVED if value is None else self._renamed(value))

    def begin(self, values: Iterable[bytes]) -> tuple[bytes, ...]:
        """Records of metrics, *values*, with other names; those that cannot be used are left out."""
        stored = (StoredRecord(partition=0, offset=0, timestamp_ms=-1, key=None, value=value) for value in values)
        renamed = (self.rewrite("metrics", each).value for each in stored)
        return tuple(value for value in renamed if value != REMOVED)

    def _decoded(self, topic: RecordedTopic, record: StoredRecord) -> Any:
        """What *record* holds; None where it is not to be kept."""
        decode: Any = metrics.decode_metric if topic == "metrics" else results.decode_result
        intervals = self._settings.intervals
        time_ms = None if record.timestamp_ms < 0 else record.timestamp_ms
        try:
            return decode(
                record.value,
                cluster=self._cluster,
                period_ms=intervals.period_ms,
                append_time_ms=time_ms,
                max_bytes=intervals.max_record_bytes,
            )
        except WireError:
            return None

    def _renamed(self, record: Any) -> bytes:
        names = self._names
        match record:
            case ArrowSweep():
                return self._arrow(record)
            case BrokerSweep():
                stats = tuple(
                    each.model_copy(
                        update={"bundle": names.bundle(each.bundle), "topic": tuple(map(names.topic, each.topic))}
                    )
                    for each in record.bundle_stats
                )
                return encode(self._swept(record, bundle_stats=stats))
            case metrics.TopicStats():
                topic, bundle = names.topic(record.topic), names.bundle(record.bundle)
                return self._written(record, broker=names.broker(record.broker), topic=topic, bundle=bundle)
            case metrics.BrokerLoadRecord():
                stats_of = {names.bundle(name): stats for name, stats in record.report.last_stats.items()}
                broker = names.broker(record.broker_name)
                urls = {"web_service_url": f"http://{broker}", "web_service_url_tls": None, "last_stats": stats_of}
                return self._written(record, broker=broker, report=record.report.model_copy(update=urls))
            case metrics.NamespaceStateRecord():
                return self._namespace(record)
            case metrics.BrokerStateRecord():
                domain = names.text("domain", record.failure_domain or "") or None
                version = plain_version(record.broker_version_string or "")
                return self._written(
                    record, broker=names.broker(record.broker), failure_domain=domain, broker_version_string=version
                )
            case metrics.BundleData():
                return self._written(record, bundle=names.bundle(record.bundle))
            case metrics.TickRecord():
                return self._written(record, roster=self._roster(record))
            case results.Result():
                return self._result(record)
        raise TypeError(f"{type(record).__name__} has no other names")

    def _written(self, record: Any, **changes: Any) -> bytes:
        return encode(record.model_copy(update={"cluster": self.cluster, **changes}))

    def _swept(self, sweep: Any, **changes: Any) -> Any:
        names = {"broker": self._names.broker(sweep.broker), "sweep_id": self._names.text("sweep", sweep.sweep_id)}
        return sweep.model_copy(update={"cluster": self.cluster, **names, **changes})

    def _arrow(self, sweep: ArrowSweep) -> bytes:
        batch, names = sweep.batch, self._names
        header = SweepHeader(**{name: getattr(sweep, name) for name in SweepHeader.model_fields})
        codes: Any = batch.column("bundle")
        return encode_sweep_arrow(
            self._swept(header),
            bundles=list(map(names.bundle, sweep.bundles)),
            bundle=codes.indices.to_numpy(),
            topics=list(map(names.topic, batch.column("topic").to_pylist())),
            load=np.stack([batch.column(name).to_numpy() for name in RATES], axis=1),
            counts=np.stack([batch.column(name).to_numpy() for name in COUNTS], axis=1),
        )

    def _roster(self, tick: metrics.TickRecord) -> Any:
        names = self._names
        if tick.roster is None:
            return None
        entries = [
            (names.broker(each.broker), names.text("sweep", each.sweep_id or "") or None) for each in tick.roster
        ]
        return tuple(metrics.RosterEntry(broker=broker, sweep_id=sweep) for broker, sweep in entries)

    def _namespace(self, state: metrics.NamespaceStateRecord) -> bytes:
        policies, other = state.isolation_policies, self._isolation.policy
        return self._written(
            state,
            namespace=self._names.namespace(state.namespace),
            anti_affinity_group=self._names.text("group", state.anti_affinity_group or "") or None,
            isolation_policies=None if policies is None else tuple(map(other, policies)),
        )

    def _result(self, result: results.Result) -> bytes:
        names = self._names
        return self._written(
            result,
            id=self._command_id(result.id),
            detail="",
            owner_before=names.broker(result.owner_before or "") or None,
            owner_after=names.broker(result.owner_after or "") or None,
        )

    def _command_id(self, command_id: str) -> str:
        return self._commands.get(command_id) or self._names.text("command", command_id)

    def _renamed_commands(self, journal: Iterable[StoredRecord]) -> dict[str, str]:
        """The id of each command in the *journal* -> the id that a replay gives it."""
        ids, joiner = dict[str, str](), PartJoiner()
        for record in journal:
            for command in _commands_in(record.value, joiner, self._cluster):
                action, bundle = command["type"].removeprefix("trimtab."), self._names.bundle(command["subject"])
                ids[command["id"]] = command_id(self.cluster, command["data"]["interval"], action, bundle)
        return ids


def fingerprint(key: bytes, text: str) -> str:
    """Tells what was *text* for with *key* from everything else, and nothing of either to whom has no key."""
    return hmac.new(key, b"trimtab recording\0" + text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()[:32]


def plain_version(version: str) -> str | None:
    """The numbers of *version*, and whether it is a pre-release, without the name of a build; None without numbers."""
    match = _VERSION.match(version)
    return match and match[0]


def plain_versions(versions: str) -> str:
    """The same of several, which commas divide."""
    return ", ".join(sorted({plain for each in versions.split(",") if (plain := plain_version(each.strip()))}))


def _names(values: Iterable[bytes]) -> tuple[set[str], set[str]]:
    """The brokers and the namespaces that records of the metrics topic, *values*, list."""
    brokers, namespaces = set[str](), set[str]()
    for value in values:
        if b'"roster"' in value or b'"namespace_state"' in value:
            try:
                fields = read_object(value)
            except WireError:
                continue
            roster = fields.get("roster")
            listed = (
                [each.get("broker") for each in roster if isinstance(each, dict)] if isinstance(roster, list) else []
            )
            brokers.update(name for name in listed if isinstance(name, str))
            namespaces.update({name} if isinstance(name := fields.get("namespace"), str) else ())
    return brokers, namespaces


def _commands_in(value: bytes, joiner: PartJoiner, cluster: str) -> list[Any]:
    """The commands of the journal's record *value*; none of what makes no sense: a replay would say so."""
    try:
        record = parse_record(value)
        if isinstance(record, PartEntry):
            joined = joiner.joined(record)
            if joined is None:
                return []
            value, record = joined, parse_record(joined)
        return read_object(value)["commands"] if record.cluster == cluster and hasattr(record, "commands") else []
    except WireError:
        return []
