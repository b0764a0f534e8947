"""Every page in every state: it answers, its heading is a sentence, and what others chose is text."""

import gzip
import json
import re
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from controller.model.controls import Controls, OrderedMove, Orders
from controller.model.errors import TrimtabError
from controller.model.names import topic_hash
from controller.settings.trimtab_toml import Settings
from controller.web.app import create_app
from controller.web.jobs import Jobs
from controller.web.orders import of_what_if
from controller.web.pages.page import PageRequest
from controller.web.store.store import Store
from controller.web.store.values import DecisionQuery, HottestTopic, ScalableTopicState
from controller.web.topic_names import TopicLister
from controller.web.views.formats import BrokerNames
from controller.wire.answers.explain import ExplainAnswer, FlipAnswer, GivenAnswer
from controller.wire.answers.status import StatusAnswer
from controller.wire.answers.what_if import ReplayAnswer
from tests.invented_pages import (
    DAY,
    HOSTILE,
    HOT_TOPIC,
    MINUTE,
    NOW,
    InventedData,
    T,
    broker_name,
    brokers_now,
    bundle_name,
    commands,
    hostile,
    latest,
    progress,
    states,
)
from tests.web_sites import site
from tests.what_ifs import what_if_answer

BUNDLE = bundle_name(2)
PATHS = (
    "/",
    "/map",
    "/map?rows=keyspace&span=1440",
    f"/map?rows=keyspace&namespace=telemetry/raw&row={quote(BUNDLE)}&at={T}",
    f"/map?row={quote(broker_name(4))}&at={T - 9 * MINUTE}",
    "/map?rows=keyspace&metric=owner",
    "/decisions",
    "/decisions?with_commands=1&reason=Budget",
    f"/bundles/{BUNDLE}",
    f"/brokers/{quote(broker_name(4))}",
    "/brokers/unknown",
    "/namespaces/telemetry/raw",
    "/bundles/nowhere/at-all/0x00000000_0x10000000",
    "/find",
    "/find?text=broker",
    "/plans",
    "/controls",
    "/history",
    "/what-if",
    "/more",
)


def _unreadable(_settings: Settings) -> Callable[[], StatusAnswer]:
    def read() -> StatusAnswer:
        raise TrimtabError("the election does not answer")

    return read


def client_of(folder: Path, data: InventedData, list_topics: TopicLister | None = None) -> TestClient:
    shown = site(folder, "harbour-eu", now_ms=lambda: NOW, read_status=_unreadable, data=data, list_topics=list_topics)
    return TestClient(create_app(shown), base_url="http://localhost")


@pytest.mark.slow
@pytest.mark.parametrize("state", sorted(states()))
def test_every_page_answers_in_every_state(tmp_path: Path, state: str) -> None:
    client = client_of(tmp_path, states()[state])
    for path in PATHS:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert answer.text.count("<h1") == 1, path
        assert len(answer.content) < 60_000, path
        assert " style=" not in answer.text, "the policy forbids it"


def test_what_others_chose_is_text_on_every_page(tmp_path: Path) -> None:
    client = client_of(tmp_path, hostile())
    name = quote(f"{HOSTILE}/0x00000000_0x10000000", safe="/")
    hostile_paths = (
        f"/bundles/{name}",
        f"/brokers/{quote(HOSTILE)}",
        f"/namespaces/{quote(HOSTILE)}",
        f"/find?text={quote(HOSTILE)}",
        f"/decisions?broker={quote(HOSTILE)}",
        f"/decisions/{T}",
        f"/decisions/{T}?text={quote(HOSTILE)}&kind={quote(HOSTILE)}",
        f"/map/cell?row={quote(HOSTILE)}&at={T}",
        f"/map?rows=keyspace&namespace={quote(HOSTILE)}&owner={quote(HOSTILE)}",
    )
    for path in (*PATHS, *hostile_paths):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "<img" not in answer.text, path
        assert "</script><img" not in answer.text, path
        assert "49 " not in answer.text, path
        assert "onerror=alert(1)>" not in answer.text, path
        assert "\u202e" not in answer.text, f"{path}: it would show what follows backwards"


