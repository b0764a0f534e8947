"""The memory that one cycle passes to the next, journalled with each decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from controller.model.decision import Command
from controller.model.proposed import ProposedDecision
from controller.model.pulsar_version import VersionInUse
from controller.model.strategy_memory import NoMemory, StrategyMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """A command whose result has not come back yet."""

    action: str
    bundle: str
    source: str
    destination: str
    interval: int
    expires_at_ms: int
    #: A dry run changes nothing: its result never counts as a failure, and it is forgotten once the mode is active.
    dry_run: bool = False
    #: The bundle had neither clients nor traffic: no broker has to list it after the move.
    idle: bool = False

    @classmethod
    def of(cls, command: Command, *, idle: bool = False) -> Self:
        """What is remembered of *command*, whose bundle is *idle*."""
        return cls(
            action=command.action,
            bundle=command.bundle,
            source=command.source,
            destination=command.destination,
            interval=command.interval,
            expires_at_ms=command.expires_at_ms,
            dry_run=command.mode == "dry_run",
            idle=idle,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """A command that counts against the budgets of the rolling window."""

    action: str
    namespace: str
    source: str
    #: "" for splits.
    destination: str
    #: Producers and consumers that have to reconnect.
    connections: int
    interval: int
    #: When the interval was decided, epoch ms, wall clock; 0: in its own time, or by an earlier release.
    at_ms: int = 0
    #: Of a dry run: forgotten once the mode is active.
    dry_run: bool = False

    @property
    def decided_at(self) -> int:
        """When it was issued, epoch ms, as far as that is known."""
        return self.at_ms or self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """The breaker: stops all commands after many failures, until a person runs `trimtab resume`."""

    #: Failed commands since the last success.
    in_a_row: int = 0
    #: T at which it tripped, epoch ms; None while it is closed.
    tripped_at: int | None = None
    #: Why it tripped.
    why: str = ""
    #: Time of the last resume before it tripped, epoch ms, wall clock; a later resume closes it.
    resumed_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The active brokers, and those that joined or left recently."""

    #: Sorted; empty before the first interval.
    brokers: tuple[str, ...] = ()
    #: Broker -> T at which it joined (came) or left (went), epoch ms, kept while that freezes commands.
    came: Mapping[str, int] = field(default_factory=dict)
    went: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBalancing:
    """What is known of the brokers' own balancing, which must be off while trimtab moves load."""

    #: Why nothing is issued in mode active; "": nothing speaks against it.
    why: str = ""
    #: How many brokers do by themselves what trimtab does.
    on: int = 0
    #: Active broker whose switches are not known -> the last T at which they were, epoch ms; 0: they never were.
    unknown: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Consecutive failed commands about one bundle."""

    times: int
    #: T in which the last failure became known, epoch ms.
    interval: int
    #: Only commands of a dry run failed: forgotten once the mode is active.
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlistedBundle:
    """A bundle that was moved to a broker, by an answered command, and that the broker has not listed since."""

    #: T in which the result became known, epoch ms.
    answered: int
    #: Intervals since then in which the broker sent data without it, one a minute at most, up to the limit.
    sweeps: int = 0
    #: As of its command: see InFlight.
    idle: bool = False
    #: Whether the executor saw that the broker owns it.
    verified: bool = False
    #: It counts against the limit, but is no reason to send the broker nothing.
    lapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """What became of the bundles that were moved to one broker."""

    #: Of those, how many it has listed; no more than it owns now, but at least 1 once it has listed one.
    listed: int = 0
    unlisted: Mapping[str, UnlistedBundle] = field(default_factory=dict)
    #: Consecutive times that it did not list what it was sent, and T until which it gets nothing, epoch ms.
    failed: int = 0
    rests_until: int = 0
    #: The last `trimtab resume` that is known here, epoch ms, wall clock; a later one clears the record.
    resumed_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FatalBundle:
    """A bundle whose owners died one after the other, more often than chance explains."""

    #: T of the last such death, epoch ms; how many there were; and the last of the brokers, the newest first.
    at: int
    deaths: int
    brokers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDeaths:
    """Who owned each bundle, and which bundles were on the brokers that died last (cycle/guardrails/fatal_bundles.py).

    Columns are packed into text: 11 bytes a bundle, of which 8 are its name, hashed, and 4 more for each bundle that
    was on a broker that died last.
    """

    #: A digest of the names of the bundles in the last view.
    bundles: str = ""
    hashes: str = ""
    #: Number of the owner in *brokers*, from 1; 0: nobody.
    owners: str = ""
    #: How many deaths in a row it was present at; and the logarithm of their chance, where there were any.
    deaths: str = ""
    chances: str = ""
    brokers: tuple[str, ...] = ()
    #: The active brokers.
    alive: tuple[str, ...] = ()
    #: The brokers that died last, together, and how many others there were to take their bundles.
    died: tuple[str, ...] = ()
    choices: int = 0
    #: T in which they died, epoch ms; 0: before the last `trimtab resume`, or not known.
    died_at: int = 0
    #: Bundle -> why it stays where it is.
    fatal: Mapping[str, FatalBundle] = field(default_factory=dict)
    #: The last `trimtab resume` that is known here, epoch ms, wall clock; a later one clears *fatal*.
    resumed_ms: int = 0


#: The fields of ``Memory`` that belong to strategies.
STRATEGY_ROLES: Final = ("shedder", "placement", "split", "membership")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The controller's memory between cycles; a new cluster starts with ``Memory(seed=...)``."""

    seed: int = 0
    #: The last decided T, epoch ms; None before the first decision.
    last_interval: int | None = None
    #: When it was decided, epoch ms, wall clock; 0 where that was in its own time, or is not known.
    decided_at_ms: int = 0
    #: Consecutive closed intervals without a gap; no commands until there are ``warm_up_samples``.
    samples: int = 0
    shedder: StrategyMemory = field(default_factory=NoMemory)
    placement: StrategyMemory = field(default_factory=NoMemory)
    split: StrategyMemory = field(default_factory=NoMemory)
    membership: StrategyMemory = field(default_factory=NoMemory)
    #: Bundle -> T of its last unload, epoch ms.
    recently_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Bundle -> T of the last unload that a dry run issued, epoch ms: forgotten once the mode is active.
    dry_run_unloaded: Mapping[str, int] = field(default_factory=dict)
    #: Command id -> the command, until its result comes back.
    in_flight: Mapping[str, InFlight] = field(default_factory=dict)
    #: Bundle -> its consecutive failures, until they no longer count.
    failed: Mapping[str, Failed] = field(default_factory=dict)
    #: Command id -> what it counts against the budgets, for the length of the rolling window.
    issued: Mapping[str, Issued] = field(default_factory=dict)
    #: Command id -> T at which it failed, epoch ms, for the length of the rolling window.
    failures: Mapping[str, int] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=Breaker)
    roster: Roster = field(default_factory=Roster)
    #: Broker -> what became of the bundles that were moved to it.
    destinations: Mapping[str, Destination] = field(default_factory=dict)
    balancing: OwnBalancing = field(default_factory=OwnBalancing)
    deaths: BrokerDeaths = field(default_factory=BrokerDeaths)
    #: Mode approve: the decision that waits for approval; and bundle -> when it may be decided on again after somebody
    #: rejected a decision about it, epoch ms.
    proposed: ProposedDecision | None = None
    rejected: Mapping[str, int] = field(default_factory=dict)
    #: The version of Pulsar that the last interval was decided by, as its decision says.
    pulsar: VersionInUse | None = None
