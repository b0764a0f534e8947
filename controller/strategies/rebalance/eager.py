"""Spread everything again over all members, whenever anything changes; meanwhile nothing runs.

Members give up all they hold before they join, so nothing can run twice, and the cost of a rebalance grows with the
group.  Connectors are dealt out first, then the tasks of all of them, without starting again at the first member: if
each connector were followed by its only task, every second of an even number of members would get no task.

Kafka Connect: org.apache.kafka.connect.runtime.distributed.EagerAssignor (2.6.0)
"""

from dataclasses import dataclass

from controller.strategies.common.worker_group import ConnectorsAndTasks, Group, GroupAssignment, MemberAssignment


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerAssignor:
    """See the module docstring; it has no options and remembers nothing."""

    def assign(self, group: Group) -> GroupAssignment:
        """All configured resources, dealt out to the members by name.

        Each member is to stop what it still holds, and to start its share.
        """
        config = group.leader_config()
        if config is None:
            return group.mismatch()
        members, resources = sorted(group.members), config.resources()
        first_task = len(resources.connectors)
        assignments = {}
        for turn, name in enumerate(members):
            share = ConnectorsAndTasks(
                connectors=resources.connectors[turn :: len(members)],
                # The first task goes to the member after the one that got the last connector.
                tasks=resources.tasks[(turn - first_task) % len(members) :: len(members)],
            )
            assignments[name] = MemberAssignment(start=share, stop=group.members[name])
        return GroupAssignment(offset=config.offset, assignments=assignments)