def test_intervals_of_one_day_have_its_date_once(tmp_path: Path) -> None:
    shown = site(tmp_path, "harbour-eu", now_ms=lambda: NOW + 2 * DAY, read_status=_unreadable, data=InventedData())
    text = TestClient(create_app(shown), base_url="http://localhost").get("/decisions").text
    assert re.search(r">26 Nov 13:\d\d</time>–<time datetime=[^>]*>\d\d:\d\d</time>", text)


def test_why_not_asks_the_newest_interval_in_which_the_strategy_acted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = InventedData.decisions

    def decisions(data: InventedData, query: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> Any:
        answer = made(data, query, cursor=cursor, limit=limit)
        between = {"NotThisInterval": 1}
        rows = [replace(row, reasons=between) if row.interval > T - 2 * MINUTE else row for row in answer.rows]
        return replace(answer, rows=tuple(rows))

    monkeypatch.setattr(InventedData, "decisions", decisions)
    text = client_of(tmp_path, InventedData()).get(f"/bundles/{BUNDLE}").text
    assert f'href="/decisions/{T - 2 * MINUTE}?about=' in text


@pytest.mark.parametrize("path", ["/decisions?broker=broker-4", f"/decisions/{T}?about=broker-4"])
def test_a_broker_is_found_by_the_name_that_pages_show(tmp_path: Path, path: str) -> None:
    text = client_of(tmp_path, InventedData()).get(path).text
    assert f'value="{broker_name(4)}"' in text


def test_what_commands_say_of_strategies_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = site(tmp_path, "harbour-eu", data=InventedData(), now_ms=lambda: NOW, web=("[web]", 'anonymous = "viewer"'))
    shown.jobs = Jobs(0, 30)
    given = GivenAnswer(asked=HOSTILE, answer="no", reason=HOSTILE, kind="normal", text=HOSTILE, means=f"{HOSTILE}!")
    explained = ExplainAnswer(
        cluster="harbour-eu",
        subject=BUNDLE,
        kind="bundle",
        interval=T,
        source="journal",
        summary=HOSTILE,
        pulsar=None,
        because=HOSTILE,
        commands=[],
        answers=[given, given.model_copy(update={"answer": "yes"})],
        where_to=HOSTILE,
        brokers=None,
        chosen=None,
        verdicts=[],
        reproduced=None,
        flips=[FlipAnswer(kind="option", of=HOSTILE, before=10.0, after=9.0, unit="%", then=HOSTILE)],
        notes=[HOSTILE],
    )
    monkeypatch.setattr(PageRequest, "explain", lambda *_, **_options: explained)
    job = shown.jobs.submit(of_what_if(shown, shown.cluster(None), (0, MINUTE), ()), "ann")
    replay = ReplayAnswer(figures={HOSTILE: 1.0}, decisions=1, uncertain=0, largest_error=0.0, commands=0, moves=[])
    job.result.write_text(what_if_answer({HOSTILE: replay}, notes=[HOSTILE]).as_line(), encoding="utf-8")
    job.state = "done"
    client = TestClient(create_app(shown), base_url="http://localhost")
    for path in (f"/decisions/{T}?about={BUNDLE}", f"/what-if?job={job.id}&strategy={quote(HOSTILE)}"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "onerror=alert(1)" in answer.text, path
        assert "<img" not in answer.text, path
    shown.jobs.close()


def test_where_the_log_cannot_be_read_nobody_says_that_nothing_is_decided(tmp_path: Path) -> None:
    source = replace(progress().sources[0], source="summaries", error="no broker answers")
    data = InventedData(state=latest(interval=T - DAY), loaded=progress(sources=(source,)))
    text = client_of(tmp_path, data).get("/").text
    assert "<h1>Nothing is known since 25 Nov 14:31</h1>" in text
    assert "The log cannot be read." in text
    assert "No decision for" not in text
    fresh = client_of(tmp_path, InventedData(loaded=progress(sources=(source,)))).get("/").text
    assert "Nothing is in the way." in fresh
    assert "Not readable now: summaries: no broker answers." in fresh


@pytest.mark.parametrize(
    ("state", "title"),
    [
        ("normal", "broker-4 is too full, and it is being relieved"),
        ("breaker", "Nothing is moved until a person resumes"),
        ("late", "Nothing is decided, and nothing moves"),
        ("paused", "Balancing is paused"),
        ("empty", "No interval yet"),
    ],
)
def test_the_heading_of_now_is_its_answer(tmp_path: Path, state: str, title: str) -> None:
    assert f"<h1>{title}</h1>" in client_of(tmp_path, states()[state]).get("/").text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("breaker", "Breaker open since 14:09 UTC."),
        ("late", "No decision for 19 intervals."),
        ("paused", "Paused by duty-2 since 13:58 UTC: “broker upgrade”."),
        ("dry_run", "Dry run: commands change nothing."),
        ("loading", "The last days are loading."),
        ("empty", "Waiting for the first interval."),
    ],
)
def test_every_page_has_the_state_of_the_controller_above_it(tmp_path: Path, state: str, words: str) -> None:
    client = client_of(tmp_path, states()[state])
    assert all(words in client.get(path).text for path in ("/", "/history"))


