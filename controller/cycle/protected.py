"""Bundles that must not be moved or split, and the guardrail that forbids it."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Final, NamedTuple

import numpy as np

from controller.cycle.guardrails.fatal_bundles import about_fatal, fatal_bundles
from controller.cycle.guardrails.undescribed import about_undescribed, undescribed
from controller.cycle.guardrails.unreadable import about_unreadable, unreadable
from controller.cycle.outcomes import resting
from controller.cycle.policy import Policy
from controller.model.decision import CLUSTER, Reason, Verdict
from controller.model.load import Bools, ClusterView, Ints, Preallocated
from controller.model.memory import Memory
from controller.model.name_patterns import Namespaces
from controller.model.names import is_system_owned
from controller.model.reasons import CONFIGURATION, THROTTLED, Meaning

MEANINGS: Final = {
    Reason.IN_FLIGHT: Meaning(THROTTLED, "a command has no result yet: see `trimtab status` if it does not come"),
    Reason.BACK_OFF: Meaning(THROTTLED, "a command about the bundle failed; it rests before the next one"),
    Reason.SYSTEM_NAMESPACE: Meaning(CONFIGURATION, "Pulsar's own namespaces are never moved or split"),
    Reason.EXCLUDED: Meaning(
        CONFIGURATION,
        "a person, decisions.excluded or .only, loadBalancerSheddingExcludedNamespaces or the log keeps it",
    ),
}


class BundleGuardrail(NamedTuple):
    """What keeps a bundle where it is, and whole."""

    reason: Reason
    #: Its name in verdicts: the setting, where it has one.
    by: str
    #: Why, of several bundles.
    why: str
    #: Why, of one bundle, where the reason does not say enough.
    detail: str = ""

    def verdict(self, bundle: str) -> Verdict:
        """The verdict on *bundle*."""
        return Verdict(subject=bundle, reason=self.reason, by=self.by, detail=self.detail)


#: The guardrails of bundles, weakest first.
GUARDRAILS: Final = (
    BundleGuardrail(
        Reason.REJECTED,
        "approvals.decision_minutes",
        "a person rejected a decision about them",
        "a person rejected a decision about it",
    ),
    BundleGuardrail(Reason.IN_FLIGHT, "trimtabSheddingWaitsForResults", "their brokers have unloads in flight"),
    BundleGuardrail(Reason.IN_FLIGHT, "split", "they are split in this interval", "is being split"),
    BundleGuardrail(
        Reason.NAMESPACE_UNKNOWN, "guardrails.move_undescribed", "their namespaces have no namespace_state record"
    ),
    BundleGuardrail(
        Reason.ISOLATION_POLICY,
        "isolation_policies",
        "an isolation policy that names their namespaces, or might, cannot be read",
        "an isolation policy that names its namespace, or might, cannot be read",
    ),
    BundleGuardrail(
        Reason.BACK_OFF, "decisions.retry_failed_after_seconds", "commands about them failed, and they rest for a while"
    ),
    BundleGuardrail(Reason.IN_FLIGHT, "in_flight", "they have commands in flight"),
    BundleGuardrail(
        Reason.KILLS_BROKERS,
        "guardrails.move_fatal",
        "their owners died one after the other",
        "its owners died one after the other",
    ),
    BundleGuardrail(Reason.EXCLUDED, "decisions.only", "decisions.only does not name their namespaces"),
    BundleGuardrail(Reason.EXCLUDED, "controls.excluded", "a person excluded them", "a person excluded it"),
    BundleGuardrail(Reason.EXCLUDED, "decisions.excluded", "they, or their namespaces, are excluded"),
    BundleGuardrail(Reason.EXCLUDED, "log.pulsar.namespace", "trimtab's own topics are in their namespaces"),
    BundleGuardrail(Reason.SYSTEM_NAMESPACE, "system_namespaces", "their namespaces are Pulsar's own"),
)
(
    _FREE, _REJECTED, _GIVING, _SPLITTING, _UNDESCRIBED, _UNREADABLE, _RESTING, _IN_FLIGHT, _FATAL, _OTHERS, _BY_PEOPLE,
    _EXCLUDED, _OWN, _SYSTEM,
) = range(-1, 13)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProtectedBundles:
    """The guarded bundles of a view, and why each is guarded."""

    view: ClusterView
    #: (bundles,) the strongest guardrail of each bundle, as an index into GUARDRAILS, or _FREE.
    guardrail: Ints
    #: On what keeps bundles where they are for a reason that a person can remove.
    notices: tuple[Verdict, ...] = ()

    @classmethod
    def of(cls, view: ClusterView, memory: Memory, policy: Policy) -> "ProtectedBundles":
        """The bundles that *memory* and *policy* protect in the interval of *view*.

        ``policy.excluded`` and ``policy.only`` hold bundles, namespaces and patterns of namespaces;
        ``policy.excluded_by_people`` bundles and namespaces.
        """
        filtered, code_of = bool(policy.filters), view.bundles.code_of
        guardrail, not_described = _by_namespace(view, policy), undescribed(view, policy.limits)
        for mask, code in ((not_described, _UNDESCRIBED), (unreadable(view, filtered=filtered), _UNREADABLE)):
            guardrail = np.maximum(guardrail, np.where(mask, code, _FREE))
        for names, code in (
            (resting(memory.failed, view.as_of_ms, policy.patience), _RESTING),
            ([command.bundle for command in memory.in_flight.values()], _IN_FLIGHT),
            (fatal_bundles(memory, policy.limits), _FATAL),
            (policy.excluded_by_people, _BY_PEOPLE),
            (policy.excluded, _EXCLUDED),
        ):
            for row in [code_of[name] for name in names if name in code_of]:
                guardrail[row] = max(guardrail[row], code)
        notices = (
            *about_fatal(memory),
            *about_undescribed(view, not_described),
            *about_unreadable(view, filtered=filtered),
        )
        return cls(view=view, guardrail=guardrail, notices=notices)

    def and_bundles_of(self, givers: Set[str]) -> "ProtectedBundles":
        """These, and all other bundles of the brokers *givers*, which have unloads in flight."""
        giving = np.array([name in givers for name in self.view.brokers.names], np.bool_)
        of_them = giving[self.view.bundles.broker] & self.view.bundles.owned & ~self.mask
        return replace(self, guardrail=np.where(of_them, _GIVING, self.guardrail))

    def and_rejected(self, bundles: Iterable[str]) -> "ProtectedBundles":
        """These, and *bundles*, which strategies leave alone since a person rejected a decision about them."""
        rows = [row for name in bundles if (row := self.view.bundles.code_of.get(name)) is not None]
        guardrail = self.guardrail.copy()
        guardrail[rows] = np.maximum(guardrail[rows], _REJECTED)
        return replace(self, guardrail=guardrail)

    def and_split(self, bundles: Iterable[str]) -> "ProtectedBundles":
        """These, and *bundles*, which are split in this interval.

        Pulsar: ModularLoadManagerImpl.checkNamespaceBundleSplit, which removes them from LoadData before load is shed.
        """
        guardrail, code_of = self.guardrail.copy(), self.view.bundles.code_of
        rows = [code_of[bundle] for bundle in bundles]
        guardrail[rows] = np.maximum(guardrail[rows], _SPLITTING)
        return replace(self, guardrail=guardrail)

    @property
    def mask(self) -> Bools:
        """(bundles,) whether each bundle is guarded."""
        mask: Bools = self.guardrail != _FREE
        return mask

    def verdict(self, bundle: str) -> Verdict | None:
        """Why *bundle* must not be moved or split, or None."""
        row = self.view.bundles.code_of.get(bundle)
        if row is None or self.guardrail[row] == _FREE:
            return None
        return GUARDRAILS[int(self.guardrail[row])].verdict(bundle)

    def explain(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """A strategy's *verdicts*, with those on guarded bundles replaced by the guardrail's.

        O(bundles + verdicts): of tens of thousands of bundles each can have one.
        """
        names = self.view.bundles.names
        rows = np.flatnonzero(self.mask)
        guardrails = map(GUARDRAILS.__getitem__, self.guardrail[rows].tolist())
        guarded = dict(zip((names[row] for row in rows.tolist()), guardrails, strict=True))
        return [
            guardrail.verdict(each.subject) if (guardrail := guarded.get(each.subject)) else each for each in verdicts
        ]

    def counts(self, what: str) -> list[Verdict]:
        """One verdict for each guardrail: how many bundles it keeps from what is done to them, such as "split"."""
        counts = np.bincount(self.guardrail[self.mask], minlength=len(GUARDRAILS)).tolist()
        return [
            Verdict(
                subject=CLUSTER,
                reason=each.reason,
                observed=float(n),
                unit="bundles",
                by=each.by,
                detail=f"not {what}, since {each.why}",
            )
            for each, n in zip(GUARDRAILS, counts, strict=True)
            if n
        ]

    def rest(self) -> ClusterView:
        """The view without guarded bundles; brokers, namespaces and bundle counts are unchanged.  O(bundles)."""
        table, rows = self.view.bundles, np.flatnonzero(~self.mask)
        if len(rows) == len(table):
            return self.view
        columns = {f.name for f in fields(table)} - {"names", "namespaces", "detail"}
        free_bundles = replace(
            table,
            names=tuple(table.names[row] for row in rows.tolist()),
            **{name: getattr(table, name)[rows] for name in columns},
            detail=table.detail.take(rows),
        )
        # Preallocated bundles are in flight, so none is left.
        return replace(
            self.view,
            bundles=free_bundles,
            recently_unloaded=self.view.recently_unloaded[rows],
            guarded=None if self.view.guarded is None else self.view.guarded[rows],
            preallocated=Preallocated(),
            chosen=Preallocated(),
        )


def _by_namespace(view: ClusterView, policy: Policy) -> Ints:
    """(bundles,) the guardrail of each bundle's namespace, or _FREE."""
    table, excluded, only = view.bundles, Namespaces.of(policy.excluded), Namespaces.of(policy.only)

    def of_namespace(name: str) -> int:
        if is_system_owned(name):
            return _SYSTEM
        if name in policy.own_namespaces:
            return _OWN
        if name in excluded:
            return _EXCLUDED
        if name in policy.excluded_by_people:
            return _BY_PEOPLE
        return _OTHERS if policy.only and name not in only else _FREE

    spaces: Ints = np.array([of_namespace(name) for name in table.namespaces], np.int64)
    return spaces[table.namespace] if len(table) else np.zeros(0, np.int64)
