"""Versions of Pulsar, and the one table of what differs between them for trimtab.

The table is data.  No strategy asks for a version: what differs is the default of an option, what a class name in
broker.conf means, or whether a version knows an option.  A new difference is an option or a small strategy, and a row
here.  Tests compare the rows with the classes of Pulsar's releases, and docs/strategies.md prints them.

Pulsar: ServiceConfiguration of 2.8.4 to 5.0.1.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self, TypeAlias

#: A version as brokers report it or as people write it; builds and distributions add numbers and words.
_TEXT: Final = re.compile(
    r"v?(\d{1,4})\.(\d{1,4})(?:[._](\d{1,4})(?:[._+-][0-9A-Za-z._+-]{0,100})?|[+-][0-9A-Za-z._+-]{1,100})?", re.ASCII
)
#: Of a version without a patch: the latest of its line.
_LATEST: Final = 1 << 31


@dataclass(frozen=True, slots=True, order=True)
class PulsarVersion:
    """A version of Pulsar, ordered.  One without a patch, as in ``4.0``, is the latest of its line."""

    major: int
    minor: int
    patch: int = _LATEST

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The version in *text*, which a broker reports or a person writes; None where it is none.

        A pre-release counts as its release: it has its defaults.
        """
        match = _TEXT.fullmatch(text)
        return None if match is None else cls(*(int(number) for number in match.groups() if number is not None))

    @property
    def line(self) -> Self:
        """The line that it belongs to: major and minor, without the patch."""
        return type(self)(self.major, self.minor)

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.major}.{self.minor}" + ("" if self.patch == _LATEST else f".{self.patch}")


def _first(text: str) -> PulsarVersion:
    """The first version of *text*: of ``5.0``, 5.0.0."""
    numbers = [int(number) for number in text.split(".")]
    return PulsarVersion(*numbers, *[0] * (3 - len(numbers)))


#: The lines that the table was compared with, oldest first.  A later version counts as the last one.
KNOWN_LINES: Final = tuple(
    PulsarVersion(major, minor)
    for major, minor in (
        (2, 8), (2, 9), (2, 10), (2, 11), (3, 0), (3, 1), (3, 2), (3, 3), (4, 0), (4, 1), (4, 2), (5, 0),
    )
)  # fmt: skip
#: What decides where nobody says which version the brokers have: ``option`` declares its defaults.
ASSUMED: Final = PulsarVersion(4, 0)


#: Who said which version decides: the settings; Pulsar's own leader; all brokers alike; the oldest of several brokers;
#: the last interval in which it was known; nobody.
VersionSource: TypeAlias = Literal["settings", "leader", "brokers", "oldest", "last", "nobody"]
#: Sources of a version that was the cluster's.
_KNOWN: Final = ("leader", "brokers", "last")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionInUse:
    """The version of Pulsar that an interval was decided by."""

    version: PulsarVersion
    source: VersionSource
    #: Pulsar's own leader, where it said so.
    leader: str = ""


@dataclass(frozen=True, slots=True)
class Fallback:
    """What brokers use, from one version on, in place of a class that works with one other class alone."""

    since: PulsarVersion
    option: str
    strategy: str
    #: The option that has to name the same class.
    partner: str
    instead: str


@dataclass(frozen=True, slots=True)
class Default:
    """The default of an option from one version on, as broker.conf would have it."""

    since: PulsarVersion
    value: str


@dataclass(frozen=True, slots=True)
class ClassMeaning:
    """What a class name in broker.conf means from one version on: a name in the catalogue of strategies."""

    since: PulsarVersion
    strategy: str


def _defaults(oldest: str, **changed: str) -> tuple[Default, ...]:
    """*oldest*, and what it *changed* to; ``v5_0="0.5"`` is since 5.0."""
    later = (Default(_first(since[1:].replace("_", ".")), value) for since, value in changed.items())
    return (Default(PulsarVersion(0, 0, 0), oldest), *later)


def _known(*since: str) -> tuple[PulsarVersion, ...]:
    return tuple(map(_first, since))