@pytest.mark.parametrize(
    "query",
    [
        "rows=x",
        "metric=rate&rows=nothing",
        "span=1",
        "since=5",
        "since=5&until=4",
        "since=x&until=y",
        "span=²",
        "at=-1",
    ],
)
def test_a_map_that_cannot_be_is_refused_by_name(tmp_path: Path, query: str) -> None:
    answer = client_of(tmp_path, states()["normal"]).get(f"/map?{query}")
    assert answer.status_code == 400
    assert "must be" in answer.text


def test_a_span_before_now_begins_with_the_first_data(tmp_path: Path) -> None:
    page = client_of(tmp_path, InventedData(loaded=progress(oldest=T - 30 * MINUTE))).get("/map?span=360").text
    since, until = (int(page.partition(f'data-{name}="')[2].partition('"')[0]) for name in ("since", "until"))
    assert (since, until) == (T - 30 * MINUTE, T + MINUTE)


@pytest.mark.parametrize(
    ("brokers", "labels", "shortest"),
    [
        (["127.0.0.1:8080", "127.0.0.1:8081"], ["127.0.0.1:8080", "127.0.0.1:8081"], ["8080", "8081"]),
        (["10.0.1.1:8080", "10.0.2.1:8080"], ["10.0.1.1", "10.0.2.1"], ["1.1", "2.1"]),
        (["p-broker-4.svc:80", "p-broker-5.svc:80"], ["broker-4", "broker-5"], ["4", "5"]),
    ],
)
def test_brokers_lose_what_all_share_but_no_part_of_an_address(
    brokers: list[str], labels: list[str], shortest: list[str]
) -> None:
    names = BrokerNames.of(brokers)
    assert [names.label(each) for each in brokers] == labels
    assert [names.shortest(each) for each in brokers] == shortest


@pytest.mark.parametrize("name", ["a/b/0x0_0x1", "a", "a/b", "a/b/0xffffffff_0x00000000"])
@pytest.mark.parametrize("path", ["/bundles/{}", "/map/cell?rows=keyspace&row={}&at=1", "/api/v1/bundles/{}"])
def test_a_name_that_no_bundle_can_have_is_no_fault_of_ours(tmp_path: Path, path: str, name: str) -> None:
    with closing(Store(tmp_path, cluster="harbour-eu")) as store:
        shown = site(tmp_path, "harbour-eu", now_ms=lambda: NOW, read_status=_unreadable, data=store)
        answer = TestClient(create_app(shown), base_url="http://localhost").get(path.format(name))
    assert answer.status_code in (200, 400)


