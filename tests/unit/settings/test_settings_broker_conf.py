"""broker.conf as Pulsar's users write it."""

import json
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from controller.model.errors import SettingsError
from controller.model.option import option
from controller.settings.broker_conf import build, read_broker_conf
from controller.settings.known_options import StrategyNames, options_table
from controller.settings.policy import read_policy
from controller.settings.strategy_kinds import PLACEMENT_KIND, SHEDDER_KIND
from controller.settings.trimtab_toml import Settings, read_settings
from controller.strategies.catalogue import PLACEMENTS, SHEDDERS, SPLIT_ALGORITHMS, SPLIT_POLICIES
from controller.strategies.filters.shedding_excluded_namespaces import SheddingExcludedNamespaces
from controller.strategies.shedding.threshold_shedder import ThresholdShedder

CONF = Path(__file__).parents[3] / "conf"


@dataclass(frozen=True, kw_only=True)
class Example:
    percent: int = option("examplePercentage", default=10, unit="%", meaning="a threshold")
    weight: float = option(
        "exampleBandwidthWeight", default=1.0, meaning="a weight", aliases=("exampleBandwithWeight",)
    )
    enabled: bool = option("exampleEnabled", default=True, meaning="a switch")
    text: str = option("exampleText", default="x", meaning="a text")
    sessions: int = option("loadBalancerNamespaceBundleMaxSessions", default=1000, meaning="-1: no limit")
    fraction: float = option("loadBalancerHistoryResourcePercentage", default=0.9, meaning="0 to 1")
    minutes: int = option("loadBalancerSheddingIntervalMinutes", default=1, meaning="from 1")
    names: frozenset[str] = option("exampleNames", default=frozenset(), meaning="names, separated by commas")


def read(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "broker.conf"
    path.write_text(text)
    return read_broker_conf(path)


def test_lines_are_read_as_java_reads_properties(tmp_path: Path) -> None:
    text = """
# a comment=1
! another=2
   indented = 3
colon: 4
with space 5
class=org.apache.pulsar.Some$Class\x20\x20
url=http://a:1/?b=c#not-a-comment
joined=one,\\
       two
empty=
alone
twice=1
twice=2
last=7\\"""
    assert read(tmp_path, text) == {
        "indented": "3",
        "colon": "4",
        "with": "space 5",
        "class": "org.apache.pulsar.Some$Class",
        "url": "http://a:1/?b=c#not-a-comment",
        "joined": "one,two",
        "empty": "",
        "alone": "",
        "twice": "2",
        "last": "7",
    }


def test_escapes_are_javas(tmp_path: Path) -> None:
    text = r"""
backslashes=C:\\pulsar\\conf
unicode=\u0041\u00e9
colon=a\:b\=c\#d
tab=a\tb
unknown=\q\z
a\ key\:with\=all=1
escaped\u003dkey=2
even=x\\
=no key
"""
    assert read(tmp_path, text) == {
        "backslashes": "C:\\pulsar\\conf",
        "unicode": "A\u00e9",
        "colon": "a:b=c#d",
        "tab": "a\tb",
        "unknown": "qz",
        "a key:with=all": "1",
        "escaped=key": "2",
        "even": "x\\",
        "": "no key",
    }


def test_a_file_is_read_as_latin_1_and_a_continued_comment_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(b"# caf\xe9 \\\r\ntext=caf\xe9\r# a comment after Mac's line end\nutf8=\xc3\xa9\n")
    assert read_broker_conf(path) == {"text": "caf\u00e9", "utf8": "\u00c3\u00a9"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a=1\n\nb=x,\\\n  y\nc=\\u00zz\nd=2\n", r"line 5: \\u00zz is not a character"),
        (b"a=1\r\nb=\\u12", r"line 2: \\u12 is not a character"),
        (b"a=1\n\x1f\x8b\x08\x00", r"line 2: has the control character '\\x1f'"),
    ],
)
def test_a_file_that_is_no_properties_file_is_named_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=rf"broker\.conf: {message}"):
        read_broker_conf(path)


