"""Makes commands, and what they count against the budgets."""

import uuid
from dataclasses import replace
from typing import Any, Final, NamedTuple

from controller.cycle.guardrails.budgets import Ledger
from controller.cycle.policy import Policy
from controller.model.controls import Controls
from controller.model.decision import Action, Command, Verdict
from controller.model.load import ClusterView
from controller.model.memory import Issued

#: Command ids are uuid5 of cluster / interval / action / bundle, in a namespace of their own.
_COMMANDS: Final = uuid.UUID("6f3f9d1e-6d0b-5c5e-9f62-7b1f6f2f4f10")


class Issuing(NamedTuple):
    """What the commands of one interval are made with, and counted by."""

    policy: Policy
    controls: Controls
    ledger: Ledger

    def command(self, action: Action, bundle: str, source: str, why: Verdict, interval: int, **more: Any) -> Command:
        """The command that is issued in *interval*; *more*: fields of an unload, or of a split."""
        return Command(
            id=command_id(self.policy.cluster, interval, action, bundle),
            action=action,
            cluster=self.policy.cluster,
            bundle=bundle,
            interval=interval,
            expires_at_ms=interval + self.policy.command_ttl_ms,
            mode="dry_run" if self.controls.mode == "dry_run" else "active",
            source=source,
            why=why,
            **more,
        )


def command_id(cluster: str, interval: int, action: Action, bundle: str) -> str:
    """The id of the command for *action* on *bundle*, decided in *interval*."""
    return str(uuid.uuid5(_COMMANDS, f"{cluster}/{interval}/{action}/{bundle}"))


def charge(view: ClusterView, command: Command) -> Issued:
    """What *command* counts against the budgets; a split without an unload counts no connections."""
    disturbs = command.action == "unload" or command.unload_after_split
    cost = charge_for(view, command.action, command.bundle, command.source, command.destination, disturbs=disturbs)
    return replace(cost, dry_run=command.mode == "dry_run")


def charge_for(
    view: ClusterView, action: Action, bundle: str, source: str, destination: str = "", *, disturbs: bool = True
) -> Issued:
    """The same for a command that is not made yet; *disturbs*: whether its connections count."""
    table, row = view.bundles, view.bundles.code_of[bundle]
    return Issued(
        action=action,
        namespace=table.namespaces[int(table.namespace[row])],
        source=source,
        destination=destination,
        connections=int(table.producers[row]) + int(table.consumers[row]) if disturbs else 0,
        interval=view.as_of_ms,
    )
