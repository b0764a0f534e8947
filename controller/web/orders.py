"""The commands that long work consists of.  All that comes from a request is checked here, before it becomes a word."""

import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from controller.model.errors import TrimtabError
from controller.model.names import is_name, parse_bundle
from controller.status.topic import scalable_topic_of
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS
from controller.web.access.viewer import RefusedError, Viewer, bad_request
from controller.web.jobs import FOLDER, Job, JobOrder
from controller.web.site import ShownCluster, Site
from controller.wire.answers.base import JsonAnswer
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer
from controller.wire.readable import utc

T = TypeVar("T", bound=JsonAnswer)

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
#: What the doctor found is found out again after so long.
_FINDINGS_MS: Final = 300_000
#: Who owns a bundle is found out again after so long.
_STATUS_MS: Final = 10_000
#: A page waits no longer for an explanation.
_EXPLAIN_SECONDS: Final = 20.0
#: The search for the smallest change that would have led to another decision takes no longer.
_FLIP_SECONDS: Final = "30"
#: Intervals before a what-if that are read for averages.
_BEFORE: Final = "120"
_INCIDENT: Final = "incident.tar"
#: Kinds of jobs that a page shows; of the last one the file, too.
WHAT_IF: Final = "whatif"
INCIDENT: Final = "incident"
PLAN: Final = "plan"
PROPOSAL: Final = "proposal"
_PLAN: Final = "plan.json"
#: A proposal is held against the cluster again after so long.
_PROPOSAL_MS: Final = 30_000
#: In whose name the page itself orders work.
_OWN: Final = "trimtab"
#: A page shows no longer answer: as objects it takes many times its size in memory.
_LONGEST_SHOWN: Final = 16 << 20
#: Of longer answers one at a time is read.
_LONG: Final = 1 << 20
_READING: Final = threading.Lock()
_UNDER_WAY: Final = "it is being worked out: load the page again in a moment"
_FORGOTTEN: Final = "it is not kept any more: start it again"
#: The doctor's exit code where something is wrong: its answer says what.
_SICK: Final = 1


def of_audit(
    site: Site, cluster: ShownCluster, span: tuple[int, int], bundle: str | None, namespace: str | None
) -> JobOrder:
    """What became of the moves in a *span*, epoch ms."""
    words = ["audit", "--json", *conf_words(cluster), *_span(site, *span)]
    if bundle is not None:
        words += ["--bundle", bundle_name(bundle)]
    if namespace is not None:
        words += ["--namespace", namespace_name(namespace)]
    return JobOrder(kind="audit", cluster=cluster.name, commands=(tuple(words),))


def of_explain(cluster: ShownCluster, interval: int, subject: str | None, *, flip: bool = False) -> JobOrder:
    """Why *subject*, a bundle or a broker, was or was not moved; of None, what the interval decided.

    *flip*: also which smallest change would have changed that.
    """
    about = (utc(interval),) if subject is None else (subject_name(subject), "--at", utc(interval))
    search = ("--flip", "--flip-seconds", _FLIP_SECONDS) if flip else ()
    words = ("explain", *about, *search, "--json", *conf_words(cluster))
    return JobOrder(kind="explain", cluster=cluster.name, commands=(words,))


def of_doctor(cluster: ShownCluster, now_ms: int) -> JobOrder:
    """What the doctor finds."""
    words = ("doctor", "--json", *conf_words(cluster))
    as_of = now_ms // _FINDINGS_MS * _FINDINGS_MS
    return JobOrder(kind="doctor", cluster=cluster.name, commands=(words,), answered_by=(0, _SICK), as_of_ms=as_of)


def of_bundle(cluster: ShownCluster, bundle: str, now_ms: int) -> JobOrder:
    """Who owns *bundle*, and what was decided about it last."""
    words = ("status", bundle_name(bundle), "--json", *conf_words(cluster))
    as_of = now_ms // _STATUS_MS * _STATUS_MS
    # Exit code 1: the brokers have no such bundle, and the answer says so.
    return JobOrder(kind="status", cluster=cluster.name, commands=(words,), answered_by=(0, 1), as_of_ms=as_of)


