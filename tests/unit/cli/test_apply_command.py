"""``trimtab apply`` and ``release``: what they refuse, and what a check and a repair say."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli.apply import apply
from controller.cli.controls import release
from controller.cli.plan import plan
from controller.cli.shared.restart_hook import HookOptions, broker_restarts
from controller.model.controls import Drained
from controller.model.errors import PlanRefusedError, TrimtabError
from controller.offline.plans.planner import PlanRequest, planned_cluster
from controller.offline.plans.step_lease import PlanHaltedError
from controller.planning.plans.plan import DRAIN, Plan
from controller.wire.plan import encode_plan, hash_of
from tests.live_cluster import QUIET, SETTINGS, LiveCluster
from tests.modelled_log import settings_in
from tests.proposals import policy

pytestmark = pytest.mark.slow

BROKER = "broker-1:8080"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> LiveCluster:
    folder = tmp_path_factory.mktemp("to apply")
    live = LiveCluster(settings_in(folder, broker_conf=QUIET, more=SETTINGS))
    plan = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    (folder / "plan.json").write_bytes(encode_plan(plan))
    (folder / "hash").write_text(hash_of(plan), encoding="ascii")
    live.folder = folder  # type: ignore[attr-defined]
    return live


@pytest.fixture(autouse=True)
def _now(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock shows the time of the modelled cluster."""
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000)


def run(live: Any, *arguments: object, command: Any = apply, approved: str = "") -> Result:
    app = typer.Typer()
    app.command()(command)
    conf = ["--conf", str(live.folder / "trimtab.toml")]
    if command is apply:
        sha256 = (live.folder / "hash").read_text(encoding="ascii")
        conf = [str(live.folder / "plan.json"), "--hash", approved or sha256, *conf]
    return CliRunner().invoke(app, [*map(str, arguments), *conf])


def test_a_plan_that_fits_the_cluster_is_checked_and_nothing_is_issued(live: LiveCluster) -> None:
    result = run(live, "--check", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    said = json.loads(result.stdout)
    assert said["moves"] > said["done"] == 0
    assert live.controls.orders is None


def test_an_old_load_is_no_ground_for_moves(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    minute_ns = 60 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000 + 4 * minute_ns)
    assert run(live, "--check").exit_code == 0
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000 + 4 * minute_ns + 1_000_000)
    result = run(live, "--check")
    assert isinstance(result.exception, PlanHaltedError)
    assert "the newest load is 4 min old" in str(result.exception)
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000 + 3 * 24 * 60 * minute_ns)
    assert "the newest load is 3 days old" in str(run(live, "--check").exception)


def test_a_clock_that_is_behind_is_no_ground_for_moves_either(
    live: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    minute_ns = 60 * 10**9
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000 - minute_ns)
    assert run(live, "--check").exit_code == 0
    monkeypatch.setattr("time.time_ns", lambda: live.interval * 1_000_000 - minute_ns - 1_000_000)
    result = run(live, "--check")
    assert isinstance(result.exception, PlanHaltedError)
    assert "ahead of this host's clock, so no move is issued" in str(result.exception)


def test_a_plan_for_intervals_of_another_length_is_refused(live: LiveCluster, tmp_path: Path) -> None:
    plan = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    other = replace(plan, period_ms=plan.period_ms // 2)
    (tmp_path / "plan.json").write_bytes(encode_plan(other))
    app = typer.Typer()
    app.command()(apply)
    conf = str(live.folder / "trimtab.toml")  # type: ignore[attr-defined]
    result = CliRunner().invoke(app, [str(tmp_path / "plan.json"), "--hash", hash_of(other), "--conf", conf])
    assert isinstance(result.exception, PlanRefusedError)
    assert "the plan is for intervals of 30 s" in str(result.exception)


def test_the_first_digits_of_the_hash_are_enough_and_others_are_refused(live: LiveCluster) -> None:
    sha256 = (live.folder / "hash").read_text(encoding="ascii")  # type: ignore[attr-defined]
    assert run(live, "--check", approved=sha256[:32]).exit_code == 0
    assert run(live, "--check", approved=sha256[:31]).exit_code == 2
    assert run(live, "--check", approved="x" * 64).exit_code == 2
    assert isinstance(run(live, "--check", approved="0" * 32).exception, PlanRefusedError)


def test_without_a_controller_no_plan_is_carried_out(live: LiveCluster) -> None:
    result = run(live)
    assert isinstance(result.exception, TrimtabError)
    found = re.fullmatch("no controller runs, .*: start `(.*)`", str(result.exception))
    assert found is not None
    assert shlex.split(found[1]) == ["trimtab", "run", "--conf", str(live.folder / "trimtab.toml")]  # type: ignore[attr-defined]


def test_a_repaired_plan_is_written_and_nothing_is_issued(live: LiveCluster, tmp_path: Path) -> None:
    result = run(live, "--repair", "-o", tmp_path / "new.json")
    assert result.exit_code == 0, (result.output, result.exception)
    assert (tmp_path / "new.json").exists()
    assert live.controls.orders is None
    assert run(live, "--repair").exit_code == 2
    assert run(live, "-o", tmp_path / "new.json").exit_code == 2
    both = run(live, "--repair", "--check", "-o", tmp_path / "new.json")
    assert both.exit_code == 2
    assert "--check only checks one" in both.output


def test_what_is_printed_to_be_run_next_runs_as_it_is_printed(
    live: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    first, second = tmp_path / "my plan.json", tmp_path / "it's new.json"
    app = typer.Typer()
    app.command()(apply)
    for printed in (run(live, "--drain", BROKER, "-o", first, command=plan), run(live, "--repair", "-o", second)):
        assert printed.exit_code == 0, (printed.output, printed.exception)
        [line] = [line for line in printed.stdout.splitlines() if line.startswith("next")]
        program, command, *words = shlex.split(line.partition(" ")[2])
        assert (program, command) == ("trimtab", "apply")
        result = CliRunner().invoke(app, [*words, "--check"])
        assert result.exit_code == 0, (line, result.output, result.exception)


def test_a_step_that_the_plan_does_not_have_is_refused(live: LiveCluster) -> None:
    assert run(live, "--step", "2").exit_code == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 100])