#: Option -> its defaults, oldest first.  Options that are not here have the same default in every version, which is
#: that of ``option``.
DEFAULTS: Final[Mapping[str, tuple[Default, ...]]] = {
    "defaultNumberOfNamespaceBundles": _defaults("4", v5_0="32"),
    # Pull request 21168.
    "loadBalancerDirectMemoryResourceWeight": _defaults("1.0", v3_2="0.0"),
    "loadBalancerDistributeBundlesEvenlyEnabled": _defaults("true", v5_0="false"),
    "loadBalancerLoadPlacementStrategy": _defaults("LeastLongTermMessageRate", v5_0="AvgShedder"),
    # PIP-122, pull request 26609.
    "loadBalancerLoadSheddingStrategy": _defaults("OverloadShedder", v2_10="ThresholdShedder", v5_0="AvgShedder"),
    # Pull request 22820.
    "loadBalancerMemoryResourceWeight": _defaults("1.0", v4_0="0.0"),
    "maxUnloadPercentage": _defaults("0.2", v5_0="0.5"),
    "supportedNamespaceBundleSplitAlgorithms": _defaults(
        "range_equally_divide,topic_count_equally_divide",
        v2_11="range_equally_divide,topic_count_equally_divide,specified_positions_divide",
        v3_0="range_equally_divide,topic_count_equally_divide,specified_positions_divide,flow_or_qps_equally_divide",
    ),
    # Pull request 26246.
    "trimtabAvgShedderPlansByBundle": _defaults("false", v5_0="true"),
    "trimtabIsolationPoliciesMatchBrokerIds": _defaults("false", v5_0="true"),
    # A constant of UniformLoadShedder's that went.
    "trimtabUniformLoadShedderSlack": _defaults("1000", v4_2="0"),
}

#: Pull request 26609: brokers log a warning.  Before, the placement ran without its shedder's plans.
FALLBACKS: Final = (
    Fallback(
        since=_first("5.0"),
        option="loadBalancerLoadPlacementStrategy",
        strategy="AvgShedder",
        partner="loadBalancerLoadSheddingStrategy",
        instead="LeastLongTermMessageRate",
    ),
)

#: (option, class as the catalogue has it) -> what the class means, oldest first.  A class that is not here, and one
#: before its first row, is the strategy of that name.
MEANINGS: Final[Mapping[tuple[str, str], tuple[ClassMeaning, ...]]] = {}

#: Option -> the versions that introduced it: where there are several, each but the last one for its own line.  Options
#: that are not here are known to every version, or are trimtab's own.
KNOWN_SINCE: Final[Mapping[str, tuple[PulsarVersion, ...]]] = {
    # Pull request 26610.
    "defaultNumberOfSystemNamespaceBundles": _known("5.0"),
    "flowOrQpsDifferenceThresholdPercentage": _known("3.0"),
    "loadBalanceSheddingDelayInSeconds": _known("3.0"),
    "loadBalancerAverageResourceUsageDifferenceThresholdPercentage": _known("2.11"),
    # PIP-364.
    "loadBalancerAvgShedderHighThreshold": _known("3.0.6", "3.2.4", "3.3.1"),
    "loadBalancerAvgShedderHitCountHighThreshold": _known("3.0.6", "3.2.4", "3.3.1"),
    "loadBalancerAvgShedderHitCountLowThreshold": _known("3.0.6", "3.2.4", "3.3.1"),
    "loadBalancerAvgShedderLowThreshold": _known("3.0.6", "3.2.4", "3.3.1"),
    "loadBalancerBandwidthInResourceWeight": _known("4.0"),
    "loadBalancerBandwidthOutResourceWeight": _known("4.0"),
    "loadBalancerBrokerLoadDataTTLInSeconds": _known("3.0"),
    "loadBalancerBrokerLoadTargetStd": _known("3.0"),
    "loadBalancerDebugModeEnabled": _known("3.0"),
    "loadBalancerDistributeBundlesEvenlyEnabled": _known("2.11"),
    "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis": _known("3.2"),
    "loadBalancerLoadPlacementStrategy": _known("2.11"),
    "loadBalancerMaxNumberOfBrokerSheddingPerCycle": _known("3.0"),
    "loadBalancerMaxNumberOfBundlesInBundleLoadReport": _known("3.0"),
    "loadBalancerMaxNumberOfBundlesToSplitPerCycle": _known("3.0"),
    "loadBalancerMsgRateDifferenceShedderThreshold": _known("2.10"),
    "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold": _known("2.10"),
    "loadBalancerMultiPhaseBundleUnload": _known("3.3"),
    "loadBalancerNamespaceBundleSplitConditionHitCountThreshold": _known("3.0"),
    "loadBalancerOverrideBrokerNics": _known("4.2"),
    "loadBalancerReportUpdateMinIntervalMillis": _known("2.10.4"),
    "loadBalancerServiceUnitStateMaxConcurrentOverrides": _known("4.0.8"),
    "loadBalancerServiceUnitStateMonitorIntervalInSeconds": _known("3.2"),
    "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds": _known("3.0"),
    "loadBalancerServiceUnitTableViewSyncer": _known("4.0"),
    "loadBalancerSheddingBundlesWithPoliciesEnabled": _known("3.0"),
    "loadBalancerSheddingConditionHitCountThreshold": _known("3.0"),
    # PIP-380.
    "loadBalancerSheddingExcludedNamespaces": _known("4.2"),
    "loadBalancerSplitIntervalMinutes": _known("3.0"),
    "loadBalancerTransferEnabled": _known("3.0"),
    "loadManagerMigrationEnabled": _known("5.0"),
    "loadManagerServiceUnitStateTableViewClassName": _known("4.0"),
    "lowerBoundarySheddingEnabled": _known("2.11"),
    "maxUnloadBundleNumPerShedding": _known("2.11"),
    "maxUnloadPercentage": _known("2.11"),
    "minUnloadMessage": _known("2.11"),
    "minUnloadMessageThroughput": _known("2.11"),
    "topicBundleAssignmentStrategy": _known("3.2"),
    # PIP-483.
    "scalableTopicAutoScaleEnabled": _known("5.0"),
    "scalableTopicMaxSegments": _known("5.0"),
    "scalableTopicMergeBytesRateInThreshold": _known("5.0"),
    "scalableTopicMergeBytesRateOutThreshold": _known("5.0"),
    "scalableTopicMergeMsgRateInThreshold": _known("5.0"),
    "scalableTopicMergeMsgRateOutThreshold": _known("5.0"),
    "scalableTopicMergeCooldownSeconds": _known("5.0"),
    "scalableTopicMergeWindowSeconds": _known("5.0"),
    "scalableTopicMinSegments": _known("5.0"),
    "scalableTopicSplitCooldownSeconds": _known("5.0"),
    "scalableTopicSplitBytesRateInThreshold": _known("5.0"),
    "scalableTopicSplitBytesRateOutThreshold": _known("5.0"),
    "scalableTopicSplitMsgRateInThreshold": _known("5.0"),
    "scalableTopicSplitMsgRateOutThreshold": _known("5.0"),
}