def test_the_whole_history_is_a_tile_also_in_the_first_minute(tmp_path: Path) -> None:
    data = InventedData(loaded=progress(oldest=T - MINUTE))
    client = client_of(tmp_path, data)
    page = client.get("/map").text
    oldest, end = (int(page.partition(f'data-{name}="')[2].partition('"')[0]) for name in ("oldest", "end"))
    answer = client.get(f"/map/tile?rows=brokers&metric=usage&since={oldest}&until={end}&width=8&height=1")
    assert answer.status_code == 200


def test_a_tile_has_a_header_and_one_byte_for_each_cell(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["normal"])
    answer = client.get(f"/map/tile?since={T - 60 * MINUTE}&until={T}&width=60&height=100")
    (length,) = struct.unpack("<I", answer.content[:4])
    header = json.loads(answer.content[4 : 4 + length])
    assert len(answer.content) == 4 + length + header["columns"] * len(header["rows"])
    assert (header["columns"], len(header["rows"]), len(header["values"])) == (60, 12, 255)


def test_a_tile_of_the_past_is_immutable_and_one_of_now_is_asked_for_again(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["normal"])
    past = client.get(f"/map/tile?since={T - 2 * DAY}&until={T - DAY}&width=60&height=100")
    assert "immutable" in past.headers["cache-control"]
    now = client.get("/map/tile?width=60&height=100")
    assert "no-cache" in now.headers["cache-control"]
    again = client.get("/map/tile?width=60&height=100", headers={"If-None-Match": now.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_large_tile_is_packed_for_those_who_take_it(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["many"])
    with client.stream(
        "GET", "/map/tile?span=10080&width=1000&height=500", headers={"Accept-Encoding": "gzip"}
    ) as answer:
        packed = b"".join(answer.iter_raw())
    assert len(gzip.decompress(packed)) > len(packed)


@pytest.mark.parametrize(
    "size", ["", "width=0&height=1", "width=5000&height=1", "width=1&height=513", "width=1e3&height=1"]
)
def test_a_tile_that_nobody_can_draw_is_refused(tmp_path: Path, size: str) -> None:
    assert client_of(tmp_path, states()["normal"]).get(f"/map/tile?{size}").status_code == 400


def test_the_table_of_a_large_keyspace_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["many"])
    assert "Make the table of these cells" in client.get("/map?rows=keyspace").text
    assert "Cells of the map" in client.get("/map?rows=keyspace&table=1").text


def test_what_happened_is_moves_one_by_one_or_counted(tmp_path: Path) -> None:
    answer = client_of(tmp_path, states()["normal"]).get("/map/events?span=60").json()
    assert ["unload", broker_name(4)] in [[move[1], move[3]] for move in answer["moves"]]
    assert sum(answer["counts"]) >= len(answer["moves"])
    assert answer["bands"] == [[T - 40 * MINUTE, T - 20 * MINUTE, "paused by duty-2"]]


def test_a_decision_has_promise_and_measurement_of_each_move_and_the_classes_of_what_was_left(tmp_path: Path) -> None:
    text = client_of(tmp_path, states()["normal"]).get(f"/decisions/{T - 9 * MINUTE}").text
    assert "84 → 80, is" in text
    assert "came elsewhere" in text
    assert "undone by others" in text
    assert "passes with time" in text
    assert "LargePartition" in text


def test_verdicts_are_filtered_by_class_and_by_text(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["normal"])
    listed = client.get(f"/decisions/{T}?kind=configuration").text
    assert "BrokerIsolationPoliciesFilter" in listed
    assert "interval.unloads_per_source" not in listed
    assert "None of the 5 verdicts" in client.get(f"/decisions/{T}?text=nothing-like-it").text


def test_a_decision_that_is_not_kept_is_404(tmp_path: Path) -> None:
    client = client_of(tmp_path, states()["normal"])
    assert client.get("/decisions/5").status_code == 404
    assert client.get(f"/decisions/{1 << 60}").status_code == 404
    as_people_see_it = client.get("/decisions/5", headers={"Accept": "text/html"}).text
    assert "There is no decision of this interval, or it is older than what is kept." in as_people_see_it
    assert "There is nothing at this address." in client.get("/nowhere", headers={"Accept": "text/html"}).text


def test_a_namespace_says_how_many_bundles_its_ranges_stand_for(tmp_path: Path) -> None:
    data = states()["normal"]
    past = data.namespace("telemetry/raw", 0, T)
    data.namespace = lambda *_: replace(past, bundles_in_all=320)  # type: ignore[method-assign]
    text = client_of(tmp_path, data).get("/namespaces/telemetry/raw").text
    assert "320 bundles, shown as 16 ranges, each with the owner of its busiest bundle" in text
    assert "has the most of them" not in text


def test_a_namespace_lists_its_scalable_topics_with_their_names_as_text(tmp_path: Path) -> None:
    data, name = states()["normal"], "topic://telemetry/raw/<b>ünïcode</b>"
    past = data.namespace("telemetry/raw", 0, T)
    topic = ScalableTopicState(
        place=topic_hash(name),
        segments=12,
        serving=2,
        may_serve=3,
        throughput=3e6,
        peak=2.5e6,
        busiest="broker-0001:8080",
        unevenness=2.5,
        cut=0xB8E3,
    )
    unnamed = replace(topic, place=7, cut=None)
    data.namespace = lambda *_: replace(past, scalable=(topic, unnamed))  # type: ignore[method-assign]
    text = client_of(tmp_path, data, lambda _: [name]).get("/namespaces/telemetry/raw").text
    assert "topic://telemetry/raw/&lt;b&gt;ünïcode&lt;/b&gt;" in text
    assert "a cut at 0xb8e3 would be even" in text
    assert "topic at 0x00000007 on the hash ring" in text
    assert "2 of 3" in text


def test_a_range_that_stands_for_several_bundles_cannot_be_moved_and_counts_no_changes(tmp_path: Path) -> None:
    data = states()["normal"]
    past = data.bundle(BUNDLE, 0, T)
    data.bundle = lambda *_: replace(past, bundles=11)  # type: ignore[method-assign]
    text = client_of(tmp_path, data).get(f"/bundles/{BUNDLE}").text
    assert "A range of 11 bundles" in text
    assert "of the busiest bundle at a time" in text
    assert "Plan a move" not in text


def test_a_map_whose_rows_are_several_brokers_counts_them_as_at_least(tmp_path: Path) -> None:
    text = client_of(tmp_path, states()["many"]).get("/map").text
    assert re.search(r"<h1 data-title>At least \d+ brokers? went above the limit of 85 %</h1>", text)


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("", r"\d+ of the 50 newest decisions issued commands"),
        ("?cursor=50", r"\d+ of 50 older decisions issued commands"),
    ],
)
def test_the_list_of_decisions_says_which_part_it_is(tmp_path: Path, query: str, title: str) -> None:
    text = client_of(tmp_path, states()["normal"]).get(f"/decisions{query}").text
    assert re.search(f"<h1>{title}</h1>", text)


