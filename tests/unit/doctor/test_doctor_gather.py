"""The doctor's facts, gathered from small servers that play brokers with faults, and from folders."""

import errno
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from controller.cli.doctor import doctor
from controller.doctor.before_acting import require_broker_balancing_off
from controller.doctor.checks import judge
from controller.doctor.finding import Finding
from controller.doctor.gather import TimeLimits, gather
from controller.model.errors import SettingsError, TrimtabError
from controller.settings.trimtab_toml import Settings, read_settings
from tests.admin_servers import BROKERS, DYNAMIC, REPORT, RUNTIME, VERSION, AdminServer, admin_servers
from tests.doctor import LIMITS, OFF, report

#: For what does not answer; and for what does, on a machine that is busy.
QUICK = TimeLimits(answer=0.5, brokers=3, all=5)
PATIENT = TimeLimits(answer=30, brokers=60, all=90)


@pytest.fixture
def servers() -> Iterator[list[AdminServer]]:
    with admin_servers(3) as servers:
        yield servers


def conf(folder: Path, servers: list[AdminServer], more: str = "") -> Path:
    path = folder / "trimtab.toml"
    (folder / "broker.conf").touch()
    path.write_text(
        f"""cluster.name = "demo"
log = {{kind = "folder", folder.path = "log"}}
election = {{kind = "file", path = "election"}}
checkpoint.path = "checkpoint"
pulsar.admin_url = {json.dumps([f"http://{server.name}" for server in servers[:1]])}
decisions.mode = "active"
{more}
""",
        encoding="utf-8",
    )
    return path


def settings(folder: Path, servers: list[AdminServer], more: str = "") -> Settings:
    return read_settings(conf(folder, servers, more))


def found(folder: Path, servers: list[AdminServer], limits: TimeLimits = PATIENT) -> dict[str, Finding]:
    """By code, without what is fine and the ticks that there are none of."""
    findings = judge(gather(settings(folder, servers), limits))
    sick = [each for each in findings if each.severity != "ok" and each.code != "metrics-not-flowing"]
    assert len({each.code for each in sick}) == len(sick), sick
    return {each.code: each for each in sick}


