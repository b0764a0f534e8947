"""The options of the data source for a log in Pulsar, as Spark passes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.adapters.pulsar.log.client import topic_name
from controller.aggregate.columns.rows import METRICS, RESULTS
from controller.aggregate.places import Span
from controller.settings.pulsar_log import PulsarLogSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarOptions:
    """Options of the data source."""

    log: PulsarLogSettings
    #: So many entries a micro-batch reads.
    max_entries: int = 1
    #: Where a query without a checkpoint begins: the append time, epoch ms; None for the log's beginning or end.
    start_ms: int | None = None
    #: The gate's file; "" where nothing is waited for.
    gate: str = ""
    #: What is read again; of a stream nothing.
    spans: Sequence[Span] = ()

    def to_spark(self) -> dict[str, str]:
        """As options of Spark's.  Secrets are in files, and only these are named."""
        fields = {"max_entries": self.max_entries, "start_ms": self.start_ms, "gate": self.gate, "spans": self.spans}
        return {"log": self.log.model_dump_json(), "rest": json.dumps(fields)}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "PulsarOptions":
        """The options that ``to_spark`` made."""
        rest = json.loads(options["rest"])
        rest["spans"] = [Span(*span) for span in rest["spans"]]
        return cls(log=PulsarLogSettings.model_validate_json(options["log"]), **rest)

    @property
    def sources(self) -> dict[str, int]:
        """The full name of each topic, and the role of its records."""
        names = {METRICS: self.log.metrics_topic, RESULTS: self.log.results_topic}
        return {topic_name(self.log, name): role for role, name in names.items()}
