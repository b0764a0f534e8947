"""The doctor's findings about brokers: reachable, our cluster, known version, own balancing off, plausible limits."""

from typing import Any

import pytest

from controller.doctor.checks import judge
from controller.doctor.facts import MeasuredClock
from controller.model.memory import FatalBundle
from controller.settings.capacity import CapacityOverride, CapacityOverrides
from tests.doctor import LIMITS, OFF, A, B, C, broker, facts, only, problems, pulsar, report, settings


def test_a_healthy_cluster_has_nothing_but_fine_findings_and_several() -> None:
    found = judge(facts())
    assert {finding.severity for finding in found} == {"ok"}
    assert {"brokers-reachable", "permissions", "cluster-name", "broker-versions", "balancing-off", "limits"} <= {
        finding.code for finding in found
    }


def test_every_problem_says_what_was_seen_what_is_wanted_and_what_to_do() -> None:
    sick = pulsar(
        broker(A, silent="no connection", settings=None, report=None, clock=None, version=""),
        broker(B, version="2.10.0", settings={**OFF, "loadBalancerSheddingEnabled": "true"}),
        broker(C, report=report({**LIMITS, "bandwidthIn": 0}), refused={"load report": "403"}),
    )
    found = problems(pulsar=sick, last_tick=None)
    assert len({finding.code for finding in found}) >= 7
    for finding in found:
        assert finding.objects, finding
        assert finding.observed, finding
        assert finding.expected, finding
        assert finding.advice, finding


def test_a_kind_of_topics_that_one_broker_alone_serves_is_a_warning() -> None:
    def without(*names: str) -> Any:
        off = {**OFF, "enableNonPersistentTopics": "false"}
        return pulsar(*(broker(name, settings=off) if name in names else broker(name) for name in (A, B, C)))

    found = only(pulsar=without(A, B))
    assert (found.code, found.severity, found.objects) == ("topic-kind-on-one-broker", "warning", (C,))
    assert found.observed == f"enableNonPersistentTopics is false on {A}, {B}"
    for names in ((A,), (A, B, C)):
        assert problems(pulsar=without(*names)) == []
        assert "topic-kinds" in {finding.code for finding in judge(facts(pulsar=without(*names)))}


def test_settings_without_pulsar_are_a_warning_that_brokers_are_not_checked() -> None:
    found = only(pulsar=None, settings=settings(pulsar=None))
    assert (found.code, found.severity) == ("pulsar-not-configured", "warning")


def test_a_cluster_that_does_not_answer_is_one_finding_and_all_else_is_still_checked() -> None:
    sick = pulsar(error="GET http://a:8080/admin/v2/brokers: no connection", brokers=(), clusters=())
    assert only(pulsar=sick).code == "brokers-unreachable"
    assert {"kafka-reachable", "zookeeper", "folders"} <= {finding.code for finding in judge(facts(pulsar=sick))}


def test_no_active_broker_is_an_error() -> None:
    assert only(pulsar=pulsar(brokers=())).code == "brokers-unreachable"


def test_one_broker_that_is_silent_is_named_and_its_settings_are_unknown() -> None:
    silent = broker(B, silent="no answer", settings=None, report=None, clock=None, version="", report_ahead_ms=None)
    found = {finding.code: finding for finding in problems(pulsar=pulsar(broker(A), silent))}
    assert set(found) == {"broker-unreachable", "balancing-unknown"}
    assert found["broker-unreachable"].objects == (B,)
    assert found["broker-unreachable"].severity == "error"
    assert found["balancing-unknown"].objects == (B,)


def test_a_call_that_fails_on_one_broker_is_a_warning() -> None:
    found = only(pulsar=pulsar(broker(A), broker(B, failed={"load report": "500 Server Error"})))
    assert (found.code, found.severity, found.objects) == ("broker-call-failed", "warning", (B,))
    assert found.observed == "load report: 500 Server Error"