def test_healthy_brokers_and_folders_that_can_be_made_leave_nothing_to_find(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    assert found(tmp_path, servers) == {}
    facts = gather(settings(tmp_path, servers), PATIENT)
    assert facts.pulsar is not None
    assert [broker.name for broker in facts.pulsar.brokers] == sorted(server.name for server in servers)
    assert all(broker.clock and abs(broker.clock.ahead_ms) < 2_000 for broker in facts.pulsar.brokers)
    assert [folder.purpose for folder in facts.folders] == ["log", "election", "checkpoint"]
    assert not (tmp_path / "log").exists()


def test_a_broker_that_hangs_is_waited_for_once_and_costs_the_others_nothing(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    servers[1].hangs = {VERSION, RUNTIME, REPORT}
    began = time.monotonic()
    findings = found(tmp_path, servers, QUICK)
    assert time.monotonic() - began < 4.5
    assert set(findings) == {"broker-unreachable", "balancing-unknown"}
    assert findings["broker-unreachable"].objects == (servers[1].name,)


def test_controls_that_make_no_sense_are_found(servers: list[AdminServer], tmp_path: Path) -> None:
    (tmp_path / "election").mkdir()
    (tmp_path / "election" / "controls.json").write_text("{", encoding="utf-8")
    (finding,) = found(tmp_path, servers).values()
    assert (finding.code, finding.severity) == ("controls-unknown", "error")
    assert "controls.json does not hold valid controls" in finding.observed


def test_controls_that_nobody_answers_for_cost_the_brokers_nothing(servers: list[AdminServer], tmp_path: Path) -> None:
    file = conf(tmp_path, servers)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        election = f'{{kind = "zookeeper", path = "/trimtab", hosts = "127.0.0.1:{silent.getsockname()[1]}"}}'
        file.write_text(file.read_text().replace('{kind = "file", path = "election"}', election))
        began = time.monotonic()
        facts = gather(read_settings(file), QUICK)
    assert time.monotonic() - began < QUICK.all + 0.5
    assert facts.controls_error == "no answer within 0.5 s"
    assert facts.pulsar is not None
    assert all(broker.version for broker in facts.pulsar.brokers)


def test_a_broker_that_answers_too_slowly_is_given_up(servers: list[AdminServer], tmp_path: Path) -> None:
    servers[2].hangs = {VERSION}
    facts = gather(settings(tmp_path, servers), TimeLimits(answer=30, brokers=0.5, all=5))
    assert facts.pulsar is not None
    assert {broker.name: broker.silent for broker in facts.pulsar.brokers if broker.silent} == {
        servers[2].name: "no answer within 0.5 s"
    }


def test_a_broker_that_is_gone_is_unreachable(servers: list[AdminServer], tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = f"127.0.0.1:{unused.getsockname()[1]}"
        servers[0].answers[BROKERS] = (200, [servers[0].name, gone])
        findings = found(tmp_path, servers)
    assert findings["broker-unreachable"].objects == (gone,)
    assert "no connection" in findings["broker-unreachable"].observed


@pytest.mark.parametrize("status", [401, 403])
def test_brokers_that_refuse_us_are_a_matter_of_permissions(
    servers: list[AdminServer], tmp_path: Path, status: int
) -> None:
    servers[0].refuse(status)
    findings = found(tmp_path, servers)
    assert set(findings) == {"permission-denied"}
    assert str(status) in findings["permission-denied"].observed


def test_a_role_that_may_list_brokers_but_not_read_load_is_not_a_superuser(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    for server in servers:
        server.answers[REPORT] = (403, {"reason": "not a super user"})
    findings = found(tmp_path, servers)
    assert findings["permission-denied"].objects == tuple(sorted(server.name for server in servers))
    assert "not a super user" in findings["permission-denied"].observed


def test_a_clock_that_is_wrong_is_seen_by_the_date_of_an_answer(servers: list[AdminServer], tmp_path: Path) -> None:
    servers[1].date_offset_seconds = 90
    findings = found(tmp_path, servers)
    assert (findings["clock-skew"].severity, findings["clock-skew"].objects) == ("error", (servers[1].name,))


def test_old_reports_other_versions_and_missing_speeds_are_seen(servers: list[AdminServer], tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    servers[0].answers[VERSION] = (200, "4.0.7")
    servers[1].answers[REPORT] = (200, {**report(), "lastUpdate": now - 3_600_000})
    servers[2].answers[REPORT] = (200, {**report({**LIMITS, "bandwidthIn": 0.0}), "lastUpdate": now})
    findings = found(tmp_path, servers)
    assert {code: each.objects for code, each in findings.items()} == {
        "broker-versions-differ": (servers[0].name,),
        "load-report-time": (servers[1].name,),
        "limit-missing": (servers[2].name,),
    }


def test_balancing_is_looked_up_on_every_broker_and_among_the_dynamic_settings(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    servers[2].answers[RUNTIME] = (200, {**OFF, "loadBalancerSheddingEnabled": "true"})
    assert found(tmp_path, servers)["balancing-not-off"].objects == (servers[2].name,)
    servers[2].answers[RUNTIME] = (200, OFF)
    servers[0].answers[DYNAMIC] = (200, {"loadBalancerAutoBundleSplitEnabled": "true"})
    assert len(found(tmp_path, servers)["balancing-not-off"].objects) == 3


def test_the_extensible_load_manager_has_no_load_report_and_that_is_no_failure(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    for server in servers:
        server.answers[REPORT] = (500, {"reason": "UnsupportedOperationException"})
        extensible = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
        server.answers[RUNTIME] = (200, {**OFF, "loadManagerClassName": extensible})
    given = settings(tmp_path, servers)
    (tmp_path / "broker.conf").write_text(f"loadManagerClassName={extensible}\n", encoding="utf-8")
    findings = [each.code for each in judge(gather(given, PATIENT)) if each.severity != "ok"]
    assert findings == ["limits-unknown", "metrics-not-flowing"]
    servers[0].answers[RUNTIME] = (200, OFF)
    assert found(tmp_path, servers)["broker-call-failed"].objects == (servers[0].name,)


def test_an_answer_that_is_no_json_is_a_failed_call(servers: list[AdminServer], tmp_path: Path) -> None:
    servers[0].answers[REPORT] = (200, "<html>")
    assert "not JSON" in found(tmp_path, servers)["broker-call-failed"].observed


def test_overrides_beside_the_settings_are_read(servers: list[AdminServer], tmp_path: Path) -> None:
    more = 'collector.capacity_overrides = "capacity.toml"'
    assert "capacity.toml" in gather(settings(tmp_path, servers, more), QUICK).capacity_error
    (tmp_path / "capacity.toml").write_text('brokers = [{match = ".*", cpu_cores = 4}]', encoding="utf-8")
    facts = gather(settings(tmp_path, servers, more), QUICK)
    assert (facts.capacity.of("x:8080"), facts.capacity_error) == ({"cpu": 400.0}, "")


def test_a_folder_in_the_place_of_which_there_is_a_file(servers: list[AdminServer], tmp_path: Path) -> None:
    (tmp_path / "log").write_text("", encoding="utf-8")
    assert found(tmp_path, servers)["folder-not-writable"].objects == (str(tmp_path / "log"),)


def test_a_folder_in_which_no_file_can_be_locked(
    servers: list[AdminServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_: object, __: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))  # as NFS without a lock service

    assert "folder-not-lockable" not in found(tmp_path, servers)  # it does not exist yet
    (tmp_path / "log").mkdir()
    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert "No locks available" in found(tmp_path, servers)["folder-not-lockable"].observed
    assert [*(tmp_path / "log").iterdir()] == []


def test_the_last_tick_of_a_folder_is_found(servers: list[AdminServer], tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    (tmp_path / "log" / "results").mkdir(parents=True)
    ticks = [{"v": 1, "type": "tick", "cluster": c, "interval": t} for c, t in (("demo", now), ("other", now + 1))]
    lines = [json.dumps({**tick, "partitions": {"metrics": 1, "results": 1}}) for tick in ticks]
    (tmp_path / "log" / "results" / "0.jsonl").write_text("\n".join([*lines, "{}"]), encoding="utf-8")
    facts = gather(settings(tmp_path, servers), QUICK)
    assert facts.last_tick == now
    assert [each.severity for each in judge(facts) if each.code == "metrics-flow"] == ["ok"]


def test_every_code_is_explained_in_the_documentation() -> None:
    root = Path(__file__).parents[3]
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "controller" / "doctor").glob("*.py"))
    given = {*re.findall(r'(?:\berror|\bwarning|Finding)\(\s*(?:code=)?"([a-z-]+)"', sources)}
    explained = {
        *re.findall(r"^\| `([a-z-]+)` \| [ew]", (root / "docs" / "doctor.md").read_text("utf-8"), re.MULTILINE)
    }
    assert len(given) > 30
    assert explained == given


def run(*arguments: object) -> Result:
    app = typer.Typer()
    app.command()(doctor)
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.mark.slow
def test_the_command_exits_0_with_warnings_1_with_errors_and_strictly_1_with_both(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    path = conf(tmp_path, servers)
    assert run("--conf", path).exit_code == 0  # no ticks: a warning
    assert run("--conf", path, "--strict").exit_code == 1
    servers[0].answers[DYNAMIC] = (200, {"loadBalancerSheddingEnabled": "true"})
    answer = run("--conf", path)
    assert answer.exit_code == 1
    assert "balancing-not-off" in answer.stdout
    assert "update-dynamic-config --config loadBalancerSheddingEnabled" in answer.stdout
    assert "1 error, 1 warning" in answer.stdout


def test_as_json_every_finding_has_its_fields(servers: list[AdminServer], tmp_path: Path) -> None:
    servers[0].answers[RUNTIME] = (200, {**OFF, "loadBalancerSheddingEnabled": "true"})
    answer = json.loads(run("--conf", conf(tmp_path, servers), "--json").stdout)
    assert answer["healthy"] is False
    (error,) = [each for each in answer["findings"] if each["severity"] == "error"]
    assert set(error) == {"code", "severity", "objects", "seen", "wanted", "advice"}
    assert (error["code"], error["objects"]) == ("balancing-not-off", [servers[0].name])


def test_active_mode_is_refused_while_brokers_balance_by_themselves(servers: list[AdminServer], tmp_path: Path) -> None:
    ours = settings(tmp_path, servers)
    require_broker_balancing_off(ours, mode="active")
    servers[1].answers[RUNTIME] = (200, {**OFF, "loadBalancerSheddingEnabled": "true"})
    with pytest.raises(SettingsError, match=f"loadBalancerSheddingEnabled=true on {servers[1].name}") as refused:
        require_broker_balancing_off(ours, mode="active")
    assert "`trimtab take-over` sets it" in str(refused.value)
    require_broker_balancing_off(ours, mode="dry_run")
    require_broker_balancing_off(ours.model_copy(update={"pulsar": None}), mode="active")


def test_active_mode_is_not_set_while_no_broker_can_be_asked(servers: list[AdminServer], tmp_path: Path) -> None:
    servers[0].refuse(503)
    with pytest.raises(TrimtabError, match="cannot check whether the brokers balance") as failure:
        require_broker_balancing_off(settings(tmp_path, servers), mode="active")
    assert failure.value.exit_code == 1


def test_a_single_broker_that_is_silent_does_not_keep_active_mode_from_being_set(
    servers: list[AdminServer], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    servers[1].answers[RUNTIME] = (503, {"reason": "starting"})
    require_broker_balancing_off(settings(tmp_path, servers), mode="active")
    assert f"{servers[1].name} did not return their settings" in caplog.text


def test_a_broker_conf_with_which_run_would_not_start_is_found(tmp_path: Path, servers: list[AdminServer]) -> None:
    ours = settings(tmp_path, servers)
    file = tmp_path / "broker.conf"
    file.write_text("loadBalancerLoadSheddingStrategy=Nobody\n")
    (found,) = [each for each in judge(gather(ours, QUICK)) if each.code == "broker-conf"]
    assert (found.severity, found.objects) == ("error", (str(file),))
    assert found.observed.startswith(f"{file}: loadBalancerLoadSheddingStrategy=Nobody: allowed:")
    file.unlink()
    (found,) = [each for each in judge(gather(ours, QUICK)) if each.code == "broker-conf"]
    assert (found.severity, found.observed) == ("warning", f"{file}: cannot be read: No such file or directory")


def groups(servers: list[AdminServer], given: dict[str, object]) -> None:
    """Namespaces of tenant acme -> the answer about their group: a name, or status and body."""
    servers[0].answers["/admin/v2/tenants"] = (200, ["acme"])
    servers[0].answers["/admin/v2/namespaces/acme"] = (200, list(given))
    for name, answer in given.items():
        told = (200, answer) if isinstance(answer, str) else answer
        assert isinstance(told, tuple)
        servers[0].answers[f"/admin/v2/namespaces/{name}/antiAffinity"] = told


def test_groups_domains_and_policies_are_read_from_the_brokers(servers: list[AdminServer], tmp_path: Path) -> None:
    groups(servers, {"acme/a": "apart", "acme/b": "apart", "acme/c": "", "acme/gone": (404, {})})
    policy = {"namespaces": ["acme/a"], "primary": ["127.0.0.1"], "secondary": []}
    servers[0].answers["/admin/v2/clusters/demo/namespaceIsolationPolicies"] = (200, {"ours": policy})
    domains = {"rack-1": {"brokers": [servers[0].name]}, "rack-2": {}}
    servers[0].answers["/admin/v2/clusters/demo/failureDomains"] = (200, domains)
    pulsar = gather(settings(tmp_path, servers), PATIENT).pulsar
    assert pulsar is not None
    assert pulsar.groups == {"acme/a": "apart", "acme/b": "apart"}
    assert (pulsar.groups_problem, pulsar.policies) == ("", {"ours": policy})
    assert pulsar.domains == {"rack-1": (servers[0].name,), "rack-2": ()}
    assert pulsar.namespaces == frozenset({"acme/a", "acme/b", "acme/c", "acme/gone"})


def test_groups_that_cannot_be_read_are_unknown_and_no_group_is_called_too_small(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    groups(servers, {"acme/a": "apart", "acme/b": (500, {"reason": "metadata store"})})
    findings = found(tmp_path, servers)
    assert set(findings) == {"anti-affinity-unknown"}
    assert "acme/b" in findings["anti-affinity-unknown"].observed


def test_groups_that_do_not_come_in_time_are_unknown(servers: list[AdminServer], tmp_path: Path) -> None:
    groups(servers, {f"acme/{number}": "apart" for number in range(40)})
    servers[0].hangs = {f"/admin/v2/namespaces/acme/{number}/antiAffinity" for number in range(40)}
    began = time.monotonic()
    findings = found(tmp_path, servers, TimeLimits(answer=0.4, brokers=0.8, all=3))
    assert time.monotonic() - began < 10
    assert set(findings) == {"anti-affinity-unknown"}
    assert "no answer" in findings["anti-affinity-unknown"].observed


def test_policies_and_domains_that_cannot_be_read_are_failed_calls(servers: list[AdminServer], tmp_path: Path) -> None:
    for what in ("namespaceIsolationPolicies", "failureDomains"):
        servers[0].answers[f"/admin/v2/clusters/demo/{what}"] = (500, {"reason": "metadata store"})
    failed = [each for each in judge(gather(settings(tmp_path, servers), PATIENT)) if each.code == "broker-call-failed"]
    assert [each.observed.partition(":")[0] for each in failed] == ["isolation policies", "failure domains"]


def test_the_load_manager_of_trimtabs_own_broker_conf_is_compared_with_that_of_the_brokers(
    servers: list[AdminServer], tmp_path: Path
) -> None:
    given = settings(tmp_path, servers)
    (tmp_path / "broker.conf").write_text("loadManagerClassName=ExtensibleLoadManagerImpl\n", encoding="utf-8")
    (error,) = [each for each in judge(gather(given, PATIENT)) if each.severity == "error"]
    assert error.code == "load-manager-not-ours"
    assert "loadManagerClassName=ModularLoadManagerImpl" in error.advice
