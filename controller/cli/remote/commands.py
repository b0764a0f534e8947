"""The commands that ask a server: each takes the options of the local one that go with it, and prints the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer

from controller.adapters.long_work import long_work
from controller.cli.audit import LIVE_SINCE
from controller.cli.controls import show_changes
from controller.cli.doctor import is_healthy, show_findings
from controller.cli.explain import kind_of, time_asked_for
from controller.cli.incident import check_file
from controller.cli.journal import reason_of, show_decisions
from controller.cli.remote.rest_server import RestServer, ServerAddress, TellProgress, quoted
from controller.cli.remote.status_text import print_bundle, print_cluster
from controller.cli.shared.answers import show
from controller.cli.shared.arguments import bundle_of, now_ms, span_of, time_of, topic_of
from controller.cli.shared.common_options import own_version
from controller.cli.shared.output_file import require_writable, write_output
from controller.cli.texts.audit import print_audit
from controller.cli.texts.explanation import print_explanation
from controller.cli.texts.scalable_topic import print_topic
from controller.cli.texts.what_if import print_answer
from controller.model.errors import TrimtabError
from controller.web.rest.answers import DecisionsAnswer, HistoryAnswer, JournalPageAnswer
from controller.wire.answers.audit import AuditAnswer
from controller.wire.answers.doctor import DoctorAnswer
from controller.wire.answers.explain import ExplainAnswer
from controller.wire.answers.status import BundleAnswer, StatusAnswer, TopicAnswer
from controller.wire.answers.what_if import WhatIfAnswer

#: Exit code where the brokers have no such bundle.
_NO_SUCH_BUNDLE: Final = 1


@contextmanager
def server_at(address: ServerAddress) -> Iterator[tuple[RestServer, TellProgress]]:
    """Within the block say how far the server is."""
    progress = [""]
    with long_work("waiting for the server", written=lambda _: progress[0]) as done:

        def tell(text: str) -> None:
            progress[0] = text
            done(1)

        yield RestServer(address, version=own_version()), tell


def status(address: ServerAddress, *, bundle: str | None, as_json: bool) -> None:
    """``trimtab status``."""
    if bundle is None:
        with server_at(address) as (server, tell):
            cluster = server.get("/status", StatusAnswer, tell=tell)
        show(cluster, lambda out: print_cluster(out, cluster, now_ms()), as_json=as_json)
        return
    if "://" in bundle:
        with server_at(address) as (server, tell):
            topic = server.get(f"/topics/{quoted(str(topic_of(bundle, of='topic')))}", TopicAnswer, tell=tell)
        show(topic, lambda out: print_topic(out, topic), as_json=as_json)
        if not topic.exists:
            raise typer.Exit(_NO_SUCH_BUNDLE)
        return
    path = f"/status/{quoted(bundle_of(bundle, of='bundle'))}"
    with server_at(address) as (server, tell):
        answer = server.get(path, BundleAnswer, tell=tell)
    show(answer, lambda out: print_bundle(out, answer), as_json=as_json)
    if answer.exists is False:
        raise typer.Exit(_NO_SUCH_BUNDLE)


def explain(address: ServerAddress, *, subject: str, at: str | None, flip: bool, show_all: bool, as_json: bool) -> None:
    """``trimtab explain``."""
    kind = kind_of(subject)
    time_ms = time_asked_for(subject, kind, at)
    with server_at(address) as (server, tell):
        newest = server.get("/decisions", DecisionsAnswer, tell=tell, limit=1, until=time_ms).decisions
        if not newest:
            raise TrimtabError("the server knows no decision" + ("" if time_ms is None else " up to that time"))
        path = f"/decisions/{newest[0].interval}/explain"
        about, search = None if kind == "interval" else subject, "true" if flip else None
        answer = server.get(path, ExplainAnswer, tell=tell, subject=about, flip=search)
    show(answer, lambda out: print_explanation(out, answer, show_all=show_all), as_json=as_json)


def journal(
    address: ServerAddress,
    *,
    bundle: str | None,
    broker: str | None,
    reason: str | None,
    since: str | None,
    until: str | None,
    issued: bool,
    limit: int,
    as_json: bool,
) -> None:
    """``trimtab journal``."""
    begin, end = span_of(since, until, of=("--since", "--until"))
    with server_at(address) as (server, tell):
        answer = server.get(
            "/journal",
            JournalPageAnswer,
            tell=tell,
            bundle=None if bundle is None else bundle_of(bundle, of="--bundle"),
            broker=broker,
            reason=None if reason is None else reason_of(reason),
            since=begin,
            until=end,
            issued=issued,
            limit=limit,
        )
    show_decisions(answer.decisions, as_json=as_json)


def controls(address: ServerAddress, *, limit: int, as_json: bool) -> None:
    """``trimtab controls``."""
    with server_at(address) as (server, tell):
        answer = server.get("/history", HistoryAnswer, tell=tell, limit=limit)
    show_changes(answer.events, as_json=as_json)


def doctor(address: ServerAddress, *, strict: bool, as_json: bool) -> None:
    """``trimtab doctor``."""
    with server_at(address) as (server, tell):
        findings = server.get("/doctor", DoctorAnswer, tell=tell).findings
    healthy = is_healthy(findings, strict=strict)
    show_findings(DoctorAnswer(healthy=healthy, findings=findings), as_json=as_json)


def audit(
    address: ServerAddress,
    *,
    since: str | None,
    until: str | None,
    bundle: str | None,
    namespace: str | None,
    most: int,
    as_json: bool,
) -> None:
    """``trimtab audit``."""
    begin, end = span_of(since or LIVE_SINCE, until)
    named = None if bundle is None else bundle_of(bundle, of="--bundle")
    with server_at(address) as (server, tell):
        answer = server.get("/audit", AuditAnswer, tell=tell, since=begin, until=end, bundle=named, namespace=namespace)
    show(answer, lambda out: print_audit(out, answer, most), as_json=as_json)


def what_if(
    address: ServerAddress,
    *,
    strategy: list[str] | None,
    since: str | None,
    until: str | None,
    most: int,
    as_json: bool,
) -> None:
    """``trimtab what-if``."""
    if since is None:
        raise typer.BadParameter("give --from: a server has no recording to take it from", param_hint="--from")
    begin, end = span_of(since, until)
    body = {"since": begin, "until": now_ms() if end is None else end, "strategies": list(strategy or ())}
    with server_at(address) as (server, tell):
        answer = server.ordered("/whatif", body, WhatIfAnswer, tell=tell)
    show(answer, lambda out: print_answer(out, answer, most), as_json=as_json)


def incident_make(
    address: ServerAddress, *, around: str, minutes: int, output: str, anonymise: bool, as_json: bool
) -> None:
    """``trimtab incident make``: the server makes the file, and this process checks it."""
    path = Path(output)
    body = {
        "around": time_of(around, now_ms=now_ms(), of="--around"),
        "minutes": minutes,
        "anonymise": anonymise,
    }
    require_writable(path, "--output")
    with server_at(address) as (server, tell):
        content = server.order("/incidents", body, tell=tell)
    write_output(path, content, "--output")
    check_file(path, as_json=as_json)