def test_a_list_of_brokers_that_is_refused_is_a_matter_of_permissions() -> None:
    found = only(pulsar=pulsar(error="GET ...: 401 Unauthorized", status=401, brokers=(), clusters=()))
    assert (found.code, found.severity) == ("permission-denied", "error")
    assert "superUserRoles" in found.advice


def test_a_refusal_by_every_broker_is_one_finding() -> None:
    refused = {"load report": "403 Forbidden"}
    found = only(pulsar=pulsar(*(broker(name, refused=refused) for name in (A, B, C))))
    assert (found.code, found.objects) == ("permission-denied", (A, B, C))
    assert only(pulsar=pulsar(refused={"tenants": "403"})).code == "permission-denied"


def test_brokers_of_two_versions_are_reported_with_the_smaller_group_named() -> None:
    found = only(pulsar=pulsar(broker(A), broker(B), broker(C, version="4.0.7")))
    assert (found.code, found.severity, found.objects) == ("broker-versions-differ", "warning", (C,))
    assert found.observed == f"4.0.7: {C}; 4.0.8: {A}, {B}"


@pytest.mark.parametrize("version", ["3.3.6", "4.0.8", "4.2.4"])
def test_a_version_that_trimtab_was_tried_on_is_fine(version: str) -> None:
    assert problems(pulsar=pulsar(broker(A, version=version))) == []


@pytest.mark.parametrize("version", ["3.0.7", "4.1.0", "2.10.4", "13.3.6", "4.2"])
def test_a_version_that_trimtab_was_not_tried_on_is_a_warning(version: str) -> None:
    found = only(pulsar=pulsar(broker(A, version=version)))
    assert (found.code, found.observed, found.severity) == ("broker-version-untried", version, "warning")


def test_a_cluster_of_another_name_is_an_error_that_names_it() -> None:
    other = {**OFF, "clusterName": "lab"}
    found = only(pulsar=pulsar(broker(A, settings=other), clusters=("lab",)))
    assert (found.code, found.severity) == ("cluster-name", "error")
    assert 'name = "lab"' in found.advice
    # Brokers that know of a cluster of our name, and are of another one.
    assert only(pulsar=pulsar(broker(A, settings=other), clusters=("demo", "lab"))).code == "cluster-name"


@pytest.mark.parametrize(
    "key",
    ["loadBalancerSheddingEnabled", "loadBalancerAutoBundleSplitEnabled"],
)
def test_own_balancing_on_a_single_broker_is_an_error_with_the_command_that_ends_it(key: str) -> None:
    found = only(pulsar=pulsar(broker(A), broker(B, settings={**OFF, key: "true"})))
    assert (found.code, found.severity, found.objects) == ("balancing-not-off", "error", (B,))
    assert f"{key}=true on {B}" in found.observed
    assert f"update-dynamic-config --config {key} --value false" in found.advice


def test_a_dynamic_setting_counts_on_every_broker_before_they_have_heard_of_it() -> None:
    found = only(pulsar=pulsar(dynamic={"loadBalancerSheddingEnabled": "true"}))
    assert (found.code, found.objects) == ("balancing-not-off", (A, B, C))
    assert "as a dynamic setting" in found.observed


def test_a_broker_that_did_not_take_the_dynamic_setting_over_still_balances() -> None:
    late = broker(B, settings={**OFF, "loadBalancerSheddingEnabled": "true"})
    found = only(pulsar=pulsar(broker(A), late, dynamic={"loadBalancerSheddingEnabled": "false"}))
    assert (found.code, found.objects) == ("balancing-not-off", (B,))


def test_brokers_may_do_what_trimtab_does_not() -> None:
    sheds = pulsar(broker(A, settings={**OFF, "loadBalancerSheddingEnabled": "true"}))
    assert not problems(pulsar=sheds, settings=settings(decisions={"mode": "active", "shed": False}))
    splits = pulsar(dynamic={"loadBalancerAutoBundleSplitEnabled": "true"})
    assert not problems(pulsar=splits, settings=settings(decisions={"mode": "active", "split": False}))


