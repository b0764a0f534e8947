"""``--server``: what is refused before anything is sent, and what a server that is hostile or broken can do."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from controller.cli.app import app
from controller.cli.remote import rest_server
from controller.model.errors import AccessDeniedError, SettingsError, TrimtabError

_TOKEN = "trimtab_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"


class _Seen:
    def __init__(self) -> None:
        self.requests: list[tuple[str, str | None]] = []


@contextmanager
def _serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, _Seen]]:
    seen = _Seen()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.requests.append((self.path, self.headers.get("Authorization")))
            answer(self)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()


def _reply(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _job(state: str, problem: str = "") -> bytes:
    """What a server says of a job."""
    job = {"id": "x", "kind": "doctor", "cluster": "east", "by": "ann", "state": state, "progress": ""}
    return json.dumps({**job, "problem": problem, "createdMs": 1, "endedMs": 2, "size": 0}).encode()


def _problem(status: int, title: str, detail: str, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    body = json.dumps({"type": "about:blank", "status": status, "title": title, "detail": detail}).encode()
    return lambda handler: _reply(handler, status, body, Content_Type="application/problem+json", **headers)


def _error(*words: str, env: dict[str, str] | None = None) -> TrimtabError:
    found = CliRunner().invoke(app, [*words, "--quiet"], env=env)
    assert isinstance(found.exception, TrimtabError), (found.output, found.exception)
    return found.exception


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://host", "expected http"),
        ("host:9680", "expected http"),
        ("http://", "expected http"),
        ("http://host:port", "not a URL"),
        ("https://ann:secret@host", "no user and no password"),
        ("https://host/page", "nothing may follow"),
        ("https://host/?token=x", "nothing may follow"),
        ("http://192.0.2.7:9680", "over https only"),
        ("http://page.example.org", "over https only"),
    ],
)
def test_a_url_that_is_none_or_would_send_the_token_in_plain_text_is_refused(url: str, why: str) -> None:
    error = _error("status", "--server", url, env={"TRIMTAB_TOKEN": _TOKEN})
    assert isinstance(error, SettingsError)
    assert why in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("token", ["two words", "a\r\nX-Forwarded-User: root", "\u00e9"])
def test_a_token_that_would_be_more_than_a_header_is_refused(token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(token)
    error = _error("status", "--server", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"))
    assert isinstance(error, SettingsError)
    assert token not in str(error)


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--watch"),
        ("status", "--conf", "x"),
        ("explain", "--rounds", "2"),
        ("audit", "recording"),
        ("what-if", "recording", "--from", "1h"),
        ("what-if",),
        ("apply", "--proposal", "4f1c0a9b", "--hook", "true"),
    ],
    ids=" ".join,
)
def test_an_option_that_a_server_cannot_follow_is_a_usage_error_and_never_ignored(words: tuple[str, ...]) -> None:
    found = CliRunner().invoke(app, [*words, "--server", "http://127.0.0.1:1"])
    assert found.exit_code == 2
    assert "Invalid value for" in found.output


def test_options_of_the_server_without_it_are_a_usage_error() -> None:
    found = CliRunner().invoke(app, ["status", "--cluster", "east"])
    assert (found.exit_code, "it can only be used with --server" in found.output) == (2, True)


def test_a_redirect_is_not_followed_and_the_token_stays_here() -> None:
    with (
        _serving(lambda handler: _reply(handler, 200, b"{}")) as (elsewhere, stolen),
        _serving(lambda handler: _reply(handler, 307, b"", Location=f"{elsewhere}/api/v1/status")) as (url, seen),
    ):
        error = _error("status", "--server", url, env={"TRIMTAB_TOKEN": _TOKEN})
    assert elsewhere in str(error)
    assert seen.requests == [("/api/v1/status", f"Bearer {_TOKEN}")]
    assert stolen.requests == []


@pytest.mark.parametrize(
    "location",
    [
        "http://192.0.2.7/api/v1/jobs/x",
        "//192.0.2.7/api/v1/jobs/x",
        "@192.0.2.7/",
        "/api/v1/jobs/../status",
        "/api/v1/jobs/x?y",
        "",
    ],
)
def test_a_job_is_looked_for_at_the_same_server_alone(location: str) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        _reply(handler, 202, b"{}", Location=location)

    with _serving(answer) as (url, seen):
        assert "names no job" in str(_error("doctor", "--server", url))
    assert len(seen.requests) == 1


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, SettingsError, 2),
        (401, AccessDeniedError, 77),
        (403, AccessDeniedError, 77),
        (404, TrimtabError, 1),
        (421, SettingsError, 2),
        (500, TrimtabError, 1),
        (503, TrimtabError, 1),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_server(status: int, kind: type[TrimtabError], code: int) -> None:
    with _serving(_problem(status, "Too odd", "the \x1b[31mmoon\n is full")) as (url, _):
        error = _error("status", "--server", url)
    assert isinstance(error, kind)
    assert error.exit_code == code
    assert str(error).startswith(f"{url} answers {status} Too odd: the  [31mmoon  is full")


def test_who_asks_too_often_waits_as_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("controller.cli.remote.rest_server.time", SimpleNamespace(sleep=waits.append))
    with _serving(_problem(429, "Too many requests", "try again", Retry_After="7")) as (url, seen):
        _error("status", "--server", url)
    assert len(seen.requests) == 5
    assert waits == [7.0] * 4


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{}", b"[" * 100_000, b'{"cluster": 7}', b"\xff"],
    ids=["empty", "html", "no fields", "deep", "other type", "no text"],
)
def test_an_answer_that_is_none_is_refused_in_one_line(body: bytes) -> None:
    with _serving(lambda handler: _reply(handler, 200, body)) as (url, _):
        text = str(_error("status", "--server", url))
    assert "its answer is not that of this release" in text
    assert len(text.splitlines()) == 1


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest_server, "_LARGEST_ANSWER", 1 << 20)

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b" " * 65536)
        except OSError:
            pass

    with _serving(endless) as (url, _):
        assert "larger than" in str(_error("status", "--server", url))


def test_a_job_that_fails_is_told_with_its_problem() -> None:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.startswith("/api/v1/jobs/"):
            _reply(handler, 200, _job("failed", "the log does not answer"))
        else:
            _reply(handler, 202, b"{}", Location="/api/v1/jobs/x")

    with _serving(answer) as (url, _):
        assert str(_error("doctor", "--server", url)) == "the log does not answer"


_ID = "3f9a1c22d07b81e4" * 4


def test_a_change_whose_answer_is_lost_is_sent_again_under_the_same_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controller.cli.remote.rest_server.time", SimpleNamespace(sleep=lambda _: None))
    keys = list[tuple[str | None, str | None]]()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        keys.append((handler.headers.get("Idempotency-Key"), handler.headers.get("If-Match")))
        if len(keys) < 3:
            handler.close_connection = True
            return
        body = {
            "cluster": "c",
            "action": "pause",
            "by": "ann",
            "atMs": 1,
            "reason": "r",
            "epoch": None,
            "proposal": None,
        }
        _reply(handler, 200, json.dumps(body).encode())

    with _serving(answer) as (url, _):
        found = CliRunner().invoke(app, ["pause", "--server", url, "--reason", "r", "--json"])
    assert found.exit_code == 0, found.exception
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert keys[0][0]
    assert keys[0][1] == "*"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("mode", "observe"), "mode observe"),
        (("release", "a:80", "b:80"), "release a:80, b:80"),
        (("exclude", "acme/a", "acme/b"), "exclude acme/a, acme/b"),
        (("include", "acme/a"), "include acme/a"),
    ],
)
def test_what_was_stored_or_proposed_is_named_with_its_value(words: tuple[str, ...], what: str) -> None:
    body = {"cluster": "c", "action": words[0], "by": "ann", "atMs": 1, "reason": "r", "epoch": None, "proposal": None}

    def said(proposal: str | None) -> str:
        answer = json.dumps({**body, "proposal": proposal}).encode()
        with _serving(lambda handler: _reply(handler, 200, answer)) as (url, _):
            return CliRunner().invoke(app, [*words, "--server", url, "--reason", "r"]).stdout

    assert said(None).startswith(f"Stored: {what}, by ann at ")
    assert said("0f" * 32).startswith(f"Proposed: {what}. It is in force once")


def test_a_change_that_the_server_refuses_is_not_sent_again() -> None:
    with _serving(_problem(409, "Not now", "proposal 3f9a is done")) as (url, seen):
        error = _error("pause", "--server", url, "--reason", "r")
    assert "proposal 3f9a is done" in str(error)
    assert len(seen.requests) == 1


def _listing(*ids: str) -> bytes:
    """What a server answers that has the proposals *ids*."""
    texts = dict.fromkeys(("title", "rejectedBy", "by", "detail"), "")
    numbers = dict.fromkeys(
        ("required", "moves", "splits", "connections", "proposedAt", "expiresAt", "step", "wave", "waves", "at"), 0
    )
    fixed = {"kind": "plan", "state": "pending", "author": "ann", "approvedBy": [], "flaws": [], "movesDone": 0}
    return json.dumps(
        {"proposals": [{**texts, **numbers, **fixed, "id": key} for key in ids], "unreadable": {}}
    ).encode()


def test_an_id_that_fits_two_proposals_of_the_server_changes_neither() -> None:
    body = _listing(_ID, _ID[:-1] + "0")
    with _serving(lambda handler: _reply(handler, 200, body)) as (url, seen):
        error = _error("proposals", "pause", _ID[:12], "--server", url, "--reason", "r")
    assert "2 proposals" in str(error)
    assert [path.partition("?")[0] for path, _ in seen.requests] == ["/api/v1/proposals"]


_NEW = "a" * 64


def _refreshing(job: bytes, *ids: str) -> Callable[[BaseHTTPRequestHandler], None]:
    """A server at which *job* makes a new proposal, after which it lists *ids*."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        if path.endswith("/refresh"):
            _reply(handler, 202, b"{}", Location="/api/v1/jobs/x")
        elif path.endswith("/result"):
            _reply(handler, 200, json.dumps({"proposal": _NEW}).encode())
        else:
            _reply(handler, 200, job if "/jobs/" in path else _listing(*ids))

    return answer


def test_what_the_server_proposes_anew_is_printed_once_it_is_there() -> None:
    with _serving(_refreshing(_job("done"), _ID, _NEW)) as (url, _):
        words = ["proposals", "refresh", _ID[:12], "--server", url, "--reason", "r", "--json"]
        found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.exception
    assert json.loads(found.stdout)["id"] == _NEW


@pytest.mark.parametrize(
    ("job", "why"),
    [(_job("failed", "nothing is left to do"), "nothing is left to do"), (_job("done"), "lists no proposal")],
)
def test_nothing_proposed_anew_is_an_error(job: bytes, why: str) -> None:
    with _serving(_refreshing(job, _ID)) as (url, _):
        error = _error("proposals", "refresh", _ID[:12], "--server", url, "--reason", "r")
    assert why in str(error)
    assert error.exit_code == 1