def test_a_variable_has_the_escapes_of_the_file_that_it_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("a=1")
    conf = read_broker_conf(tmp_path / "broker.conf", {"PULSAR_PREFIX_a": r" x\\y ", "PULSAR_PREFIX_b": "= 1:2"})
    assert conf == {"a": r"x\y", "b": "= 1:2"}
    with pytest.raises(SettingsError, match=r"variable PULSAR_PREFIX_a: line 1: \\u1 is not a character"):
        read_broker_conf(tmp_path / "broker.conf", {"PULSAR_PREFIX_a": r"\u1"})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.conf: cannot be read"):
        read_broker_conf(tmp_path / "nothing.conf")


def test_what_is_missing_or_empty_keeps_its_default() -> None:
    assert build(Example, {}) == Example()
    assert build(Example, {"examplePercentage": "", "exampleEnabled": "", "exampleText": ""}) == Example()


def test_unknown_keys_of_broker_conf_are_ignored() -> None:
    assert build(Example, {"zookeeperServers": "a:2181", "examplepercentage": "5"}) == Example()


@pytest.mark.parametrize(
    ("key", "text", "name", "expected"),
    [
        ("examplePercentage", "120", "percent", 120),
        ("exampleBandwidthWeight", "0", "weight", 0.0),
        ("exampleBandwidthWeight", "2.5e-1", "weight", 0.25),
        ("exampleEnabled", "false", "enabled", False),
        ("exampleEnabled", "TRUE", "enabled", True),
        ("exampleText", "a b", "text", "a b"),
        ("loadBalancerNamespaceBundleMaxSessions", "-1", "sessions", -1),
        ("loadBalancerHistoryResourcePercentage", "1", "fraction", 1.0),
        ("exampleNames", "acme/a, acme/b ,,", "names", frozenset({"acme/a", "acme/b"})),
    ],
)
def test_values_are_read_by_the_kind_of_their_option(key: str, text: str, name: str, expected: object) -> None:
    value = getattr(build(Example, {key: text}), name)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("key", "text", "allowed"),
    [
        ("examplePercentage", "-1", "a whole number from 0 up"),
        ("examplePercentage", "10.5", "a whole number from 0 up"),
        ("examplePercentage", "10%", "a whole number from 0 up"),
        ("examplePercentage", "0x10", "a whole number from 0 up"),
        ("examplePercentage", "1_000", "a whole number from 0 up"),
        ("examplePercentage", "1*", "a whole number from 0 up"),
        ("examplePercentage", "9" * 400, "a whole number from 0 up"),
        ("examplePercentage", "9" * 5000, "a whole number from 0 up"),
        ("exampleBandwidthWeight", "NaN", "a number from 0 up"),
        ("exampleBandwidthWeight", "Infinity", "a number from 0 up"),
        ("exampleBandwidthWeight", "1e999", "a number from 0 up"),
        ("exampleBandwidthWeight", "-0.1", "a number from 0 up"),
        ("exampleBandwidthWeight", "much", "a number from 0 up"),
        ("exampleEnabled", "yes", "true or false"),
        ("loadBalancerNamespaceBundleMaxSessions", "-2", "a whole number from -1 up"),
        ("loadBalancerHistoryResourcePercentage", "90", "a number from 0 to 1"),
        ("loadBalancerSheddingIntervalMinutes", "0", "a whole number from 1 up"),
    ],
)
def test_an_invalid_value_is_refused_with_what_is_allowed(key: str, text: str, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build(Example, {key: text})
    assert str(caught.value) == f"{key}={text}: allowed: {allowed}"


@pytest.mark.parametrize(
    ("new", "old", "weight"), [("", "3", 3.0), ("2", "3", 2.0), ("2", "", 2.0), ("1.0", "3", 3.0), ("", "", 1.0)]
)
def test_an_old_spelling_counts_where_the_new_one_says_nothing_but_the_default(
    new: str, old: str, weight: float
) -> None:
    assert build(Example, {"exampleBandwidthWeight": new, "exampleBandwithWeight": old}).weight == weight


@pytest.mark.parametrize(
    "name",
    ["ThresholdShedder", "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"],
)
def test_a_strategy_is_known_by_its_short_and_its_full_name(name: str) -> None:
    conf = {"loadBalancerBrokerThresholdShedderPercentage": "25"}
    shedder = SHEDDER_KIND.choose(name, conf)
    assert isinstance(shedder, ThresholdShedder)
    assert shedder.threshold_percent == 25


def test_a_strategy_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(SettingsError) as caught:
        PLACEMENT_KIND.choose("RoundRobin", {})
    assert str(caught.value) == (
        f"loadBalancerLoadPlacementStrategy=RoundRobin: allowed: {', '.join(sorted(PLACEMENTS))}"
    )


def settings(tmp_path: Path, broker_conf: str) -> Settings:
    (tmp_path / "broker.conf").write_text(broker_conf)
    (tmp_path / "trimtab.toml").write_text((CONF / "trimtab.toml").read_text())
    return read_settings(tmp_path / "trimtab.toml")


def test_an_empty_broker_conf_means_what_the_committed_one_says(tmp_path: Path) -> None:
    assert read_policy(settings(tmp_path, "")) == read_policy(read_settings(CONF / "trimtab.toml"))


def test_the_committed_broker_conf_lists_every_option_that_is_read_and_no_other() -> None:
    rows = {row.key for row in options_table() if row.file == "broker.conf"}
    assert set(read_broker_conf(CONF / "broker.conf")) == rows
    assert {field.metadata["broker_conf"] for field in fields(StrategyNames)} < rows


def test_every_strategy_can_be_built_from_the_committed_broker_conf() -> None:
    conf = read_broker_conf(CONF / "broker.conf")
    for catalogue in (SHEDDERS, PLACEMENTS, SPLIT_POLICIES, SPLIT_ALGORITHMS):
        for cls in catalogue.values():
            assert build(cls, conf) == cls()


def test_a_bad_value_names_the_file(tmp_path: Path) -> None:
    spoilt = settings(tmp_path, "loadBalancerNamespaceMaximumBundles=many\n")
    with pytest.raises(SettingsError) as caught:
        read_policy(spoilt)
    assert str(caught.value) == (
        f"{tmp_path / 'broker.conf'}: loadBalancerNamespaceMaximumBundles=many: allowed: a whole number from 0 up"
    )


def test_what_both_files_say_reaches_the_policy(tmp_path: Path) -> None:
    conf = "loadBalancerSheddingGracePeriodMinutes=5\nloadBalancerLoadPlacementStrategy=LeastResourceUsageWithWeight\n"
    policy = read_policy(settings(tmp_path, conf))
    assert policy.balancer.grace_period_minutes == 5
    assert type(policy.placement).__name__ == "LeastResourceUsageWithWeight"
    assert (policy.cluster, policy.period_ms, policy.command_ttl_ms) == ("standalone", 60_000, 300_000)


@pytest.mark.parametrize(
    ("shedder", "placement", "said"),
    [
        (
            "org.apache.pulsar.broker.loadbalance.impl.AvgShedder",
            "LeastLongTermMessageRate",
            "loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.AvgShedder does not go with"
            " loadBalancerLoadPlacementStrategy=LeastLongTermMessageRate: it plans where each bundle goes;"
            " allowed: loadBalancerLoadPlacementStrategy=AvgShedder",
        ),
        (
            "ThresholdShedder",
            "AvgShedder",
            "loadBalancerLoadPlacementStrategy=AvgShedder does not go with"
            " loadBalancerLoadSheddingStrategy=ThresholdShedder: it carries out the plans of the shedder of that name,"
            " and places at random without one; allowed: loadBalancerLoadSheddingStrategy=AvgShedder",
        ),
    ],
)
def test_strategies_that_do_not_go_together_are_refused_with_the_reason(
    tmp_path: Path, shedder: str, placement: str, said: str
) -> None:
    conf = f"loadBalancerLoadSheddingStrategy={shedder}\nloadBalancerLoadPlacementStrategy={placement}\n"
    with pytest.raises(SettingsError) as caught:
        read_policy(settings(tmp_path, conf))
    assert str(caught.value) == f"{tmp_path / 'broker.conf'}: {said}"


def test_avg_shedder_goes_with_itself_by_its_short_and_its_full_name(tmp_path: Path) -> None:
    conf = (
        "loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.AvgShedder\n"
        "loadBalancerLoadPlacementStrategy=AvgShedder\n"
    )
    policy = read_policy(settings(tmp_path, conf))
    assert {type(policy.shedder).__name__, type(policy.placement).__name__} == {"AvgShedder"}


EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
OVERLOADED = "loadBalancerBrokerOverloadedThresholdPercentage"


@pytest.mark.parametrize(
    "line",
    [
        f"- PULSAR_PREFIX_{OVERLOADED}=95",
        f"- {OVERLOADED}=95",
        f'- "{OVERLOADED}=95"',
        f"export PULSAR_PREFIX_{OVERLOADED}=95",
        f"export {OVERLOADED}='95'",
        f"PULSAR_PREFIX_{OVERLOADED}=95",
        f"set {OVERLOADED}=95",
        f"setenv {OVERLOADED} 95",
        f"ENV {OVERLOADED} 95",
        f"declare -x {OVERLOADED}=95",
        f"-Dpulsar.{OVERLOADED}=95",
        f"--set broker.configData.{OVERLOADED}=95",
        f'"{OVERLOADED}": "95",',
        f'"{OVERLOADED}"=95',
        f"+{OVERLOADED}=95",
        f'<property name="{OVERLOADED}">95</property>',
        f"{OVERLOADED} ?= 95",
        f"{OVERLOADED} := 95",
        f"{OVERLOADED} += 95",
        f"{OVERLOADED} == 95",
        f"\ufeff{OVERLOADED}=95",
    ],
)
def test_a_line_that_sets_an_option_in_another_syntax_is_refused_and_not_ignored(tmp_path: Path, line: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"{line}\nzookeeperServers=a:2181\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=f"line 1: .*{OVERLOADED}"):
        read_broker_conf(path)


@pytest.mark.parametrize(
    "line",
    [
        f"#export {OVERLOADED}=95",
        f"description=how {OVERLOADED} works is said elsewhere",
        "export something=else",
        "- a list",
        f"my{OVERLOADED}=95",
        "//comment of somebody",
        "brokerServiceURL=pulsar://a:6650",
    ],
)
def test_a_line_that_sets_no_option_is_left_to_the_brokers(tmp_path: Path, line: str) -> None:
    assert OVERLOADED not in read(tmp_path, line)


@pytest.mark.parametrize(
    "text",
    [
        f"{{% if large %}}\n{OVERLOADED}=95\n{{% else %}}\n{OVERLOADED}=70\n{{% endif %}}",
        "{% for key, value in broker_conf.items() %}\n{{ key }}={{ value }}\n{% endfor %}",
        "{{- range $key, $value := .Values.broker.configData }}\n{{ $key }}={{ $value }}\n{{- end }}",
        "{{ toYaml .Values.broker.configData | indent 2 }}",
        "<% @options.each do |key, value| -%>\n<%= key %>=<%= value %>\n<% end -%>",
        "${EXTRA_BROKER_CONF}",
        "$(cat balancing.conf)",
        "loadBalancer{{ part }}=95",
    ],
)
def test_a_statement_of_a_template_is_refused_with_what_to_give_instead(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingsError, match=r"line 2: .* a template statement.*configuration/runtime"):
        read(tmp_path, f"clusterName=x\n{text}\n")


def test_an_expression_in_a_value_that_trimtab_does_not_read_is_left_to_the_brokers(tmp_path: Path) -> None:
    conf = read(tmp_path, f"advertisedAddress={{{{ ansible_fqdn }}}}\nzookeeperServers=${{ZK}}\n{OVERLOADED}=95\n")
    assert conf[OVERLOADED] == "95"


def test_yaml_of_plain_keys_is_read_as_java_reads_it(tmp_path: Path) -> None:
    assert read(tmp_path, f"broker:\n  {OVERLOADED}: 95\n")[OVERLOADED] == "95"


def test_the_json_that_a_broker_answers_is_read(tmp_path: Path) -> None:
    answer = {"loadBalancerEnabled": "true", OVERLOADED: "95", "clusterName": None, "a": 1, "b": False}
    answer |= {"supportedNamespaceBundleSplitAlgorithms": "[one, two]", "loadBalancerSheddingExcludedNamespaces": "[]"}
    assert read(tmp_path, json.dumps(answer)) == {
        "loadBalancerEnabled": "true",
        OVERLOADED: "95",
        "clusterName": "",
        "a": "1",
        "b": "false",
        "supportedNamespaceBundleSplitAlgorithms": "one, two",
        "loadBalancerSheddingExcludedNamespaces": "",
    }


@pytest.mark.parametrize(
    ("text", "value"), [("[]", ""), ("[acme/a]", "acme/a"), ("[acme/a, acme/b]", "acme/a, acme/b")]
)
def test_a_set_that_a_broker_answers_is_read_as_the_names_in_it(tmp_path: Path, text: str, value: str) -> None:
    assert read(tmp_path, json.dumps({EXCLUDED: text}))[EXCLUDED] == value


@pytest.mark.parametrize("text", ["acme/a", "acme/a,acme/b", " acme/a , acme/b,", "acme/global/a", "pulsar/system"])
def test_excluded_namespaces_are_names(text: str) -> None:
    assert len(build(SheddingExcludedNamespaces, {EXCLUDED: text}).names) == 1 + text.strip(",").count(",")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("acme/a # they stay", "; a comment after a value"),
        ('"acme/a,acme/b"', "; quotes are part of the value"),
        ("{{ excluded }}", "; expressions in this file are not evaluated"),
        ("[acme/a, acme/b]", ""),
        ("acme/a acme/b", ""),
        ("acme", ""),
        ("persistent://acme/a/topic", ""),
    ],
)
def test_excluded_namespaces_that_are_no_names_are_refused_and_not_ignored(text: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=f"{EXCLUDED}.* allowed: namespaces, tenant/namespace.*{hint}"):
        build(SheddingExcludedNamespaces, {EXCLUDED: text})