def test_without_load_balancing_a_broker_does_not_shed_whatever_its_other_switch_says() -> None:
    idle = {**OFF, "loadBalancerEnabled": "false", "loadBalancerSheddingEnabled": "true"}
    found = problems(pulsar=pulsar(broker(A), broker(B, settings=idle)))
    assert {each.code for each in found} == {"load-reports-off"}


def test_brokers_that_cannot_be_asked_are_named_with_the_setting_that_goes_on_without_them() -> None:
    odd = broker(B, settings={**OFF, "loadBalancerSheddingEnabled": "sometimes"})
    found = only(pulsar=pulsar(broker(A), odd))
    assert (found.code, found.severity, found.objects) == ("balancing-unknown", "warning", (B,))
    ignoring = settings(guardrails={"brokers_balance_unknown": "ignore"})
    ignored = only(pulsar=pulsar(broker(A), odd), settings=ignoring)
    nobody = only(pulsar=None, settings=settings(pulsar=None))
    names = 'brokers_balance_unknown = "ignore" in [guardrails]'
    assert [names in each.advice for each in (found, nobody, ignored)] == [True, True, False]


def test_load_reports_that_are_off_are_an_error() -> None:
    found = only(pulsar=pulsar(broker(A, settings={**OFF, "loadBalancerEnabled": "false"})))
    assert (found.code, found.severity) == ("load-reports-off", "error")
    assert "restart" in found.advice


@pytest.mark.parametrize("limit", [0.0, -1.0])
def test_a_network_card_without_a_speed_makes_its_broker_look_idle(limit: float) -> None:
    found = only(pulsar=pulsar(broker(A), broker(B, report=report({**LIMITS, "bandwidthOut": limit}))))
    assert (found.code, found.severity, found.objects) == ("limit-missing", "error", (B,))
    assert "loadBalancerOverrideBrokerNicSpeedGbps" in found.advice


def test_if_no_broker_knows_its_speed_it_is_only_a_warning() -> None:
    unknown = report({**LIMITS, "bandwidthIn": 0.0})
    found = only(pulsar=pulsar(broker(A, report=unknown), broker(B, report=unknown)))
    assert (found.code, found.severity, found.objects) == ("limit-missing", "warning", (A, B))


@pytest.mark.parametrize(("resource", "limit"), [("cpu", 1.0), ("bandwidthIn", 100.0), ("bandwidthOut", 1e12)])
def test_a_limit_that_no_machine_has_is_absurd(resource: str, limit: float) -> None:
    found = only(pulsar=pulsar(broker(A, report=report({**LIMITS, resource: limit}))))
    assert (found.code, found.severity) == ("limit-absurd", "warning")
    assert f"{resource} limit {limit:g}: {A}" in found.observed


def test_usage_above_its_limit_means_a_wrong_limit() -> None:
    found = problems(pulsar=pulsar(broker(A, report=report(usage=1.3))))
    assert {finding.code for finding in found} == {"usage-above-limit"}
    assert found[0].observed == f"{A}: cpu 1040 of 800"
    assert not problems(pulsar=pulsar(broker(A, report=report(usage=1.0))))


def test_limits_that_differ_much_are_reported_by_broker() -> None:
    found = only(pulsar=pulsar(broker(A), broker(B, report=report({**LIMITS, "cpu": 200.0}))))
    assert (found.code, found.severity) == ("limits-differ", "warning")
    assert found.observed == f"cpu limit 200: {B}; 800: {A}"
    assert not problems(pulsar=pulsar(broker(A), broker(B, report=report({**LIMITS, "cpu": 400.0}))))


def test_a_capacity_override_replaces_the_reported_limit() -> None:
    said = CapacityOverrides(brokers=[CapacityOverride(match="b", bandwidth_out_mbits=10_000.0)])
    sick = pulsar(broker(A), broker(B, report=report({**LIMITS, "bandwidthOut": 0.0})))
    assert not problems(pulsar=sick, capacity=said)
    wrong = CapacityOverrides(brokers=[CapacityOverride(match="a", bandwidth_out_mbits=10.0)])
    assert {each.code for each in problems(pulsar=pulsar(), capacity=wrong)} == {"usage-above-limit", "limits-differ"}


