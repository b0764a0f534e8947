"""Credentials go to the admin URLs and to the brokers that these list as active; a thief gets no request at all."""

import threading
from collections.abc import Callable, Iterator

import pytest

from controller.adapters.pulsar import trusted as pulsar_trusted
from controller.adapters.pulsar.admin import Credentials, NotListedError, PulsarAdmin, PulsarError
from controller.adapters.pulsar.trusted import TrustedAddresses
from controller.executor.attempt import Outcome, PulsarTarget, carry_out
from tests.commands import unload
from tests.recording_servers import CLUSTER, Broker, list_brokers, recording_brokers, started

BUNDLE = "tenant/ns/0x40000000_0x80000000"
LIST = f"/admin/v2/brokers/{CLUSTER}"
BOUNDARIES = "/admin/v2/namespaces/tenant/ns/bundles"
OWNED = "/admin/v2/brokers/lab/{}/ownedNamespaces"
REPORT = "/admin/v2/broker-stats/load-report"


class Lab:
    """Two active brokers, the first of which is the admin URL, and a thief whom nobody lists."""

    def __init__(self, make: Callable[[], Broker]) -> None:
        self.one, self.two, self.thief = make(), make(), make()
        list_brokers(self.one, self.two)
        for each in (self.one, self.two):
            each.answers[BOUNDARIES] = (200, {"boundaries": ["0x00000000", "0x40000000", "0x80000000", "0xffffffff"]})
        self.owned(self.two, BUNDLE)
        self.owned(self.one)
        # He would answer everything, if he were asked.
        self.thief.answers = {**self.two.answers, OWNED.format(self.thief.name): (200, {BUNDLE: {}})}
        self.now = 1_000.0
        self.admin = PulsarAdmin(
            [self.one.url], cluster=CLUSTER, credentials=Credentials(token="secret"), read_seconds=5
        )
        self.admin._trusted._clock = lambda: self.now

    def owned(self, broker: Broker, *bundles: str) -> None:
        broker.answers[OWNED.format(broker.name)] = (200, {bundle: {"is_active": True} for bundle in bundles})

    def lists(self) -> int:
        return sum(path == LIST for each in (self.one, self.two) for _, path, _, _ in each.seen)

    def obey(self, source: str, destination: str, *, dry_run: bool = False, mode: str = "active") -> Outcome:
        command = unload(BUNDLE, source=source, destination=destination, mode=mode)
        target = PulsarTarget(self.admin).within(5)
        return carry_out(command, target, may_act=lambda: None, dry_run=dry_run, sleep=lambda _: None)


@pytest.fixture
def lab() -> Iterator[Lab]:
    with recording_brokers() as made:
        lab = Lab(lambda: started(made))
        yield lab
        assert lab.thief.seen == []
        assert all(shown == "Bearer secret" for each in (lab.one, lab.two) for _, _, shown, _ in each.seen)


@pytest.mark.parametrize("mode", ["active", "dry_run"])
def test_a_forged_source_or_destination_is_answered_failed_and_named_and_nobody_there_is_called(
    lab: Lab, mode: str
) -> None:
    for source, destination in ((lab.thief.name, lab.two.name), (lab.two.name, lab.thief.name)):
        outcome = lab.obey(source, destination, mode=mode)
        assert outcome.answer.status == "failed"
        assert f"'{lab.thief.name}' is not an active broker" in outcome.answer.detail
    assert all(method == "GET" for each in (lab.one, lab.two) for method, _, _, _ in each.seen)


def test_a_command_of_active_brokers_is_looked_at_as_ever(lab: Lab) -> None:
    outcome = lab.obey(lab.two.name, lab.one.name, mode="dry_run")
    assert (outcome.answer.status, outcome.owner_before) == ("dry_run", lab.two.name)


@pytest.mark.parametrize(
    "forged",
    [
        "user@{}",
        "{}#",
        "{}/",
        "{}@127.0.0.1:1",
        "{}\\@{two}",
        "{two}@{}",
        "{two}.x",
        "",
        "a b",
        "{two}/../x",
        "[::1",
    ],
)
def test_ambiguous_broker_names_are_not_called(lab: Lab, forged: str) -> None:
    name = forged.format(lab.thief.name, two=lab.two.name)
    assert not lab.admin.is_active(name)
    if name:
        with pytest.raises(NotListedError):
            lab.admin.owned(name)


def test_a_redirect_to_a_host_that_is_not_listed_is_refused_by_name(lab: Lab) -> None:
    for path, call in (
        (BOUNDARIES, lambda: lab.admin.boundaries("tenant/ns")),
        (REPORT, lambda: lab.admin.load_report(lab.two.name)),
        ("/admin/v2/namespaces/tenant/ns/0x40000000_0x80000000/unload", lambda: lab.admin.unload(BUNDLE)),
        (LIST, lab.admin.brokers),
    ):
        kept = [dict(each.answers) for each in (lab.one, lab.two)]
        for each in (lab.one, lab.two):
            each.answers[path] = (307, lab.thief.url + path)
        with pytest.raises(NotListedError, match=lab.thief.name):
            call()
        lab.one.answers, lab.two.answers = kept


