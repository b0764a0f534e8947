"""Two people balance a real Pulsar of three brokers on the page, under a policy that demands approvals.

otto proposes and applies, anna approves.  Each has a browser of their own; nobody uses a terminal.
"""

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from controller.lab.processes import Processes
from controller.lab.pulsar_demo import flowing, start_all, write_conf
from controller.lab.pulsar_demo_traffic import BUNDLES, NAMESPACE
from controller.lab.pulsar_server import CLUSTER, PulsarCluster, pulsar_cluster
from controller.lab.pulsar_stage import Stage, StageAdmin, set_stage
from controller.lab.pulsar_traffic import Traffic
from controller.lab.servers import free_port
from tests.chromium import chromium, watched_page
from tests.proposals import key_of
from tests.web_people import token_of, tokens_file

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_PATIENCE_SECONDS: Final = 300.0
_AGAIN_SECONDS: Final = 1.0
_TRIES: Final = 5
#: Longer than two intervals of the scenario: enough to see that nothing more is issued.
_QUIET_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True)
class _Lab:
    """A cluster with all bundles on its first broker, and trimtab's processes beside it."""

    address: str
    brokers: tuple[str, ...]
    stage: Stage
    pictures: Path

    def owned(self, broker: str) -> int:
        """How many bundles of the namespace *broker* has, by what the brokers say."""
        owners = [self.stage.admin.owner(each) for each in self.stage.bundles]
        return owners.count(broker)


def _conf(folder: Path, cluster: PulsarCluster, port: int) -> Path:
    """The settings of the demo in mode approve, with a log in a folder and a policy that lets the page sign."""
    (folder / "page.key").write_bytes(key_of("page").pem)
    (folder / "page.key").chmod(0o600)
    conf = write_conf(folder, cluster)
    text = conf.read_text(encoding="utf-8").replace('mode = "active"', 'mode = "approve"')
    # The brokers have enough to do where the machine is busy.
    text = text.replace('kind = "pulsar"', 'kind = "folder"')
    lines = (
        "[log.folder]",
        'path = "log"',
        "[web]",
        f'listen = "127.0.0.1:{port}"',
        "writes = true",
        'signing_key_file = "page.key"',
        tokens_file(folder),
        "[approvals.servers.page]",
        f'key = "{key_of("page").public_text}"',
    )
    conf.write_text("\n".join((text, *lines, "")), encoding="utf-8")
    # The brokers report the CPU of this machine, which does other work, too.
    with conf.with_name("pulsar.broker.conf").open("a", encoding="utf-8") as rules:
        rules.write("loadBalancerCPUResourceWeight=0\n")
    return conf


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[_Lab]:
    with ExitStack() as running:
        cluster = running.enter_context(pulsar_cluster(tmp_path / "pulsar"))
        port = free_port()
        conf = _conf(tmp_path, cluster, port)
        admin = StageAdmin(cluster.admin_urls, cluster=CLUSTER)
        running.callback(admin.close)
        stage = set_stage(admin, NAMESPACE, BUNDLES)
        stage.gather(cluster.brokers[0])
        running.enter_context(Traffic(cluster.service_url, stage.rates, tmp_path / "traffic.log"))
        flowing(stage, cluster.brokers)
        processes = running.enter_context(Processes(conf, tmp_path))
        start_all(processes)
        processes.start("serve")
        processes.wait_for("serve", f"127.0.0.1:{port}")
        pictures = tmp_path / "pictures"
        pictures.mkdir()
        yield _Lab(f"http://127.0.0.1:{port}", cluster.brokers, stage, pictures)


