"""What each reason means for a person: its class, and what would change it.  docs/explain.md shows the table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from controller.model.decision import Reason


class ReasonClass(StrEnum):
    """Who, or what, can change a decision with this reason.  PD: the categories of plan.Status."""

    #: Something was done, or there is nothing to do.
    NORMAL = "normal"
    #: It passes by itself with time.
    THROTTLED = "throttled"
    #: A setting, a policy or a person forbids it; a person can allow it.
    CONFIGURATION = "configuration"
    #: It cannot be done with the brokers, bundles and data that there are.
    IMPOSSIBLE = "impossible"


class Meaning(NamedTuple):
    """The class of a reason, and what it says."""

    kind: ReasonClass
    #: What is so, and what changes it.
    text: str


_NORMAL, _THROTTLED = ReasonClass.NORMAL, ReasonClass.THROTTLED
_CONFIGURATION, _IMPOSSIBLE = ReasonClass.CONFIGURATION, ReasonClass.IMPOSSIBLE

#: Every reason, in the order of the enumeration.
MEANINGS: Final[Mapping[Reason, Meaning]] = {
    Reason.OVERLOADED: Meaning(_NORMAL, "the broker has more load than the strategy allows"),
    Reason.UNDERLOADED: Meaning(_NORMAL, "another broker has so little load that the strategy fills it"),
    Reason.TOPICS: Meaning(_NORMAL, "the bundle has more topics than the split threshold"),
    Reason.SESSIONS: Meaning(_NORMAL, "the bundle has more producers and consumers than the split threshold"),
    Reason.MSG_RATE: Meaning(_NORMAL, "the bundle has more messages a second than the split threshold"),
    Reason.BANDWIDTH: Meaning(_NORMAL, "the bundle has more bytes a second than the split threshold"),
    Reason.PLACED: Meaning(_NORMAL, "a destination was found"),
    Reason.BROKER_JOINED: Meaning(_NORMAL, "a broker joined and gets its share"),
    Reason.BROKER_LEFT: Meaning(_THROTTLED, "a broker left; its return is waited for, then its bundles are spread"),
    Reason.PLANNED: Meaning(_NORMAL, "a plan that a person approved moves it: see `trimtab apply`"),
    Reason.BALANCED: Meaning(_NORMAL, "the load is within the limits of the strategy"),
    Reason.NO_BROKERS: Meaning(_IMPOSSIBLE, "there are too few brokers with load data to move anything"),
    Reason.NO_BUNDLES: Meaning(_IMPOSSIBLE, "the broker has no bundle that the strategy may take"),
    Reason.NO_LOAD_DATA: Meaning(_IMPOSSIBLE, "there is no load data: see `trimtab doctor` and the collectors"),
    Reason.OUTDATED_DATA: Meaning(
        _IMPOSSIBLE, "the broker sent no complete sweep, or its load report stands still: see its log"
    ),
    Reason.BELOW_MINIMUM: Meaning(_NORMAL, "the load in question is below the strategy's minimum"),
    Reason.SOLE_BUNDLE: Meaning(_IMPOSSIBLE, "the broker has one bundle only: split it, or add load elsewhere"),
    Reason.TOO_LARGE: Meaning(_IMPOSSIBLE, "what could move is so large that a move would not help: split the bundle"),
    Reason.TOO_FEW_TOPICS: Meaning(_IMPOSSIBLE, "the bundle has too few topics to be cut: use more partitions"),
    Reason.NAMESPACE_FULL: Meaning(_CONFIGURATION, "the namespace has loadBalancerNamespaceMaximumBundles bundles"),
    Reason.BUNDLE_COUNT_UNKNOWN: Meaning(
        _IMPOSSIBLE, "no namespace_state record says how many bundles the namespace has: see the collectors"
    ),
    Reason.RANGE_TOO_SMALL: Meaning(_IMPOSSIBLE, "the bundle's hash range is too small to be cut"),
    Reason.RANGE_OUTDATED: Meaning(
        _IMPOSSIBLE, "the bundle was split already: the namespace's newest boundaries cut its range"
    ),
    Reason.NO_TOPIC_DETAIL: Meaning(_THROTTLED, "the bundle's topics are not known yet; they come with the next load"),
    Reason.NO_POSITIONS: Meaning(_IMPOSSIBLE, "the split algorithm finds no position to cut at"),
    Reason.IMPOSSIBLE_CUT: Meaning(_IMPOSSIBLE, "the split algorithm's position cannot be carried out"),
    Reason.SEVERAL_CUTS: Meaning(_IMPOSSIBLE, "the brokers take one cut at a time, and the algorithm gives several"),
    Reason.LARGE_PARTITION: Meaning(_IMPOSSIBLE, "one topic has most of the load: use more partitions"),
    Reason.HIT_COUNT: Meaning(_THROTTLED, "the strategy acts after the same finding in several intervals"),
    Reason.COOL_DOWN: Meaning(_THROTTLED, "the broker gave a bundle a short time ago"),
    Reason.SAME_BROKER: Meaning(_NORMAL, "no other broker is better than its own"),
    Reason.RECENTLY_UNLOADED: Meaning(
        _THROTTLED, "the bundle was unloaded within loadBalancerSheddingGracePeriodMinutes"
    ),
    Reason.IN_FLIGHT: Meaning(_THROTTLED, "a command has no result yet: see `trimtab status` if it does not come"),
    Reason.DRY_RUN: Meaning(
        _THROTTLED, "a dry run issued a command about the bundle and keeps a real run's pace; active mode forgets it"
    ),
    Reason.BACK_OFF: Meaning(_THROTTLED, "a command about the bundle failed; it rests before the next one"),
    Reason.SYSTEM_NAMESPACE: Meaning(_CONFIGURATION, "Pulsar's own namespaces are never moved or split"),
    Reason.EXCLUDED: Meaning(
        _CONFIGURATION,
        "decisions.excluded, decisions.only or loadBalancerSheddingExcludedNamespaces keeps it, or the log",
    ),
    Reason.NOT_THIS_INTERVAL: Meaning(_THROTTLED, "it is not its turn in this interval"),
    Reason.DISABLED: Meaning(_CONFIGURATION, "a setting switches it off"),
    Reason.WARMING_UP: Meaning(_THROTTLED, "the controller is new and waits for intervals.warm_up_samples"),
    Reason.GAP: Meaning(_THROTTLED, "intervals were missing; the controller waits for intervals.warm_up_samples again"),
    Reason.STALE: Meaning(_THROTTLED, "the interval is older than intervals.stale_after_seconds: the controller lags"),
    Reason.CATCHING_UP: Meaning(
        _THROTTLED,
        "the interval is decided late, so a newer one acts: after an absence, or with a clock ahead",
    ),
    Reason.PAUSED: Meaning(_CONFIGURATION, "the controller is paused: run `trimtab resume`"),
    Reason.OBSERVE_ONLY: Meaning(_CONFIGURATION, "the mode is observe: run `trimtab mode dry_run` or `active`"),
    Reason.FROZEN: Meaning(
        _THROTTLED, "brokers have no data, joined or left; commands wait until the cluster is settled"
    ),
    Reason.BUDGET: Meaning(_THROTTLED, "a budget of [guardrails] is used up; it is free again with time"),
    Reason.BREAKER: Meaning(_CONFIGURATION, "commands failed and the breaker tripped: mend it, run `trimtab resume`"),
    Reason.MAINTENANCE: Meaning(_CONFIGURATION, "a window in [guardrails.maintenance] forbids commands now"),
    Reason.CONTROLS_UNKNOWN: Meaning(
        _IMPOSSIBLE, "the operator's controls cannot be read: nobody knows whether it is paused"
    ),
    Reason.BROKERS_BALANCE: Meaning(
        _CONFIGURATION,
        "brokers balance by themselves: switch it off (docs/take_over.md); then commands go on",
    ),
    Reason.BROKERS_BALANCE_UNKNOWN: Meaning(
        _CONFIGURATION,
        "nobody knows whether brokers balance: see the collectors, or guardrails.brokers_balance_unknown",
    ),
    Reason.NAMESPACE_UNKNOWN: Meaning(
        _IMPOSSIBLE, "no namespace_state record describes the namespace: see the collectors, or move_undescribed"
    ),
    Reason.ISOLATION_POLICY: Meaning(_CONFIGURATION, "an isolation policy excludes the broker"),
    Reason.TOPIC_KINDS: Meaning(
        _CONFIGURATION,
        "the broker does not serve such topics: see enablePersistentTopics and enableNonPersistentTopics",
    ),
    Reason.MAX_TOPICS: Meaning(_CONFIGURATION, "the broker has as many topics as loadBalancerBrokerMaxTopics allows"),
    Reason.ANTI_AFFINITY: Meaning(_CONFIGURATION, "other namespaces of the anti-affinity group are there"),
    Reason.FEWEST_BUNDLES: Meaning(_NORMAL, "other brokers have fewer bundles of the namespace"),
    Reason.BROKER_VERSION: Meaning(_CONFIGURATION, "the broker has an older version than others"),
    Reason.BUNDLE_WITH_POLICIES: Meaning(
        _CONFIGURATION, "its namespace has policies: see loadBalancerSheddingBundlesWithPoliciesEnabled"
    ),
    Reason.DRAINED: Meaning(_CONFIGURATION, "the broker is drained and gets no bundles until `trimtab release`"),
    Reason.UNPROVEN: Meaning(_THROTTLED, "the broker has to list what was moved to it before it gets more"),
    Reason.UNCONFIRMED: Meaning(
        _THROTTLED, "the broker does not list what was moved to it, so it gets nothing: see its log, or resume"
    ),
    Reason.PLAN_IN_FORCE: Meaning(
        _THROTTLED, "a plan is being applied, so strategies unload nothing; it ends with `trimtab apply`"
    ),
    Reason.PLAN_OUTDATED: Meaning(
        _IMPOSSIBLE,
        "the cluster changed after the check of the plan: `trimtab apply` checks again, and says what to do",
    ),
    Reason.STARTED_ANEW: Meaning(_NORMAL, "the strategy was changed, so its memory starts empty"),
    Reason.PULSAR_VERSION: Meaning(_NORMAL, "which version of Pulsar decided; the brokers run others, or it changed"),
    Reason.SETTLED: Meaning(_NORMAL, "the result of a command came back"),
    Reason.FAILED: Meaning(_THROTTLED, "the command failed; it is tried again after a rest"),
    Reason.LOST: Meaning(_THROTTLED, "no result of the command came back: see the executor's log"),
}
