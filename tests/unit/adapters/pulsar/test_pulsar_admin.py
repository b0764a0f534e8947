"""The REST client against small servers on loopback: redirects, credentials, errors."""

import base64
import math
import time
from collections.abc import Callable, Iterator

import pytest

from controller.adapters.pulsar import admin as pulsar_admin
from controller.adapters.pulsar.admin import Credentials, PulsarAdmin, PulsarError, Tls, probe_topic
from controller.adapters.pulsar.trusted import origin
from controller.model.errors import TrimtabError
from controller.model.names import parse_bundle, topic_hash
from tests.recording_servers import Broker, Handler, list_brokers, recording_brokers, started

BUNDLE = "tenant/ns/0x40000000_0x80000000"
UNLOAD = "/admin/v2/namespaces/tenant/ns/0x40000000_0x80000000/unload"


@pytest.fixture
def broker() -> Iterator[Callable[[], Broker]]:
    """Makes brokers."""
    with recording_brokers() as made:
        yield lambda: started(made)


Brokers = Callable[[], Broker]


def admin(
    *brokers: Broker, credentials: Credentials | None = None, sleep: Callable[[float], None] = time.sleep
) -> PulsarAdmin:
    urls = [each.url for each in brokers]
    return PulsarAdmin(urls, cluster="lab", credentials=credentials, read_seconds=5, sleep=sleep)


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        (None, None),
        (Credentials(token="a.b.c"), "Bearer a.b.c"),
        (Credentials(user="me", password="pass:word"), "Basic " + base64.b64encode(b"me:pass:word").decode()),
    ],
)
def test_redirects_are_followed_to_other_brokers_with_the_credentials_the_query_and_the_body(
    broker: Brokers, credentials: Credentials | None, header: str | None
) -> None:
    first, leader, owner = broker(), broker(), broker()
    split = UNLOAD.replace("unload", "split")
    query = "?unload=true&splitAlgorithmName=specified_positions_divide"
    first.answers[split] = (307, leader.url + split + query)
    leader.answers[split] = (307, owner.url + split + query + "&authoritative=true")
    owner.answers[split] = (204, None)
    list_brokers(first, leader, owner, at=(first,))
    admin(first, credentials=credentials).split(BUNDLE, boundaries=[0x50000000], unload=True)
    asked = ("PUT", split + query, header, b"[1342177280]")
    assert leader.seen == [asked]
    assert [each for each in first.seen if each[0] == "PUT"] == [asked]
    assert owner.seen == [("PUT", asked[1] + "&authoritative=true", header, asked[3])]