def test_on_a_phone_more_has_what_the_rail_has(tmp_path: Path) -> None:
    text = client_of(tmp_path, states()["normal"]).get("/more").text
    more = text[text.index('<main id="main"') :]
    for words in ("data-theme-switch", "anonymous, viewer", "harbour-eu"):
        assert words in more


def test_why_not_is_answered_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PageRequest, "explain", lambda _page, _interval, subject, **_: f"{subject}: the load is not kept"
    )
    text = client_of(tmp_path, states()["normal"]).get(f"/decisions/{T}?about={BUNDLE}").text
    assert f"{BUNDLE}: the load is not kept" in text


@pytest.mark.parametrize(
    ("flips", "sentence"),
    [
        (None, "Search for the smallest change"),
        ([], "No single change of load or of an option was found"),
        (
            [FlipAnswer(kind="usage", of="broker-4", before=100.0, after=112.5, unit="%", then="")],
            '100 → <b class="strong">112.5</b> %',
        ),
    ],
    ids=["not searched for", "none", "one"],
)
def test_the_page_says_which_smallest_change_would_have_changed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flips: list[FlipAnswer] | None, sentence: str
) -> None:
    searches = list[bool]()

    def explain(_page: PageRequest, _interval: int, _subject: str, *, flip: bool) -> ExplainAnswer:
        searches.append(flip)
        return ExplainAnswer(
            cluster="harbour-eu",
            subject=BUNDLE,
            kind="bundle",
            interval=T,
            source="journal",
            summary="1 unload",
            pulsar=None,
            because="broker-4 is not overloaded",
            commands=[],
            answers=[],
            where_to="",
            brokers=None,
            chosen=None,
            verdicts=[],
            reproduced=None,
            flips=flips,
            notes=[],
        )

    monkeypatch.setattr(PageRequest, "explain", explain)
    client = client_of(tmp_path, states()["normal"])
    assert sentence in client.get(f"/decisions/{T}?about={BUNDLE}").text
    client.get(f"/decisions/{T}?about={BUNDLE}&flip=1")
    assert searches == [False, True]


