"""What an endpoint is: a method and a path, the models of its query, body and answer, and a function that answers."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, BinaryIO, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from controller.settings.web import ViewerRole
from controller.web.access.viewer import RefusedError, Viewer, bad_request
from controller.web.access.writers import require_writer
from controller.web.admission import require, viewer_of
from controller.web.jobs import Around, Job, JobOrder
from controller.web.parameters import Parameters
from controller.web.refused_writes import note_refused
from controller.web.site import ShownCluster, Site, site_of
from controller.web.uploads import job_with_file
from controller.wire.answers.base import JsonAnswer

BASE: Final = "/api/v1"
#: Browsers and proxies ask again each time, and get 304 where nothing has changed.
_REVALIDATED: Final = "private, no-cache"
_JSON: Final = "application/json"
#: Characters of an Idempotency-Key.
_LONGEST_KEY: Final = 200
#: The end of the year 9999, the last one that calendars and our texts have.
LATEST_MS: Final = 253_402_300_799_999

#: So many bytes of a file are read at once.
_PIECE: Final = 1 << 18

Method: TypeAlias = Literal["GET", "POST", "DELETE"]


class Query(Parameters):
    """A query of every endpoint."""

    cluster: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """Which cluster, of several; without it the first one."""


#: Epoch ms.
Time: TypeAlias = Annotated[int, Field(ge=0, le=LATEST_MS)]
Q_co = TypeVar("Q_co", bound=Query, covariant=True)
B_co = TypeVar("B_co", bound=Parameters | Job | None, covariant=True)


class Precondition(NamedTuple):
    """What a request that changes something says beside its body."""

    #: The versions in If-Match, "*" for any; None: it has no such header.
    versions: frozenset[str] | None
    #: Idempotency-Key; "" without one.
    key: str

    @property
    def needed_versions(self) -> frozenset[str]:
        """The versions.  RefusedError 428 without any."""
        if self.versions is None:
            raise RefusedError(
                428,
                "Say what you have seen",
                "send If-Match with the ETag that GET answered, so that nobody is overridden",
            )
        return self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest(Generic[Q_co, B_co]):
    """A request that is let in, with its query and body checked."""

    site: Site
    viewer: Viewer
    query: Q_co
    body: B_co
    path: Mapping[str, Any]
    precondition: "Precondition"

    @property
    def cluster(self) -> ShownCluster:
        """Which one it is about.  RefusedError 404."""
        return self.site.cluster(self.query.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """An open file, which is sent piece by piece and then closed."""

    file: BinaryIO
    size: int
    sha256: str

    def pieces(self) -> Iterator[bytes]:
        """All of it."""
        with self.file:
            while piece := self.file.read(_PIECE):
                yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer that is not simply 200 and JSON."""

    status: int = 200
    answer: JsonAnswer | None = None
    #: In place of *answer*.
    content: FileContent | None = None
    media_type: str = _JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Of what the answer shows; If-Match names it.  "": it is not to be changed.
    version: str = ""


class Upload(NamedTuple):
    """A file that is about to be uploaded."""

    site: Site
    cluster: ShownCluster
    viewer: Viewer
    query: Any


class Endpoint(NamedTuple):
    """A line of the table of endpoints."""

    method: Method
    #: Below BASE, as Starlette has it: /bundles/{name:path}.
    path: str
    summary: str
    #: Runs in a thread.
    handle: Callable[[Any], JsonAnswer | Reply]
    answer: type[JsonAnswer] | None
    query: type[Query] = Query
    body: type[Parameters] | None = None
    #: In place of *body*: the body is a file of JSON, for the job that this orders.  ApiRequest.body is that job then.
    upload: Callable[[Upload], tuple[JobOrder, Around]] | None = None
    needs: ViewerRole = ViewerRole.VIEWER
    #: It changes something, so it needs a person's name, [web] writes, and takes an Idempotency-Key.
    writes: bool = False
    #: Of what it changes there are versions, so that it needs If-Match.
    versioned: bool = False
    #: Beside 200 (201, 202 ...), and beside what every endpoint may answer.
    statuses: tuple[int, ...] = ()
    #: The status of success.
    success: int = 200