def test_an_act_that_was_held_up_goes_nowhere_else_since_it_may_not_be_allowed_any_more(
    broker: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.adapters.pulsar.http._ACT_SECONDS", 0.0)
    first, owner = broker(), broker()
    first.answers[UNLOAD] = (307, owner.url + UNLOAD)
    owner.answers[UNLOAD] = (204, None)
    list_brokers(first, owner)
    with pytest.raises(PulsarError, match=r"redirected to .* after more than 0 s: too late") as late:
        admin(first).unload(BUNDLE)
    assert (late.value.sent, late.value.status, owner.seen) == (True, 307, [])
    gone = broker()
    gone.shutdown()
    gone.server_close()
    asked = admin(gone, owner)
    with pytest.raises(PulsarError, match="no connection") as away:
        asked.unload(BUNDLE)
    assert (away.value.sent, owner.seen) == (False, [])
    asked.unload(BUNDLE)  # checked anew by then; who answers is asked first
    assert [method for method, *_ in owner.seen] == ["PUT"]


@pytest.mark.parametrize(
    "there",
    [
        UNLOAD.replace("/ns/", "/other/") + "?destinationBroker=b:8080",
        UNLOAD.replace("unload", "split") + "?destinationBroker=b:8080",
        "/unload",
        "",
        f"{UNLOAD}?destinationBroker=c:8080",
        f"{UNLOAD}?destinationBroker=b:8080&destinationBroker=c:8080",
        f"{UNLOAD}?destinationBroker=b:8080&unload=",
    ],
)
def test_an_act_is_sent_on_as_the_same_act_or_not_at_all(broker: Brokers, there: str) -> None:
    first, owner = broker(), broker()
    first.answers[UNLOAD] = (307, owner.url + there)
    list_brokers(first, owner)
    with pytest.raises(PulsarError, match="which is another call") as error:
        admin(first).unload(BUNDLE, "b:8080")
    assert (error.value.sent, owner.seen) == (True, [])


def test_brokers_that_send_an_act_on_may_write_its_query_otherwise(broker: Brokers) -> None:
    first, owner = broker(), broker()
    split = UNLOAD.replace("unload", "split")
    there = split + "?authoritative=false&splitAlgorithmName=%72ange_equally_divide&unload=true"
    first.answers[split] = (307, owner.url + there)
    owner.answers[split] = (204, None)
    list_brokers(first, owner)
    admin(first).split(BUNDLE, algorithm="range_equally_divide", unload=True)
    assert [(method, path) for method, path, *_ in owner.seen] == [("PUT", there)]


def test_the_leader_of_pulsars_load_manager_keeps_the_destination_of_an_unload_that_it_sends_on(
    broker: Brokers,
) -> None:
    leader, owner = broker(), broker()
    leader.answers[UNLOAD] = (307, f"{owner.url}{UNLOAD}?authoritative=true")
    owner.answers[UNLOAD] = (204, None)
    list_brokers(leader, owner)
    admin(leader).unload(BUNDLE, "b:8080")
    assert [path for _, path, *_ in owner.seen] == [f"{UNLOAD}?authoritative=true"]


def test_an_act_that_a_proxy_takes_under_a_path_of_its_own_is_sent_on_by_the_brokers(broker: Brokers) -> None:
    proxy, owner = broker(), broker()
    proxy.answers[f"/pulsar{UNLOAD}"] = (307, owner.url + UNLOAD)
    owner.answers[UNLOAD] = (204, None)
    proxy.answers["/pulsar/admin/v2/brokers/lab"] = (200, [owner.name])
    PulsarAdmin([f"{proxy.url}/pulsar"], cluster="lab").unload(BUNDLE)
    assert [method for method, *_ in owner.seen] == ["PUT"]


def test_a_redirect_loop_ends(broker: Brokers) -> None:
    one = broker()
    one.answers[UNLOAD] = (307, one.url + UNLOAD)
    with pytest.raises(PulsarError, match="redirected 6 times"):
        admin(one).unload(BUNDLE)
    assert len(one.seen) == 6


def test_a_destination_is_sent_only_where_there_is_one(broker: Brokers) -> None:
    one = broker()
    one.answers[UNLOAD] = (204, None)
    admin(one).unload(BUNDLE)
    admin(one).unload(BUNDLE, "10.0.0.1:8080")
    assert [path for _, path, _, _ in one.seen] == [UNLOAD, f"{UNLOAD}?destinationBroker=10.0.0.1%3A8080"]


def test_an_error_names_the_call_the_status_and_the_brokers_reason(broker: Brokers) -> None:
    one = broker()
    one.answers[UNLOAD] = (412, {"reason": "Failed to validate namespace bundle"})
    with pytest.raises(PulsarError, match=r"PUT http://.*/unload.*: 412 .*: Failed to validate") as raised:
        admin(one).unload(BUNDLE)
    assert (raised.value.status, raised.value.sent) == (412, True)


def test_another_broker_is_asked_where_one_takes_no_connection(broker: Brokers) -> None:
    gone, alive = broker(), broker()
    gone.shutdown()
    gone.server_close()
    alive.answers["/admin/v2/brokers/lab"] = (200, ["b:1", "a:1"])
    assert admin(gone, alive).brokers() == ("a:1", "b:1")
    with pytest.raises(PulsarError, match="no connection") as raised:
        admin(gone).brokers()
    assert (raised.value.status, raised.value.sent) == (0, False)


def test_an_act_that_got_no_answer_is_not_sent_to_another_broker(broker: Brokers) -> None:
    deaf, other = broker(), broker()
    deaf.RequestHandlerClass = _HangsUp
    with pytest.raises(PulsarError, match="no answer") as raised:
        admin(deaf, other).unload(BUNDLE)
    assert (raised.value.status, raised.value.sent) == (0, True)
    assert other.seen == []


class _HangsUp(Handler):
    def do_PUT(self) -> None:  # noqa: N802
        self.close_connection = True

    do_GET = do_PUT  # noqa: N815


BUNDLES = "/admin/v2/namespaces/tenant/ns/bundles"
CUT = {"boundaries": ["0x00000000", "0xffffffff"]}


def test_a_question_that_one_admin_url_does_not_answer_goes_to_the_next_and_later_ones_begin_there(
    broker: Brokers,
) -> None:
    deaf, other = broker(), broker()
    deaf.RequestHandlerClass = _HangsUp
    for each in (deaf, other):
        each.answers[BUNDLES], each.answers[UNLOAD] = (200, CUT), (204, None)
    asking = admin(deaf, other)
    assert asking.boundaries("tenant/ns") == (0, 0xFFFFFFFF)
    deaf.RequestHandlerClass = Handler  # it would answer by now, but is asked last for a while
    assert asking.within(60).boundaries("tenant/ns") == (0, 0xFFFFFFFF)
    asking.unload(BUNDLE)
    assert (deaf.seen, len(other.seen)) == ([], 3)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_question_that_a_broker_cannot_answer_goes_to_the_next_and_an_act_does_not(
    broker: Brokers, status: int
) -> None:
    ill, other = broker(), broker()
    for path in (BUNDLES, UNLOAD):
        ill.answers[path] = (status, {"reason": "out of order"})
    other.answers[BUNDLES] = (200, CUT)
    asking = admin(ill, other)
    assert asking.boundaries("tenant/ns") == (0, 0xFFFFFFFF)
    with pytest.raises(PulsarError, match="out of order"):
        asking.unload(BUNDLE)
    assert len(other.seen) == 1


def test_what_one_broker_refuses_is_not_asked_of_the_next(broker: Brokers) -> None:
    one, other = broker(), broker()
    for status in (401, 403, 404):
        one.answers[BUNDLES] = (status, {"reason": "no"})
        with pytest.raises(PulsarError, match="no"):
            admin(one, other).boundaries("tenant/ns")
    assert other.seen == []


def test_an_admin_url_that_does_not_answer_leaves_time_for_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[tuple[str, float]]()

    def silent(asking: PulsarAdmin, method: str, url: str, body: bytes | None) -> None:
        given.append((f"{method} {url[:8]}", asking.seconds_left))
        raise PulsarError(f"{url}: no answer ({body!r})", away=True)

    monkeypatch.setattr(PulsarAdmin, "_send", silent)
    asking = PulsarAdmin(["http://a", "http://b", "http://c"], cluster="lab").within(600)
    with pytest.raises(PulsarError, match="http://c"):
        asking.boundaries("tenant/ns")
    assert [call for call, _ in given] == ["GET http://a", "GET http://b", "GET http://c"]
    assert [seconds for _, seconds in given] == pytest.approx([200, 300, 600], abs=40)
    given.clear()
    with pytest.raises(PulsarError, match="http://a"):
        asking.unload(BUNDLE)
    assert [call for call, _ in given] == ["PUT http://a"]
    assert given[0][1] == pytest.approx(600, abs=40)


@pytest.mark.parametrize("namespace", ["../..", "tenant/..", "./ns", "../brokers/x"])
def test_names_that_would_lead_to_another_path_are_sent_to_nobody(broker: Brokers, namespace: str) -> None:
    one = broker()
    for call in (
        lambda: admin(one).boundaries(namespace),
        lambda: admin(one).unload(f"{namespace}/0x00000000_0x40000000"),
    ):
        with pytest.raises(PulsarError, match="not sent") as raised:
            call()
        assert raised.value.sent is False
    assert one.seen == []


class _Garbled(Handler):
    """Sends a chunk whose length is below 0."""

    def do_GET(self) -> None:  # noqa: N802
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"-5\r\n{}\r\n0\r\n\r\n")

    do_PUT = do_GET  # noqa: N815


