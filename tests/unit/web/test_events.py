"""Server-sent events: what comes, to how many, and what a slow reader gets."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from controller.settings.web import ViewerRole
from controller.web import events
from controller.web.access.tokens import token_hash
from controller.web.access.viewer import RefusedError, Viewer
from controller.web.app import create_app
from controller.web.events import EventSource, StreamPlaces, share_of
from tests.page_data import FixedPageData, T
from tests.web_sites import site


def _played(data: FixedPageData, changes: int, readers: int) -> list[list[bytes]]:
    """What each of several streams gets while the store changes, which nobody reads in between."""

    async def run() -> list[list[bytes]]:
        news, ended = EventSource(data), threading.Event()
        streams = [news.stream() for _ in range(readers)]
        begins = [[await anext(each), await anext(each)] for each in streams]
        thread = threading.Thread(target=news.follow, args=(asyncio.get_running_loop(), ended), daemon=True)
        thread.start()
        for _ in range(changes):
            data.change()
        after = [await anext(each) for each in streams]
        while f"id: {changes + 1}\n".encode() not in after[0]:
            after = [await anext(each) for each in streams]
        ended.set()
        data.change()
        await asyncio.to_thread(thread.join, 5)
        return [[*begin, end] for begin, end in zip(begins, after, strict=True)]

    return asyncio.run(asyncio.wait_for(run(), 20))


def test_a_stream_begins_with_the_newest_message_and_hears_of_each_change() -> None:
    ((begins, first, last),) = _played(FixedPageData("east"), changes=1, readers=1)
    assert begins.startswith(b"retry:")
    assert first.startswith(b"id: 1\nevent: interval\ndata: ")
    assert str(T).encode() in first
    assert last.startswith(b"id: 2\n")


def test_hundreds_of_streams_hear_the_same_and_nothing_piles_up_for_slow_ones() -> None:
    streams = _played(FixedPageData("east"), changes=500, readers=300)
    assert len({tuple(each) for each in streams}) == 1
    assert all(len(message) < 4096 for each in streams for message in each)


def test_a_stream_ends_when_its_viewer_is_not_admitted_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_ALIVE_SECONDS", 0.01)
    answers = iter([True, True, False])

    async def is_admitted() -> bool:
        return next(answers)

    async def run() -> list[bytes]:
        return [message async for message in EventSource(FixedPageData("east")).stream(is_admitted)]

    messages = asyncio.run(asyncio.wait_for(run(), 20))
    assert [each.split(b"\n")[0] for each in messages] == [b"retry: 3000", b"id: 1", b": alive", b": alive"]


def test_a_deleted_token_ends_its_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_ALIVE_SECONDS", 0.05)
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[tokens.ann]\nsha256 = "{token_hash("secret")}"\nrole = "viewer"\n', encoding="utf-8")
    client = TestClient(
        create_app(site(tmp_path, "east", web=("[web]", f'tokens_file = "{tokens}"'))), base_url="http://localhost"
    )
    with client:
        threading.Timer(0.2, lambda: tokens.write_text("", encoding="utf-8")).start()
        answer = client.get("/api/v1/events", headers={"Authorization": "Bearer secret"})  # it has an end
    assert answer.status_code == 200
    assert ": alive" in answer.text


def test_a_summary_cannot_begin_a_line_of_its_own() -> None:
    ((_, first, _),) = _played(FixedPageData("east", summary="a\n\nevent: evil\r\ndata: x\x1b"), changes=1, readers=1)
    assert first.count(b"\n") == 4
    assert b"\r" not in first


def test_one_client_and_all_of_them_have_so_many_places() -> None:
    places = StreamPlaces(of_one=2, of_all=3)
    places.take("a")
    places.take("a")
    with pytest.raises(RefusedError) as refused:
        places.take("a")
    assert refused.value.status == 429
    places.take("b")
    with pytest.raises(RefusedError) as refused:
        places.take("c")
    assert refused.value.status == 503
    places.give_back("a")
    places.take("c")
    assert places.open == 3
    for each in "abc":
        places.give_back(each)
    assert places.open == 0


def test_a_person_has_one_share_from_all_addresses_and_nobody_another_persons() -> None:
    ann, bob = (Viewer(name=name, role=ViewerRole.VIEWER, login="token") for name in ("ann", "bob"))
    anybody = Viewer(name="anonymous", role=ViewerRole.VIEWER, login="anonymous")
    assert share_of(ann, "192.0.2.1") == share_of(ann, "192.0.2.2")
    assert share_of(ann, "192.0.2.1") != share_of(bob, "192.0.2.1")
    assert share_of(anybody, "192.0.2.1") != share_of(anybody, "192.0.2.2")
    # Nobody takes the share of an address by a name.
    assert share_of(Viewer(name="192.0.2.1", role=ViewerRole.VIEWER, login="token"), "x") != "192.0.2.1"


def test_a_parameter_that_streams_do_not_know_is_refused(tmp_path: Path) -> None:
    client = TestClient(create_app(site(tmp_path, "east")), base_url="http://localhost")
    assert client.get("/api/v1/events?since=1").status_code == 400
    assert client.get("/api/v1/events?cluster=north").status_code == 404


@pytest.mark.parametrize("credentials", [(), ((b"authorization", b"Bearer unknown"),)], ids=["anonymous", "a token"])
def test_a_client_over_its_share_hears_just_that_however_busy_the_server_is(
    tmp_path: Path, credentials: tuple[tuple[bytes, bytes], ...]
) -> None:
    web = ("[web]", 'anonymous = "viewer"', "requests_per_second = 10000.0", "streams_per_client = 3")
    shown, tries = site(tmp_path, "east", web=web), 50
    app, ends, statuses = create_app(shown), threading.Event(), Counter[int]()

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return await asyncio.Future()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses[message["status"]] += 1

        await app(_events_scope(credentials), receive, send)

    async def run() -> None:
        busy: set[asyncio.Task[bool]] = set()
        with suppress(RefusedError):
            while True:  # until it takes no more
                busy.add(asyncio.create_task(shown.workers.run(lambda: ends.wait(20))))
                await asyncio.sleep(0)
                for each in busy:
                    if each.done():
                        await each
        streams = [asyncio.create_task(ask()) for _ in range(tries)]
        while statuses.total() < tries:
            await asyncio.sleep(0.001)
        ends.set()
        for stream in streams:
            stream.cancel()

    asyncio.run(asyncio.wait_for(run(), 20))
    assert statuses == ({401: tries} if credentials else {200: 3, 429: tries - 3})


def _events_scope(headers: Iterable[tuple[bytes, bytes]] = (), version: str = "2.4") -> dict[str, Any]:
    """Of a request for the stream of events, as a server gives it to an application."""
    path = "/api/v1/events"
    scope: dict[str, Any] = {"type": "http", "asgi": {"spec_version": version}, "method": "GET", "path": path}
    scope |= {"raw_path": path.encode(), "query_string": b"", "headers": [(b"host", b"localhost"), *headers]}
    return {**scope, "client": ("127.0.0.1", 5), "state": {}}


@pytest.mark.parametrize("version", ["2.3", "2.4"])
def test_a_client_that_has_gone_before_the_first_message_keeps_no_place(tmp_path: Path, version: str) -> None:
    shown = site(tmp_path, "east")
    app = create_app(shown)

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def not_sent(_: object) -> None:
        raise OSError("the connection is closed")

    async def run() -> None:
        with suppress(OSError):
            await app(_events_scope(version=version), gone, not_sent)

    asyncio.run(run())
    assert shown.places.open == 0
