"""The page in a real Chromium, with all that it shows in a real Kafka or Pulsar, and jobs that read it there."""

import json
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from controller.lab.invented_weeks import InventedWeek
from controller.lab.pulsar_server import PulsarCluster
from controller.lab.servers import KafkaServer
from controller.log.factory import log_system
from controller.settings.trimtab_toml import read_settings
from controller.web.beside import page_beside
from controller.web.pages.spans import form_time
from tests.chromium import AXE_TAGS, chromium, watched_page
from tests.integration.pulsar_log import own_topics
from tests.kafka_log import as_toml, named_topics
from tests.modelled_kafka import played_on
from tests.records import PERIOD

pytestmark = [pytest.mark.integration, pytest.mark.extended]

_CLUSTER = "invented"
_PERIOD_MS = 300_000
_INTERVALS = 8
#: A job starts a process, which imports NumPy and Parquet and reads a real log.
_JOB_MS = 300_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def _conf(folder: Path, log: str) -> Path:
    (folder / "broker.conf").write_text("", encoding="utf-8")
    path = folder / "trimtab.toml"
    head = f'cluster.name = "{_CLUSTER}"\nelection = {{kind = "file", path = "election"}}\n'
    path.write_text(f'{head}checkpoint.path = "checkpoint"\n{log}', encoding="utf-8")
    return path


@contextmanager
def _two_days_on(conf: Path) -> Iterator[str]:
    """The address of the page of a cluster whose log has two invented days, the newest of them now."""
    now_ms = int(time.time() * 1000)
    week = InventedWeek(brokers=6, bundles=120, days=2, period_ms=_PERIOD_MS, end_ms=now_ms, cluster=_CLUSTER)
    with closing(log_system(read_settings(conf)).connect()) as log:
        week.write(log)
    with page_beside(conf) as address:
        yield address.rstrip("/")


def _links(page: Page, address: str) -> list[str]:
    """The places of the rail, and a decision, a bundle, a broker and a namespace of this cluster."""
    page.goto(f"{address}/find?text=app-0001")
    found = [page.get_attribute(f"main a[href*='/{kind}/']", "href") for kind in ("bundles", "namespaces")]
    page.goto(f"{address}/decisions?with_commands=1")
    found.append(page.get_attribute("main a.what", "href"))
    page.goto(f"{address}{found[-1]}")
    found.append(page.get_attribute("main a[href*='/brokers/']", "href"))
    places = ("/", "/map?span=1440", "/map?rows=keyspace&metric=owner", "/decisions", "/plans", "/controls", "/history")
    return [*places, "/what-if", "/more", *(each for each in found if each)]


def _is_without_barrier(browser: Browser, address: str) -> None:
    """Every page has what it is about, and neither barrier nor error."""
    for theme, width in (("light", 1280), ("dark", 400)):
        with watched_page(browser, theme, width) as (page, trouble):
            deadline = time.monotonic() + 120
            page.goto(f"{address}/decisions?with_commands=1")
            while not page.locator("a.what").count():  # a new process reads the log first
                assert time.monotonic() < deadline, page.text_content("main")
                page.wait_for_timeout(500)
                page.reload()
            links = _links(page, address)
            assert len(links) == 13
            for path in links:
                answer = page.goto(address + path)
                assert answer is not None
                assert answer.status == 200, path
                report: Any = Axe().run(page, options=AXE_TAGS)
                assert report.violations_count == 0, f"{path}: {report.generate_report()}"
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
            assert trouble == []


def test_every_page_of_a_cluster_on_kafka_is_without_barrier(
    browser: Browser, kafka: KafkaServer, tmp_path: Path
) -> None:
    log = f'[log]\nkind = "kafka"\n[log.kafka]\n{as_toml(named_topics(kafka.bootstrap))}'
    with _two_days_on(_conf(tmp_path, log)) as address:
        _is_without_barrier(browser, address)