def test_what_is_no_plan_is_refused(live: LiveCluster, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.json").write_bytes(content)
    app = typer.Typer()
    app.command()(apply)
    conf = str(live.folder / "trimtab.toml")  # type: ignore[attr-defined]
    result = CliRunner().invoke(app, [str(tmp_path / "no.json"), "--hash", "0" * 64, "--conf", conf])
    assert isinstance(result.exception, PlanRefusedError)
    assert str(result.exception).startswith(f"{tmp_path / 'no.json'} is not a valid plan: ")


def test_a_drained_broker_is_released_by_name_or_with_all_others(live: LiveCluster) -> None:
    drained = tuple(Drained(broker=name, by="ada", at_ms=1) for name in ("a:80", "b:80", "c:80"))
    live.change(drained=drained)
    said = json.loads(run(live, "b:80", "--json", command=release).stdout)
    assert said == {"cluster": "demo", "drained": ["a:80", "c:80"]}
    unknown = run(live, "b:80", command=release)
    assert "b:80 is not drained; drained are: a:80, c:80" in str(unknown.exception)
    assert run(live, command=release).exit_code == 2
    assert run(live, "a:80", "--all", command=release).exit_code == 2
    assert "none" in run(live, "--all", command=release).stdout
    assert live.controls.drained == ()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--hook", "no-such-program --now"], "no program 'no-such-program'"),
        (["--hook", ""], "no program ''"),
        (["--hook", "sh -c 'half"], "No closing quotation"),
        (["--hook", "true", "--check"], "it goes with neither --check nor --repair"),
        (["--hook", "true", "--repair", "-o", "new.json"], "it goes with neither --check nor --repair"),
        (["--hook-minutes", "0"], "--hook-minutes"),
    ],
)
def test_a_hook_that_cannot_be_run_is_refused_before_anything_moves(
    live: LiveCluster, words: list[str], why: str
) -> None:
    result = run(live, *words)
    assert result.exit_code == 2
    assert why in " ".join(result.output.split())
    assert live.controls.orders is None


def refused_with_a_hook(live: LiveCluster, folder: Path, plan: Plan, more: str = "") -> str:
    """Why *plan* is refused with a hook; *more*: settings."""
    (folder / "plan.json").write_bytes(encode_plan(plan))
    settings = live.folder / "with-hook.toml"  # type: ignore[attr-defined]
    settings.write_text((live.folder / "trimtab.toml").read_text() + more)  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command()(apply)
    words = [str(folder / "plan.json"), "--hash", hash_of(plan), "--hook", "true", "--conf", str(settings)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, TrimtabError), result.output
    assert live.controls.orders is None
    return str(result.exception)


def test_a_hook_needs_a_plan_whose_brokers_come_back(live: LiveCluster, tmp_path: Path) -> None:
    drain = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    assert "this plan does not (remove)" in refused_with_a_hook(live, tmp_path, replace(drain, kind="remove"))


def test_a_hook_needs_the_brokers_admin_api(live: LiveCluster, tmp_path: Path) -> None:
    drain = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    assert "a section [pulsar] with admin_url" in refused_with_a_hook(live, tmp_path, drain)


@pytest.mark.parametrize("host", ["-oProxyCommand=evil", "$(reboot)", "a b", "", "a;b", "[::1]x"])
def test_no_hook_runs_for_a_broker_whose_name_could_be_an_option_or_a_shells_word(
    live: LiveCluster, tmp_path: Path, host: str
) -> None:
    drain = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    odd = replace(drain, brokers=tuple(f"{host}:8080" if name == BROKER else name for name in drain.brokers))
    assert "no hook is run for" in refused_with_a_hook(live, tmp_path, odd)


@pytest.mark.parametrize("host", ["10.0.0.7", "[fd00::7]", "pulsar-broker-0.pulsar-broker.pulsar.svc", "broker_1"])
def test_hosts_by_name_and_by_address_are_restarted(live: LiveCluster, tmp_path: Path, host: str) -> None:
    drain = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=(BROKER,))).plan
    named = replace(drain, brokers=tuple(f"{host}:8080" if name == BROKER else name for name in drain.brokers))
    more = '\npulsar.admin_url = ["http://127.0.0.1:9"]\n'
    assert "no controller runs" in refused_with_a_hook(live, tmp_path, named, more)


def test_under_a_policy_a_drain_of_several_brokers_is_not_restarted_by_a_hook(
    live: LiveCluster, tmp_path: Path
) -> None:
    several = ("broker-1:8080", "broker-2:8080")
    plan = planned_cluster(live.source(), PlanRequest(kind=DRAIN, brokers=several)).plan
    settings = live.settings.model_copy(update={"approvals": policy()})
    with pytest.raises(PlanRefusedError, match="each release of a drain needs an approval of its own"):
        broker_restarts(HookOptions(hook="true"), settings, plan, hash_of(plan))
