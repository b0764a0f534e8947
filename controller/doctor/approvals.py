"""Can what needs approval be approved, and does every controller demand the same?"""

from collections import defaultdict
from collections.abc import Iterator

from controller.doctor.facts import Facts
from controller.doctor.finding import Finding, error, listed, warning
from controller.settings.approvals import ApprovalSettings

_SECTION = "[approvals]"


def policy_of_controllers(facts: Facts) -> Iterator[Finding]:
    """approvals-policy-differs: approvals under one policy do not count under another."""
    ours = facts.settings.approvals.version
    members: dict[str, list[str]] = defaultdict(list)
    for each in facts.execution.processes.of("controller"):
        if each.policy != ours:
            members[each.policy or "none"].append(f"{each.host}, process {each.process}")
    if members:
        yield error(
            "approvals-policy-differs",
            sorted(name for names in members.values() for name in names),
            observed=f"policy {ours or 'none'} here, but "
            + "; ".join(f"{version} of {listed(sorted(names))}" for version, names in sorted(members.items())),
            expected="one policy: a controller refuses approvals that were made under another one",
            advice=f"the same section {_SECTION} in the settings of all processes, then restart them",
        )


def policy_satisfiable(facts: Facts) -> Iterator[Finding]:
    """approvals-unsatisfiable: nothing can ever be approved."""
    policy = facts.settings.approvals
    if not policy.demanded:
        return
    why = _why_unsatisfiable(policy)
    if why:
        yield error(
            "approvals-unsatisfiable",
            _SECTION,
            observed=why,
            expected=f"somebody who may propose, and {policy.required} others who may approve",
            advice="add persons to [approvals.keys], or lower approvals.required",
        )


def controller_key(facts: Facts) -> Iterator[Finding]:
    """approvals-key-unusable, approvals-key-open, approvals-no-key, approvals-commands-unsigned."""
    policy, key = facts.settings.approvals, facts.signing_key
    file = policy.controller_key_file
    if key.problem:
        yield error("approvals-key-unusable", file or _SECTION, observed=key.problem)
    elif key.is_open and file is not None:
        yield warning(
            "approvals-key-open",
            file,
            observed="other users of this machine may read this private key, or replace it",
            expected="trimtab's user alone",
            advice=f"chmod 600 {file}",
        )
    if policy.controllers and file is None:
        yield warning(
            "approvals-no-key",
            _SECTION,
            observed="executors demand signed commands, and these settings name no key to sign them",
            expected="approvals.controller_key_file in the settings of each controller; no other process needs it",
            advice="`trimtab proposals key` makes a key",
        )
    if policy.demanded and not policy.controllers:
        yield warning(
            "approvals-commands-unsigned",
            _SECTION,
            observed="approvals are demanded, but executors carry out commands that no controller has signed",
            expected="approvals.controllers, so that whoever may write the command topic moves nothing",
            advice="`trimtab proposals key` makes a key for approvals.controller_key_file",
        )


def _why_unsatisfiable(policy: ApprovalSettings) -> str:
    """Why nobody can have a proposal approved under *policy*; "" where somebody can."""
    if any(not each.people for each in policy.servers.values()):
        return ""
    of_servers = {name for each in policy.servers.values() for name in each.people}
    proposers = {name for name, each in policy.keys.items() if "propose" in each.may} | of_servers
    approvers = {name for name, each in policy.keys.items() if "approve" in each.may} | of_servers
    people = {min(policy.names_of(name)) for name in approvers}
    if not proposers:
        return "nobody may propose"
    others = max(len(people - {min(policy.names_of(name))}) for name in proposers)
    if others >= policy.required:
        return ""
    return f"a proposal needs {policy.required} approvals by others than its author, and has {others} at most"