class _Person:
    """Somebody with a browser of their own, who takes pictures of what they see."""

    def __init__(self, lab: _Lab, name: str, page: Page) -> None:
        self._lab, self._name, self.page = lab, name, page
        page.set_default_timeout(60_000)
        page.goto(f"{lab.address}/login")
        page.fill("[name=token]", token_of(name))
        page.click("button.primary")
        page.wait_for_url(f"{lab.address}/")

    def opens(self, path: str) -> None:
        """Go to the address *path*, which somebody has sent."""
        self.page.goto(self._lab.address + path)

    def picture(self, what: str) -> None:
        """Keep what is on the screen."""
        number = len(list(self._lab.pictures.iterdir())) + 1
        self.page.screenshot(path=self._lab.pictures / f"{number:02d}-{self._name}-{what}.png", full_page=True)

    def does(self, link: str, button: str, why: str, **fields: str) -> None:
        """Open the dialog of *link*, choose *fields*, give the reason *why*, and press *button*."""
        self.page.locator(f"main a[data-dialog]:has-text('{link}')").first.click()
        self.page.wait_for_selector("dialog[open]")
        for name, value in fields.items():
            self.page.select_option(f"dialog [name={name}]", value)
        self.page.fill("dialog [name=reason]", why)
        self.picture(link.strip("…").replace(" ", "-").lower())
        with self.page.expect_navigation():
            self.page.click(f"dialog button:has-text('{button}')")
        assert self.page.locator("[role=alert]").count() == 0, self.page.inner_text("main")

    def waits_for(self, selector: str, *, by_hand: bool = False) -> str:
        """The text of *selector* once it is there: by itself, or with the page loaded again and again."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.page.locator(selector).count():
            if time.monotonic() > deadline:
                self.picture("not-there")
                raise AssertionError(f"{selector} is not there: {self.page.inner_text('main')}")
            self.page.wait_for_timeout(1000 * _AGAIN_SECONDS)
            if by_hand:
                self.page.reload()
        return self.page.locator(selector).first.text_content() or ""


@pytest.fixture
def people(lab: _Lab) -> Iterator[tuple[_Person, _Person]]:
    """otto, an operator, and anna, an approver: nothing went wrong in their browsers."""
    with chromium() as browser, watched_page(browser) as (his, trouble), watched_page(browser) as (hers, hers_trouble):
        yield _Person(lab, "otto", his), _Person(lab, "anna", hers)
        assert trouble + hers_trouble == []


def _broker_page(broker: str) -> str:
    return f"/brokers/{quote(broker, safe='')}"


def _proposed(person: _Person, path: str, link: str, why: str, **fields: str) -> str:
    """The hash of the proposal that *person* makes by *link* on the page *path*; again where a broker sent no load."""
    for _ in range(_TRIES):
        person.opens(path)
        person.does(link, "Plan and propose", why, **fields)
        person.waits_for("h1:has-text('It is proposed'), h1:has-text('Nothing was proposed')")
        if person.page.locator("h1:has-text('It is proposed')").count():
            break
        person.picture("not-proposed")
    person.page.click("main a:has-text('See the proposal')")
    person.page.wait_for_url("**/proposals/*")
    person.waits_for("text=Brokers, before and after", by_hand=True)
    return person.page.url.partition("/proposals/")[2]


def _approved(anna: _Person, proposal: str, title: str) -> None:
    """anna finds the proposal among the plans, sees that it is valid, and approves it."""
    anna.page.click(".rail >> text=Plans")
    anna.waits_for(f"main .list a[href*='{proposal}']", by_hand=True)
    anna.page.click(f"main .list a[href*='{proposal}']")
    anna.waits_for("text=Still valid.", by_hand=True)
    anna.picture(f"{title}-proposed")
    anna.does("Approve…", "Approve this hash", "looks right")
    assert "approved 1 of 1" in anna.page.inner_text(".steps")


def _figures(person: _Person) -> tuple[int, int, int]:
    """Moves done, in flight and not issued of the proposal that is shown."""
    found = re.search(r"(\d+) done, (\d+) in flight, (\d+) not issued", person.page.inner_text("main"))
    assert found, person.page.inner_text("main")
    return int(found[1]), int(found[2]), int(found[3])


def test_two_people_balance_and_drain_a_cluster_without_a_terminal(lab: _Lab, people: tuple[_Person, _Person]) -> None:
    otto, anna = people
    _see_the_imbalance(lab, otto)
    _spread_the_load(lab, otto, anna)
    _empty_a_broker_and_release_it(lab, otto, anna, lab.brokers[1])
    otto.page.click(".rail >> text=History")
    otto.picture("history")
    history = otto.page.inner_text("main")
    for who, why in (("otto", "too full"), ("anna", "looks right"), ("anna", "wait"), ("otto", "new kernel")):
        assert who in history
        assert why in history


def _see_the_imbalance(lab: _Lab, otto: _Person) -> None:
    otto.waits_for("svg.strip a")
    # All three brokers have sent their load.
    otto.waits_for("svg.strip:not(:has(.no-data)) a:nth-of-type(3)")
    otto.picture("now")
    full, empty = lab.brokers[0], lab.brokers[2]
    otto.page.locator(f"svg.strip a[href*='{full}']").first.click()
    otto.waits_for(f"section:has-text('Its bundles') a[href*='/bundles/{NAMESPACE}/']", by_hand=True)
    otto.picture("the-full-broker")
    otto.opens(_broker_page(empty))
    otto.waits_for("text=Its bundles")
    otto.picture("an-empty-broker")
    assert NAMESPACE not in otto.page.inner_text("section:has-text('Its bundles')")


def _spread_the_load(lab: _Lab, otto: _Person, anna: _Person) -> None:
    proposal = _proposed(otto, "/plans", "Propose a plan…", "the first broker is too full", own="cpu", waveMoves="4")
    otto.picture("balance")
    assert otto.page.locator("main a:has-text('Approve…')").count() == 0
    _approved(anna, proposal, "balance")
    otto.waits_for("main a[data-dialog]:has-text('Apply…')")
    otto.does("Apply…", "Carry it out", "the first broker is too full")
    # A wave is in flight, or done, and another one is not issued yet.
    anna.waits_for("text=/([1-9]\\d* done|[1-9]\\d* in flight).* [1-9]\\d* not issued/")
    anna.picture("balance-applying")
    anna.does("Pause…", "Pause", "wait for the rollout")
    anna.waits_for(".steps li.reached:has-text('paused')")
    anna.waits_for("text=/ 0 in flight/")
    before = _figures(anna)
    anna.page.wait_for_timeout(1000 * _QUIET_SECONDS)
    assert _figures(anna) == before
    assert before[2] > 0
    anna.picture("balance-paused")
    anna.does("Resume…", "Go on", "the rollout is over")
    otto.waits_for(".steps li.reached:has-text('done')")
    otto.picture("balance-done")
    happened = otto.page.inner_text("section:has(h2:has-text('What happened'))")
    assert re.search(r"on \S+ after [\d.]+ s", happened), happened
    assert "now against the plan" in otto.page.inner_text("main")
    assert lab.owned(lab.brokers[0]) < BUNDLES
    assert all(lab.owned(each) > 0 for each in lab.brokers)


def _empty(otto: _Person, anna: _Person, broker: str) -> None:
    """Empty *broker*; by a new plan where the cluster was no longer as the plan says."""
    ended = ".steps li.reached:has-text('done'), .steps li.reached:has-text('failed')"
    for _ in range(_TRIES):
        proposal = _proposed(otto, _broker_page(broker), "Empty it…", "new kernel", own="cpu")
        otto.picture("drain")
        _approved(anna, proposal, "drain")
        otto.waits_for("main a[data-dialog]:has-text('Apply…')")
        otto.does("Apply…", "Carry it out", "new kernel")
        otto.waits_for(ended)
        otto.picture("drain-ended")
        if otto.page.locator(".steps li.reached:has-text('done')").count():
            return
    raise AssertionError(otto.page.inner_text("main"))


def _empty_a_broker_and_release_it(lab: _Lab, otto: _Person, anna: _Person, broker: str) -> None:
    _empty(otto, anna, broker)
    assert lab.owned(broker) == 0
    otto.opens(_broker_page(broker))
    otto.waits_for("text=it gets no bundles until it is released")
    otto.picture("drained")
    otto.does("Release…", "Release", "new kernel runs")
    # More may move afterwards, so another person approves it.
    otto.picture("release-proposed")
    release = otto.page.url.partition("/proposals/")[2]
    assert release, otto.page.url
    anna.opens(f"/proposals/{release}")
    anna.does("Approve…", "Approve this hash", "the broker is back")
    anna.picture("release-approved")
    otto.opens(_broker_page(broker))
    otto.waits_for("main a[data-dialog]:has-text('Drain…')", by_hand=True)
    otto.picture("released")
