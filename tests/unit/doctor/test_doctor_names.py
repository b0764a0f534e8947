"""The doctor's findings about names in the settings: those that match nothing in the cluster."""

from pathlib import Path
from typing import Any

import pytest

from controller.doctor.checks import judge
from controller.doctor.facts import BrokerConfFacts, PulsarFacts
from controller.doctor.finding import Finding
from controller.doctor.gather import TimeLimits, gather
from controller.model.controls import ExcludedName
from controller.settings.capacity import CapacityOverride, CapacityOverrides
from controller.settings.trimtab_toml import Settings
from tests.admin_servers import admin_servers
from tests.doctor import NOW, OFF, A, B, broker, facts, only, problems, pulsar, settings

EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
HALVES = (0, 0x80000000, 0xFFFFFFFF)
BUNDLE = "acme/orders/0x80000000_0xffffffff"
GONE = "acme/orders/0x00000000_0xffffffff"


def excluding(*names: str) -> Settings:
    return settings(decisions={"mode": "active", "excluded": list(names)})


def test_names_that_the_cluster_has_are_fine() -> None:
    known = facts(settings=excluding("acme/orders", BUNDLE), pulsar=pulsar(boundaries={"acme/orders": HALVES}))
    (found,) = [finding for finding in judge(known) if finding.code == "excluded"]
    assert (found.severity, found.objects) == ("ok", ("acme/orders", BUNDLE))


def test_a_bundle_that_was_split_and_a_namespace_that_is_not_there_match_nothing() -> None:
    found = problems(
        settings=excluding("acme/orders", GONE, "acme/oders", "acme/oders/0x00000000_0xffffffff"),
        pulsar=pulsar(boundaries={"acme/orders": HALVES, "acme/oders": ()}),
    )
    assert [(each.code, each.severity, each.objects) for each in found] == [
        ("excluded-matches-nothing", "warning", (GONE,)),
        ("excluded-matches-nothing", "warning", ("acme/oders",)),
        ("excluded-matches-nothing", "warning", ("acme/oders/0x00000000_0xffffffff",)),
    ]
    assert "has 2 bundles, and none with this range" in found[0].observed
    assert found[1].observed == "there is no namespace acme/oders"
    assert "pulsar-admin namespaces bundles acme/orders" in found[0].advice


def by_ada(*names: str, days: float = 0) -> dict[str, Any]:
    at_ms = NOW - round(days * 86_400_000)
    return {"excluded": tuple(ExcludedName(name=name, by="ada", reason="", at_ms=at_ms) for name in names)}


def test_an_exclusion_by_a_person_that_matches_nothing_is_named_with_the_person() -> None:
    known = pulsar(
        boundaries={"acme/orders": HALVES, "acme/oders": ()}, namespaces=frozenset({"acme/orders", "acme/x"})
    )
    assert not problems(pulsar=known, **by_ada("acme/orders", BUNDLE, "acme/not-looked-up"))
    found = problems(pulsar=known, **by_ada(GONE, "acme/oders", "../brokers"))
    assert {each.code for each in found} == {"exclusion-matches-nothing"}
    assert [each.objects for each in found] == [(GONE,), ("acme/oders",), ("../brokers",)]
    assert found[0].observed.startswith("ada excluded it, and acme/orders has 2 bundles, and none with this range")
    assert "no name of a namespace" in found[2].observed


def test_persons_that_exclude_every_namespace_are_asked_to_pause() -> None:
    known = pulsar(namespaces=frozenset({"acme/orders", "acme/billing", "pulsar/system"}))
    found = only(pulsar=known, settings=excluding("acme/bil*"), **by_ada("acme/orders"))
    assert found.code == "exclusion-of-everything"
    assert "all 2 namespaces" in found.observed
    assert not problems(pulsar=known, **by_ada("acme/orders"))
    assert not problems(pulsar=known, settings=excluding("acme/*"))  # that is what the settings say


def test_an_exclusion_that_has_been_there_for_more_than_a_week_is_told_with_its_date() -> None:
    found = only(**by_ada("acme/orders", days=7.1))
    assert (found.code, found.objects) == ("exclusion-old", ("acme/orders",))
    assert "acme/orders by ada since 2024-12-24" in found.observed
    assert not problems(**by_ada("acme/orders", days=6.9))


def test_names_that_could_not_be_looked_up_are_unknown_and_pulsars_own_are_not_looked_up() -> None:
    found = only(settings=excluding("acme/orders", "pulsar/system", "pulsar/a:8080"))
    assert (found.code, found.objects) == ("excluded-unknown", ("acme/orders",))