def test_overrides_that_cannot_be_read_are_an_error() -> None:
    assert only(capacity_error="capacity.toml: not TOML").code == "capacity-unreadable"


@pytest.mark.parametrize("odd", [{}, {"cpu": None, "bandwidthIn": 7}])
def test_a_report_that_says_nothing_of_a_resource_has_no_limit_for_it(odd: dict[str, Any]) -> None:
    found = problems(pulsar=pulsar(broker(A, report=odd)))
    assert {finding.code for finding in found} == {"limit-missing"}


def test_brokers_without_a_load_report_have_unknown_limits() -> None:
    found = only(pulsar=pulsar(broker(A, report=None, report_ahead_ms=None)))
    assert (found.code, found.severity, found.objects) == ("limits-unknown", "warning", (A,))


@pytest.mark.parametrize(("ahead_s", "severity"), [(5, "warning"), (-5, "warning"), (45, "error"), (-45, "error")])
def test_a_brokers_clock_that_is_off_is_told_and_from_half_a_period_on_an_error(ahead_s: int, severity: str) -> None:
    clock = MeasuredClock(ahead_ms=ahead_s * 1000, give_or_take_ms=600)
    found = only(pulsar=pulsar(broker(A), broker(B, clock=clock)))
    assert (found.code, found.severity, found.objects) == ("clock-skew", severity, (B,))
    assert f"{abs(ahead_s)}.0 s {'ahead of' if ahead_s > 0 else 'behind'} ours" in found.observed


def test_a_load_report_from_the_future_and_an_old_one_are_told() -> None:
    found = only(pulsar=pulsar(broker(A, report_ahead_ms=9_000)))
    assert (found.code, found.severity) == ("load-report-time", "warning")
    quick = {**OFF, "loadBalancerReportUpdateMaxIntervalMinutes": "1"}
    assert not problems(pulsar=pulsar(broker(A, settings=quick, report_ahead_ms=-100_000)))
    old = only(pulsar=pulsar(broker(A, settings=quick, report_ahead_ms=-130_000)))
    assert old.code == "load-report-time"
    assert "130.0 s behind ours" in old.observed


def test_brokers_that_do_not_list_what_was_moved_to_them_are_named() -> None:
    finding = only(unconfirmed={A: ["acme/orders/0x00000000_0x80000000"]})
    assert (finding.code, finding.severity, finding.objects) == ("moves-unconfirmed", "error", (A,))
    assert "acme/orders/0x00000000_0x80000000" in finding.observed
    assert "trimtab resume" in finding.advice


def test_a_bundle_that_kills_brokers_is_named_with_what_to_do() -> None:
    bundle = "acme/orders/0x00000000_0x80000000"
    finding = only(fatal={bundle: FatalBundle(at=0, deaths=12, brokers=(A, "b-9:8080"))})
    assert (finding.code, finding.severity, finding.objects) == ("bundle-kills-brokers", "error", (bundle,))
    assert "12 owners died in a row" in finding.observed
    assert A in finding.observed
    assert "trimtab resume" in finding.advice


def test_brokers_that_would_unload_what_they_split_do_nothing_while_they_split_nothing() -> None:
    assert not problems(pulsar=pulsar(broker(A, settings={**OFF, "loadBalancerAutoUnloadSplitBundlesEnabled": "true"})))


def test_a_clock_difference_within_the_measurement_error_is_no_finding() -> None:
    assert not problems(pulsar=pulsar(broker(A, clock=MeasuredClock(ahead_ms=2_400, give_or_take_ms=600))))
    assert problems(pulsar=pulsar(broker(A, clock=MeasuredClock(ahead_ms=2_700, give_or_take_ms=600))))


def test_many_brokers_are_summarised() -> None:
    on = {**OFF, "loadBalancerSheddingEnabled": "true"}
    found = only(pulsar=pulsar(*(broker(f"b-{nth}:8080", settings=on) for nth in range(900))))
    assert len(found.objects) == 900
    assert found.observed.count(":8080") == 4
    assert "and 896 more" in found.observed