@pytest.mark.parametrize(
    "key", ["loadBalancerLoadSheddingStrategy", "loadManagerClassName", "topicBundleAssignmentStrategy"]
)
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('"ThresholdShedder"', "quotes are part of the value"),
        ("OverloadShedder # for now", "a comment after a value"),
        ("{{ strategy }}", "expressions in this file are not evaluated"),
        ("${STRATEGY}", "expressions in this file are not evaluated"),
    ],
)
def test_a_name_that_brokers_would_not_find_is_refused_with_what_to_write(key: str, text: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=f"{key}=.*{hint}"):
        build(StrategyNames, {key: text})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "begins like JSON, but is not valid JSON"),
        ('{"a": {"b": "c"}}', "a is an object or a list"),
        ("{" * 100_000, "not valid JSON"),
    ],
)
def test_other_json_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('"95"', "quotes are part of the value"),
        ("'95'", "quotes are part of the value"),
        ("95 # percent", "a comment after a value is part of it"),
        ("${OVERLOADED}", "expressions in this file are not evaluated"),
        ("{{ .Values.overloaded }}", "expressions in this file are not evaluated"),
        ("1*1024*1024", "brokers do not do arithmetic: write 1048576"),
        ("2 * 3", "brokers do not do arithmetic: write 6"),
    ],
)
def test_a_value_that_brokers_refuse_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build(Example, {"examplePercentage": text})
    assert str(caught.value).startswith(f"examplePercentage={text}: allowed: a whole number from 0 up; {hint}")


def test_variables_override_options_with_and_without_the_prefix_of_pulsars_images(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text(f"{OVERLOADED}=85\n")
    assert read_broker_conf(path, {OVERLOADED: "95"})[OVERLOADED] == "95"
    assert read_broker_conf(path, {f"PULSAR_PREFIX_{OVERLOADED}": "95"})[OVERLOADED] == "95"
    both = {OVERLOADED: "90", f"PULSAR_PREFIX_{OVERLOADED}": "95"}
    assert read_broker_conf(path, both)[OVERLOADED] == "90"
    assert "PATH" not in read_broker_conf(path, {"PATH": "/bin"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (
            "org.apache.pulsar.broker.loadbalance.ThresholdShedder",
            "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
        ),
        ("com.example.ThresholdShedder", "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"),
        (
            "org.apache.pulsar.broker.loadbalance.impl.TransferShedder",
            "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
        ),
    ],
)
def test_a_class_in_a_package_in_which_pulsar_has_none_is_refused_with_the_one_meant(name: str, meant: str) -> None:
    with pytest.raises(SettingsError, match=f"did you mean {meant}"):
        SHEDDER_KIND.choose(name, {})
