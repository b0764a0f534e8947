"""Load data that a thread reads: what happens to it, and to what it has heard, when the thread fails, ends or hangs."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pulsar
import pytest

from controller.adapters.network.tls import Tls
from controller.adapters.pulsar import load_data
from controller.adapters.pulsar.credentials import Credentials
from controller.adapters.pulsar.load_data import PulsarLoadData

A = "a:8080"


class Library:
    """In place of pulsar.Client, for all threads: each client does in its turn what the test says."""

    def __init__(self) -> None:
        self.made = self.closed = 0
        #: What the reader does next: it returns a message, or an error is raised.
        self.steps: queue.Queue[Any] = queue.Queue()
        self.connected = True
        #: While it is not set, the reader hangs.
        self.goes_on, self.hangs = threading.Event(), threading.Event()
        self.goes_on.set()

    def __call__(self, *_: Any, **__: Any) -> "Library":
        self.made += 1
        return self

    def create_reader(self, *_: Any) -> "Library":
        return self

    def is_connected(self) -> bool:
        return self.connected

    def read_next(self, timeout_millis: int) -> Any:
        assert timeout_millis == 1000
        if not self.goes_on.is_set():
            self.hangs.set()
            self.goes_on.wait(60)
        try:
            step = self.steps.get(timeout=0.001)
        except queue.Empty:
            raise pulsar.Timeout("Timeout") from None
        if isinstance(step, BaseException):
            raise step
        return SimpleNamespace(partition_key=lambda: A, data=lambda: step)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr("controller.adapters.pulsar.load_data.pulsar.Client", made)
    monkeypatch.setattr(load_data, "_RETRY_SECONDS", 0.0)
    return made


class Read:
    """The load data that the library gives, with a clock of the test's own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.data = PulsarLoadData(lambda: "pulsar://a:6650", Credentials, Tls(), clock=lambda: self.now)

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not done():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.001)

    def hears(self, library: Library, value: bytes) -> None:
        library.steps.put(value)
        self.until(lambda: bool(self.data.of(A)))


@pytest.fixture
def read(library: Library) -> Iterator[Read]:
    made = Read()
    yield made
    library.goes_on.set()
    made.data.close()


def test_what_a_broker_publishes_counts_for_half_an_hour(library: Library, read: Read) -> None:
    assert read.data.of(A) is None
    read.hears(library, b'{"cpu": 1}')
    read.now += 1_799
    assert read.data.of(A) == {"cpu": 1}
    read.now += 2
    assert read.data.of(A) is None


@pytest.mark.parametrize(
    "error", [pulsar.ConnectError("gone"), ValueError("odd"), UnicodeDecodeError("utf-8", b"", 0, 1, "")]
)
def test_after_any_error_the_thread_reads_on_and_what_it_heard_before_counts_for_a_minute_more(
    library: Library, read: Read, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    read.hears(library, b'{"cpu": 1}')
    library.steps.put(error)
    read.until(lambda: library.made == 2)
    assert library.closed == 1
    assert caplog.text.count("using the load metrics of the brokers instead") == 1
    read.now += 59
    assert read.data.of(A) == {"cpu": 1}
    read.now += 2
    assert read.data.of(A) is None
    read.hears(library, b'{"cpu": 2}')
    read.now += 1_799
    assert read.data.of(A) == {"cpu": 2}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_ended_is_replaced_and_what_it_heard_counts_for_a_minute_more(
    library: Library, read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    read.hears(library, b'{"cpu": 1}')
    library.steps.put(SystemExit())
    read.until(lambda: read.data.of("nobody") is None and library.made == 2)
    assert "has ended; starting another one" in caplog.text
    read.now += 61
    assert read.data.of(A) is None
    read.hears(library, b'{"cpu": 2}')


def test_a_thread_that_hangs_is_replaced_and_ends_when_it_comes_back(
    library: Library, read: Read, caplog: pytest.LogCaptureFixture
) -> None:
    read.hears(library, b'{"cpu": 1}')
    library.goes_on.clear()
    assert library.hangs.wait(60)
    read.now += 121
    read.until(lambda: read.data.of("nobody") is None and library.made == 2)
    assert "has made no progress for 121 s; starting another one" in caplog.text
    read.now += 61
    assert read.data.of(A) is None
    library.goes_on.set()
    read.until(lambda: library.closed == 1)
    read.hears(library, b'{"cpu": 2}')


def test_a_connection_that_stays_lost_is_made_anew_since_what_is_published_meanwhile_is_missed(
    library: Library, read: Read
) -> None:
    read.hears(library, b'{"cpu": 1}')
    library.connected = False

    def next_second() -> bool:
        read.now += 1
        return library.made > 1

    read.until(next_second)
    library.connected = True
    read.now += 61
    assert read.data.of(A) is None
