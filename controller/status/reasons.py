"""What each reason means for a person: its class, and what would change it.  docs/explain.md shows the table."""

from collections.abc import Mapping
from typing import Final

from controller.cycle.approval import MEANINGS as APPROVAL_MEANINGS
from controller.cycle.guardrails.catalogue import GUARDRAIL_MEANINGS
from controller.cycle.protected import MEANINGS as PROTECTED_MEANINGS
from controller.model.decision import Reason
from controller.model.reasons import CONFIGURATION, IMPOSSIBLE, NORMAL, THROTTLED, Meaning

_OTHERS: Final[Mapping[Reason, Meaning]] = {
    Reason.OVERLOADED: Meaning(NORMAL, "the broker has more load than the strategy allows"),
    Reason.UNDERLOADED: Meaning(NORMAL, "another broker has so little load that the strategy fills it"),
    Reason.TOPICS: Meaning(NORMAL, "the bundle has more topics than the split threshold"),
    Reason.SESSIONS: Meaning(NORMAL, "the bundle has more producers and consumers than the split threshold"),
    Reason.MSG_RATE: Meaning(NORMAL, "the bundle has more messages a second than the split threshold"),
    Reason.BANDWIDTH: Meaning(NORMAL, "the bundle has more bytes a second than the split threshold"),
    Reason.PLACED: Meaning(NORMAL, "a destination was found"),
    Reason.BROKER_JOINED: Meaning(NORMAL, "a broker joined and gets its share"),
    Reason.BROKER_LEFT: Meaning(
        THROTTLED, "a broker left; the strategy waits for its return, then spreads its bundles"
    ),
    Reason.PLANNED: Meaning(NORMAL, "a plan that a person approved moves it: see `trimtab apply`"),
    Reason.BALANCED: Meaning(NORMAL, "the load is within the limits of the strategy"),
    Reason.NO_BROKERS: Meaning(IMPOSSIBLE, "there are too few brokers with load data to move anything"),
    Reason.NO_BUNDLES: Meaning(IMPOSSIBLE, "the broker has no bundle that the strategy may take"),
    Reason.NO_LOAD_DATA: Meaning(IMPOSSIBLE, "there is no load data: see `trimtab doctor` and the collectors"),
    Reason.OUTDATED_DATA: Meaning(
        IMPOSSIBLE, "the broker sent no complete sweep, or its load report stands still: see its log"
    ),
    Reason.BELOW_MINIMUM: Meaning(NORMAL, "the load in question is below the strategy's minimum"),
    Reason.SOLE_BUNDLE: Meaning(IMPOSSIBLE, "the broker has one bundle only: split it, or add load elsewhere"),
    Reason.TOO_LARGE: Meaning(IMPOSSIBLE, "what could move is so large that a move would not help: split the bundle"),
    Reason.TOO_FEW_TOPICS: Meaning(IMPOSSIBLE, "the bundle has too few topics to be cut: use more partitions"),
    Reason.NAMESPACE_FULL: Meaning(CONFIGURATION, "the namespace has loadBalancerNamespaceMaximumBundles bundles"),
    Reason.BUNDLE_COUNT_UNKNOWN: Meaning(
        IMPOSSIBLE, "no namespace_state record says how many bundles the namespace has: see the collectors"
    ),
    Reason.RANGE_TOO_SMALL: Meaning(IMPOSSIBLE, "the bundle's hash range is too small to be cut"),
    Reason.RANGE_OUTDATED: Meaning(
        IMPOSSIBLE, "the bundle was split already: the namespace's newest boundaries cut its range"
    ),
    Reason.NO_TOPIC_DETAIL: Meaning(THROTTLED, "the bundle's topics are not known yet; they come with the next load"),
    Reason.NO_POSITIONS: Meaning(IMPOSSIBLE, "the split algorithm finds no position to cut at"),
    Reason.IMPOSSIBLE_CUT: Meaning(IMPOSSIBLE, "the split algorithm's position cannot be carried out"),
    Reason.SEVERAL_CUTS: Meaning(IMPOSSIBLE, "the brokers take one cut at a time, and the algorithm gives several"),
    Reason.LARGE_PARTITION: Meaning(IMPOSSIBLE, "one topic has most of the load: use more partitions"),
    Reason.HIT_COUNT: Meaning(THROTTLED, "the strategy acts after the same finding in several intervals"),
    Reason.COOL_DOWN: Meaning(THROTTLED, "the broker gave a bundle a short time ago"),
    Reason.SAME_BROKER: Meaning(NORMAL, "no other broker is better than its own"),
    Reason.DRY_RUN: Meaning(
        THROTTLED, "a dry run issued a command about the bundle and waits as a real run would; active mode ignores this"
    ),
    Reason.NOT_THIS_INTERVAL: Meaning(THROTTLED, "the strategy does not act on it in this interval"),
    Reason.TOPIC_KINDS: Meaning(
        CONFIGURATION,
        "the broker does not serve such topics: see enablePersistentTopics and enableNonPersistentTopics",
    ),
    Reason.MAX_TOPICS: Meaning(CONFIGURATION, "the broker has as many topics as loadBalancerBrokerMaxTopics allows"),
    Reason.ANTI_AFFINITY: Meaning(CONFIGURATION, "other namespaces of the anti-affinity group are there"),
    Reason.FEWEST_BUNDLES: Meaning(NORMAL, "other brokers have fewer bundles of the namespace"),
    Reason.BROKER_VERSION: Meaning(CONFIGURATION, "the broker has an older version than others"),
    Reason.BUNDLE_WITH_POLICIES: Meaning(
        CONFIGURATION, "its namespace has policies: see loadBalancerSheddingBundlesWithPoliciesEnabled"
    ),
    Reason.DRAINED: Meaning(CONFIGURATION, "the broker is drained and gets no bundles until `trimtab release`"),
    Reason.PLAN_IN_FORCE: Meaning(
        THROTTLED, "a plan is being applied, so strategies unload nothing; it ends with `trimtab apply`"
    ),
    Reason.NOT_APPROVED: Meaning(
        CONFIGURATION, "the policy of [approvals] demands approvals that are not there: see `trimtab proposals list`"
    ),
    Reason.PLAN_OUTDATED: Meaning(
        IMPOSSIBLE,
        "the cluster changed after the check of the plan: `trimtab apply` checks again, and says what to do",
    ),
    Reason.STARTED_ANEW: Meaning(NORMAL, "the strategy was changed, so its memory starts empty"),
    Reason.PULSAR_VERSION: Meaning(NORMAL, "which version of Pulsar decided; the brokers run others, or it changed"),
    Reason.SETTLED: Meaning(NORMAL, "the result of a command came back"),
    Reason.FAILED: Meaning(THROTTLED, "the command failed; it is tried again after a rest"),
    Reason.LOST: Meaning(THROTTLED, "no result of the command came back: see the executor's log"),
}

#: Every reason, in the order of the enumeration; those of guardrails are explained beside their rules.
MEANINGS: Final[Mapping[Reason, Meaning]] = {
    each: {**_OTHERS, **GUARDRAIL_MEANINGS, **PROTECTED_MEANINGS, **APPROVAL_MEANINGS}[each] for each in Reason
}
