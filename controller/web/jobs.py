"""Long work: a what-if, an audit, an incident.  Each runs as a ``trimtab`` command in a process of its own.

So it has an end, whatever it does; it takes no time from those who look; and its answer is the one that the command
prints.  What bounds them: how many run, wait and are remembered; the time, the output and the number of each person's.
"""

import hashlib
import logging
import math
import os
import resource
import secrets
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import rmtree
from typing import Final, Literal, TypeAlias

from controller.adapters.disk.scratch import held_folder
from controller.adapters.network.deadline import Deadline
from controller.adapters.process.tied_child import NOTHING_FOUND_VARIABLE, tied_child
from controller.model.errors import TrimtabError
from controller.settings.redaction import redacted
from controller.web.access.viewer import RefusedError
from controller.wire.base import printable

log = logging.getLogger(__name__)

JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]

#: Jobs that wait at most, and those of one person that wait or run.
_MOST_WAITING: Final = 16
_MOST_OF_ONE: Final = 4
#: Jobs that are remembered when they have ended; their results together have no more bytes than this.
_MOST_ENDED: Final = 64
_MOST_BYTES: Final = 512 << 20
#: Unfinished jobs with a file that somebody uploaded; uploads.LARGEST bounds each.
_MOST_UPLOADS: Final = 4
#: Bytes that one job's commands write to its folder, and to the one with its temporary files.
_LARGEST: Final = 128 << 20
#: Of its process: more than what a day of 100,000 bundles takes.
_LARGEST_MEMORY: Final = 8 << 30
_POLL_SECONDS: Final = 0.05
#: Questions give way to those who look, whose pages they would hold up for seconds on a small machine.
_NICE: Final = 5
#: Beyond its time, before the kernel ends a process that holds Python's lock and cannot end itself.
_SPARE_SECONDS: Final = 30
#: At the end of this process its jobs have so long to end.
_END_SECONDS: Final = 2.0
#: Of standard error: its last line says how far the work is, or why it failed.
_TAIL_BYTES: Final = 4096
#: With this exit code a command says that there is nothing of what was asked for.
_NOTHING_FOUND: Final = 66
#: The placeholder for the job's own folder in a command's words.
FOLDER: Final = "{folder}"
#: The file there that has what the last command prints.
_ANSWER: Final = "answer.json"
_ERRORS: Final = "errors.txt"
#: Modules of the processes: ours with its commands, and the one that checks what the last one printed.
_COMMANDS: Final = "controller.cli"
_CHECK: Final = "controller.web.printed_json"
_CHECKED: Final = "checked.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOrder:
    """What is to be done: commands of ``trimtab``, one after the other."""

    kind: str
    cluster: str
    #: The words behind ``trimtab``; FOLDER stands for the job's own folder.
    commands: tuple[tuple[str, ...], ...]
    #: The file in the folder that is the result; "": what the last command prints.
    file: str = ""
    #: It prints a line of JSON for each of several, which become the list of this name in one object; "": it does not.
    lines: str = ""
    #: Exit codes of the last command that come with an answer all the same.
    answered_by: tuple[int, ...] = (0,)
    #: Epoch ms; the same work is done again for another time.
    as_of_ms: int = 0
    #: The file in the folder that somebody uploads before the commands begin; "": none.
    upload: str = ""
    #: SHA-256 of that file: the same work is done again for another one.
    upload_sha256: str = ""
    #: It takes as long as it takes, as to carry a plan out; such jobs have places of their own.
    is_endless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the server itself does before and after a job's commands, in the job's thread.  TrimtabError: it fails."""

    #: Given the job's folder.
    before: Callable[[Path], None] = lambda _: None
    #: Given the job's folder; what it returns is the result, in place of what the last command printed.
    after: Callable[[Path], bytes] | None = None


@dataclass(slots=True, kw_only=True)
class Job:
    """One of them.  Its attributes are replaced, never changed in place: another thread reads them."""

    id: str
    order: JobOrder
    by: str
    created_ms: int
    folder: Path
    state: JobState = "waiting"
    #: How far it is, in words.
    progress: str = ""
    #: Why it failed, for whoever asked for it.
    problem: str = ""
    #: Whether it failed since there is nothing of what was asked for.
    found_nothing: bool = False
    ended_ms: int | None = None
    #: Bytes of the result and its SHA-256, and bytes of the file that was uploaded.
    size: int = 0
    sha256: str = ""
    uploaded: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    around: Around = Around()
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def temporary(self) -> Path:
        """The folder with temporary files of the commands; it and *folder* are deleted when the job ends."""
        return self.folder.with_suffix(".tmp")

    @property
    def result(self) -> Path:
        """The file with the result, once the job is done."""
        return self.folder.with_suffix(".result")


class Jobs:
    """Runs *at_once* jobs, each for *seconds* at most.  For several threads."""

    def __init__(self, at_once: int, seconds: float) -> None:
        self._at_once, self._seconds = at_once, seconds
        self._turn = threading.Condition()
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: deque[Job] = deque()
        self._folder: Path | None = None
        self._threads: list[threading.Thread] = []

    def submit(self, order: JobOrder, by: str, around: Around | None = None) -> Job:
        """Have *order* done for the person *by*; a job that does the same already, or did lately, is returned again.

        RefusedError where too many wait.
        """
        with self._turn:
            same = self._same(order)
            if same is not None:
                return same
            job = self._new(order, by)
            job.around = around or job.around
            self._enqueue(job)
            return job

    def reserve(self, order: JobOrder, by: str, around: Around | None = None) -> Job:
        """A job into whose folder the caller writes the file *order.upload*; ``start`` or ``withdraw`` has to follow.

        From now on it counts as one that waits.  RefusedError where too many wait.
        """
        with self._turn:
            if sum(bool(each.order.upload) and each.ended_ms is None for each in self._jobs.values()) >= _MOST_UPLOADS:
                raise _too_many(503, "all places for files are taken: try again when a job has ended")
            job = self._new(order, by)
            job.around = around or job.around
            job.folder.mkdir(mode=0o700)
            return job

    def start(self, job: Job, sha256: str, size: int) -> Job:
        """Have the reserved *job* done, whose file has so many bytes and this hash.

        A job that does the same already, or did lately, is returned in its place.  RefusedError where *job* was
        cancelled meanwhile.
        """
        with self._turn:
            refuse_ended(job)
            order = replace(job.order, upload_sha256=sha256)
            same = self._same(order)
            if same is not None:
                self._forget(job)
                return same
            job.order, job.uploaded = order, size
            self._enqueue(job)
            return job

    def withdraw(self, job: Job) -> None:
        """Forget the reserved *job*, whose file did not arrive."""
        with self._turn:
            self._forget(job)

    def last_done(self, order: JobOrder, since_ms: int = 0) -> Job | None:
        """The newest job that did what *order* says, as of *since_ms* or later; None: none is remembered."""
        return next((each for each in self._alike(order, since_ms) if each.state == "done"), None)

    def under_way(self, order: JobOrder) -> Job | None:
        """A job that does what *order* says, as of whatever time, and has not ended; None where there is none."""
        return next((each for each in self._alike(order, 0) if each.state in ("waiting", "running")), None)

    def job(self, key: str) -> Job | None:
        """The job with the id *key*; None where there is none, or it is forgotten."""
        with self._turn:
            return self._jobs.get(key)

    def all(self) -> list[Job]:
        """All that are remembered, the newest first."""
        with self._turn:
            return list(reversed(self._jobs.values()))

    @property
    def unfinished(self) -> int:
        """Jobs that wait or run."""
        with self._turn:
            return sum(each.ended_ms is None for each in self._jobs.values())

    def cancel(self, job: Job) -> None:
        """End *job*, if it has not ended."""
        with self._turn:
            if job.state == "waiting":
                with suppress(ValueError):  # its file is still being uploaded
                    self._waiting.remove(job)
                self._end(job, "cancelled")
            elif job.state == "running":
                job.state = "cancelled"  # its thread ends the process

    def close(self) -> None:
        """End all jobs, and delete their results."""
        jobs, deadline = self.all(), Deadline.after(_END_SECONDS)
        for job in jobs:
            self.cancel(job)
        for job in jobs:
            job.ended.wait(deadline.remaining)
        if self._folder is not None:
            rmtree(self._folder, ignore_errors=True)

    def _same(self, order: JobOrder) -> Job | None:
        return next(
            (each for each in reversed(self._jobs.values()) if each.order == order and each.state not in _FAILED), None
        )

    def _alike(self, order: JobOrder, since_ms: int) -> list[Job]:
        """Those that do or did what *order* says, as of *since_ms* or later, the newest first."""
        return [
            each
            for each in self.all()
            if each.order.as_of_ms >= since_ms and replace(each.order, as_of_ms=order.as_of_ms) == order
        ]

    def _new(self, order: JobOrder, by: str) -> Job:
        self._refuse_too_many(by)
        job = Job(
            id=secrets.token_urlsafe(12),
            order=order,
            by=by,
            created_ms=time.time_ns() // 1_000_000,
            folder=self._own_folder() / secrets.token_hex(8),
        )
        self._jobs[job.id] = job
        return job

    def _enqueue(self, job: Job) -> None:
        if job.order.is_endless:
            threading.Thread(target=self._carry_out, args=(job,), name="web-endless-job", daemon=True).start()
            return
        self._waiting.append(job)
        self._start_threads()
        self._turn.notify()

    def _forget(self, job: Job) -> None:
        """Leave nothing of *job*, which has not been started."""
        if self._jobs.pop(job.id, None) is not None:
            rmtree(job.folder, ignore_errors=True)
            job.state, job.ended_ms = "cancelled", job.created_ms
            job.ended.set()

    def _refuse_too_many(self, by: str) -> None:
        unfinished = [
            each for each in self._jobs.values() if each.state in ("waiting", "running") and not each.order.is_endless
        ]
        if sum(each.by == by for each in unfinished) >= _MOST_OF_ONE:
            raise _too_many(429, "too many jobs wait or run, your own: try again when one ended")
        if sum(each.state == "waiting" for each in unfinished) >= _MOST_WAITING:
            raise _too_many(503, "too many jobs wait or run, all: try again when one ended")

    def _own_folder(self) -> Path:
        if self._folder is None:
            self._folder = held_folder("trimtab-web-")
        return self._folder

    def _start_threads(self) -> None:
        if len(self._threads) < self._at_once:
            thread = threading.Thread(target=self._work, name="web-job", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            with self._turn:
                while not self._waiting:
                    self._turn.wait()
                job = self._waiting.popleft()
            self._carry_out(job)

    def _carry_out(self, job: Job) -> None:
        with self._turn:
            if job.state != "waiting":
                return
            job.state = "running"
        state: JobState = "failed"
        try:
            state = self._run(job)
        except TrimtabError as error:
            job.problem = str(error)
        except Exception as error:
            job.problem = f"{type(error).__name__}: {error}"
            log.warning("job %s (%s) failed: %r", job.id, job.order.kind, error)
        with self._turn:
            self._end(job, state)

    def _run(self, job: Job) -> JobState:
        for folder in (job.folder, job.temporary):
            folder.mkdir(mode=0o700, exist_ok=bool(job.order.upload))
        ends = Deadline.after(math.inf if job.order.is_endless else self._seconds)
        job.around.before(job.folder)
        for number, words in enumerate(job.order.commands):
            is_last = number == len(job.order.commands) - 1
            allowed = job.order.answered_by if is_last else (0,)
            process, why = self._run_one(job, ends, _COMMANDS, words)
            if job.state == "cancelled":
                return "cancelled"
            if why or process.returncode not in allowed:
                job.found_nothing = not why and process.returncode == _NOTHING_FOUND
                job.problem = why or last_line(job.folder) or f"it ended with exit code {process.returncode}"
                return "failed"
        result = job.folder / (job.order.file or _ANSWER)
        if not result.exists():
            job.problem = last_line(job.folder) or "it wrote no file"
            return "failed"
        if not job.order.file:
            process, why = self._run_one(job, ends, _CHECK, (f"{FOLDER}/{_ANSWER}", job.order.lines), (_CHECKED,) * 2)
            if job.state == "cancelled":
                return "cancelled"
            if why or process.returncode:
                job.problem = why or last_line(job.folder) or "it printed no answer"
                return "failed"
        if job.around.after is not None:
            result.write_bytes(job.around.after(job.folder))
        with result.open("rb") as file:
            job.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        job.size = result.stat().st_size
        result.rename(job.result)
        return "done"

    def _run_one(
        self,
        job: Job,
        ends: Deadline,
        module: str,
        words: Sequence[str],
        output: tuple[str, str] = (_ANSWER, _ERRORS),
    ) -> tuple["subprocess.Popen[bytes]", str]:
        """The process of *module* with *words*, once it has ended, and why it was ended; "": by itself."""
        with _started(module, words, job, ends.remaining, output) as process:
            job.process = process
            return process, self._wait(job, process, ends)

    def _wait(self, job: Job, process: "subprocess.Popen[bytes]", ends: Deadline) -> str:
        """Until *process* has ended; why it was ended, "" where it ended by itself."""
        while True:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
                return ""
            job.progress = last_line(job.folder)
            why = ""
            if ends.passed:
                why = f"it took longer than {self._seconds:g} s (web.job_seconds)"
            elif max(_size(job.folder) - job.uploaded, _size(job.temporary)) > _LARGEST:
                why = f"its output is larger than {_LARGEST >> 20} MiB: choose a shorter span"
            if why or job.state == "cancelled":
                return why

    def _end(self, job: Job, state: JobState) -> None:
        job.process = None
        job.ended_ms = time.time_ns() // 1_000_000
        for folder in (job.folder, job.temporary):
            rmtree(folder, ignore_errors=True)
        job.state = state
        job.ended.set()
        ended = [each for each in self._jobs.values() if each.ended_ms is not None]
        total = sum(each.size for each in ended)
        while len(ended) > _MOST_ENDED or (total > _MOST_BYTES and len(ended) > 1):
            oldest = ended.pop(0)
            total -= oldest.size
            del self._jobs[oldest.id]
            oldest.result.unlink(missing_ok=True)


_FAILED: Final[Sequence[JobState]] = ("failed", "cancelled")


def refuse_ended(job: Job) -> None:
    """RefusedError where *job*, whose file is being uploaded, was cancelled."""
    if job.ended_ms is not None:
        raise RefusedError(409, "Cancelled", "the job was cancelled while its file was uploaded")


def _too_many(status: int, detail: str) -> RefusedError:
    error = RefusedError(status, "Too many jobs", detail)
    error.headers["Retry-After"] = "30"
    return error


@contextmanager
def _started(
    module: str, words: Sequence[str], job: Job, seconds: float, output: tuple[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """*module* with *words*, in a process of its own that has so much memory and processor time at most.

    *seconds*: until it has to end; infinite: it takes as long as it takes.  *output*: files in the job's folder for
    standard output and standard error.
    """
    folder = job.folder
    command = [sys.executable, "-m", module, *(word.replace(FOLDER, str(folder)) for word in words)]
    # Where it is killed it deletes no temporary files.
    environment = os.environ | {"TMPDIR": str(job.temporary), NOTHING_FOUND_VARIABLE: str(_NOTHING_FOUND)}
    with (
        (folder / output[0]).open("wb") as out,
        (folder / output[1]).open("wb") as errors,
        tied_child(
            command,
            seconds=None if math.isinf(seconds) else seconds,
            stdout=out,
            stderr=errors,
            environment=environment,
        ) as process,
    ):
        limits = [(resource.RLIMIT_DATA, _LARGEST_MEMORY)]
        if not math.isinf(seconds):
            limits.append((resource.RLIMIT_CPU, int(seconds + _SPARE_SECONDS) * (os.cpu_count() or 1)))
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
        for limit, maximum in limits:
            with suppress(OSError):  # it has ended already
                resource.prlimit(process.pid, limit, (maximum, maximum))
        yield process


def last_line(folder: Path) -> str:
    """The last line on standard error, without secrets."""
    try:
        with (folder / _ERRORS).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    # Where the folder lies is no matter of those who read it.
    return printable(redacted(lines[-1].removeprefix("trimtab: ").replace(f"{folder}/", ""))) if lines else ""


def _size(folder: Path) -> int:
    size = 0
    for place, _, names in os.walk(folder):  # the command deletes files and folders meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                size += os.lstat(os.path.join(place, name)).st_size
    return size