def test_intervals_in_a_row_with_nothing_for_one_reason_are_one_line(tmp_path: Path) -> None:
    text = client_of(tmp_path, states()["normal"]).get("/").text
    assert "Nothing issued in 3 intervals" in text


def test_a_filter_without_a_match_says_so_and_clears(tmp_path: Path) -> None:
    text = client_of(tmp_path, states()["normal"]).get("/decisions?reason=NoSuchReason").text
    assert "<h1>No decision matches</h1>" in text
    assert 'href="/decisions">Clear all filters</a>' in text


def test_a_plan_in_force_has_its_wave_and_its_moves(tmp_path: Path) -> None:
    move = OrderedMove(bundle=BUNDLE, source=broker_name(4), destination=broker_name(7))
    orders = Orders(
        plan="ab" * 32,
        step=1,
        wave=2,
        waves=6,
        moves=(move,),
        checked_at=T,
        expires_at_ms=T + 5 * MINUTE,
        holder="h",
        by="duty-2",
    )
    text = (
        client_of(tmp_path, InventedData(state=latest(controls=Controls(mode="active", orders=orders))))
        .get("/plans")
        .text
    )
    assert "A plan is being applied: step 1, wave 2 of 6" in text
    held = latest(controls=Controls(mode="active", orders=replace(orders, moves=())))
    bridge = client_of(tmp_path, InventedData(state=held)).get("/history").text
    assert "A plan is in force, and none of its moves is handed over now: step 1, wave 2 of 6" in bridge
    assert text.count('class="wave') == 6 + 1  # and the list of them
    assert BUNDLE in text


def test_where_usage_has_no_goal_the_first_page_says_who_has_most_of_the_messages(tmp_path: Path) -> None:
    nodes = [
        replace(node, rate_in=rate, rate_out=0.0) for node, rate in zip(brokers_now(3).brokers, (1, 8, 1), strict=True)
    ]
    data = InventedData(nodes=replace(brokers_now(3, limit=None, goal=None), brokers=tuple(nodes)))
    text = client_of(tmp_path, data).get("/").text
    assert "has 80 % of all 10 messages/s." in text
    silent = [replace(node, rate_in=0.0) for node in nodes]
    data.nodes = replace(data.nodes, brokers=tuple(silent))  # type: ignore[type-var]
    assert "messages/s" not in client_of(tmp_path, data).get("/").text


def test_a_link_to_a_cell_has_its_details(tmp_path: Path) -> None:
    at = T - 9 * MINUTE
    text = client_of(tmp_path, states()["normal"]).get(f"/map?row={quote(broker_name(4))}&at={at}").text
    assert "The decision of" in text
    assert commands(at)[0].bundle in text