def test_every_page_of_a_cluster_on_pulsar_is_without_barrier(
    browser: Browser, pulsar: PulsarCluster, tmp_path: Path
) -> None:
    settings = own_topics(pulsar).model_dump(mode="json", exclude_defaults=True)
    keys = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
    with _two_days_on(_conf(tmp_path, f'[log]\nkind = "pulsar"\n[log.pulsar]\n{keys}\n')) as address:
        _is_without_barrier(browser, address)


@dataclass(frozen=True, slots=True)
class _Played:
    """The page of a cluster, and the span that was played, as its form has it."""

    address: str
    since: str
    until: str


@pytest.fixture(scope="module")
def played_page(kafka: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Played]:
    """A controller balanced a modelled cluster until now, with its load and journal in a real Kafka."""
    folder = tmp_path_factory.mktemp("played")
    # Kafka has its own clock, by which a span is cut out of the log.
    start = int(time.time() * 1000) // PERIOD * PERIOD - _INTERVALS * PERIOD
    played_on(kafka, folder, _INTERVALS, start)
    with page_beside(folder / "kafka" / "trimtab.toml") as address:
        yield _Played(address.rstrip("/"), form_time(start), form_time(int(time.time() * 1000), round_up=True))


def _start(page: Page, played: _Played, button: str, **choices: str) -> None:
    """Choose the span that was played, start a job with *button*, and wait for its page."""
    page.goto(f"{played.address}/what-if")
    page.fill("[name=since]", played.since)
    page.fill("[name=until]", played.until)
    for name, value in choices.items():
        page.select_option(f"[name={name}]", value)
    page.click(f"text={button}")
    page.wait_for_url("**job=**", timeout=_JOB_MS)
    assert "could not" not in (page.text_content("h1") or ""), page.text_content(".head")


def test_a_what_if_is_started_in_the_browser_and_shows_both_sides(browser: Browser, played_page: _Played) -> None:
    with watched_page(browser) as (page, trouble):
        _start(page, played_page, "Work it out", strategy="ThresholdShedder")
        heads = [text.strip() for text in page.locator("section:has-text('Side by side') th").all_text_contents()]
        assert heads == ["Figure", "what happened", "ThresholdShedder"]
        moves = page.locator("tr", has=page.locator("td", has_text="moves")).first.locator("td").all_text_contents()
        assert len(moves) == 3
        assert int(moves[1].replace(",", "")) > 0
        # The link shows a colleague the same.
        title = page.text_content("h1")
        page.goto(page.url)
        assert page.text_content("h1") == title
        assert page.input_value("[name=strategy]") == "ThresholdShedder"
        assert page.input_value("[name=since]") == played_page.since
        assert trouble == []


def test_without_a_strategy_it_says_how_much_comes_out_again(browser: Browser, played_page: _Played) -> None:
    with watched_page(browser) as (page, trouble):
        _start(page, played_page, "Work it out")
        assert "A replay with the recorded settings does" in (page.text_content("h1") or "")
        assert trouble == []


def test_an_incident_of_the_browser_is_a_file(browser: Browser, played_page: _Played, tmp_path: Path) -> None:
    with watched_page(browser) as (page, trouble):
        _start(page, played_page, "Make an incident file")
        with page.expect_download() as download:
            page.click("text=Download")
        assert download.value.suggested_filename.endswith(".tar")
        download.value.save_as(tmp_path / "incident.tar")
        assert trouble == []
    with tarfile.open(tmp_path / "incident.tar") as file:
        assert "incident.json" in file.getnames()


def test_what_cannot_be_started_says_why_in_place(browser: Browser, played_page: _Played) -> None:
    with watched_page(browser) as (page, trouble):
        page.goto(f"{played_page.address}/what-if")
        page.fill("[name=since]", "2025-01-02T00:00")
        page.fill("[name=until]", "2025-01-01T00:00")
        page.click("text=Work it out")
        page.wait_for_selector("text=the span ends before it begins")
        page.fill("[name=until]", "2025-01-04T00:00")
        page.click("text=Make an incident file")
        page.wait_for_selector("text=24 hours at most")
        assert trouble == []
