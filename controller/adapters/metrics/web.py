"""The metrics of ``trimtab serve``."""

from collections.abc import Callable
from typing import ClassVar, Literal

from controller.adapters.metrics.process import ProcessMetrics
from controller.wire.process import Role


class WebMetrics(ProcessMetrics):
    """The counters of the page's server, used by several threads."""

    role: ClassVar[Role | Literal["web"]] = "web"

    def __init__(self) -> None:
        super().__init__()
        self._answers = self.counter(
            "trimtab_web_answers_total", "Requests to the page and REST, by the status of the answer.", "status"
        )
        self._streams = self.gauge("trimtab_web_streams", "Open streams of events.")
        self._jobs = self.gauge("trimtab_web_jobs", "What-ifs, audits and incidents that are queued or running.")
        self._sends = self.gauge(
            "trimtab_notification_sender",
            "1 if this process sends the notifications of the cluster, else 0. One of all `trimtab serve` does.",
            "cluster",
        )
        self._attempts = self.counter(
            "trimtab_notification_attempts_total",
            "Requests to webhooks. `result`: accepted, not_accepted (it is tried again).",
            "cluster",
            "webhook",
            "result",
        )
        self._dropped = self.counter(
            "trimtab_notifications_dropped_total",
            "Notifications that were given up. `why`: full (too many waited), too_old (`notifications.give_up_hours`).",
            "cluster",
            "webhook",
            "why",
        )
        self._waiting = self.gauge(
            "trimtab_notifications_waiting",
            "Notifications that a webhook has not accepted yet, as the process that sends knows them.",
            "cluster",
            "webhook",
        )

    def answered(self, status: int) -> None:
        """A request was answered."""
        self._answers.labels(str(status)).inc()

    def watch(self, streams: Callable[[], int], jobs: Callable[[], int]) -> None:
        """From now on show how many *streams* and *jobs* there are."""
        self._streams.set_function(streams)
        self._jobs.set_function(jobs)

    def sends_notifications(self, cluster: str, sends: bool) -> None:
        """Whether this process sends the notifications of *cluster*."""
        self._sends.labels(cluster).set(float(sends))

    def notification_attempted(self, cluster: str, webhook: str, *, accepted: bool) -> None:
        """A request to *webhook* has ended."""
        self._attempts.labels(cluster, webhook, "accepted" if accepted else "not_accepted").inc()

    def notification_dropped(self, cluster: str, webhook: str, why: str) -> None:
        """A notification for *webhook* was given up: "full" or "too_old"."""
        self._dropped.labels(cluster, webhook, why).inc()

    def notifications_wait(self, cluster: str, webhook: str, count: int) -> None:
        """So many notifications wait for *webhook*."""
        self._waiting.labels(cluster, webhook).set(count)