def routes(endpoints: Sequence[Endpoint]) -> list[Route]:
    """A route for each path, that knows all of its methods."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for each in endpoints:
        by_path.setdefault(each.path, {})[each.method] = each
    return [_route(path, methods) for path, methods in by_path.items()]


def _route(path: str, methods: Mapping[str, Endpoint]) -> Route:
    async def answer(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            api = await _checked(request, endpoint)
            result = await api.site.workers.run(lambda: endpoint.handle(api))
        except RefusedError as error:
            if endpoint.writes:
                await note_refused(request, endpoint.path.strip("/"), error)
            raise
        return _response(request, result)

    return Route(BASE + path, answer, methods=list(methods))


async def _checked(request: Request, endpoint: Endpoint) -> ApiRequest[Any, Any]:
    viewer = viewer_of(request)
    require(viewer, endpoint.needs)
    if endpoint.writes:
        require_writer(viewer, site_of(request).settings, endpoint.needs)
    pairs = request.query_params.multi_items()
    values = dict(pairs)
    if len(values) != len(pairs):
        raise bad_request("a parameter is given twice")
    query: Any = _parsed(lambda: endpoint.query.model_validate(values))
    body: Any = None
    is_json = request.headers.get("content-type", "").partition(";")[0].strip().lower() == _JSON
    if not is_json and (endpoint.body is not None or endpoint.upload is not None):
        raise RefusedError(415, "Not JSON", f"the body has to be {_JSON}")
    if endpoint.upload is not None:
        site = site_of(request)
        order, around = endpoint.upload(Upload(site, site.cluster(query.cluster), viewer, query))
        body = await job_with_file(request, site, order, viewer.name, around)
    if endpoint.body is not None:
        text, model = await request.body(), endpoint.body
        body = _parsed(lambda: model.model_validate_json(text))
    return ApiRequest(
        site=site_of(request),
        viewer=viewer,
        query=query,
        body=body,
        path=request.path_params,
        precondition=_precondition(request),
    )


def _precondition(request: Request) -> Precondition:
    """What the headers say.  RefusedError 400."""
    tags, keys = request.headers.getlist("if-match"), request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise bad_request("a request has one Idempotency-Key at most")
    key = keys[0].strip().strip('"') if keys else ""
    if keys and not (0 < len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable()):
        raise bad_request(f"Idempotency-Key: expected are 1 to {_LONGEST_KEY} printable characters")
    if not tags:
        return Precondition(None, key)
    # A weak tag never matches.  Of what GET answered, the first half is the version.
    texts = (each.strip() for each in ",".join(tags).split(","))
    return Precondition(frozenset(each.strip('"').partition(".")[0] for each in texts if each), key)


def _parsed(parse: Callable[[], Parameters]) -> Parameters:
    try:
        return parse()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise bad_request(f"{where}: {first['msg']}") from None


def _response(request: Request, result: JsonAnswer | Reply) -> Response:
    reply = result if isinstance(result, Reply) else Reply(answer=result)
    if reply.content is not None:
        return _file_response(request, reply, reply.content)
    content = None if reply.answer is None else f"{reply.answer.as_line()}\n".encode()
    headers = dict(reply.headers)
    if request.method == "POST" and reply.version:
        headers["ETag"] = f'"{reply.version}"'
    if request.method in ("GET", "HEAD") and reply.status == 200 and content is not None:
        version = f"{reply.version}." if reply.version else ""
        headers |= _tagged(version + hashlib.sha256(content).hexdigest()[:32])
        if _is_unchanged(request, headers):
            return Response(status_code=304, headers=headers)
    return Response(content, reply.status, headers, reply.media_type if content is not None else None)


def _file_response(request: Request, reply: Reply, content: FileContent) -> Response:
    headers = {**reply.headers, **_tagged(content.sha256[:32])}
    if _is_unchanged(request, headers):
        content.file.close()
        return Response(status_code=304, headers=headers)
    headers["Content-Length"] = str(content.size)
    if request.method == "HEAD":
        content.file.close()
        return Response(None, reply.status, headers, reply.media_type)
    return _FileResponse(content, reply.status, headers, reply.media_type)


class _FileResponse(StreamingResponse):
    """Sends *content*, whose file is closed also where the client leaves: its generator is not ended then."""

    def __init__(self, content: FileContent, status: int, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(content.pieces(), status, headers, media_type)
        self._file = content.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        with self._file:
            await super().__call__(scope, receive, send)


def _tagged(version: str) -> dict[str, str]:
    return {"ETag": f'"{version}"', "Cache-Control": _REVALIDATED}


def _is_unchanged(request: Request, headers: Mapping[str, str]) -> bool:
    return _has_tag(request.headers.get("if-none-match", ""), headers["ETag"])


def _has_tag(header: str, tag: str) -> bool:
    tags = [each.strip().removeprefix("W/") for each in header.split(",")]
    return "*" in tags or tag in tags
