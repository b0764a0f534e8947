"""Pictures and figures of the page, in a real Chromium: ``scripts/pages``, which people look at.

    scripts/pages FOLDER          # every page in each state and look
    scripts/pages --figures       # how fast they are with an interval each minute: on a machine that does nothing else
    scripts/pages --docs          # the pictures of README and docs, small ones

The cluster is invented (controller/lab/invented_weeks.py): 1,000 brokers, 100,000 bundles, 7 days.
"""

import argparse
import base64
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import numpy as np
import pytest
import typer
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from controller.lab.invented_weeks import END_MS, InventedWeek
from controller.log.journal import LogJournal
from controller.log.memory import MemoryLog, MemoryServer
from controller.model.controls import OperatorControls
from controller.model.decision import Decision
from controller.model.errors import TrimtabError
from controller.web.store.feed import Feed
from controller.web.store.queries import PageData
from controller.web.store.store import Store
from controller.wire.journal import ControlsRecord
from controller.wire.summary import ReadSummary
from tests.chromium import AXE_TAGS, chromium, watched_page
from tests.page_people import PeopleSite, people_site
from tests.web_people import token_of
from tests.web_sites import served, site

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
LOOKS: Final = (("light", 1280), ("dark", 1280), ("light", 400), ("dark", 400))
#: Pages of every state, and those that only a week has, by the names of their pictures.
PATHS: Final = {
    "now": "/",
    "map": "/map?span=10080",
    "decisions": "/decisions",
    "plans": "/plans",
    "controls": "/controls",
    "history": "/history",
    "find": "/find?text=app-00",
    "what-if": "/what-if",
    "more": "/more",
}
_OF_A_WEEK: Final = {
    "map-keyspace": "/map?rows=keyspace&span=10080",
    "map-owner": "/map?rows=keyspace&metric=owner&span=10080",
    "decisions-with-commands": "/decisions?with_commands=1",
    "decisions-none": "/decisions?reason=Budget&namespace=tenant-0/nowhere",
    "find-nothing": "/find?text=nowhere",
    "not-found": "/nowhere",
}
#: Of people, by who looks.
_OF_PEOPLE: Final = {
    "otto": {
        "controls": "/controls",
        "plans": "/plans?ended=1",
        "history": "/history",
        "new-proposal": "/proposals/new",
        "pause": "/controls/pause",
        "mode": "/controls/mode?mode=dry_run",
        "stop-all": "/controls/stop-all",
    },
    "anna": {"controls-refused": "/controls", "now": "/"},
    "vera": {"controls-viewer": "/controls"},
}
_REPEATS: Final = 20
#: Forms of what is done with a proposal, each on one in a state that allows it.
_FORMS: Final = (("approve", "pending"), ("reject", "pending"), ("pause", "applying"), ("stop", "applying"))
_MOST_NODES: Final = 1_500
_LARGEST_PAGE: Final = 250_000
#: Of a page on a busy machine.
_PATIENCE_MS: Final = 180_000
#: The newest decision with commands but so many: what it promised has been measured.
_MEASURED: Final = 4
_PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
_LARGEST_BYTES: Final = 150_000
#: Brokers of an invented cluster, of which one is away for a while, and bundles.
_FEWEST: Final = 2


def _filled(folder: Path, week: InventedWeek | None, *, each_minute: bool = False) -> Store:
    """What the page knows of *week*, read from its log; of None: of a cluster that has decided nothing.

    *each_minute*: of a week with an interval each hour, with one each minute: 10,080 instead of 168.
    """
    server = MemoryServer(now_ms=week.now_ms if week else lambda: int(time.time() * 1000))
    store = Store(folder, cluster="invented")
    if week is None:
        LogJournal(MemoryLog(server), cluster="invented").open()
        MemoryLog(server).partitions("results", "summaries")
        Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=server.now_ms).catch_up()
        return store
    week.write(MemoryLog(server))
    filled: Any = _EachMinute(store) if each_minute else store
    Feed(filled, lambda: MemoryLog(server), week.controls, now_ms=lambda: week.end_ms + 30_000).catch_up()
    return store