def of_topic(cluster: ShownCluster, topic: str, now_ms: int) -> JobOrder:
    """Which brokers serve the segments of *topic*; ``tenant/namespace/topic`` is a scalable topic here."""
    words = ("status", topic_name(topic if "://" in topic else f"topic://{topic}"), "--json", *conf_words(cluster))
    as_of = now_ms // _STATUS_MS * _STATUS_MS
    return JobOrder(kind="status", cluster=cluster.name, commands=(words,), answered_by=(0, 1), as_of_ms=as_of)


def of_journal(cluster: ShownCluster, filters: Mapping[str, str | None], limit: int, *, issued: bool) -> JobOrder:
    """The newest decisions; *filters* has the values of options of ``trimtab journal``, None where one is not given."""
    options = [word for name, value in filters.items() if value is not None for word in (f"--{name}", _word(value))]
    words = (
        "journal",
        "--json",
        "--limit",
        str(limit),
        *options,
        *(("--issued",) if issued else ()),
        *conf_words(cluster),
    )
    return JobOrder(kind="journal", cluster=cluster.name, commands=(words,), lines="decisions")


def of_what_if(site: Site, cluster: ShownCluster, times: tuple[int, int], strategies: tuple[str, ...]) -> JobOrder:
    """What would have happened in a span, epoch ms, with each of *strategies*, as SHEDDER or SHEDDER+PLACEMENT."""
    span = _span(site, *times)
    copy = ("record", "--output", f"{FOLDER}/recording", "--before", _BEFORE, *conf_words(cluster), *span)
    options = [word for name in strategies for word in ("--strategy", strategy_name(name))]
    replay = ("what-if", f"{FOLDER}/recording", "--json", *span, *options)
    return JobOrder(kind=WHAT_IF, cluster=cluster.name, commands=(copy, replay))


def of_incident(site: Site, cluster: ShownCluster, around_ms: int, minutes: int, *, anonymise: bool) -> JobOrder:
    """One file with all around a time."""
    _span(site, around_ms - minutes * _MINUTE_MS, around_ms + minutes * _MINUTE_MS)
    about = ("--around", utc(around_ms), "--minutes", str(minutes), "--output", f"{FOLDER}/{_INCIDENT}")
    words = ("incident", "make", *about, "--json", *conf_words(cluster), *(("--anonymise",) if anonymise else ()))
    # Exit code 1: it is written, and a decision comes out differently; the file says which.
    return JobOrder(kind=INCIDENT, cluster=cluster.name, commands=(words,), file=_INCIDENT, answered_by=(0, 1))


def of_plan_file(cluster: ShownCluster) -> JobOrder:
    """What is in a plan's file, which somebody uploads."""
    words = ("show-plan", f"{FOLDER}/{_PLAN}", "--json", *conf_words(cluster))
    return JobOrder(kind=PLAN, cluster=cluster.name, commands=(words,), upload=_PLAN)


def of_proposal(cluster: ShownCluster, key: str, now_ms: int) -> JobOrder:
    """What is in the proposal with the hash *key*, verified, and whether it can still be carried out.

    *now_ms*: of one that has ended, when it was proposed, since it is checked once and not again.
    """
    words = ("proposals", "show", key, "--json", *conf_words(cluster))
    as_of = now_ms // _PROPOSAL_MS * _PROPOSAL_MS
    return JobOrder(kind=PROPOSAL, cluster=cluster.name, commands=(words,), as_of_ms=as_of)


def findings(site: Site, cluster: ShownCluster) -> DoctorAnswer | None:
    """What the doctor found last, at most some minutes ago; None where that is not known yet."""
    order = of_doctor(cluster, site.now_ms())
    with suppress(RefusedError):  # others have all places: later
        site.jobs.submit(order, _OWN)
    job = site.jobs.last_done(order, since_ms=order.as_of_ms - _FINDINGS_MS)
    return None if job is None else answer_of(job, DoctorAnswer)


def explained(
    site: Site, cluster: ShownCluster, interval: int, subject: str, viewer: Viewer, *, flip: bool = False
) -> ExplainAnswer | str:
    """The explanation, as ``of_explain`` orders it; a text where there is none, or none yet."""
    order = of_explain(cluster, interval, subject, flip=flip)
    newest = answer_in_time(site, viewer, order, ExplainAnswer, _EXPLAIN_SECONDS)
    if newest.value is not None:
        return newest.value
    job = site.jobs.last_done(of_explain(cluster, interval, subject)) if flip else None
    if job is None:
        return newest.missing
    without = answer_of(job, ExplainAnswer)
    return without.model_copy(update={"notes": [*without.notes, f"The smallest change: {newest.missing}"]})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestAnswer(Generic[T]):
    """What a page has of an answer that takes long."""

    #: The newest that there is; None: none is known.
    value: T | None
    #: Why there is none, or none as new as it should be; "": it is.
    missing: str
    #: Epoch ms: when it was found; 0: it is not.
    at_ms: int = 0


