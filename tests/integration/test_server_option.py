"""``--server``: commands print what they print with the settings, asked of a real ``trimtab serve`` with a token."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner, Result

from controller.cli.app import app
from controller.model.errors import TrimtabError
from controller.simulator.cluster import ClusterShape
from controller.wire.readable import utc
from tests.modelled_log import played, settings_in
from tests.records import PERIOD, T

pytestmark = pytest.mark.integration

_EAGER = """loadBalancerLoadSheddingStrategy=UniformLoadShedder
minUnloadMessage=1
minUnloadMessageThroughput=1
maxUnloadPercentage=0.5
"""
INTERVALS = 4


class _Site(NamedTuple):
    conf: Path
    url: str
    token: Path
    viewer: Path
    bundle: str
    broker: str


def _run(*words: object, code: int = 0) -> Result:
    found = CliRunner().invoke(app, [*map(str, words), "--quiet"], env={"COLUMNS": "200"})
    if isinstance(found.exception, TrimtabError):
        assert found.exception.exit_code == code, found.exception
    else:
        assert found.exit_code == code, found.output + found.stderr
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Site]:
    """A log with decisions in a folder, and a server of its page that asks for a token."""
    folder = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    web = f'[web]\nlisten = "127.0.0.1:{port}"\ntokens_file = "tokens.toml"\nrequests_per_second = 1000.0'
    conf = settings_in(folder, broker_conf=_EAGER, more=web)
    entries = played(conf, INTERVALS, shape=ClusterShape(bundles=24, topics=240))
    lines, tokens = "", {}
    for name, role in (("ann", "operator"), ("bob", "viewer")):
        words = [sys.executable, "-m", "controller.cli", "token", name, "--role", role]
        made = subprocess.run(words, check=True, capture_output=True, text=True)
        tokens[name] = folder / f"{name}.token"
        tokens[name].write_text((made.stdout + made.stderr).split()[-1])
        lines += made.stdout.partition("The token of")[0]
    (folder / "tokens.toml").write_text(lines)
    with (folder / "log.txt").open("wb") as log:
        words = [sys.executable, "-m", "controller.cli", "serve", "--conf", str(conf)]
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        url = _address(process, folder / "log.txt")
        newest = entries[1].decision.commands[0]
        found = _Site(conf, url, tokens["ann"], tokens["bob"], newest.bundle, newest.source)
        _until_loaded(found)
        yield found
    finally:
        process.kill()
        process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    ends = time.monotonic() + 60
    while "the page is at" not in (text := log.read_text()):
        assert process.poll() is None, text
        assert time.monotonic() < ends
        time.sleep(0.05)
    return text.partition("the page is at ")[2].split()[0]


def _until_loaded(site: _Site) -> None:
    ends = time.monotonic() + 60
    while True:
        found = CliRunner().invoke(app, ["explain", *_of_server(site), "--json"])
        if found.exit_code == 0 and json.loads(found.stdout)["interval"] == T + (INTERVALS - 1) * PERIOD:
            return
        assert time.monotonic() < ends, (found.output, found.exception)
        time.sleep(0.5)


def _of_server(site: _Site) -> tuple[str, ...]:
    return "--server", site.url, "--token-file", str(site.token)


_SPAN = ("--from", utc(T), "--to", utc(T + 10 * PERIOD))


@pytest.mark.parametrize("form", [("--json",), ()], ids=["json", "text"])
@pytest.mark.parametrize(
    "words",
    [
        ("audit", *_SPAN),
        ("controls",),
        ("explain",),
        ("explain", "{bundle}", "--at", utc(T + PERIOD)),
        ("explain", "{bundle}", "--all"),
        ("explain", "{bundle}", "--flip"),
        ("explain", "{broker}"),
        ("explain", utc(T + PERIOD + 5000)),
        ("journal", "--limit", "3"),
        ("journal", "--issued", "--broker", "{broker}"),
        ("status", "{bundle}"),
    ],
    ids=" ".join,
)
def test_the_server_says_what_the_log_says(site: _Site, words: tuple[str, ...], form: tuple[str, ...]) -> None:
    words = tuple(each.format(bundle=site.bundle, broker=site.broker) for each in words)
    assert _run(*words, *form, *_of_server(site)).stdout == _run(*words, *form, "--conf", site.conf).stdout


def test_status_is_the_same_as_json_and_names_the_same_for_people(site: _Site) -> None:
    local, remote = (_run("status", "--json", *of).stdout for of in (("--conf", site.conf), _of_server(site)))
    assert json.loads(remote)["last"] == json.loads(local)["last"]
    assert json.loads(remote)["commands"] == json.loads(local)["commands"]
    local, remote = (_run("status", *of).stdout for of in (("--conf", site.conf), _of_server(site)))
    names = [[line.split()[0] for line in text.splitlines() if line[:1].strip()] for text in (local, remote)]
    assert names[0] == names[1]


def test_the_doctor_ends_with_the_exit_code_of_what_it_finds(site: _Site) -> None:
    local = _run("doctor", "--json", "--conf", site.conf, code=1)
    remote = _run("doctor", "--json", *_of_server(site), code=1)
    codes = [[each["code"] for each in json.loads(of.stdout)["findings"]] for of in (local, remote)]
    assert codes[0] == codes[1]


def test_a_what_if_waits_for_its_job(site: _Site) -> None:
    answer = json.loads(_run("what-if", *_SPAN, "--strategy", "ThresholdShedder", "--json", *_of_server(site)).stdout)
    assert answer["intervals"] == INTERVALS
    assert "ThresholdShedder" in answer["strategies"]


def test_an_incident_is_checked_where_it_arrives(site: _Site, tmp_path: Path) -> None:
    words = ("incident", "make", "--around", utc(T + 2 * PERIOD), "--output", tmp_path / "incident", "--json")
    answer = json.loads(_run(*words, *_of_server(site)).stdout)
    assert answer["reproduced"]
    assert json.loads(_run("incident", "check", tmp_path / "incident", "--json").stdout) == answer


def test_a_role_that_does_not_suffice_and_a_wrong_token_are_exit_code_77(site: _Site, tmp_path: Path) -> None:
    words = ("what-if", *_SPAN, "--server", site.url, "--token-file")
    assert "bob is a viewer" in str(_run(*words, site.viewer, code=77).exception)
    (tmp_path / "wrong").write_text("x" * 43)
    assert "401" in str(_run(*words, tmp_path / "wrong", code=77).exception)
    assert "401" in str(_run("status", "--server", site.url, code=77).exception)


def test_the_token_may_be_in_the_environment(site: _Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "TRIMTAB_TOKEN", site.token.read_text())
    assert _run("status", "--server", site.url).stdout


def test_a_bundle_that_the_store_does_not_know_is_an_error_with_its_words(site: _Site) -> None:
    refused = _run("explain", "no/such/0x00000000_0x40000000", *_of_server(site), code=1)
    assert "no/such/0x00000000_0x40000000" in str(refused.exception)