def default_in(version: PulsarVersion, option: str) -> str | None:
    """The default of *option* in *version*; None where it is the same in every version."""
    steps = DEFAULTS.get(option)
    return None if steps is None else next(step.value for step in reversed(steps) if version >= step.since)


def other_defaults(version: PulsarVersion) -> dict[str, str]:
    """Option -> its default in *version*, where that is another one than ``option`` declares."""
    defaults = {option: (default_in(version, option), default_in(ASSUMED, option)) for option in DEFAULTS}
    return {option: now for option, (now, declared) in defaults.items() if now is not None and now != declared}


def strategy_meant(version: PulsarVersion, option: str, strategy: str) -> str:
    """The strategy of the catalogue that the class *strategy* of *option* is in *version*."""
    steps = MEANINGS.get((option, strategy), ())
    return next((step.strategy for step in reversed(steps) if version >= step.since), strategy)


def knows(version: PulsarVersion, option: str) -> bool:
    """Whether *version* has *option*; true where nothing speaks against it."""
    since = KNOWN_SINCE.get(option)
    if since is None:
        return True
    *earlier, last = since
    return version >= last or any(version.line == first.line and version >= first for first in earlier)


def not_known(version: PulsarVersion, options: Iterable[str]) -> list[str]:
    """Those of *options* that *version* does not have, sorted."""
    return sorted(option for option in options if not knows(version, option))


def known_version(text: str) -> PulsarVersion:
    """The version that a person wrote: one of a line in the table, as ``4.0`` or ``5.0.1``.  ValueError else."""
    version = PulsarVersion.parse(text)
    if version is None or version.line not in KNOWN_LINES:
        lines = ", ".join(map(str, KNOWN_LINES))
        raise ValueError(f"allowed is a version of Pulsar, as 5.0 or 5.0.1, of the lines {lines}")
    return version


def version_among(
    versions: Mapping[str, PulsarVersion], leader: str, last: VersionInUse | None, pinned: PulsarVersion | None
) -> VersionInUse:
    """The version that decides where brokers have *versions* and *leader*, "" for none, leads Pulsar.

    *last*: that of the interval before.  *pinned*: what the settings name.
    """
    if pinned is not None:
        return VersionInUse(version=pinned, source="settings")
    if leader in versions:
        return VersionInUse(version=versions[leader], source="leader", leader=leader)
    known = set(versions.values())
    if len(known) == 1:
        return VersionInUse(version=known.pop(), source="brokers")
    if last is not None and last.source in _KNOWN and (not known or last.version in known):
        return VersionInUse(version=last.version, source="last")
    return (
        VersionInUse(version=min(known), source="oldest") if known else VersionInUse(version=ASSUMED, source="nobody")
    )


def version_text(used: VersionInUse) -> str:
    """The version *used* and why, for people."""
    why = {
        "settings": "as the settings say",
        "leader": f"that of Pulsar's leader, {used.leader}",
        "brokers": "that of the brokers",
        "oldest": "the oldest of the brokers', as Pulsar's leader is not known",
        "last": "as before, as the version of Pulsar's leader is not known now",
        "nobody": "assumed, as no record says which version the brokers run",
    }[used.source]
    return f"decided as Pulsar {used.version}, {why}"
