"""What a page is: a path, a name in the navigation, and a function that makes it."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from controller.web.access.viewer import RefusedError, Viewer
from controller.web.admission import viewer_of
from controller.web.jobs import Job
from controller.web.orders import explained, findings
from controller.web.site import ShownCluster, Site, site_of
from controller.web.store.queries import PageData
from controller.web.store.values import BundlePast
from controller.web.topic_names import NamesByPlace
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer
from controller.wire.answers.status import StatusAnswer

#: A page waits no longer for the cluster's status, and for names of topics.
_STATUS_SECONDS: Final = 1.0
_NAMES_SECONDS: Final = 0.5


class PageRequest:
    """A request for a page: whom it is about, and how the answer is made."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.site: Site = site_of(request)
        self.cluster: ShownCluster = self.site.cluster(request.query_params.get("cluster"))
        self.viewer: Viewer = viewer_of(request)
        #: One time for the whole page.
        self.now_ms = self.site.now_ms()

    @property
    def data(self) -> PageData:
        """What the store knows of the cluster."""
        return self.cluster.data

    def status(self) -> StatusAnswer | None:
        """The cluster's status, at most a few seconds old where its servers answer; None: it is not known."""
        return self.cluster.status.reading(_STATUS_SECONDS, self.site.workers.wait).value

    def topic_names(self, past: BundlePast) -> NamesByPlace:
        """The names of the hot topics of *past*, as far as the brokers say them in time."""
        places = [each.place for each in past.hot_topics]
        return self.cluster.topic_names.at(past.bundle, places, _NAMES_SECONDS, self.site.workers.wait)

    def job(self, *kinds: str) -> Job | None:
        """The job that the address names, one of *kinds*; None where it names none.  RefusedError 404."""
        key = self.request.query_params.get("job", "")[:200]
        if not key:
            return None
        job = self.site.jobs.job(key)
        if job is None or job.order.cluster != self.cluster.name or job.order.kind not in kinds:
            raise RefusedError(404, "No such job", "it never was, or its result is not kept any more: start it again")
        return job

    def findings(self) -> DoctorAnswer | None:
        """What the doctor finds, at most some minutes old; None: it is not known yet, and is being found out."""
        return findings(self.site, self.cluster)

    def explain(self, interval: int, subject: str) -> ExplainAnswer | str:
        """Why *subject* was or was not moved in *interval*; a text where that is not known, or not yet."""
        return explained(self.site, self.cluster, interval, subject, self.viewer)

    def render(self, template: str, /, **values: Any) -> Response:
        """The page that *template* makes of *values*; templates also have ``page`` (this object) and ``href``."""
        html = self.site.templates.get_template(template).render(page=self, href=self.href, **values)
        return HTMLResponse(html, headers={"Cache-Control": "private, no-cache"})

    def href(self, path: str, /, **query: str | int) -> str:
        """The address of *path* on this site, about the same cluster, with *query*."""
        several = {"cluster": self.cluster.name} if len(self.site.clusters) > 1 else {}
        words = urlencode({**several, **query})
        return f"{path}?{words}" if words else path


#: Makes a page.  It runs in a thread, so it may wait for files and databases.
PageMaker: TypeAlias = Callable[[PageRequest], Response]


class Page(NamedTuple):
    """A line of the table of pages."""

    #: As Starlette's routes have it: /bundles/{name:path}.
    path: str
    name: str
    make: PageMaker

    def route(self) -> Route:
        """The route of this page, for GET."""
        make = self.make

        async def answer(request: Request) -> Response:
            return await site_of(request).workers.run(lambda: make(PageRequest(request)))

        return Route(self.path, answer, name=self.name, methods=["GET"])