def test_an_act_redirected_to_an_unlisted_host_may_have_been_done(lab: Lab) -> None:
    path = "/admin/v2/namespaces/tenant/ns/0x40000000_0x80000000/unload"
    lab.one.answers[path] = (307, lab.thief.url + path)
    with pytest.raises(NotListedError) as raised:
        lab.admin.unload(BUNDLE)
    assert raised.value.sent


def test_an_owner_that_a_lookup_names_is_asked_only_where_it_is_listed(lab: Lab) -> None:
    assert not lab.admin.serves(lab.thief.name, BUNDLE)
    assert lab.admin.serves(lab.two.name, BUNDLE)
    assert lab.admin.owner(BUNDLE, [lab.thief.name]) == lab.two.name


def test_a_broker_that_has_just_joined_is_found_by_asking_once_more(lab: Lab) -> None:
    assert not lab.admin.is_active("new:8080")
    lab.one.answers[LIST] = (200, [lab.one.name, lab.two.name, "new:8080"])
    assert not lab.admin.is_active("new:8080"), "asked just now"
    lab.now += pulsar_trusted._UNKNOWN_SECONDS
    assert lab.admin.is_active("new:8080")


def test_a_broker_that_has_left_is_trusted_no_more(lab: Lab) -> None:
    assert lab.admin.owned(lab.two.name) == {BUNDLE}
    lab.one.answers[LIST] = (200, [lab.one.name])
    lab.now += pulsar_trusted._FRESH_SECONDS
    with pytest.raises(NotListedError, match=lab.two.name):
        lab.admin.owned(lab.two.name)


def test_unknown_names_cause_at_most_one_list_a_second(lab: Lab) -> None:
    def ask() -> None:
        for number in range(100):
            assert not lab.admin.is_active(f"made-up-{number}:8080")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert lab.lists() == 1


def test_where_the_list_cannot_be_read_the_last_one_counts_and_without_any_nobody_is_asked(lab: Lab) -> None:
    healthy = lab.one.answers[LIST]
    lab.one.answers[LIST] = (500, {"reason": "ZooKeeper is away"})
    with pytest.raises(PulsarError, match="ZooKeeper is away"):
        lab.admin.is_active(lab.two.name)
    with pytest.raises(NotListedError, match=r"could not be listed: .*ZooKeeper is away"):
        lab.admin.owned(lab.two.name)
    lab.now += pulsar_trusted._UNKNOWN_SECONDS
    lab.one.answers[LIST] = healthy
    assert lab.admin.is_active(lab.two.name)
    lab.one.answers[LIST] = (500, {"reason": "ZooKeeper is away"})
    lab.now += pulsar_trusted._FRESH_SECONDS
    assert lab.admin.owned(lab.two.name) == {BUNDLE}
    before = lab.lists()
    assert lab.admin.owned(lab.two.name) == {BUNDLE}
    assert lab.lists() == before, "a list that fails is not asked for at every call"


@pytest.mark.parametrize("answer", [{"a": 1}, [1, 2], "text", [["a:8080"]], ["x:1"] * 10_001, ["a\nb:1"], ["x" * 2000]])
def test_what_is_no_list_of_brokers_is_not_believed(lab: Lab, answer: object) -> None:
    lab.one.answers[LIST] = (200, answer)
    with pytest.raises(PulsarError):
        lab.admin.brokers()


def test_over_tls_a_location_has_to_lead_to_a_listed_brokers_host() -> None:
    trusted = TrustedAddresses(["https://vip.example:443"])
    trusted.learn(["a.example:8080", "[::1]:8080"])
    assert trusted.is_own("https://VIP.example/admin")
    assert trusted.admits("https://a.example:8443/admin")
    assert trusted.admits("https://A.EXAMPLE:8443/admin")
    assert trusted.admits("https://[::1]:8443/admin")
    for url in (
        "https://thief.example:8443/admin",
        "https://a.example.thief.example/admin",
        "https://a.example:8443@thief.example/admin",
        "https://a.example@a.example:8443/admin",
        "ftp://a.example:8080/",
        "http://a.example:8443/",
        "http://vip.example:443/",
        "//a.example:8080/",
        "https:///admin",
        "https://[::1/",
    ):
        assert not trusted.admits(url), url
        assert not trusted.is_own(url), url


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        ("pulsar://127.0.0.1:6650", True),
        ("pulsar://127.0.0.1:6650,127.0.0.1:6651", True),
        ("", True),
        ("pulsar://thief.example:6650", False),
        ("pulsar://127.0.0.1:6650,thief.example:6650", False),
        ("pulsar://127.0.0.1:6650@thief.example:6650", False),
    ],
)
def test_a_service_url_that_the_clusters_data_names_is_used_only_on_a_host_of_ours(
    lab: Lab, url: str, is_ours: bool
) -> None:
    lab.one.answers[f"/admin/v2/clusters/{CLUSTER}"] = (200, {"brokerServiceUrl": url})
    if is_ours:
        assert lab.admin.service_url() == url
    else:
        with pytest.raises(PulsarError, match="set service_url in"):
            lab.admin.service_url()