def test_patterns_and_the_allow_list_that_match_nothing_are_named() -> None:
    given = settings(decisions={"only": ["acme/prod-*", "acme/oders"], "excluded": ["acme/*", "old/*"]})
    found = problems(settings=given, pulsar=pulsar(namespaces=frozenset({"acme/orders", "acme/prod-eu"})))
    assert [(each.code, each.objects) for each in found] == [
        ("only-matches-nothing", ("acme/oders",)),
        ("excluded-matches-nothing", ("old/*",)),
    ]


def test_where_the_brokers_do_not_tell_their_namespaces_that_is_said() -> None:
    found = problems(settings=settings(decisions={"only": ["acme/*"]}), pulsar=pulsar())
    assert [(each.code, each.objects) for each in found] == [("only-unknown", ("acme/*",))]


def test_a_namespace_that_a_pattern_excludes_is_not_excluded_by_brokers_alone() -> None:
    given = settings(decisions={"excluded": ["acme/*"]})
    told = pulsar(dynamic={EXCLUDED: "acme/orders"}, namespaces=frozenset({"acme/orders"}))
    assert "excluded-by-brokers-alone" not in [each.code for each in problems(settings=given, pulsar=told)]


def test_a_capacity_override_that_fits_no_broker_is_named() -> None:
    given = CapacityOverrides(brokers=(CapacityOverride(match="[ab]:8080"), CapacityOverride(match="http://c:8080")))
    found = only(capacity=given)
    assert (found.code, found.severity, found.objects) == ("capacity-matches-nothing", "warning", ("http://c:8080",))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((200, {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}), "excluded"),
        ((404, {"reason": "Namespace does not exist"}), "excluded-matches-nothing"),
        ((500, {"reason": "later"}), "excluded-unknown"),
    ],
)
def test_the_brokers_are_asked_for_the_bundles(answer: tuple[int, object], code: str, tmp_path: Path) -> None:
    found = asked(tmp_path, "/admin/v2/namespaces/acme/orders/bundles", answer)
    assert [finding.code for finding in found if finding.code.startswith("excluded")] == [code]


def asked(folder: Path, path: str, answer: tuple[int, object]) -> list[Finding]:
    """The findings where a broker gives *answer* at *path*."""
    with admin_servers(1) as servers:
        servers[0].answers[path] = answer
        given = settings(
            decisions={"excluded": [BUNDLE]},
            pulsar={"admin_url": [f"http://{servers[0].name}"]},
            log={"kind": "folder", "folder": {"path": str(folder)}},
            election={"kind": "file", "path": str(folder)},
        )
        return judge(gather(given, TimeLimits(answer=30, brokers=60, all=90)))


@pytest.mark.parametrize(
    "found",
    [
        pulsar(broker(A, settings={**OFF, EXCLUDED: "[acme/b, acme/a]"})),
        pulsar(broker(A), broker(B, settings={**OFF, EXCLUDED: "[acme/a]"}), dynamic={EXCLUDED: "acme/b,acme/a"}),
    ],
)
def test_namespaces_that_brokers_alone_exclude_from_shedding_are_a_warning(found: PulsarFacts) -> None:
    told = only(pulsar=found)
    assert (told.code, told.severity, told.objects) == ("excluded-by-brokers-alone", "warning", ("acme/a", "acme/b"))
    assert only(pulsar=found, broker_conf=BrokerConfFacts(excluded_namespaces=frozenset({"acme/a"}))).objects == (
        "acme/b",
    )
    assert (
        problems(
            pulsar=found, broker_conf=BrokerConfFacts(excluded_namespaces=frozenset({"acme/a", "acme/b", "acme/c"}))
        )
        == []
    )


@pytest.mark.parametrize("text", ["[]", "", " "])
def test_brokers_that_exclude_nothing_are_fine(text: str) -> None:
    assert problems(pulsar=pulsar(broker(A, settings={**OFF, EXCLUDED: text}))) == []


def test_what_the_own_broker_conf_excludes_is_known(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text(f"{EXCLUDED}=acme/a, acme/b\n")
    given = settings(
        cluster={"name": "demo", "broker_conf": str(tmp_path / "broker.conf")},
        pulsar=None,
        log={"kind": "folder", "folder": {"path": str(tmp_path)}},
        election={"kind": "file", "path": str(tmp_path)},
    )
    assert gather(given).broker_conf.excluded_namespaces == {"acme/a", "acme/b"}
