"""What a page is: a path, a name in the navigation, and a function that makes it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from controller.settings.web import ViewerRole
from controller.web.access.viewer import RefusedError, Viewer, bad_request
from controller.web.access.writers import why_not
from controller.web.admission import viewer_of
from controller.web.control_desk import ControlsRead
from controller.web.jobs import Job
from controller.web.orders import explained, findings
from controller.web.refused_writes import note_refused
from controller.web.site import ShownCluster, Site, site_of
from controller.web.store.queries import PageData
from controller.web.store.values import HottestTopic, ScalableTopicState
from controller.web.topic_names import NamesByPlace
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer
from controller.wire.answers.status import StatusAnswer

#: A page waits no longer for the cluster's status, and for names of topics.
_STATUS_SECONDS: Final = 1.0
_NAMES_SECONDS: Final = 0.5
_CONTROLS_SECONDS: Final = 2.0
#: Of a form.
_MOST_FIELDS: Final = 128
_FORM: Final = "application/x-www-form-urlencoded"


class PageRequest:
    """A request for a page: whom it is about, and how the answer is made."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.site: Site = site_of(request)
        self.cluster: ShownCluster = self.site.cluster(request.query_params.get("cluster"))
        self.viewer: Viewer = viewer_of(request)
        #: One time for the whole page.
        self.now_ms = self.site.now_ms()
        #: The fields of the form that was sent; empty where none was.
        self.form: Mapping[str, list[str]] = {}
        #: Why what the form asks was not done; None: it was, or there is no form.
        self.refused: RefusedError | None = None

    @property
    def data(self) -> PageData:
        """What the store knows of the cluster."""
        return self.cluster.data

    def status(self) -> StatusAnswer | None:
        """The cluster's status, at most a few seconds old where its servers answer; None: it is not known."""
        return self.cluster.status.reading(_STATUS_SECONDS, self.site.workers.wait).value

    def why_not(self, needed: ViewerRole) -> str:
        """Why whoever looks may not change what the role *needed* may; "" where they may."""
        return why_not(self.viewer, self.site.settings, needed)

    def controls_now(self) -> tuple[ControlsRead | None, str]:
        """The controls as people set them, at most a second old; and why they are not known, "" where they are."""
        reading = self.cluster.desk.cached.reading(_CONTROLS_SECONDS, self.site.workers.wait)
        if reading.value is None or reading.error:
            return None, reading.error or "the controls have not been read yet: load the page again in a moment"
        return reading.value, ""

    def topic_names(self, bundle: str, *topics: HottestTopic) -> NamesByPlace:
        """The names of *topics* of *bundle*, as far as the brokers say them in time."""
        places = [each.place for each in topics]
        return self.cluster.topic_names.at(bundle, places, _NAMES_SECONDS, self.site.workers.wait)

    def scalable_names(self, namespace: str, topics: Sequence[ScalableTopicState]) -> NamesByPlace:
        """The names of scalable *topics* of *namespace*, as far as the brokers say them in time."""
        places = [each.place for each in topics]
        return self.cluster.topic_names.at(namespace, places, _NAMES_SECONDS, self.site.workers.wait)

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

    def explain(self, interval: int, subject: str, *, flip: bool) -> ExplainAnswer | str:
        """Why *subject* was or was not moved in *interval*; a text where that is not known, or not yet.

        *flip*: also which smallest change would have changed that.
        """
        return explained(self.site, self.cluster, interval, subject, self.viewer, flip=flip)

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
    #: Does what a form asks that was sent there; None: none is sent there.
    submit: PageMaker | None = None

    def route(self) -> Route:
        """The route of this page."""
        make, submit = self.make, self.submit

        async def answer(request: Request) -> Response:
            page = PageRequest(request)
            if request.method != "POST" or submit is None:
                return await site_of(request).workers.run(lambda: make(page))
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
                raise RefusedError(415, "Not a form", f"the body has to be {_FORM}")
            page.form = form_values((await request.body()).decode(errors="replace"))
            response = await site_of(request).workers.run(lambda: submit(page))
            if page.refused is not None:
                await note_refused(request, request.url.path.strip("/"), page.refused)
            return response

        methods = ["GET"] if submit is None else ["GET", "POST"]
        return Route(self.path, answer, name=self.name, methods=methods)


def form_values(text: str) -> dict[str, list[str]]:
    """The fields of a form that was sent.  RefusedError 400."""
    try:
        return parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError as error:
        raise bad_request(f"the form cannot be read: {error}") from None
