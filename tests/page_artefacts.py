"""Pictures and figures of the page, in a real Chromium: ``scripts/pages``, which people look at.

    scripts/pages FOLDER          # every page in each state and look
    scripts/pages --figures       # how fast they are: on a machine that does nothing else
    scripts/pages --docs          # the pictures of README and docs, small ones

The cluster is invented (controller/lab/invented_weeks.py): 1,000 brokers, 100,000 bundles, 7 days.
"""

import argparse
import base64
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

import pytest
import typer
from playwright.sync_api import Browser, Page

from controller.lab.invented_weeks import InventedWeek
from controller.log.journal import LogJournal
from controller.log.memory import MemoryLog, MemoryServer
from controller.model.controls import OperatorControls
from controller.model.errors import TrimtabError
from controller.web.store.feed import Feed
from controller.web.store.queries import PageData
from controller.web.store.store import Store
from tests.chromium import chromium, watched_page
from tests.web_sites import served, site

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
LOOKS: Final = (("light", 1280), ("dark", 1280), ("dark", 400))
PATHS: Final = (
    "/",
    "/map?span=10080",
    "/map?rows=keyspace&span=10080",
    "/map?rows=keyspace&metric=owner&span=10080",
    "/decisions",
    "/plans",
    "/controls",
    "/history",
    "/find?text=app-00",
    "/what-if",
)
_REPEATS: Final = 20
#: Of a page on a busy machine.
_PATIENCE_MS: Final = 180_000
#: The newest decision with commands but so many: what it promised has been measured.
_MEASURED: Final = 4
_PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
_LARGEST_BYTES: Final = 150_000
#: Brokers of an invented cluster, of which one is away for a while, and bundles.
_FEWEST: Final = 2


def _filled(folder: Path, week: InventedWeek | None) -> Store:
    """What the page knows of *week*, read from its log; of None: of a cluster that has decided nothing."""
    server = MemoryServer(now_ms=week.now_ms if week else lambda: int(time.time() * 1000))
    store = Store(folder, cluster="invented")
    if week is None:
        LogJournal(MemoryLog(server), cluster="invented").open()
        MemoryLog(server).partitions("results", "summaries")
        Feed(store, lambda: MemoryLog(server), OperatorControls, now_ms=server.now_ms).catch_up()
        return store
    week.write(MemoryLog(server))
    Feed(store, lambda: MemoryLog(server), week.controls, now_ms=lambda: week.end_ms + 30_000).catch_up()
    return store


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
        web=("[web]", 'anonymous = "operator"'),
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


def _details(page: Page, address: str) -> list[str]:
    """A decision with commands, and a broker, a namespace and a bundle of it."""
    page.goto(f"{address}/decisions?with_commands=1")
    decision = page.locator("main a.what").nth(_MEASURED).get_attribute("href")
    page.goto(f"{address}/find?text=app-0001")
    found = [page.get_attribute(f"main a[href*='/{kind}/']", "href") for kind in ("bundles", "namespaces")]
    page.goto(f"{address}{decision}")
    found.append(page.get_attribute("main a[href*='/brokers/']", "href"))
    return [path for path in (decision, *found) if path]


def _shoot(browser: Browser, address: str, paths: Sequence[str], folder: Path, state: str) -> None:
    for theme, width in LOOKS:
        with watched_page(browser, theme, width) as (page, trouble):
            for path in paths:
                _open(page, address + path)
                place, _, rest = path.partition("?")[0].strip("/").partition("/")
                name = (f"one-{place}" if rest else place) or "now"
                name += "".join(f"-{word}" for word in ("keyspace", "owner") if word in path)
                page.screenshot(path=folder / f"{state}-{name}-{theme}-{width}.png", full_page=True)
            for line in trouble:
                typer.echo(f"{state}: {line}")


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
            zooms = [page.evaluate(_ZOOM, key) for _ in range(_REPEATS // 4) for key in "++--"]
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
    week = InventedWeek(brokers=brokers, bundles=bundles, days=7, period_ms=_HOUR_MS)
    with tempfile.TemporaryDirectory() as text, chromium() as browser:
        work = Path(text)
        (work / "site").mkdir()
        with _served(work / "site", _filled(work / "store", week), week.end_ms + 30_000) as address:
            _figures(browser, address, ("/", "/map?span=10080", "/decisions", "/what-if"))


def _artefacts(folder: Path, brokers: int, bundles: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    week = InventedWeek(brokers=brokers, bundles=bundles, days=7, period_ms=_HOUR_MS)
    fresh = week.end_ms + 30_000
    with tempfile.TemporaryDirectory() as text, ExitStack() as stack, chromium() as browser:
        work = Path(text)
        full, empty = _filled(work / "full", week), _filled(work / "empty", None)
        states: dict[str, tuple[Any, int]] = {
            "week": (full, fresh),
            "empty": (empty, fresh),
            "dead": (full, fresh + 3 * _HOUR_MS),
            "stale": (_StaleData(full), fresh + 2 * _DAY_MS),
        }
        for state, (data, now_ms) in states.items():
            (work / f"{state}-site").mkdir()
            address = stack.enter_context(_served(work / f"{state}-site", data, now_ms))
            paths = list(PATHS) if state == "week" else [path for path in PATHS if "rows" not in path]
            if state == "week":
                with watched_page(browser) as (page, _trouble):
                    paths += _details(page, address)
            _shoot(browser, address, paths, folder, state)


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
            for name, path in (("now", "/"), ("map", map_path), ("decision", _details(page, address)[0])):
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
