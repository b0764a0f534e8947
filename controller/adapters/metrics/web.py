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

    def answered(self, status: int) -> None:
        """A request was answered."""
        self._answers.labels(str(status)).inc()

    def watch(self, streams: Callable[[], int], jobs: Callable[[], int]) -> None:
        """From now on show how many *streams* and *jobs* there are."""
        self._streams.set_function(streams)
        self._jobs.set_function(jobs)