class _EachMinute:
    """A store that gets an interval each minute where a week has one an hour: its load with some noise."""

    def __init__(self, store: Store) -> None:
        self._store, self._chance = store, np.random.default_rng(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def add_summaries(self, summaries: Sequence[ReadSummary]) -> int:
        """Add them, and those of the minutes after each."""
        return sum(self._store.add_summaries([self._later(each, at)]) for each in summaries for at in range(60))

    def add_decisions(self, decisions: Sequence[tuple[Decision, ControlsRecord, int]]) -> None:
        """Add them, and those of the minutes after each, without commands."""
        self._store.add_decisions(decisions)
        for decision, controls, epoch in decisions:
            times = (decision.interval + at * _MINUTE_MS for at in range(1, 60))
            self._store.add_decisions([(replace(decision, interval=at, commands=()), controls, epoch) for at in times])

    def _later(self, read: ReadSummary, minutes: int) -> ReadSummary:
        summary, chance = read.summary, self._chance
        usage = summary.brokers.usage * (0.97 + 0.06 * chance.random((len(summary.brokers.usage), 1), np.float32))
        rate = np.minimum(summary.ranges.rate, 250) + chance.integers(0, 2, len(summary.ranges.rate), np.uint8)
        changed = replace(
            summary,
            interval=summary.interval + minutes * _MINUTE_MS,
            period_ms=_MINUTE_MS,
            brokers=replace(summary.brokers, usage=usage),
            ranges=replace(summary.ranges, rate=rate),
            outcomes=() if minutes else summary.outcomes,
        )
        return read._replace(summary=changed)


@contextmanager
def _served(folder: Path, data: PageData, now_ms: int) -> Iterator[str]:
    """The address of a site that shows *data*, by a clock that stands still."""

    def unreadable(_settings: object) -> Any:
        def read() -> Any:
            raise TrimtabError("the election does not answer")

        return read

    shown = site(
        folder,
        "invented",
        web=('decisions.mode = "active"', "[web]", 'anonymous = "operator"'),
        now_ms=lambda: now_ms,
        read_status=unreadable,
        data=data,
    )
    with served(shown) as address:
        yield address


def _open(page: Page, address: str) -> None:
    page.set_default_timeout(_PATIENCE_MS)
    page.goto(address)
    if page.locator("[data-map]").count():
        page.wait_for_selector("[data-map][data-ready]")


def _details(page: Page, address: str) -> dict[str, str]:
    """A decision with commands, a cell of the map, and a broker, a namespace and a bundle."""
    page.goto(f"{address}/decisions?with_commands=1")
    decision = page.locator("main a.what").nth(_MEASURED).get_attribute("href") or ""
    page.goto(f"{address}/find?text=app-0001")
    found = {kind: page.get_attribute(f"main a[href*='/{kind}s/']", "href") for kind in ("bundle", "namespace")}
    page.goto(f"{address}{decision}")
    found["broker"] = page.get_attribute("main a[href*='/brokers/']", "href")
    row = (found["broker"] or "").rpartition("/")[2]
    cell = f"/map?span=10080&row={row}&at={decision.rpartition('/')[2]}"
    return {"decision": decision, "map-cell": cell, **{kind: path for kind, path in found.items() if path}}


def _shoot(page: Page, name: str, folder: Path) -> None:
    """Take the picture *name*, and print what a machine finds wrong with the page."""
    page.screenshot(path=folder / f"{name}.png", full_page=True)
    report: Any = Axe().run(page, options=AXE_TAGS)
    for each in report.response["violations"]:
        typer.echo(f"{name}: {each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}")
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        typer.echo(f"{name}: it scrolls sideways")
    if (nodes := page.evaluate("document.querySelectorAll('*').length")) > _MOST_NODES:
        typer.echo(f"{name}: it has {nodes} elements")


def _look_at(browser: Browser, address: str, paths: Mapping[str, str], folder: Path, *, log_in: str = "") -> None:
    """Take pictures of *paths* in each look, and read them without a script."""
    for theme, width in LOOKS:
        with watched_page(browser, theme, width) as (page, trouble):
            if log_in:
                _log_in(page, address, log_in)
            for name, path in paths.items():
                _open(page, address + path)
                _shoot(page, f"{folder.name}-{name}-{theme}-{width}", folder)
                for line in trouble:
                    typer.echo(f"{folder.name}-{name}: {line}")
                trouble.clear()
    with watched_page(browser, script=False) as (page, trouble):
        if log_in:
            _log_in(page, address, log_in)
        for name, path in paths.items():
            answer = page.goto(address + path)
            size = len(answer.body()) if answer else 0
            if size > _LARGEST_PAGE or not (page.text_content("h1") or "").strip() or trouble:
                typer.echo(f"{folder.name}-{name} without a script: {size:,} bytes, {trouble}")
            trouble.clear()


def _log_in(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/login")
    page.fill("[name=token]", token_of(name))
    page.click("button.primary")


def _look_at_people(browser: Browser, shown: PeopleSite, folder: Path) -> None:
    """Pictures of what people do: logging in, proposals in each state, forms, and the dialogs of forms."""
    with watched_page(browser) as (page, _trouble):
        _log_in(page, shown.address, "nobody")
        _shoot(page, "people-login-refused", folder)
    _look_at(browser, shown.address, {"login": "/login"}, folder)
    for person, paths in _OF_PEOPLE.items():
        _look_at(browser, shown.address, paths, folder, log_in=person)
    proposals = {f"proposal-{state}": f"/proposals/{key}" for state, key in shown.proposals.items()}
    forms = {f"form-{name}": f"/proposals/{shown.proposals[of]}/{name}" for name, of in _FORMS}
    with watched_page(browser) as (page, _trouble):
        _log_in(page, shown.address, "anna")
        for path in proposals.values():
            ends = time.monotonic() + _PATIENCE_MS / 1000
            page.goto(shown.address + path)
            while page.locator("text=being checked").count() and time.monotonic() < ends:
                page.wait_for_timeout(1_000)
                page.reload()
    result = {"what-if-result": f"/what-if?job={shown.what_if}&strategy=TransferShedder"}
    _look_at(browser, shown.address, proposals | forms | result, folder, log_in="anna")
    for theme, width in LOOKS:
        with watched_page(browser, theme, width) as (page, _trouble):
            _log_in(page, shown.address, "anna")
            for name, path, link in (
                ("approve", f"/proposals/{shown.proposals['pending']}", "Approve…"),
                ("stop-all", "/controls", "Stop all…"),
            ):
                page.goto(shown.address + path)
                page.click(f"main a:has-text('{link}')")
                page.wait_for_selector("dialog[open]")
                _shoot(page, f"people-dialog-{name}-{theme}-{width}", folder)


def _figures(browser: Browser, address: str, paths: Sequence[str]) -> None:
    """Print the spread of first paints, and of what follows a click or a zoom until the next frame is drawn."""
    for path in paths:
        paints = []
        for _ in range(_REPEATS):
            with watched_page(browser) as (page, _trouble):
                _open(page, address + path)
                while not page.evaluate("performance.getEntriesByName('first-contentful-paint').length"):
                    page.wait_for_timeout(10)  # the page's policy forbids what waits by a script of its own
                paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        typer.echo(f"first paint of {path}: {_spread(paints)}")
    with watched_page(browser) as (page, _trouble):
        _open(page, f"{address}/map?span=10080")
        for selector in ("[data-moves]", "[data-theme-switch]", ".segments [data-set*=span]"):
            clicks = [page.evaluate(_CLICK, selector) for _ in range(_REPEATS)]
            typer.echo(f"click on {selector}: {_spread(clicks)}")
    for path in ("/map?span=10080", "/map?rows=keyspace&span=10080", "/map?rows=keyspace&metric=owner&span=10080"):
        with watched_page(browser) as (page, _trouble):
            _open(page, address + path)
            page.wait_for_timeout(1_000)  # the week below the map is loaded after it
            page.focus(".field")
            zooms = [page.evaluate(_ZOOM, key) for _ in range(_REPEATS) for key in "++--"]
        typer.echo(f"zoom of {path}: {_spread(zooms)}")


#: From a click to the second frame after it, when what it drew is on the screen.
_CLICK: Final = """selector => new Promise(done => {
  const begun = performance.now();
  document.querySelector(selector).click();
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


#: From a key that zooms to the second frame after the cells of the new span are there.
_ZOOM: Final = """key => new Promise(done => {
  const begun = performance.now(), box = document.querySelector("[data-map]"), before = box.dataset.ready;
  const look = () => {
    if (box.dataset.ready === before) { requestAnimationFrame(look); return; }
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
  };
  document.querySelector(".field").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  look();
})"""


def _spread(values: Sequence[float]) -> str:
    parts = quantiles(values, n=20)
    return f"p95 {parts[-1]:.0f} ms, median {parts[9]:.0f}, {min(values):.0f} to {max(values):.0f}"


class _StaleData:
    """What a store knows whose log has not answered since."""

    def __init__(self, data: PageData) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def progress(self) -> Any:
        """The same, with what went wrong."""
        known = self._data.progress()
        failed = tuple(replace(each, error="the log does not answer since 00:02") for each in known.sources)
        return replace(known, sources=failed)


def _measured(brokers: int, bundles: int) -> None:
    week = a_week(brokers, bundles)
    with tempfile.TemporaryDirectory() as text, chromium() as browser:
        work = Path(text)
        (work / "site").mkdir()
        with _served(work / "site", _filled(work / "store", week, each_minute=True), week.end_ms + 30_000) as address:
            _figures(browser, address, ("/", "/map?span=10080", "/decisions", "/what-if"))


def a_week(brokers: int, bundles: int) -> InventedWeek:
    """A week that ends in the afternoon, when there is load."""
    end_ms = END_MS + 13 * _HOUR_MS
    return InventedWeek(brokers=brokers, bundles=bundles, days=7, period_ms=_HOUR_MS, end_ms=end_ms)


def _artefacts(folder: Path, brokers: int, bundles: int) -> None:
    week = a_week(brokers, bundles)
    with tempfile.TemporaryDirectory() as text, chromium() as browser:
        work = Path(text)
        full, empty = _filled(work / "full", week), _filled(work / "empty", None)
        take_pictures(browser, folder, work, full=full, empty=empty, end_ms=week.end_ms)


def take_pictures(browser: Browser, folder: Path, work: Path, *, full: Store, empty: Store, end_ms: int) -> None:
    """Pictures of every page, in a folder for each state below *folder*; *work* is scratch."""
    fresh = end_ms + 30_000
    states: dict[str, tuple[Any, int]] = {
        "week": (full, fresh),
        "empty": (empty, fresh),
        "dead": (full, fresh + 3 * _HOUR_MS),
        "stale": (_StaleData(full), fresh + 2 * _DAY_MS),
    }
    for state, (data, now_ms) in states.items():
        (work / f"{state}-site").mkdir()
        (folder / state).mkdir(parents=True, exist_ok=True)
        with _served(work / f"{state}-site", data, now_ms) as address:
            paths = dict(PATHS)
            if state == "week":
                with watched_page(browser) as (page, _trouble):
                    paths |= _OF_A_WEEK | _details(page, address)
            _look_at(browser, address, paths, folder / state)
    (work / "people-site").mkdir()
    (folder / "people").mkdir(parents=True, exist_ok=True)
    with people_site(work / "people-site", full, fresh) as shown:
        _look_at_people(browser, shown, folder / "people")


def _docs() -> None:
    """The pictures of README and docs: a small cluster, so that names can be read."""
    week = InventedWeek(brokers=12, bundles=240, days=7, period_ms=5 * _MINUTE_MS)
    noon = week.end_ms - 4 * _DAY_MS + 8 * _HOUR_MS
    with tempfile.TemporaryDirectory() as text, chromium() as browser:
        work = Path(text)
        (work / "site").mkdir()
        with (
            _served(work / "site", _filled(work / "store", week), week.end_ms + 30_000) as address,
            watched_page(browser) as (page, _trouble),
        ):
            span = f"since={noon - 32 * _HOUR_MS}&until={noon}"
            map_path = f"/map?{span}&row=broker-0002.example:8080&at={noon - 22 * _HOUR_MS - 45 * _MINUTE_MS}"
            for name, path in (("now", "/"), ("map", map_path), ("decision", _details(page, address)["decision"])):
                _open(page, address + path)
                content = page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 900})
                _write(page, content, _PICTURES / f"page-{name}.webp")


#: A picture as WebP: the browser's own encoder, so that no library for pictures is needed.
_WEBP: Final = """async png => {
  const bytes = Uint8Array.from(atob(png), each => each.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes]));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width, image.height];
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", .9).split(",")[1];
}"""


def _write(page: Page, png: bytes, path: Path) -> None:
    content = base64.b64decode(page.evaluate(_WEBP, base64.b64encode(png).decode()))
    if len(content) > _LARGEST_BYTES:
        raise SystemExit(f"{path} would have {len(content):,} bytes, more than {_LARGEST_BYTES:,}")
    path.write_bytes(content)
    typer.echo(f"{path}: {len(content):,} bytes")


def main() -> None:
    """See the module docstring."""
    parser = argparse.ArgumentParser(
        prog="scripts/pages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=Path(".trimtab/pages"), help="default: %(default)s")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--docs", action="store_true", help="the pictures of README and docs")
    which.add_argument("--figures", action="store_true", help="how fast the pages are")
    parser.add_argument("--brokers", type=_number, default=1_000, help="of the invented cluster; not of --docs")
    parser.add_argument("--bundles", type=_number, default=100_000, help="of the invented cluster; not of --docs")
    given = parser.parse_args()
    try:
        _make(given)
    except (OSError, pytest.skip.Exception) as error:
        parser.exit(1, f"trimtab: {error}\n")


def _number(text: str) -> int:
    number = int(text)
    if number < _FEWEST:
        raise argparse.ArgumentTypeError(f"{number} is less than {_FEWEST}")
    return number


def _make(given: argparse.Namespace) -> None:
    if given.docs:
        _docs()
    elif given.figures:
        _measured(given.brokers, given.bundles)
    else:
        _artefacts(given.folder, given.brokers, given.bundles)


if __name__ == "__main__":
    main()
