"""What all requests share: the clusters that are shown, who may look, long work, templates and assets."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from starlette.requests import Request

from controller.adapters.election.controls import ControlStore
from controller.adapters.election.proposals import Proposals, ProposalStore
from controller.adapters.metrics.web import WebMetrics
from controller.log.elections import election_system
from controller.offline.plans.proposal_view import proposal_answer
from controller.settings.trimtab_toml import Settings
from controller.settings.web import WebSettings
from controller.web.access.gate import AccessGate
from controller.web.access.viewer import RefusedError
from controller.web.assets import Assets
from controller.web.cached import Cached
from controller.web.control_desk import ControlDesk, ControlsRead
from controller.web.desk import Desk
from controller.web.events import EventSource, StreamPlaces
from controller.web.jobs import Jobs
from controller.web.live import read_status, topic_lister
from controller.web.rendering import template_environment
from controller.web.store.queries import PageData
from controller.web.topic_names import TopicLister, TopicNames
from controller.web.workers import Workers
from controller.wire.answers.proposals import ProposalAnswer
from controller.wire.answers.status import StatusAnswer

#: A status that is older is read anew when somebody asks.
_STATUS_SECONDS = 5.0
#: What lists show of the proposals is no older.
_PROPOSALS_SECONDS = 2.0


class ShownCluster:
    """One of the clusters that the page shows: *settings*, which the file *conf* has, and what the store knows."""

    def __init__(
        self,
        settings: Settings,
        conf: Path,
        data: PageData,
        *,
        read_status: Callable[[Settings], Callable[[], StatusAnswer]] = read_status,
        topic_lister: Callable[[Settings], TopicLister | None] = topic_lister,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        """*written* is called when the controls were changed here."""
        self.name, self.settings, self.conf, self.data = settings.cluster.name, settings, conf.absolute(), data
        self.status: Cached[StatusAnswer] = Cached(read_status(settings), _STATUS_SECONDS)
        self.topic_names = TopicNames(topic_lister(settings))
        self.news = EventSource(data)
        self.desk = ControlDesk(self.open_controls, written=self._controls_written)
        self.proposals: Desk[ProposalStore, Proposals] = Desk(
            lambda: election_system(settings).proposals(),
            lambda store: store.read_all(),
            name="proposals",
            seconds=_PROPOSALS_SECONDS,
        )
        #: What ``proposal_answers`` worked out last: of which reading, at which time in steps, and the answers.
        self._answers: tuple[Proposals, int, list[ProposalAnswer]] = (Proposals((), {}), 0, [])
        self._answering = threading.Lock()
        self._written = written
        #: Of the controls when the status was last known to be as new as they are.
        self._seen_version = ""

    def open_controls(self) -> ControlStore:
        """The store of the controls; the caller closes it."""
        return election_system(self.settings).controls()

    def proposal_answers(self, stored: Proposals, now_ms: int) -> list[ProposalAnswer]:
        """The proposals of *stored*, the oldest first, by the policy; no older than what is read of them.

        Every page counts those that wait, and this verifies the signature of each statement, so it is done once, also
        where all open pages are loaded anew at the same time.
        """
        step = int(now_ms / 1000 / _PROPOSALS_SECONDS)
        with self._answering:
            known, known_step, answers = self._answers
            if known is not stored or known_step != step:
                answers = [proposal_answer(each, self.settings, now_ms) for each in stored.proposals]
                self._answers = (stored, step, answers)
            return answers

    def set_by_people(
        self, wait_seconds: float, wait: Callable[[threading.Event, float], object]
    ) -> ControlsRead | None:
        """The controls, at most a second old; None where they cannot be read.  A status read after this is no older."""
        reading = self.desk.cached.reading(wait_seconds, wait)
        if reading.value is None or reading.error:
            return None
        if reading.value.version != self._seen_version:
            self.status.forget()
            self._seen_version = reading.value.version
        return reading.value

    def _controls_written(self) -> None:
        self.status.forget()
        self._written()


class Site:
    """The clusters by name, in the order of the settings, and how requests are answered.

    *settings* say where it listens and who may look; *now_ms* is the time, for tests.
    """

    def __init__(
        self,
        clusters: Mapping[str, ShownCluster],
        settings: WebSettings,
        *,
        assets: Assets | None = None,
        metrics: WebMetrics | None = None,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        if not clusters:
            raise ValueError("a site shows one cluster at least")
        self.clusters, self.settings, self.now_ms = dict(clusters), settings, now_ms
        self.assets = assets or Assets()
        self.templates = template_environment(self.assets)
        self.gate = AccessGate(settings, now=lambda: self.now_ms() / 1000)
        self.workers = Workers()
        #: Find out who sends a request.  All connections may wait: who has used up a share is to hear just that.
        self.admission_workers = Workers(calls=settings.connections)
        self.jobs = Jobs(settings.jobs, settings.job_seconds)
        self.places = StreamPlaces(settings.streams_per_client, settings.streams)
        self.metrics = metrics or WebMetrics()
        self.metrics.watch(lambda: self.places.open, lambda: self.jobs.unfinished)

    def cluster(self, name: str | None) -> ShownCluster:
        """The cluster *name*; of None the first one.  RefusedError 404 where there is none."""
        if name is None:
            return next(iter(self.clusters.values()))
        shown_cluster = self.clusters.get(name)
        if shown_cluster is None:
            raise RefusedError(404, "No such cluster", f"there are: {', '.join(self.clusters)}")
        return shown_cluster

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block news reach the streams of events."""
        ended = threading.Event()
        follow = [partial(each.news.follow, asyncio.get_running_loop(), ended) for each in self.clusters.values()]
        for each in follow:
            threading.Thread(target=each, name="web-news", daemon=True).start()
        try:
            yield
        finally:
            ended.set()
            self.jobs.close()
            for shown_cluster in self.clusters.values():
                shown_cluster.desk.close()
                shown_cluster.proposals.close()


def site_of(request: Request) -> Site:
    """The site that *request* came to."""
    site: Site = request.app.state.site
    return site