def answer_in_time(site: Site, viewer: Viewer, order: JobOrder, model: type[T], seconds: float) -> NewestAnswer[T]:
    """The answer to *order*, after waiting *seconds* at most; until there is one, the answer as of an earlier time."""
    try:
        job = site.jobs.under_way(order) or site.jobs.submit(order, viewer.name)
        site.workers.wait(job.ended, seconds)
        missing = "" if job.state == "done" else job.problem or _UNDER_WAY
    except RefusedError as error:  # too many jobs
        missing = error.detail
    last = site.jobs.last_done(order)
    if last is None:
        return NewestAnswer(value=None, missing=missing or _FORGOTTEN)
    try:
        return NewestAnswer(value=answer_of(last, model), missing=missing, at_ms=last.ended_ms or last.created_ms)
    except RefusedError as error:  # too long to show
        return NewestAnswer(value=None, missing=error.detail)


def answer_of(job: Job, model: type[T]) -> T:
    """The result of *job*, which is done, as *model*.

    RefusedError 404 where it is forgotten since, 413 where it is longer than a page shows.
    """
    try:
        size = job.result.stat().st_size
        if size > _LONGEST_SHOWN:
            raise RefusedError(
                413,
                "Too long to show",
                f"the answer has {size >> 20} MiB, more than a page shows; as a file it is at"
                f" /api/v1/jobs/{job.id}/result",
            )
        with _READING if size > _LONG else nullcontext():
            return model.model_validate_json(job.result.read_bytes(), by_alias=True, by_name=True, strict=False)
    except FileNotFoundError:
        raise RefusedError(404, "No result", _FORGOTTEN) from None


def bundle_name(text: str) -> str:
    """*text*, the name of a bundle.  RefusedError 400."""
    try:
        parse_bundle(text)
    except TrimtabError as error:
        raise bad_request(str(error)) from error
    return _word(text)


def topic_name(text: str) -> str:
    """*text*, the name of a scalable topic or of one of its segments: the topic.  RefusedError 400."""
    try:
        return _word(str(scalable_topic_of(text)))
    except TrimtabError as error:
        raise bad_request(str(error)) from error


def namespace_name(text: str) -> str:
    """*text*, the name of a namespace.  RefusedError 400."""
    if not (is_name(text) and text.count("/") in (1, 2)):
        raise bad_request(f"{text!r} is no namespace: expected is tenant/namespace")
    return _word(text)


def subject_name(text: str) -> str:
    """*text*, the name of a bundle, a broker or a scalable topic.  RefusedError 400."""
    if "://" in text:
        return topic_name(text)
    if "/" in text:
        return bundle_name(text)
    if not is_name(text):
        raise bad_request(f"{text!r} is no broker")
    return _word(text)


def strategy_name(text: str) -> str:
    """*text*, a shedder or a shedder and a placement of ours.  RefusedError 400.

    Not a class of one's own, nor a file: a name from a request must not load code, or read a file of the server.
    """
    shedder, plus, placement = text.partition("+")
    if shedder not in SHEDDERS or (plus and placement not in PLACEMENTS):
        raise bad_request(f"{text!r} is no strategy: expected is one of {', '.join(SHEDDERS)}, or SHEDDER+PLACEMENT")
    return text


def _word(text: str) -> str:
    """*text*, which must not be taken for an option."""
    if text.startswith("-"):
        raise bad_request(f"{text!r} begins with -")
    return text


def conf_words(cluster: ShownCluster) -> tuple[str, str]:
    """The option that names the settings of *cluster*."""
    return "--conf", str(cluster.conf)


def _span(site: Site, since_ms: int, until_ms: int) -> tuple[str, ...]:
    longest = site.settings.longest_span_hours
    if since_ms > until_ms:
        raise bad_request("the span ends before it begins")
    if until_ms - since_ms > longest * _HOUR_MS:
        raise bad_request(f"the span is longer than {longest} h (web.longest_span_hours)")
    return "--from", utc(since_ms), "--to", utc(until_ms)
