"""Do all brokers run the load manager whose rules trimtab follows?"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, fine, listed
from controller.settings.pairs import LOAD_MANAGER
from controller.settings.policy import LOAD_MANAGERS, why_not_balanced
from controller.strategies.catalogue import short_name

_DYNAMIC: Final = "the dynamic settings"


def load_managers(facts: Facts) -> Iterator[Finding]:
    """load-manager-unsupported, load-managers-differ, load-manager-not-ours."""
    if facts.pulsar is None:
        return
    users = defaultdict[str, list[str]](list)
    for broker in facts.pulsar.brokers:
        users[_load_manager(broker.settings)].append(broker.name)
    # Brokers take it over when they start, if not before.
    users[_load_manager(facts.pulsar.dynamic)].append(_DYNAMIC)
    users.pop("", None)
    unsupported = sorted(users.keys() - LOAD_MANAGERS)
    for name in unsupported:
        yield error(
            "load-manager-unsupported",
            users[name],
            observed=f"{LOAD_MANAGER}={name:.200} on {listed(users[name])}",
            expected=" or ".join(sorted(LOAD_MANAGERS)),
            advice=f"{name:.200}: {why_not_balanced(name)}",
        )
    if len(users) > 1:
        yield _differ(users)
    ours = facts.broker_conf.load_manager
    others = {name: users[name] for name in sorted(users) if name != ours and name not in unsupported}
    if ours and others:
        yield _not_ours(ours, others, facts.settings.cluster.broker_conf)
    if users and not (unsupported or len(users) > 1 or (ours and others)):
        yield fine("load-manager", [each for names in users.values() for each in names], *users)


def _differ(users: Mapping[str, list[str]]) -> Finding:
    fewest = min(users.values(), key=len)
    return error(
        "load-managers-differ",
        sorted(fewest),
        observed="; ".join(f"{name:.200}: {listed(sorted(names))}" for name, names in sorted(users.items())),
        expected="one load manager on all brokers",
        advice=f"set the same {LOAD_MANAGER} in every broker.conf and restart the brokers that differ; keep trimtab in"
        " mode dry_run until then: it follows the rules of one load manager",
    )


def _not_ours(ours: str, others: Mapping[str, list[str]], broker_conf: str) -> Finding:
    (theirs, *_) = others
    return error(
        "load-manager-not-ours",
        [each for names in others.values() for each in names],
        observed=f"trimtab decides by {ours}; brokers run "
        + "; ".join(f"{name:.200}: {listed(names)}" for name, names in others.items()),
        expected=f"the same {LOAD_MANAGER} in {broker_conf} as on the brokers",
        advice=f"set {LOAD_MANAGER}={theirs} in {broker_conf}, and the strategies that go with it",
    )


def _load_manager(settings: Mapping[str, str] | None) -> str:
    """The load manager in *settings* as a short name; "" where they do not say."""
    return short_name((settings or {}).get(LOAD_MANAGER, "").strip())
