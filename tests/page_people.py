"""A site on which people changed things, for pictures and checks of its pages: proposals of each kind in each state."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from controller.adapters.approvals.making import Signer, propose_control, propose_plan
from controller.adapters.election.proposals import change_record
from controller.cycle.ordered import told_of
from controller.log.elections import election_system
from controller.model.controls import ControlChange, Drained, OperatorControls, OrderedMove, Orders
from controller.model.decision import Reason, Verdict
from controller.model.proposals import ProposalState
from controller.planning.plans.plan import Plan
from controller.planning.plans.plan_steps import PlanLimits, empty_step
from controller.planning.plans.waves import WaveLimits
from controller.settings.trimtab_toml import Settings
from controller.web.jobs import Job
from controller.web.orders import of_what_if
from controller.web.site import Site
from controller.web.store.queries import PageData
from controller.web.store.values import ControlEvent, ControlPage, IssuedCommand
from controller.wire.answers.what_if import ReplayAnswer, ReplayedMoveAnswer
from controller.wire.plan import encode_plan
from tests.balance_problems import seeded
from tests.plans import plan_of
from tests.proposals import key_of
from tests.web_people import WRITES, tokens_file
from tests.web_sites import served, site
from tests.what_ifs import what_if_answer

CLUSTER: Final = "invented"
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
#: Of the plans: large enough for several waves and lists that are cut.
_BROKERS: Final = 120
_BUNDLES: Final = 4_000
_WINDOWS: Final = (
    "[guardrails.maintenance]",
    'time_zone = "Europe/Berlin"',
    'allowed = ["0 10 * * mon-fri for 8h", "0 0 * * sat for 24h"]',
    "[decisions]",
    'mode = "active"',
    'excluded = ["tenant-3/*", "tenant-1/app-0001", "tenant-2/app-0002/0x00000000_0x40000000"]',
)


class Overridden:
    """Page data with some answers of its own: the names of methods -> what they return."""

    def __init__(self, data: PageData, **answers: Any) -> None:
        self._data, self._answers = data, answers

    def __getattr__(self, name: str) -> Any:
        if name in self._answers:
            return lambda *_, **__: self._answers[name]
        return getattr(self._data, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSite:
    """The address, and the hashes of proposals by what they show."""

    address: str
    proposals: dict[str, str]
    #: The id of a job that has ended.
    what_if: str


@contextmanager
def people_site(folder: Path, data: PageData, now_ms: int) -> Iterator[PeopleSite]:
    """A site of *data*, with a plan that is being applied and two that wait; people log in with tokens."""
    (folder / "page.key").write_bytes(key_of("page").pem)
    (folder / "page.key").chmod(0o600)
    signing = f'signing_key_file = "{folder / "page.key"}"'
    approvals = ("[approvals.servers.page]", f'key = "{key_of("page").public_text}"')
    shown = site(
        folder,
        CLUSTER,
        web=(
            *(line for line in WRITES if "anonymous" not in line),
            tokens_file(folder),
            signing,
            *approvals,
            *_WINDOWS,
        ),
        now_ms=lambda: now_ms,
        data=data,
    )
    settings = shown.clusters[CLUSTER].settings
    plan = _plan(data, now_ms)
    proposals = _proposed(settings, plan, now_ms)
    controls = _change_controls(settings, plan, proposals["applying"], now_ms)
    shown.clusters[CLUSTER].data = _applying(data, controls, _commands(plan, proposals["applying"], now_ms))
    with served(shown) as address:
        yield PeopleSite(address=address, proposals=proposals, what_if=_what_if(shown, folder, plan))
    shown.jobs.close()


def _what_if(shown: Site, folder: Path, plan: Plan) -> str:
    """A what-if that is done, with another strategy."""
    moves = [
        ReplayedMoveAnswer(
            interval=plan.interval - at * _MINUTE_MS,
            action="unload",
            bundle=plan.bundles[at * 17],
            source=plan.brokers[at % 7],
            destination=plan.brokers[-1 - at],
            reason=f"usage {88 - at} % against 85 %",
            uncertain=at == 3,
        )
        for at in range(12)
    ]
    figures = {"highest usage": 0.84, "moves": 12.0, "connections": 4_310.0, "undone moves": 0.0}
    replay = ReplayAnswer(
        figures=figures, decisions=1_440, uncertain=3, largest_error=0.4, commands=len(moves), moves=moves
    )
    answer = what_if_answer({"TransferShedder": replay}, notes=["Bundles of 2 brokers are not known before 09:00."])
    answer.happened.clear()
    answer.happened.update({"highest usage": 0.91, "moves": 31.0, "connections": 9_020.0, "undone moves": 2.0})
    span = (plan.interval - 24 * _HOUR_MS, plan.interval)
    job = Job(
        id="whatif",
        order=of_what_if(shown, shown.clusters[CLUSTER], span, ("TransferShedder",)),
        by="otto",
        created_ms=plan.interval,
        folder=folder / "job",
        state="done",
    )
    job.result.write_text(answer.as_line(), encoding="utf-8")
    shown.jobs._jobs[job.id] = job
    return job.id


def _plan(data: PageData, now_ms: int) -> Plan:
    """A plan that empties two brokers of the cluster of *data*, or of one that is invented where it has none."""
    known = data.brokers()
    names = [each.name for each in known.brokers] if known is not None else []
    brokers = [*names, *(f"broker-{each:04d}.example:8080" for each in range(len(names), _BROKERS))][:_BROKERS]
    one = seeded(_BROKERS, _BUNDLES, 3, seed=1)
    step = empty_step(one, [0, 1], PlanLimits(waves=WaveLimits(max_moves=12)))
    return replace(
        plan_of(one, [step]),
        cluster=CLUSTER,
        interval=now_ms // _MINUTE_MS * _MINUTE_MS - _MINUTE_MS,
        asked="empty two brokers",
        brokers=tuple(brokers),
        bundles=tuple(
            f"tenant-{at // 16 % 7}/app-{at // 16:04d}/0x{at % 16:x}0000000_0x{at % 16:x}fffffff"
            for at in range(_BUNDLES)
        ),
    )


def _proposed(settings: Settings, plan: Plan, now_ms: int) -> dict[str, str]:
    """The hashes of the plan in several states, and of a change of the mode, by what they show."""
    store = election_system(settings).proposals()

    def signer(person: str) -> Signer:
        return Signer(person=person, policy=settings.approvals, cluster=CLUSTER, key_name="page", key=key_of("page"))

    states = {
        "pending": None,
        "applying": ProposalState.APPLYING,
        "paused": ProposalState.PAUSED,
        "failed": ProposalState.FAILED,
        "done": ProposalState.DONE,
        "stopped": ProposalState.STOPPED,
    }
    made = {}
    for at, (name, state) in enumerate(states.items()):
        content = encode_plan(replace(plan, asked=f"empty two brokers, {name}"))
        key = made[name] = propose_plan(
            store,
            signer("otto"),
            content,
            now_ms=now_ms - (at + 1) * 5 * _MINUTE_MS,
            reason="two machines are replaced",
        ).proposal.hash
        if state is None:
            continue

        def progressed(now: Any, state: ProposalState = state) -> Any:
            detail = "a move failed: the broker did not answer" if state is ProposalState.FAILED else ""
            changed = replace(
                now.record.progress,
                state=state,
                step=1,
                wave=2,
                waves=len(plan.steps[0].waves),
                moves=len(plan.moves),
                moves_done=14,
                detail=detail,
                by="otto",
                at_ms=now_ms - 2 * _MINUTE_MS,
            )
            return replace(now.record, progress=changed)

        change_record(store, key, progressed)
    control = propose_control(
        store, signer("olga"), "mode", ("active",), now_ms=now_ms - 9 * _MINUTE_MS, reason="the upgrade is done"
    )
    return {**made, "control": control.proposal.hash}


def _orders(plan: Plan, key: str, wave: int, now_ms: int) -> Orders:
    """The wave number *wave*, from 1, of *plan*."""
    moves = tuple(
        OrderedMove(
            bundle=plan.bundles[each.bundle],
            source=plan.brokers[each.source],
            destination=plan.brokers[each.destination],
        )
        for each in plan.steps[0].waves[wave - 1]
    )
    return Orders(
        plan=key,
        step=1,
        wave=wave,
        waves=len(plan.steps[0].waves),
        moves=moves,
        checked_at=plan.interval,
        expires_at_ms=now_ms + _HOUR_MS,
        holder="page-1",
        by="otto",
    )


def _commands(plan: Plan, key: str, now_ms: int) -> tuple[IssuedCommand, ...]:
    """Of the first wave one move failed and the others are done; of the second two are done, the next are in flight."""
    made = []
    for wave in (2, 1):
        orders = _orders(plan, key, wave, now_ms)
        why = Verdict(subject=CLUSTER, reason=Reason.PLANNED, by="plan", detail=told_of(orders))
        for at, move in enumerate(orders.moves[: 8 if wave == 2 else None]):
            is_done = wave == 1 or at < 2
            failed = wave == 1 and at == 3
            interval = plan.interval - (2 - wave) * 2 * _MINUTE_MS
            command = IssuedCommand(
                id=f"{wave}-{at}",
                interval=interval,
                action="unload",
                bundle=move.bundle,
                namespace=move.bundle.rpartition("/")[0],
                source=move.source,
                destination=move.destination,
                mode="active",
                why=why,
                status="failed" if failed else "done" if is_done else "",
                detail="the broker did not answer within 30 s" if failed else "",
                started_at=interval + 2_000,
                finished_at=interval + 3_000 if is_done else None,
                measured=None,
            )
            made.append(command)
    return tuple(made)


def _change_controls(settings: Settings, plan: Plan, key: str, now_ms: int) -> OperatorControls:
    """Store what people did: a plan is applied, a broker is drained, and the history."""
    orders = _orders(plan, key, 2, now_ms)
    past = (
        (50, "ada", "mode", "dry_run → active", "trial is over"),
        (40, "grace", "pause", "for 15 min", "upgrade of the bookies"),
        (30, "grace", "resume", "", "upgrade is done"),
        (20, "otto", "refused", "approve 1f2e3d4c5b6a", "You are the author: another person has to approve it."),
        (12, "otto", "drain", plan.brokers[3], "its disk is slow"),
        (4, "otto", "apply", f"plan {key[:12]}: {len(plan.moves)} moves", "two machines are replaced"),
    )
    history = tuple(
        ControlChange(at_ms=now_ms - ago * _MINUTE_MS, by=by, action=action, detail=detail, reason=reason)
        for ago, by, action, detail, reason in past
    )
    controls = OperatorControls(
        drained=(Drained(broker=plan.brokers[3], by="otto", at_ms=now_ms - 12 * _MINUTE_MS),),
        orders=orders,
        history=history,
    )
    store = election_system(settings).controls()
    stored = store.write(controls, store.version())
    store.close()
    assert stored
    return controls


def _applying(data: PageData, controls: OperatorControls, commands: Sequence[IssuedCommand]) -> Any:
    """*data*, whose last interval was decided with *controls*; *commands* are those of the plan."""
    state = data.latest()
    if state is None:
        return data
    drained = tuple(each.broker for each in controls.drained)
    now = replace(state, controls=replace(state.controls, orders=controls.orders, drained=drained))
    history = [
        ControlEvent(at_ms=each.at_ms, by=each.by, action=each.action, detail=each.detail, reason=each.reason)
        for each in reversed(controls.history)
    ]
    known = ControlPage(events=tuple(history), cursor=None)
    return Overridden(data, latest=now, plan_commands=tuple(commands), controls=known)
