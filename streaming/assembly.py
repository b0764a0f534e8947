"""From the settings to the parts of a running controller: session, election, query, sink.

Query and sink do not know which system holds the log: log/factory.py and streaming/sources.py choose.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from controller.adapters.approvals.in_force import approvals_of
from controller.adapters.controls_in_force import ControlsInForce
from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import ProposalStore
from controller.adapters.factory import own_verdict_store
from controller.adapters.metrics.audits import AuditWatch
from controller.adapters.metrics.controller import ControllerMetrics
from controller.aggregate.shard.fold import FoldOptions
from controller.aggregate.waiting.limits import WaitLimits
from controller.audit.auditor import MoveAuditor
from controller.audit.seen_load import weights_of
from controller.cycle import Policy
from controller.doctor import before_acting
from controller.engine import take_over
from controller.log.elections import election_system
from controller.log.factory import log_system
from controller.log.journal_evidence import JOURNALLED, content_of, of_checkpoint, of_commands
from controller.log.recent import last_tick
from controller.model.backlog import Backlog
from controller.model.errors import SettingsError, TrimtabError
from controller.model.leadership import Leadership
from controller.model.lost_journal import Evidence
from controller.settings.policy import read_policy
from controller.settings.signing_key import controller_signing_key
from controller.settings.standing_controls import standing_controls
from controller.settings.trimtab_toml import Settings
from streaming.batches.catching_up import Turn, offset_read, turns
from streaming.batches.gate import BatchGate
from streaming.checkpoint import CheckpointFiles, checkpoint_files, refuse_another_cluster, refuse_other_version
from streaming.dead_letters import DeadLetters
from streaming.decode import DecodeOptions
from streaming.own_errors import damaged_checkpoint, own_error, with_cause
from streaming.query import BatchSink, QueryOptions, decision_checkpoint, decision_query, folded
from streaming.rehearsal import rehearse
from streaming.sink import DecisionSink
from streaming.sources import source_of
from streaming.spark.session import start_session
from streaming.summaries import SummaryQueue

_DAY_MS = 86_400_000


class Assembly:
    """A running controller's parts.  The settings are read here, once; whoever gets a part reads no settings."""

    def __init__(self, settings: Settings, metrics: ControllerMetrics | None = None) -> None:
        """SettingsError where broker.conf names what cannot be run."""
        self._settings = settings
        self.metrics = metrics or ControllerMetrics()
        self._log, self._election = log_system(settings), election_system(settings)
        self._source = source_of(settings)
        self.policy = read_policy(settings)
        self._signing_key = controller_signing_key(settings.approvals)
        self.metrics.limit_by(self.policy.limits)
        self.metrics.audits.expect(self.policy)
        self.options = _query_options(settings, self.policy, files=self._source.files)
        #: Of the query.
        self.checkpoint = decision_checkpoint(settings.checkpoint.path, self.options)
        self.stalled_after_seconds = settings.intervals.stalled_after_seconds

    # ---- what outlives a leadership ----

    def session(self) -> SparkSession:
        """The Spark session, with what Spark needs to read the log."""
        spark = self._settings.spark
        folder = Path(self._settings.spark_log_folder)
        return start_session(spark.master, spark.shuffle_partitions, spark.conf, self._source.jars(), folder)

    def leadership(self) -> Leadership:
        """This process's part in the election."""
        return self._election.leadership()

    def _controls(self, store: ControlStore) -> ControlsInForce:
        """The controls in *store*, as far as the policy allows them."""
        approvals = approvals_of(self._settings, self._proposals)
        return ControlsInForce(standing_controls(self._settings), store, now_ms, approvals)

    @cached_property
    def _proposals(self) -> ProposalStore:
        return self._election.proposals()

    def control_store(self) -> ControlStore:
        """Where the operator's controls are kept."""
        return self._election.controls()

    def warm_up(self, spark: SparkSession) -> None:
        """Have *spark* load what the first micro-batch needs, beside all that comes before it; returns at once."""
        threading.Thread(target=self._warm_up, args=(spark,), name="warm-up", daemon=True).start()

    def _warm_up(self, spark: SparkSession) -> None:
        with suppress(Exception):  # the query meets the same error, and reports it
            folded(self.records(spark), self.options)
            self._source.peek(spark)

    def stand_by(self, spark: SparkSession) -> None:
        """Prepare *spark* for a takeover."""
        rehearse(spark, self.options, self._source)

    # ---- what has to be in order before anything is decided ----

    def refuse_producers_clocks(self) -> None:
        """Refuse, with a SettingsError, a log whose records are dated by their producers."""
        before_acting.refuse_producers_clocks(self._settings)

    def files(self, spark: SparkSession) -> CheckpointFiles:
        """The checkpoint's own files, wherever they are.  TrimtabError where Spark cannot reach them."""
        return checkpoint_files(spark, self._settings.checkpoint.path)

    def check_shared_checkpoint(self, leader: Leadership, files: CheckpointFiles) -> None:
        """Refuse, with a SettingsError, a checkpoint that the other controllers of this cluster do not see.

        A checkpoint says who it is in its file ``identity``, and the first leader proposes that to the others.
        """
        agreement = leader.agreement("checkpoint")
        if agreement is None:
            return
        files.create("identity", uuid4().hex.encode())
        ours = (files.read("identity") or b"").decode(errors="replace").strip()  # a person's editor ends the line
        agreed = agreement.propose(ours)
        if agreed != ours:
            or_delete = f", or delete {agreement.where}" if agreement.where else ""
            raise SettingsError(
                f"checkpoint.path = {self._settings.checkpoint.path!r}: its file identity is {ours}, the controllers of"
                f" this cluster use {agreed}: choose a place that all of them share; if the old one is permanently"
                f" lost, or a new one is begun, write {agreed} to that file{or_delete}"
            )

    def refuse_another_cluster(self, files: CheckpointFiles) -> None:
        """Refuse, with an AnotherClusterError, a checkpoint of another cluster's controllers."""
        refuse_another_cluster(files, self._settings.checkpoint.path, self._settings.cluster.name)

    def refuse_other_version(self, files: CheckpointFiles) -> None:
        """Refuse, with a StateVersionError, a checkpoint whose state has another version."""
        refuse_other_version(files, self._settings.checkpoint.path)

    def has_committed(self, files: CheckpointFiles) -> bool:
        """Whether Spark has committed a batch of the query."""
        return any(name.isdigit() for name in files.names(f"{self.checkpoint.rpartition('/')[2]}/commits"))

    # ---- a leadership ----

    def decision_sink(
        self,
        leader: Leadership,
        store: ControlStore,
        letters: DeadLetters,
        *,
        has_begun: bool = False,
        files: CheckpointFiles | None = None,
    ) -> DecisionSink:
        """The sink of a leadership that begins now; see controller.engine.take_over.

        *letters* keeps its dead letters.  *has_begun*: Spark has committed batches, before which a leadership was
        journalled.  *files*: those of the checkpoint, which note what is journalled; None: of none.
        """
        settings = self._settings

        def evidence() -> list[Evidence]:
            noted = None if files is None else files.read(JOURNALLED)
            commands = of_commands(self._log.tail(), settings.cluster.name, election_epoch=store.epoch())
            return [*of_checkpoint(settings.checkpoint.path, noted), *commands]

        journal = self.metrics.traces.of_journal(self._log.journal(self._signing_key))
        controls = self._controls(store)
        engine = take_over(
            policy=self.policy,
            seed=settings.decisions.seed,
            journal=journal,
            leadership=leader,
            controls=controls.at,
            last_controls=controls.go_on_from,
            now_ms=now_ms,
            checkpoint=settings.checkpoint.path if has_begun else None,
            evidence=evidence,
            accepted_ms=lambda: store.read()[0].loss_accepted_ms,
        )
        auditor = MoveAuditor(period_ms=self.policy.period_ms, weights=weights_of(self.policy.shedder))
        auditor.remember(engine.memory)
        return DecisionSink(
            engine,
            journal=journal,
            verdicts=own_verdict_store(settings),
            letters=letters,
            now_ms=now_ms,
            retention_ms=settings.journal.retention_days * _DAY_MS,
            retention=self._log.retention(),
            metrics=self.metrics,
            audits=AuditWatch(auditor, self.metrics.audits),
            summaries=self._summaries(engine.epoch),
            note=lambda interval: None if files is None else files.replace(JOURNALLED, content_of(interval)),
        )

    def _summaries(self, epoch: int) -> SummaryQueue:
        policy = self.policy
        return SummaryQueue(
            self._log.summaries, policy.limits, period_ms=policy.period_ms, epoch=epoch, metrics=self.metrics
        )

    def dead_letters(self, spark: SparkSession) -> DeadLetters:
        """Keeps records that cannot be used."""
        source = self._source
        return DeadLetters(
            self._log.dead_letters(),
            self.options.decode,
            source.topics,
            lambda spans: source.again(spark, spans),
            self.metrics,
        )

    def decision_query(self, spark: SparkSession, sink: BatchSink, max_offsets: int | None = None) -> DataStreamWriter:
        """The query, unstarted; *max_offsets*: see ``records``."""
        records = self.records(spark, max_offsets)
        return decision_query(records, self.options, sink, checkpoint=self._settings.checkpoint.path)

    @contextmanager
    def gate(self, spark: SparkSession, sink: DecisionSink) -> Iterator[Callable[[float], None]]:
        """How whoever watches the query waits, a number of seconds at most: it lets batches begin when they are due."""
        with closing(self._source.ticks()) as ticks:
            opens = partial(self._source.open_gate, spark)
            gate = BatchGate(opens, ticks, lambda: sink.last_interval, self._settings.intervals.period_seconds)
            gate.wait(0)  # open when the query begins, so that its first batch is not an empty one

            def wait(seconds: float) -> None:
                gate.wait(seconds)
                self.metrics.tick_came(ticks.newest)

            yield wait

    def open_gate(self, spark: SparkSession) -> None:
        """Let the query read everything that is in the log now."""
        self._source.open_gate(spark)

    def records(self, spark: SparkSession, max_offsets: int | None = None) -> DataFrame:
        """The log's records as a stream; *max_offsets* of a batch, where the settings allow too many just now."""
        return self._source.records(spark, max_offsets or self._settings.spark.max_offsets_per_trigger, now_ms())

    def catching_up(self, spark: SparkSession) -> Iterator[Turn]:
        """What the query reads while it is far behind; see streaming.batches.catching_up."""

        def ahead() -> Backlog | None:
            return self._source.backlog(lambda: offset_read(spark, self.checkpoint), now_ms())

        threshold, max_offsets = self._settings.intervals.close_at_most, self._settings.spark.max_offsets_per_trigger
        return turns(ahead, threshold=threshold, max_offsets=max_offsets)

    def last_tick(self) -> int | None:
        """The newest interval that was ticked, epoch ms.  TrimtabError where the log cannot be read."""
        return last_tick(self._settings)

    def why_it_ended(self, error: Exception) -> TrimtabError:
        """Why the query ended with Spark's *error*, when it was not the sink's doing."""
        text = str(error)
        return (
            self._source.refusal(text)
            or own_error(text)
            or damaged_checkpoint(text, self._settings.checkpoint.path)
            or TrimtabError(f"the query ended: {with_cause(text)}")
        )


def now_ms() -> int:
    """The wall clock, epoch ms: for envelopes and the age of data, never for a decision."""
    return time.time_ns() // 1_000_000


def _query_options(settings: Settings, policy: Policy, *, files: bool) -> QueryOptions:
    """What the query needs to know, from the settings and the split thresholds of *policy*."""
    intervals = settings.intervals
    detail = policy.detail_limits(intervals.detail_share)
    return QueryOptions(
        decode=DecodeOptions(
            cluster=settings.cluster.name,
            period_ms=intervals.period_ms,
            max_record_bytes=intervals.max_record_bytes,
            shards=intervals.shards,
            detail=detail,
        ),
        fold=FoldOptions(
            bundle_ttl_ms=intervals.bundle_ttl_intervals * intervals.period_ms,
            detail=detail,
            most_topics=intervals.detail_topics // intervals.shards,
            # Nobody may ever tick files again: what they hold is closed when it is read.
            close_at_most=None if files else intervals.close_at_most,
            waiting=WaitLimits(
                intervals=intervals.waiting_intervals, size=(intervals.waiting_mbytes << 20) // intervals.shards
            ),
            state_ttl=intervals.state_ttl_intervals,
        ),
        files=files,
    )
