"""Controls: what the operator and the age of the data allow.  An input of every decision, journalled with it."""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedMove:
    """One bundle that an operator's plan moves."""

    bundle: str
    #: The broker that must own it.
    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """One wave of a plan that ``trimtab apply`` handed to the controllers; without moves: a plan is being applied."""

    #: The plan's hash.
    plan: str
    #: Step and wave, from 1, and how many waves the step has.
    step: int
    wave: int
    waves: int
    moves: tuple[OrderedMove, ...] = ()
    #: T of the load that the moves were checked against, epoch ms: what was unloaded from then on is not again.
    checked_at: int
    #: No interval T after this obeys, epoch ms: where `trimtab apply` has ended, balancing goes on.
    expires_at_ms: int
    #: The process of `trimtab apply` that handed it over, and who started it.
    holder: str
    by: str
    #: Whether guardrails held back all of the moves that were handed over last: the shedder unloads then where a broker
    #: cannot wait.  None: an earlier release, which does not check again while a wave waits, has written them.
    held_back: bool | None = None

    def hold_at(self, interval: int) -> bool:
        """Whether the controllers obey in *interval*, T."""
        return interval <= self.expires_at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The controls that an interval was decided with."""

    #: "active" moves load, "dry_run" issues commands that change nothing, "observe" issues none.
    mode: str
    paused: bool = False
    #: The interval is too old to act on; the memory is still updated.
    stale: bool = False
    #: When the interval is decided, epoch ms, wall clock; 0: in its own time, as in what is modelled.  Controls are
    #: equal where they allow the same, whenever that is.
    decided_at_ms: int = field(default=0, compare=False)
    #: Why an operator set the mode or the pause, who, and when (epoch ms, wall clock); "" and 0 if nobody did.
    reason: str = ""
    by: str = ""
    since_ms: int = 0
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never.  A later resume closes the breaker.
    resumed_ms: int = 0
    #: Why the maintenance windows forbid commands at this T; "" if they allow them.
    maintenance: str = ""
    #: Why the operator's controls could not be read; "" if they were.  No commands are issued until they are read.
    unknown: str = ""
    #: Brokers that get no bundles until `trimtab release`, sorted.
    drained: tuple[str, ...] = ()
    #: The moves of a plan that is being applied.
    orders: Orders | None = None

    def timeless(self) -> "Controls":
        """The same, of an interval that is decided in its own time, or that is not journalled."""
        return replace(self, decided_at_ms=0)

    def decided_at(self, interval: int) -> int:
        """When *interval*, T, is decided, epoch ms."""
        return self.decided_at_ms or interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One setting that an operator made."""

    value: str
    reason: str
    by: str
    #: Epoch ms, wall clock.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """A broker that gets no bundles."""

    broker: str
    by: str
    #: Epoch ms.
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorControls:
    """What operators set with `trimtab pause`, `resume`, `mode`, `apply` and `release`.

    It is stored, so it survives every restart.  None: no operator has set it, so the settings in trimtab.toml apply.
    """

    #: "active", "dry_run" or "observe".
    mode: Choice | None = None
    #: "paused" or "running".
    pause: Choice | None = None
    #: Time of the last `trimtab resume`, epoch ms, wall clock; 0: never.
    resumed_ms: int = 0
    #: Time of the last `trimtab stop-all`, likewise: it ends what `trimtab apply` began before.
    stopped_ms: int = 0
    #: Time of the last `trimtab accept-loss`, likewise: entries that the journal lost before are not waited for.
    loss_accepted_ms: int = 0
    #: By name.
    drained: tuple[Drained, ...] = ()
    orders: Orders | None = None

    def in_force(self, *, mode: str, paused: bool) -> tuple[str, bool, Choice | None]:
        """The mode and the pause that apply, and the operator's choice that explains them.

        *mode* and *paused* come from the settings; they apply where no operator has set anything.
        """
        is_paused = paused if self.pause is None else self.pause.value == PAUSED
        return (
            mode if self.mode is None else self.mode.value,
            is_paused,
            self.pause if is_paused and self.pause is not None else self.mode,
        )


PAUSED = "paused"
RUNNING = "running"
