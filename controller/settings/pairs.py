"""Settings of broker.conf that exclude each other: refused at the start, with the reason.

With such a pair, Pulsar either fails or silently uses another strategy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller.model.errors import SettingsError
from controller.model.pulsar_version import ASSUMED, FALLBACKS, PulsarVersion, other_defaults, strategy_meant
from controller.strategies.catalogue import is_python_name, short_name

SHEDDER: Final = "loadBalancerLoadSheddingStrategy"
PLACEMENT: Final = "loadBalancerLoadPlacementStrategy"
LOAD_MANAGER: Final = "loadManagerClassName"
SPLIT_ALGORITHM: Final = "defaultNamespaceBundleSplitAlgorithm"
ASSIGNMENT: Final = "topicBundleAssignmentStrategy"
SUPPORTED_ALGORITHMS: Final = "supportedNamespaceBundleSplitAlgorithms"
EXTENSIBLE: Final = "ExtensibleLoadManagerImpl"
#: The split algorithm in the requests of trimtab, which computes the boundaries itself.
_BY_POSITIONS: Final = "specified_positions_divide"
_BY_BROKERS: Final = "range_equally_divide"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Needs:
    """A setting that needs certain values of another setting."""

    key: str
    #: Names as in the catalogue.
    value: str
    other: str
    values: frozenset[str]
    why: str
    #: Whether the other setting may also name a user's own strategy, which brokers do not run.
    or_own: bool = False
    #: The first version whose brokers take them together, with a warning; None: none does.
    allowed_since: PulsarVersion | None = None

    def refuses(self, options: Mapping[str, str], version: PulsarVersion = ASSUMED) -> bool:
        """Whether two of the settings *options* (key -> name) do not go together; one that is missing counts as ""."""
        key, other = options.get(self.key, ""), options.get(self.other, "")
        if self.or_own and is_python_name(other):
            return False
        if self.allowed_since is not None and version >= self.allowed_since:
            return False
        return short_name(key) == self.value and short_name(other) not in self.values


#: Settings that are refused unless the other setting has one of the values.
_BELONG_TOGETHER: Final = (
    _Needs(
        key=SHEDDER,
        value="AvgShedder",
        other=PLACEMENT,
        values=frozenset({"AvgShedder"}),
        why="it plans where each bundle goes",
        allowed_since=PulsarVersion(5, 0, 0),
    ),
    _Needs(
        key=PLACEMENT,
        value="AvgShedder",
        other=SHEDDER,
        values=frozenset({"AvgShedder"}),
        why="it carries out the plans of the shedder of that name, and places at random without one",
    ),
    _Needs(
        key=SHEDDER,
        value="TransferShedder",
        other=LOAD_MANAGER,
        values=frozenset({EXTENSIBLE}),
        why="only the extensible load manager knows it, and brokers with another one do not start with it",
    ),
    _Needs(
        key=LOAD_MANAGER,
        value=EXTENSIBLE,
        other=SHEDDER,
        values=frozenset({"PeakShedder", "TransferShedder"}),
        why="the extensible load manager knows only that shedder, and uses it instead of any other",
        or_own=True,
    ),
)


def of_load_manager(load_manager: str, conf: Mapping[str, str]) -> dict[str, str]:
    """*conf*, and the strategies of *load_manager* where *conf* names none.

    Pulsar's defaults are those of the modular load manager; the extensible one falls back to its own.
    """
    own = {}
    if short_name(load_manager) == EXTENSIBLE:
        own = {SHEDDER: "TransferShedder", PLACEMENT: "ExtLeastResourceUsageWithWeight"}
    return {**conf, **{key: name for key, name in own.items() if not conf.get(key)}}


def needed_by(shedder: str) -> dict[str, str]:
    """The other settings without which *shedder* is refused; empty for most."""
    named = short_name(shedder)
    return {
        needs.other: next(iter(needs.values))
        for needs in _BELONG_TOGETHER
        if needs.key == SHEDDER and needs.value == named
    }


def with_requested(conf: Mapping[str, str], requested: Mapping[str, str]) -> dict[str, str]:
    """*conf* with the options *requested* for in place of its own.

    Where they name a shedder and no placement, a placement of *conf* that belongs to another shedder gives way to the
    default.
    """
    merged = {**conf, **requested}
    if requested.get(SHEDDER) and PLACEMENT not in requested:
        misfit = any(needs.refuses(merged) for needs in _BELONG_TOGETHER if needs.key == PLACEMENT)
        merged = {key: name for key, name in merged.items() if not (misfit and key == PLACEMENT)}
    return merged


def for_version(conf: Mapping[str, str], version: PulsarVersion) -> dict[str, str]:
    """*conf*, and the defaults of *version* for what it does not say, where they differ from those of ``option``.

    A class that *version* does not run with another class in its partner's place gives way to what brokers use then.
    """
    written = {key: text for key, text in conf.items() if text}
    options = {**conf, **{key: text for key, text in other_defaults(version).items() if key not in written}}
    for each in FALLBACKS:
        named, partner = (short_name(options.get(key, "")) for key in (each.option, each.partner))
        if version >= each.since and named == each.strategy and partner != named:
            options[each.option] = each.instead
    return options


def as_meant(conf: Mapping[str, str], version: PulsarVersion) -> dict[str, str]:
    """*conf*, in which a class that is another strategy in *version* is called as the catalogue calls that one."""
    named = {key: short_name(conf[key]) for key in (SHEDDER, PLACEMENT, SPLIT_ALGORITHM, ASSIGNMENT) if conf.get(key)}
    options = {key: strategy_meant(version, key, name) for key, name in named.items()}
    return {**conf, **{key: name for key, name in options.items() if name != named[key]}}


def refuse_misfits(
    options: Mapping[str, str], *, isolates_hot_topics: bool, several_cuts: bool, version: PulsarVersion = ASSUMED
) -> None:
    """Raise SettingsError where two of the settings *options* (key -> name) exclude each other in *version*."""
    for needs in _BELONG_TOGETHER:
        if needs.refuses(options, version):
            raise SettingsError(
                f"{needs.key}={options[needs.key]} does not go with {needs.other}={options[needs.other]}: {needs.why};"
                f" allowed: {needs.other}={' or '.join(sorted(needs.values))}"
            )
    if isolates_hot_topics and short_name(options[LOAD_MANAGER]) == EXTENSIBLE and not several_cuts:
        raise SettingsError(
            f"trimtabIsolateHotTopicPercentage does not go with {LOAD_MANAGER}={options[LOAD_MANAGER]}: a hot topic is"
            " isolated by two cuts, and the extensible load manager refuses to split by more than one;"
            " allowed: trimtabSplitStrategySeveralCuts=true"
        )
    _refuse_unsupported(
        options[SPLIT_ALGORITHM], options[SUPPORTED_ALGORITHMS], isolates_hot_topics=isolates_hot_topics
    )


def _refuse_unsupported(algorithm: str, supported: str, *, isolates_hot_topics: bool) -> None:
    """Raise SettingsError where brokers would refuse the splits asked for, as *supported* does not list them."""
    allowed = [name.strip() for name in supported.split(",")]
    own = is_python_name(algorithm)
    if algorithm not in allowed and not own:
        raise SettingsError(
            f"{SPLIT_ALGORITHM}={algorithm} does not go with {SUPPORTED_ALGORITHMS}={supported}: it is not in that list"
        )
    if _BY_POSITIONS not in allowed and (algorithm != _BY_BROKERS or isolates_hot_topics):
        raise SettingsError(
            f"{SPLIT_ALGORITHM}={algorithm} does not go with {SUPPORTED_ALGORITHMS}={supported}: cuts are computed here"
            f" and sent as positions, which brokers refuse unless {_BY_POSITIONS} is in that list"
        )
