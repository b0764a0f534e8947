"""Long work: how many there may be, and how each ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from controller.adapters.process.process_tree import descendants
from controller.web.access.viewer import RefusedError
from controller.web.app import create_app
from controller.web.jobs import FOLDER, Job, JobOrder, Jobs
from tests.folder_settings import write_settings
from tests.folders import journal_in
from tests.records import CLUSTER
from tests.web_sites import site

pytestmark = pytest.mark.integration


def _order(*words: str, file: str = "", kind: str = "audit", as_of: int = 0) -> JobOrder:
    return JobOrder(kind=kind, cluster="east", commands=(words,), file=file, as_of_ms=as_of)


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(at_once=1, seconds=30)
    yield made
    made.close()


def _ended(job: Job) -> Job:
    assert job.ended.wait(30)
    return job


def _status(jobs: Jobs, number: int) -> int:
    """Of the refusal of another person's order; 0 where it is taken."""
    try:
        jobs.submit(_order("options", as_of=number), f"user {number}")
    except RefusedError as error:
        return error.status
    return 0


def test_the_result_is_what_the_command_prints(jobs: Jobs) -> None:
    job = _ended(jobs.submit(_order("rebalance", "--example"), "ann"))
    # It prints TOML, which is no answer: a result is whole JSON, or the job has failed.
    assert job.state == "failed"
    assert not job.folder.exists()
    assert job.problem


def test_of_a_job_only_the_result_stays(jobs: Jobs) -> None:
    order = _order("init", f"{FOLDER}/settings", "--cluster", "east", "--log", "folder", file="settings/broker.conf")
    job = _ended(jobs.submit(order, "ann"))
    assert job.state == "done", job.problem
    assert [*job.result.parent.glob(f"{job.folder.name}*")] == [job.result]
    assert job.size == job.result.stat().st_size


