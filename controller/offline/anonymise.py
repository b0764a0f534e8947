"""Replaces the names in the records of a recording, and everything else in them that trimtab does not read.

Only what decisions depend on is written: free texts, headers and unknown fields are left out.  A record that cannot be
used, or that is another cluster's, keeps its place and nothing else.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from controller.adapters.recordings.manifest import RecordedSettings
from controller.cycle.commands import command_id
from controller.model.errors import WireError
from controller.model.java_regex import matches
from controller.offline.pseudonyms import Pseudonyms
from controller.ports.records import Extents, RecordedTopic, RecordLog, StoredRecord
from controller.wire import metrics, results
from controller.wire.arrow_stream import COUNTS, RATES
from controller.wire.base import encode, read_object
from controller.wire.journal_records import PartEntry, PartJoiner, parse_record
from controller.wire.sweep import ArrowSweep, BrokerSweep, SweepHeader, encode_sweep_arrow

#: The topics of an anonymised recording.  Commands and journal are full of names, also in sentences: a replay makes
#: them anew.
ANONYMISED: Final[tuple[RecordedTopic, ...]] = ("metrics", "results")
#: In place of a record that is not kept.
_NOTHING: Final = b'{"v":1,"type":"removed"}'


class Anonymiser:
    """Rewrites the records of one cluster in *log*, whose names in *metrics_extents* are gathered first."""

    def __init__(
        self, log: RecordLog, metrics_extents: Extents, settings: RecordedSettings, cluster: str, key: bytes
    ) -> None:
        self._settings, self._cluster = settings, cluster
        brokers, self._namespaces = _names(log, metrics_extents)
        self._known_brokers = sorted(brokers)
        self._names = Pseudonyms(key, brokers=brokers)
        self.cluster = self._names.text("clu", cluster)
        self._commands = self._renamed_commands(log.read("journal", log.extents("journal")))

    def settings(self) -> RecordedSettings:
        """The settings, with other names where they name something."""
        decisions = self._settings.decisions
        excluded = tuple(map(self._names.namespace_or_bundle, decisions.excluded))
        return self._settings.model_copy(update={"decisions": decisions.model_copy(update={"excluded": excluded})})

    def rewrite(self, topic: RecordedTopic, record: StoredRecord) -> StoredRecord:
        """*record* of *topic* with other names."""
        value = self._decoded(topic, record)
        key = None if record.key is None else self._names.text("key", record.key.decode("latin-1")).encode()
        return record._replace(key=key, headers=(), value=_NOTHING if value is None else self._renamed(value))

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
                return self._written(record, broker=names.broker(record.broker), failure_domain=domain)
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
        said = {"broker": self._names.broker(sweep.broker), "sweep_id": self._names.text("sweep", sweep.sweep_id)}
        return sweep.model_copy(update={"cluster": self.cluster, **said, **changes})

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
        policies = state.isolation_policies
        return self._written(
            state,
            namespace=self._names.namespace(state.namespace),
            anti_affinity_group=self._names.text("group", state.anti_affinity_group or "") or None,
            isolation_policies=None if policies is None else tuple(map(self._policy, policies)),
        )

    def _policy(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """The policy with the names that its expressions match in place of them."""
        failover = policy.get("auto_failover_policy", policy.get("autoFailoverPolicy"))
        brokers = {each.rpartition(":")[0]: self._names.broker(each).rpartition(":")[0] for each in self._known_brokers}
        namespaces = {each: self._names.namespace(each) for each in self._namespaces}
        return {
            "namespaces": _exactly(policy.get("namespaces"), namespaces) or [r"\Qnone\E"],
            "primary": _exactly(policy.get("primary"), brokers),
            "secondary": _exactly(policy.get("secondary"), brokers),
            **({} if failover is None else {"auto_failover_policy": failover}),
        }

    def _result(self, result: results.Result) -> bytes:
        names = self._names
        return self._written(
            result,
            id=self._commands.get(result.id) or names.text("command", result.id),
            detail="",
            owner_before=names.broker(result.owner_before or "") or None,
            owner_after=names.broker(result.owner_after or "") or None,
        )

    def _renamed_commands(self, journal: Iterable[StoredRecord]) -> dict[str, str]:
        """The id of each command in the *journal* -> the id that a replay gives it."""
        found, joiner = dict[str, str](), PartJoiner()
        for record in journal:
            for command in _commands_in(record.value, joiner, self._cluster):
                action, bundle = command["type"].removeprefix("trimtab."), self._names.bundle(command["subject"])
                found[command["id"]] = command_id(self.cluster, command["data"]["interval"], action, bundle)
        return found


def fingerprint(key: bytes) -> str:
    """Tells one *key* from another, and nothing of either."""
    return hashlib.sha256(b"trimtab recording" + key).hexdigest()[:16]


def _names(log: RecordLog, extents: Extents) -> tuple[set[str], set[str]]:
    """The brokers and the namespaces that records of the metrics topic in *extents* list."""
    brokers, namespaces = set[str](), set[str]()
    for record in log.read("metrics", extents):
        value = record.value
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


def _exactly(regexes: Any, others: Mapping[str, str]) -> list[str]:
    """Expressions for the other names of those that *regexes* match."""
    given = [each for each in regexes if isinstance(each, str)] if isinstance(regexes, list | tuple) else []
    return [f"\\Q{other}\\E" for name, other in sorted(others.items()) if matches(given, name)]