def test_the_hot_topics_of_a_bundle_are_named_where_brokers_list_them(tmp_path: Path) -> None:
    client = client_of(tmp_path, InventedData(), lambda bundle: [HOT_TOPIC] if bundle == BUNDLE else [])
    page = client.get(f"/bundles/{BUNDLE}").text
    assert f'<code class="long">{HOT_TOPIC}</code>' in page
    assert "71 %" in page
    assert "at 0x2c0ffee0 on the hash ring" in page
    hot_topics = client.get(f"/api/v1/bundles/{BUNDLE}").json()["hotTopics"]
    assert [each["names"] for each in hot_topics] == [[HOT_TOPIC], []]
    assert [each["share"] for each in hot_topics] == [0.71, 0.1]


def test_hot_topics_are_places_where_brokers_do_not_answer(tmp_path: Path) -> None:
    def away(_bundle: str) -> list[str]:
        raise TrimtabError("no broker answers")

    client = client_of(tmp_path, InventedData(), away)
    page = client.get(f"/bundles/{BUNDLE}").text
    assert HOT_TOPIC not in page
    assert f"at 0x{topic_hash(HOT_TOPIC):08x} on the hash ring" in page
    assert client.get(f"/api/v1/bundles/{BUNDLE}").json()["hotTopics"][0]["names"] == []


@pytest.mark.parametrize(("at", "shows_it"), [(T, True), (T - DAY, True), (T + MINUTE, False)])
def test_the_map_names_hot_topics_of_every_interval_in_details_and_tip(tmp_path: Path, at: int, shows_it: bool) -> None:
    client = client_of(tmp_path, InventedData(), lambda _: [HOT_TOPIC])
    cell = client.get(f"/map/cell?rows=keyspace&namespace=telemetry/raw&row={quote(BUNDLE)}&at={at}").text
    assert (f"{HOT_TOPIC}, 71 %" in cell) == shows_it
    tip = client.get(f"/map/hot?rows=keyspace&row={quote(BUNDLE)}&at={at}&column={MINUTE}").json()
    assert tip == {"text": f"hottest topic: {HOT_TOPIC}, 71 %" if shows_it else ""}


@pytest.mark.parametrize("query", ["", "row=x&at=0", "row=x&at=0&column=x", "row=x&column=60000", "at=0&column=60000"])
def test_a_tip_about_no_cell_is_refused(tmp_path: Path, query: str) -> None:
    assert client_of(tmp_path, InventedData()).get(f"/map/hot?{query}").status_code == 400


def test_a_bundle_says_which_topics_were_hot_when_it_was_busiest(tmp_path: Path) -> None:
    page = client_of(tmp_path, InventedData(), lambda _: [HOT_TOPIC]).get(f"/bundles/{BUNDLE}").text
    assert "When it was busiest" in page
    assert page.count(f">{HOT_TOPIC}</code>") == 2


def test_the_name_of_a_topic_is_text_on_every_page(tmp_path: Path) -> None:
    data = InventedData()
    topic = f"persistent://telemetry/raw/{HOSTILE}"
    hot = (HottestTopic(place=topic_hash(topic), rate=1.0, throughput=1.0, share=1.0),)
    past = replace(data.bundle(BUNDLE, T - DAY, T), hot_topics=hot)
    data.bundle = lambda *_: past  # type: ignore[method-assign]
    client = client_of(tmp_path, data, lambda _: [topic])
    assert client.get(f"/map/hot?row={quote(BUNDLE)}&at={T}&column=1").headers["content-type"] == "application/json"
    for path in (f"/bundles/{BUNDLE}", f"/map/cell?rows=keyspace&row={quote(BUNDLE)}&at={T}"):
        text = client.get(path).text
        assert "onerror=alert(1)" in text, path
        assert "<img" not in text, path
        assert "49 " not in text, path
