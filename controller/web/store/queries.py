"""What the page and REST ask: small methods that return frozen values.  For several threads.

No method reads the log, and none waits for it: they answer from the store, which a ``Feed`` fills.  Each raises
ValueError for an argument that cannot be (a span that ends before it begins, a cursor that nobody gave out), with a
text for the caller.  Unknown names are no error: the answer says ``known=False``.
"""

from typing import Protocol

from controller.web.store.values import (
    BrokerMetric,
    BrokerPast,
    BrokerStates,
    BundlePast,
    ControlPage,
    DecisionDetail,
    DecisionPage,
    DecisionQuery,
    HotMoment,
    IssuedCommand,
    KeyspaceMetric,
    LatestState,
    NameMatch,
    NamespacePast,
    Progress,
    RowOrder,
    Tile,
)


class PageData(Protocol):
    """All that pages ask; ``controller.web.store.store.Store`` implements it."""

    def progress(self) -> Progress:
        """What is loaded, what is still loading, and how far back data reaches."""
        ...

    def version(self) -> int:
        """Grows whenever something that a query returns may have changed: for ETags and for server-sent events."""
        ...

    def wait(self, version: int, timeout_seconds: float) -> int:
        """Return the version as soon as it is another one than *version*, or after the timeout."""
        ...

    # ---- now ----

    def latest(self) -> LatestState | None:
        """The last interval; None before the first summary."""
        ...

    def brokers(self) -> BrokerStates | None:
        """All brokers in the last interval, fullest first; None before the first summary."""
        ...

    # ---- pictures ----

    def broker_tile(
        self,
        metric: BrokerMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        order: RowOrder = "usage",
    ) -> Tile:
        """Brokers × time.  At most *width* columns and *height* rows; brokers are folded where there are more."""
        ...

    def keyspace_tile(
        self,
        metric: KeyspaceMetric,
        since_ms: int,
        until_ms: int,
        *,
        width: int,
        height: int,
        namespace: str | None = None,
        owner: str = "",
    ) -> Tile:
        """Keyspace × time.  At most *width* columns and *height* rows.

        Without *namespace*: a row for each of the busiest namespaces, sorted by name; the last row folds the rest
        (``name`` is ""), and where all bundles fit, a row for each bundle.  With it: its bundles in the order of their
        ranges; a split becomes two rows from then on.  *owner*: the broker that is highlighted where *metric* is owner.
        """
        ...

    def moves(self, since_ms: int, until_ms: int, *, limit: int = 90) -> tuple[IssuedCommand, ...]:
        """Commands with T in the span, oldest first; empty if there are more than *limit*: then ask ``move_counts``."""
        ...

    def plan_failures(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        """The newest commands of plans with T from *since_ms* on that were carried out and failed; at most *limit*."""
        ...

    def undone_moves(self, since_ms: int, *, limit: int = 500) -> tuple[IssuedCommand, ...]:
        """The newest moves with T from *since_ms* on whose bundle was back on its source within an hour."""
        ...

    def move_counts(self, since_ms: int, until_ms: int, *, bins: int) -> tuple[int, ...]:
        """How many commands each of *bins* equal parts of the span has."""
        ...

    def plan_commands(self, plan: str, *, limit: int = 10_000) -> tuple[IssuedCommand, ...]:
        """The newest commands of the plan with the hash *plan*, the newest first; at most *limit* (1 to 10,000)."""
        ...

    # ---- decisions ----

    def decisions(self, query: DecisionQuery, *, cursor: str | None = None, limit: int = 50) -> DecisionPage:
        """The newest decisions that match *query*, or those before *cursor*; at most *limit* (1 to 500)."""
        ...

    def decision(self, interval: int) -> DecisionDetail | None:
        """The decision of T *interval*; None: the store has none."""
        ...

    # ---- histories ----

    def bundle(self, bundle: str, since_ms: int, until_ms: int) -> BundlePast:
        """One bundle; *bundle* is its whole name, else ValueError.  Commands: the newest 500."""
        ...

    def hot_topics(self, bundle: str, since_ms: int, until_ms: int) -> HotMoment | None:
        """When a topic of *bundle* was hottest, of the first 64 intervals in the span; None: none is known."""
        ...

    def broker(self, broker: str, since_ms: int, until_ms: int) -> BrokerPast:
        """One broker.  Commands: the newest 500."""
        ...

    def namespace(self, namespace: str, since_ms: int, until_ms: int) -> NamespacePast:
        """One namespace.  Commands: the newest 500."""
        ...

    def controls(self, *, cursor: str | None = None, limit: int = 50) -> ControlPage:
        """What people did with the controls, the newest first."""
        ...

    def search(self, text: str, limit: int = 20) -> tuple[NameMatch, ...]:
        """Names of the last 7 days that contain *text*: brokers, then namespaces, then bundles; at most *limit*."""
        ...

    def close(self) -> None:
        """Release files.  Queries fail after this."""
        ...
