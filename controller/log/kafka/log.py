"""The log in Kafka.  What has to appear together is one transaction; see scope.py and claims.py."""

import threading
from collections.abc import Iterable, Mapping
from typing import Final

from controller.adapters.kafka.client import PATIENCE_SECONDS
from controller.adapters.kafka.writer import Producer
from controller.adapters.network.deadline import Deadline
from controller.log.kafka.claims import KafkaClaims
from controller.log.kafka.scope import KafkaScope
from controller.log.kafka.topics import KafkaTopics
from controller.log.port import LogTopic, Out, Scope
from controller.settings.log import KafkaLogSettings
from controller.settings.trimtab_toml import ExecutorSettings

_NO_EXECUTOR: Final = ExecutorSettings()


class KafkaLog(KafkaTopics):
    """Log in the topics that *settings* names, which are *cluster*'s alone."""

    def __init__(
        self,
        settings: KafkaLogSettings,
        *,
        cluster: str,
        executor: ExecutorSettings = _NO_EXECUTOR,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """*executor*: used by ``claims`` alone.  *seconds*: see KafkaTopics."""
        super().__init__(settings, seconds=seconds)
        self._executor, self._cluster = executor, cluster
        self._producer: Producer | None = None
        self._one_at_a_time = threading.RLock()

    def partitions(self, *topics: LogTopic, writable: bool = False) -> Mapping[LogTopic, int]:
        """See Log."""
        with self._one_at_a_time:
            self.create(topics)
            counts = self._opened_producer().partitions(*(self.name(each) for each in topics), online=writable)
        return {each: counts[self.name(each)] for each in topics}

    def append(self, outs: Iterable[Out], *, within_seconds: float, name: str = "") -> None:  # noqa: ARG002
        """See Log.  Kafka cannot drop the repeats of another process, so *name* has no effect."""
        deadline = Deadline.after(within_seconds)
        with self._one_at_a_time:
            producer = self._opened_producer()
            try:
                for out in outs:
                    self.create((out.topic,))
                    producer.send(
                        self.name(out.topic),
                        out.value,
                        key=out.key or None,
                        partition=out.partition,
                        headers=out.headers,
                        within_seconds=deadline.remaining,
                    )
                producer.flush(deadline.remaining)
            except BaseException:
                self._producer = None
                producer.drop()
                raise

    def counted_from(self, topic: LogTopic) -> str:  # noqa: ARG002
        """See Log."""
        return ""

    def fence(self, scope: Scope) -> KafkaScope:
        """See Log."""
        self.create({scope.decides[0], *scope.owns, *scope.shares})
        return KafkaScope(self, self._settings, scope)

    def claims(self, group: str) -> KafkaClaims:
        """See Log.  The name of the cluster becomes part of *group*: so no two clusters share one."""
        self.create(("commands", "results"))
        return KafkaClaims(self, self._settings, self._executor, group, self._cluster)

    def close(self) -> None:
        """See Log."""
        with self._one_at_a_time:
            self._producer = None
            self._offsets.close()

    def _opened_producer(self) -> Producer:
        if self._producer is None:
            self._producer = Producer(self._settings.bootstrap, self._settings.client)
        return self._producer