def test_temporary_files_of_a_job_lie_where_they_are_counted_and_deleted(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.submit(_order("status", "--watch", "--conf", str(write_settings(tmp_path))), "ann")
    ends = time.monotonic() + 30
    while (process := job.process) is None:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == 5  # it gives way to those who look
    assert f"TMPDIR={job.temporary}".encode() in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    (job.temporary / "left").mkdir()
    jobs.cancel(job)
    assert not _ended(job).temporary.exists()


def test_a_job_that_cannot_be_watched_leaves_no_process(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("the disk is gone")

    # Other tests of this worker have servers that go on running.
    running_before = set(descendants(os.getpid()))
    monkeypatch.setattr(os, "walk", fails)
    job = _ended(jobs.submit(_order("status", "--watch"), "ann"))
    assert (job.state, "the disk is gone" in job.problem) == ("failed", True)
    assert set(descendants(os.getpid())) <= running_before


#: Starts a job that has no end of its own, prints the job's process, and waits.
_SERVER = """
import sys, time
from controller.web.jobs import JobOrder, Jobs
jobs = Jobs(at_once=1, seconds=float(sys.argv[2]))
words = ("status", "--watch", "--conf", sys.argv[1])
job = jobs.submit(JobOrder(kind="audit", cluster="east", commands=(words,)), "ann")
while job.process is None or not (job.folder / "answer.json").stat().st_size:
    assert not job.ended.is_set(), job.problem
    time.sleep(0.01)
print(job.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "seconds"),
    [(signal.SIGKILL, 600.0), (signal.SIGSTOP, 25.0)],
    ids=["killed", "stopped, so that it cannot end its jobs"],
)
def test_a_job_ends_without_its_server(tmp_path: Path, number: int, seconds: float) -> None:
    conf = str(write_settings(tmp_path))
    words = [sys.executable, "-c", _SERVER, conf, str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        job = int(server.stdout.readline())
        server.send_signal(number)
        ends = time.monotonic() + 60
        try:
            while Path(f"/proc/{job}/stat").exists() and _state(job) != "Z":
                assert time.monotonic() < ends
                time.sleep(0.05)
        finally:
            server.kill()


def _state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_command_that_fails_says_why(jobs: Jobs) -> None:
    job = _ended(jobs.submit(_order("audit", "--conf", "/nowhere/trimtab.toml"), "ann"))
    assert job.state == "failed"
    assert "/nowhere/trimtab.toml" in job.problem


def _with_an_empty_journal(conf: Path) -> None:
    journal_in(conf.parent / "log", cluster=CLUSTER).open()


def _with_no_settings(conf: Path) -> None:
    conf.unlink()


@pytest.mark.parametrize("path", ["journal", "decisions/60000/explain"])
@pytest.mark.parametrize(
    ("prepare", "status"), [(_with_an_empty_journal, 404), (_with_no_settings, 503)], ids=["nothing", "not readable"]
)
def test_a_question_about_what_is_not_there_is_not_one_that_cannot_be_answered_now(
    tmp_path: Path, path: str, prepare: Callable[[Path], None], status: int
) -> None:
    shown = site(tmp_path, CLUSTER)
    prepare(shown.cluster(None).conf)
    client = TestClient(create_app(shown), base_url="http://localhost")
    answer = client.get(f"/api/v1/{path}")
    ends = time.monotonic() + 60
    while answer.status_code == 202:  # on a busy machine
        assert time.monotonic() < ends
        assert shown.jobs.all()[0].ended.wait(60)
        answer = client.get(f"/api/v1/{path}")
    job = shown.jobs.all()[0]
    assert (answer.status_code, job.state) == (status, "failed"), job.problem
    assert answer.json()["detail"] == job.problem
    assert ("retry-after" in answer.headers) == (status == 503)
    # Of a job that has failed there will be no result, whyever it failed.
    result = client.get(f"/api/v1/jobs/{job.id}/result")
    assert (result.status_code, result.json()["detail"], "retry-after" in result.headers) == (404, job.problem, False)
    shown.jobs.close()


def test_the_same_order_is_one_job_and_one_that_failed_is_done_again(jobs: Jobs) -> None:
    first = jobs.submit(_order("options", "--json"), "ann")
    assert jobs.submit(_order("options", "--json"), "bob") is first
    assert jobs.submit(_order("options", "--json", as_of=1), "bob") is not first
    jobs.cancel(first)
    _ended(first)
    assert jobs.submit(_order("options", "--json"), "ann") is not first


def test_a_job_that_takes_too_long_is_ended() -> None:
    jobs = Jobs(at_once=1, seconds=0.2)
    job = _ended(jobs.submit(_order("options", "--json"), "ann"))
    assert job.state == "failed"
    assert "0.2 s" in job.problem
    jobs.close()


def test_a_job_that_waits_or_runs_can_be_cancelled(jobs: Jobs) -> None:
    running, waiting = (jobs.submit(_order("options", "--json", as_of=each), "ann") for each in (1, 2))
    jobs.cancel(waiting)
    jobs.cancel(running)
    assert (_ended(running).state, _ended(waiting).state) == ("cancelled", "cancelled")
    assert jobs.unfinished == 0


def test_nobody_and_not_all_together_can_order_without_end(jobs: Jobs) -> None:
    for number in range(4):
        jobs.submit(_order("options", as_of=number), "ann")
    with pytest.raises(RefusedError) as refused:
        jobs.submit(_order("options", as_of=9), "ann")
    assert refused.value.status == 429
    assert 503 in {_status(jobs, number) for number in range(100, 200)}
    assert len(jobs.all()) < 30
    for each in jobs.all():
        jobs.cancel(each)


def test_a_file_that_the_command_did_not_write_is_no_result(jobs: Jobs) -> None:
    job = _ended(jobs.submit(_order("ticks", "--help", file="incident"), "ann"))
    assert job.state == "failed"


def test_an_uploaded_file_is_deleted_when_its_job_ends_and_an_error_names_no_folder(tmp_path: Path, jobs: Jobs) -> None:
    conf = write_settings(tmp_path, cluster="east")
    words = ("show-plan", f"{FOLDER}/plan.json", "--json", "--conf", str(conf))
    job = jobs.reserve(JobOrder(kind="plan", cluster="east", commands=(words,), upload="plan.json"), "ann")
    (job.folder / "plan.json").write_bytes(b"{}")
    assert _ended(jobs.start(job, "00" * 32, 2)) is job
    assert job.state == "failed"
    assert job.problem == "plan.json is not a valid plan: missing_field: sha256: Field required"
    assert not job.folder.exists()
    assert not job.result.exists()
