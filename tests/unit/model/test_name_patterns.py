"""Patterns of namespaces."""

import pytest

from controller.model.name_patterns import Namespaces, matches


@pytest.mark.parametrize(
    ("pattern", "namespace", "fits"),
    [
        ("tenant/*", "tenant/ns", True),
        ("tenant/*", "tenant2/ns", False),
        ("tenant/*", "tenant/cluster/ns", False),
        ("tenant/*/*", "tenant/cluster/ns", True),
        ("tenant/prod-*", "tenant/prod-", True),
        ("tenant/prod-*", "tenant/prod", False),
        ("tenant/prod-*", "tenant/preprod-eu", False),
        ("*/prod", "tenant/prod", True),
        ("*/*", "tenant/prod", True),
        ("t/a*a", "t/a", False),
        ("t/a*a", "t/aa", True),
        ("t/a*b*c", "t/a-c-b-c", True),
        ("t/a*b*c", "t/a-c-b", False),
        ("t/a.b", "t/axb", False),
        ("t/**", "t/ns", True),
        ("t/" + "a*" * 100, "t/" + "a" * 250 + "b", True),
        ("t/" + "a*" * 100 + "c", "t/" + "a" * 250 + "b", False),
    ],
)
def test_a_star_stands_for_any_text_without_a_slash(pattern: str, namespace: str, fits: bool) -> None:
    assert matches(pattern, namespace) == fits


def test_a_set_has_names_and_what_its_patterns_match() -> None:
    found = Namespaces.of(["acme/orders", "acme/prod-*"])
    assert [name in found for name in ("acme/orders", "acme/prod-eu", "acme/order")] == [True, True, False]