def test_an_answer_that_is_not_http_is_an_error_like_no_answer(broker: Brokers) -> None:
    one = broker()
    one.RequestHandlerClass = _Garbled
    for call in (lambda: admin(one).boundaries("tenant/ns"), lambda: admin(one).unload(BUNDLE)):
        with pytest.raises(PulsarError, match="the answer is not HTTP") as raised:
            call()
        assert (raised.value.sent, raised.value.away) == (True, True)


class _HangsUpOnce(Handler):
    """Ends the first connection without an answer."""

    turns = 0

    def do_GET(self) -> None:  # noqa: N802
        _HangsUpOnce.turns += 1
        if _HangsUpOnce.turns > 1:
            super().do_GET()
        else:
            self.close_connection = True


def test_an_address_that_answers_another_thread_while_it_is_looked_at_is_asked_like_any(
    broker: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, looks = broker(), list[str]()
    one.RequestHandlerClass, one.answers[BUNDLES] = _HangsUpOnce, (200, CUT)
    monkeypatch.setattr(_HangsUpOnce, "turns", 0)
    asking = admin(one)
    with pytest.raises(PulsarError, match="no answer"):
        asking.boundaries("tenant/ns")

    def look(url: str) -> object:
        looks.append(url)
        if len(looks) == 2:
            asking.boundaries("tenant/ns")  # as another thread would
        return origin(url)

    monkeypatch.setattr("controller.adapters.pulsar.http.origin", look)
    assert asking.boundaries("tenant/ns")


class _Busy(Handler):
    """Has too many requests for the first few of them."""

    refused, retry_after = 3, ""

    def do_PUT(self) -> None:  # noqa: N802
        if _Busy.refused == 0:
            return super().do_PUT()
        _Busy.refused -= 1
        self.send_response(429)
        if self.retry_after:
            self.send_header("Retry-After", self.retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    do_GET = do_PUT  # noqa: N815


@pytest.mark.parametrize(
    ("retry_after", "waits"),
    [("", [0.5, 1, 2]), ("3", [3, 3, 3]), ("Tue, 24 Nov 2026 00:00:00 GMT", [0.5, 1, 2]), ("0", [0.5, 1, 2])],
)
def test_a_broker_with_too_many_requests_is_asked_again_after_the_time_that_it_says(
    broker: Brokers, monkeypatch: pytest.MonkeyPatch, retry_after: str, waits: list[float]
) -> None:
    one, slept = broker(), list[float]()
    one.RequestHandlerClass, one.answers[BUNDLES] = _Busy, (200, CUT)
    monkeypatch.setattr(_Busy, "retry_after", retry_after)
    monkeypatch.setattr(_Busy, "refused", 3)
    admin(one, sleep=slept.append).boundaries("tenant/ns")
    assert slept == waits


@pytest.mark.parametrize(("retry_after", "told"), [("", 0.0), ("3", 3.0), ("soon", 0.0)])
def test_an_act_is_sent_once_also_where_the_broker_has_too_many_requests(
    broker: Brokers, monkeypatch: pytest.MonkeyPatch, retry_after: str, told: float
) -> None:
    one, slept = broker(), list[float]()
    one.RequestHandlerClass, one.answers[UNLOAD] = _Busy, (204, None)
    monkeypatch.setattr(_Busy, "refused", 1)
    monkeypatch.setattr(_Busy, "retry_after", retry_after)
    asking = admin(one, sleep=slept.append)
    with pytest.raises(PulsarError, match="429") as raised:
        asking.unload(BUNDLE)
    assert (raised.value.wait_seconds, raised.value.away, slept) == (told, True, [])
    asking.unload(BUNDLE)


def test_the_wait_for_a_broker_with_too_many_requests_ends_with_the_time_of_the_call_and_is_no_refusal(
    broker: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, slept = broker(), list[float]()
    one.RequestHandlerClass = _Busy
    monkeypatch.setattr(_Busy, "refused", 100)
    monkeypatch.setattr(_Busy, "retry_after", "900000")
    with pytest.raises(PulsarError, match="429") as raised:
        admin(one, sleep=slept.append).boundaries("tenant/ns")
    assert (raised.value.away, slept, _Busy.refused) == (True, [], 99)
    monkeypatch.setattr(_Busy, "retry_after", "")
    with pytest.raises(PulsarError, match="429"):
        admin(one, sleep=slept.append).within(15.9).boundaries("tenant/ns")
    assert slept == [0.5, 1, 2, 4, 8]
    slept.clear()
    with pytest.raises(PulsarError, match="429"):
        admin(one, sleep=slept.append).boundaries("tenant/ns")
    assert slept == [0.5, 1, 2, 4, 8, 16]  # half a minute at most


def test_an_owner_is_found_by_asking_the_likely_brokers_first(broker: Brokers) -> None:
    one, two, three = sorted((broker() for _ in range(3)), key=lambda each: each.name)
    for each, bundles in ((one, []), (two, [BUNDLE]), (three, [])):
        each.answers["/admin/v2/brokers/lab"] = (200, [one.name, two.name, three.name])
        owned = {bundle: {"is_active": True} for bundle in bundles}
        each.answers[f"/admin/v2/brokers/lab/{each.name}/ownedNamespaces"] = (200, owned)
    assert admin(one).owner(BUNDLE, [three.name, two.name]) == two.name
    assert [path for _, path, _, _ in one.seen] == ["/admin/v2/brokers/lab"]
    assert admin(one).owner(BUNDLE, [three.name]) == two.name
    assert admin(one).owner("tenant/ns/0x00000000_0x40000000") == ""


def test_a_dead_broker_is_not_taken_for_an_owner(broker: Brokers) -> None:
    one, dead = broker(), broker()
    dead.shutdown()
    dead.server_close()
    one.answers["/admin/v2/brokers/lab"] = (200, [one.name])
    one.answers[f"/admin/v2/brokers/lab/{one.name}/ownedNamespaces"] = (200, {BUNDLE: {}})
    assert admin(one).owner(BUNDLE, [dead.name]) == one.name


def test_settings_of_brokers_are_texts_whatever_they_answer(broker: Brokers) -> None:
    one = broker()
    told = {"a": "false", "b": False, "c": None, "d": 5, "e": ["x"], "f": 1.5}
    texts = {"a": "false", "b": "false", "c": "", "d": "5", "e": '["x"]', "f": "1.5"}
    one.answers["/admin/v2/brokers/configuration/runtime"] = (200, told)
    one.answers["/admin/v2/brokers/configuration/values"] = (200, told)
    assert admin(one).configuration() == admin(one).dynamic_configuration() == texts


def test_a_number_of_absurdly_many_digits_is_one_to_reckon_with(broker: Brokers) -> None:
    one = broker()
    one.answers["/admin/v2/broker-stats/load-report"] = (200, {"small": 1 << 63, "large": 10**4000, "less": -(10**400)})
    one.answers["/admin/v2/brokers/lab"] = (200, [one.name])
    report = admin(one).load_report(one.name)
    assert report == {"small": 1 << 63, "large": math.inf, "less": -math.inf}


@pytest.mark.parametrize("domain", [None, 5, {"brokers": 5}, {"brokers": {"a": 1}}, {"brokers": [["b:1"]]}])
def test_what_is_no_failure_domain_is_named(broker: Brokers, domain: object) -> None:
    one = broker()
    path = "/admin/v2/clusters/lab/failureDomains"
    good = {"d1": {"brokers": [one.name]}, "d2": {"brokers": None}, "d3": {}}
    one.answers[path] = (200, good)
    assert admin(one).failure_domains() == good
    one.answers[path] = (200, good | {"d4": domain})
    with pytest.raises(PulsarError, match="d4 is not a failure domain"):
        admin(one).failure_domains()


def test_an_answer_with_half_of_a_surrogate_pair_is_an_error(broker: Brokers) -> None:
    one = broker()
    one.answers["/admin/v2/clusters/lab/namespaceIsolationPolicies"] = (200, {"p": {"namespaces": ["\ud800"]}})
    with pytest.raises(PulsarError, match="not JSON"):
        admin(one).isolation_policies()
    whole = {"p": {"namespaces": ["\N{GRINNING FACE}"]}}
    one.answers["/admin/v2/clusters/lab/namespaceIsolationPolicies"] = (200, whole)
    assert admin(one).isolation_policies() == whole


def test_an_answer_that_is_not_json_is_an_error(broker: Brokers) -> None:
    one = broker()
    one.answers["/admin/v2/brokers/lab"] = (204, None)
    with pytest.raises(PulsarError, match="not JSON"):
        admin(one).brokers()


@pytest.mark.parametrize("bundle", [BUNDLE, "tenant/ns/0xfffff000_0xffffffff", "t/n/0x00000000_0x00010000"])
def test_a_probe_topic_is_in_its_bundle(bundle: str) -> None:
    name = parse_bundle(bundle)
    topic = probe_topic(bundle)
    assert topic.startswith(f"non-persistent://{name.namespace}/")
    assert name.lower <= topic_hash(topic) < name.upper


def test_secrets_are_not_shown() -> None:
    assert "abc" not in repr(Credentials(token="abc"))
    assert "abc" not in repr(Credentials(user="me", password="abc"))


def test_a_certificate_that_is_not_there_is_named() -> None:
    with pytest.raises(TrimtabError, match=r"nowhere\.pem"):
        PulsarAdmin(["https://127.0.0.1:1"], cluster="lab", tls=Tls(trust_certs="nowhere.pem"))


def test_an_act_that_was_sent_on_to_a_dead_broker_may_have_left_something_behind(broker: Brokers) -> None:
    leader, dead, other = broker(), broker(), broker()
    dead.shutdown()
    dead.server_close()
    leader.answers[UNLOAD] = (307, dead.url + UNLOAD)
    list_brokers(leader, dead, other, at=(leader,))
    with pytest.raises(PulsarError, match="no connection") as raised:
        admin(leader, other).unload(BUNDLE, other.name)
    assert raised.value.sent
    assert other.seen == []


def test_a_call_ends_when_its_time_is_over(broker: Brokers) -> None:
    slow = broker()
    slow.RequestHandlerClass = _Sleeps
    patient = admin(slow)
    limited = patient.within(0.2)
    with pytest.raises(PulsarError, match="no answer") as raised:
        limited.brokers()
    assert raised.value.sent
    with pytest.raises(PulsarError, match="its time limit has passed") as raised:
        limited.unload(BUNDLE)
    assert not raised.value.sent
    assert limited.within(60).seconds_left == 0
    assert patient.seconds_left == math.inf


def test_whoever_asks_is_told_that_an_answer_has_begun_but_not_that_the_list_of_brokers_has(broker: Brokers) -> None:
    one, began = broker(), list[str]()
    path = f"/admin/v2/brokers/lab/{one.name}/ownedNamespaces"
    list_brokers(one)
    one.answers[path] = (200, {"tenant/ns/0x00000000_0xffffffff": {"is_active": True}})
    asking = admin(one).within(60, lambda: began.append("it"))
    asking.brokers()
    assert began == []
    assert asking.owned(one.name)
    assert began == ["it"]


class _Sleeps(Handler):
    def do_GET(self) -> None:  # noqa: N802
        time.sleep(0.5)


def test_a_bundle_without_room_for_a_topic_has_no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulsar_admin, "_PROBES", 10)
    assert probe_topic("tenant/narrow/0x00000000_0x00000001") == ""


_PERSISTENT, _OTHERS = "/admin/v2/persistent/tenant/ns", "/admin/v2/non-persistent/tenant/ns"


def test_the_topics_of_a_bundle_are_persistent_and_others(broker: Brokers) -> None:
    one = broker()
    list_brokers(one)
    one.answers[_PERSISTENT] = (200, ["persistent://tenant/ns/b", "persistent://tenant/ns/a"])
    one.answers[_OTHERS] = (200, ["non-persistent://tenant/ns/c"])
    topics = ("non-persistent://tenant/ns/c", "persistent://tenant/ns/a", "persistent://tenant/ns/b")
    assert admin(one).topics(BUNDLE) == topics
    asked = [path for _, path, _, _ in one.seen if path.startswith(_PERSISTENT)]
    assert asked == [f"{_PERSISTENT}?bundle=0x40000000_0x80000000&includeSystemTopic=true"]


def test_topics_are_listed_where_brokers_serve_only_persistent_ones(broker: Brokers) -> None:
    one = broker()
    list_brokers(one)
    one.answers[_PERSISTENT] = (200, ["persistent://tenant/ns/a"])
    one.answers[_OTHERS] = (405, {"reason": "disabled"})
    assert admin(one).topics(BUNDLE) == ("persistent://tenant/ns/a",)


@pytest.mark.parametrize("answer", [(403, {"reason": "not allowed"}), (200, {"no": "list"}), (200, [1])])
def test_topics_that_nobody_lists_are_an_error(broker: Brokers, answer: tuple[int, object]) -> None:
    one = broker()
    list_brokers(one)
    one.answers[_PERSISTENT] = one.answers[_OTHERS] = answer
    with pytest.raises(PulsarError, match="persistent/tenant/ns"):
        admin(one).topics(BUNDLE)
