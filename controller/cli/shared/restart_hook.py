"""The hook of ``trimtab apply``: the operator's command that restarts a broker which a plan has emptied."""

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from controller.adapters.process.hook import run_hook
from controller.adapters.pulsar.access import pulsar_admin
from controller.model.errors import PlanRefusedError
from controller.offline.plans.restarting import BrokerRestarts
from controller.planning.plans.plan import DRAIN, RESTART, Plan
from controller.settings.trimtab_toml import Settings

#: For each look at a broker.
_ANSWER_SECONDS: Final = 30.0
#: No option of a program, and nothing that a script's shell would take apart.
_HOST: Final = re.compile(r"[0-9A-Za-z_][0-9A-Za-z._-]*|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, kw_only=True)
class HookOptions:
    """How brokers that a plan empties are restarted."""

    hook: Annotated[
        str | None,
        typer.Option(
            metavar="CMD",
            help="Restart each broker that the plan empties by this command, a program and its arguments without a"
            " shell, wait until it is back and healthy, and release it: docs/restarts.md.  It finds the broker in the"
            " variable BROKER.",
            show_default=False,
        ),
    ] = None
    hook_minutes: Annotated[
        float,
        typer.Option(
            min=0.1, max=1440.0, help="CMD may take this long, and after it the broker, until it is back and healthy."
        ),
    ] = 10.0

    def command(self) -> list[str]:
        """The program and its arguments; empty without a hook.  typer.BadParameter where it cannot be run."""
        if self.hook is None:
            return []
        try:
            words = shlex.split(self.hook)
        except ValueError as error:
            raise typer.BadParameter(f"{self.hook!r}: {error}", param_hint="--hook") from error
        if not words or "\0" in self.hook or shutil.which(words[0]) is None:
            name = words[0] if words else ""
            raise typer.BadParameter(f"there is no program {name!r} that can be run", param_hint="--hook")
        return words


def broker_restarts(options: HookOptions, settings: Settings, plan: Plan, sha256: str) -> BrokerRestarts | None:
    """How the brokers of *plan*, with the hash *sha256*, are restarted; None without a hook.

    PlanRefusedError where no broker of the plan is to be restarted.
    """
    words, seconds = options.command(), options.hook_minutes * 60
    if not words:
        return None
    if plan.kind not in (DRAIN, RESTART):
        raise PlanRefusedError(
            f"--hook restarts brokers that a plan empties for a while, and this plan does not ({plan.kind}): make one"
            " with --rolling-restart or --drain"
        )
    odd = [
        name for step in range(len(plan.steps)) for name in plan.emptied_by(step) if not _HOST.fullmatch(_host(name))
    ]
    if odd:
        raise PlanRefusedError(f"no hook is run for {odd[0]!r}: its host is no host's name or address")

    # Whoever approved a rolling restart approved that its later steps send bundles to the restarted brokers.
    releases = plan.kind == RESTART or not settings.approvals.demanded
    if not releases and len(plan.emptied_by(0)) > 1:
        raise PlanRefusedError(
            "--hook restarts one broker after the other, and each release of a drain needs an approval of its own: make"
            " a plan with --rolling-restart, or drain one broker"
        )

    def hook(broker: str, meanwhile: Callable[[], None]) -> str:
        variables = {
            "BROKER": broker,
            "BROKER_HOST": _host(broker).strip("[]"),
            "TRIMTAB_CLUSTER": settings.cluster.name,
            "TRIMTAB_PLAN": sha256,
        }
        return run_hook(words, variables, seconds, meanwhile)

    return BrokerRestarts(
        hook=hook,
        probe=pulsar_admin(settings, answer_seconds=_ANSWER_SECONDS),
        limit_ms=int(seconds * 1000),
        releases=releases,
    )


def _host(broker: str) -> str:
    return broker.rpartition(":")[0]
