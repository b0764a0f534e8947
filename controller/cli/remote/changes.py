"""The commands that change something by a server: each is done in the name of whom the token belongs to.

The server signs for that person where [approvals] demands it and names the server; a private key stays where it is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import typer

from controller.cli.remote.commands import server_at
from controller.cli.remote.rest_server import RestServer, ServerAddress, TellProgress
from controller.cli.shared import failures
from controller.cli.shared.answers import show as show_answer
from controller.cli.shared.arguments import length_ms
from controller.cli.shared.console import console
from controller.cli.shared.layout import print_line
from controller.cli.shared.signing import SHORTEST_APPROVED, SHORTEST_ID, refuse_no_id
from controller.cli.texts.proposals import print_detail, print_proposal, print_proposals
from controller.model.errors import NothingFoundError
from controller.offline.plans.plan_file import read_plan_bytes
from controller.web.rest.answers import ControlsWrittenAnswer, ProposalsAnswer, ProposalWrittenAnswer, ProposedAnswer
from controller.wire.answers.proposals import ProposalAnswer, ProposalDetailAnswer
from controller.wire.answers.status import ControlsAnswer
from controller.wire.base import printable
from controller.wire.readable import utc

_MINUTE_MS: Final = 60_000


def list_proposals(address: ServerAddress, *, every: bool, as_json: bool) -> None:
    """``trimtab proposals list``."""
    with server_at(address) as (server, tell):
        answer = server.get("/proposals", ProposalsAnswer, tell=tell, ended=every)
    for key, why in answer.unreadable.items():
        failures.say(f"proposal {key[:12]} cannot be read: {why}")
    if not answer.proposals and not as_json:
        failures.say("no proposal waits")
    show_answer(answer.proposals, lambda out: print_proposals(out, answer.proposals), as_json=as_json)


def show_proposal(address: ServerAddress, *, proposal: str, as_json: bool) -> None:
    """``trimtab proposals show``."""
    with server_at(address) as (server, tell):
        key = _whole_id(server, tell, proposal, SHORTEST_ID)
        answer = server.get(f"/proposals/{key}", ProposalDetailAnswer, tell=tell)
    show_answer(answer, lambda out: print_detail(out, answer, None), as_json=as_json)


def make_proposal(address: ServerAddress, *, file: Path, reason: str, as_json: bool) -> None:
    """``trimtab proposals make``."""
    content, reason = read_plan_bytes(file), _reason(reason)
    with server_at(address) as (server, tell):
        proposed = server.upload("/proposals", content, ProposedAnswer, tell=tell, reason=reason)
        answer = _answer_of(server, tell, proposed)
    _show(answer, as_json=as_json)


def approve_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals approve``."""
    _act(address, "approve", proposal, reason, as_json=as_json, shortest=SHORTEST_APPROVED)


def reject_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals reject``."""
    _act(address, "reject", proposal, reason, as_json=as_json)


def refresh_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals refresh``: the new proposal, once the server has made it."""
    body = {"reason": _reason(reason)}
    with server_at(address) as (server, tell):
        key = _whole_id(server, tell, proposal, SHORTEST_ID)
        proposed = server.change_by_job(f"/proposals/{key}/refresh", body, ProposedAnswer, tell=tell)
        answer = _answer_of(server, tell, proposed)
    _show(answer, as_json=as_json)


def pause_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals pause``."""
    _act(address, "pause", proposal, reason, as_json=as_json)


def resume_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals resume``."""
    _act(address, "resume", proposal, reason, as_json=as_json)


def stop_proposal(address: ServerAddress, *, proposal: str, reason: str, as_json: bool) -> None:
    """``trimtab proposals stop``."""
    _act(address, "stop", proposal, reason, as_json=as_json)


def apply_proposal(address: ServerAddress, *, proposal: str | None, reason: str) -> None:
    """``trimtab apply --proposal``: the server carries it out, whether this process goes on or not."""
    if proposal is None:
        raise typer.BadParameter("a server carries proposals out: give --proposal", param_hint="--proposal")
    _act(address, "apply", proposal, reason, as_json=False)


def pause(address: ServerAddress, *, reason: str, ends_after: str, as_json: bool) -> None:
    """``trimtab pause``."""
    minutes = -(-length_ms(ends_after, of="--for") // _MINUTE_MS) if ends_after else None
    _control(address, "pause", reason, {"minutes": minutes}, as_json=as_json, paused=True)


def resume(address: ServerAddress, *, reason: str, of: list[str] | None, every: bool, as_json: bool) -> None:
    """``trimtab resume``."""
    _control(address, "resume", reason, {"of": list(of or ()), "everybody": every}, as_json=as_json)


def mode(address: ServerAddress, *, value: str, reason: str, as_json: bool) -> None:
    """``trimtab mode``."""
    _control(address, "mode", reason, {"mode": str(value)}, as_json=as_json, of=str(value), mode=str(value))


def release(address: ServerAddress, *, brokers: list[str] | None, reason: str, as_json: bool) -> None:
    """``trimtab release``."""
    if not brokers:
        raise typer.BadParameter("name the brokers: a server releases no others", param_hint="BROKER")
    _control(address, "release", reason, {"brokers": brokers}, as_json=as_json, of=", ".join(brokers))


def exclude(address: ServerAddress, *, names: list[str], reason: str, as_json: bool) -> None:
    """``trimtab exclude``."""
    _control(address, "exclude", reason, {"names": names}, as_json=as_json, of=", ".join(names))


def include(address: ServerAddress, *, names: list[str], reason: str, as_json: bool) -> None:
    """``trimtab include``."""
    _control(address, "include", reason, {"names": names}, as_json=as_json, of=", ".join(names))


def stop_all(address: ServerAddress, *, reason: str, as_json: bool) -> None:
    """``trimtab stop-all``."""
    _control(address, "stop-all", reason, {}, as_json=as_json, paused=True)


def _act(
    address: ServerAddress, action: str, proposal: str, reason: str, *, as_json: bool, shortest: int = SHORTEST_ID
) -> None:
    body = {"reason": _reason(reason)}
    with server_at(address) as (server, tell):
        key = _whole_id(server, tell, proposal, shortest)
        written = server.change(f"/proposals/{key}/{action}", body, ProposalWrittenAnswer)
    _show(written.proposal, as_json=as_json)
    if written.job is not None and not as_json:
        print_line(console(), "The server goes on with it; `trimtab proposals show` says how far it is.")


def _control(
    address: ServerAddress,
    action: str,
    reason: str,
    more: Mapping[str, object],
    *,
    as_json: bool,
    of: str = "",
    **values: Any,
) -> None:
    """Have *action* done, of the value or values *of*; *values*: what it says as JSON."""
    what = f"{action} {of}" if of else action
    body = {"reason": _reason(reason), **{key: value for key, value in more.items() if value is not None}}
    with server_at(address) as (server, _):
        # The person says what is to be, whatever others have set meanwhile, as the local command does.
        written = server.change(f"/controls/{action}", body, ControlsWrittenAnswer, version="*")
    if written.proposal is not None:
        values, text = {}, f"Proposed: {what}. It is in force once others have approved {written.proposal}."
    else:
        text = f"Stored: {what}, by {written.by} at {utc(written.at_ms)}. Controllers read it at the next interval."
    answer = ControlsAnswer(cluster=written.cluster, proposal=written.proposal, epoch=written.epoch, **values)
    show_answer(answer, lambda out: print_line(out, text), as_json=as_json)


def _listed(server: RestServer, tell: TellProgress) -> dict[str, ProposalAnswer]:
    answer = server.get("/proposals", ProposalsAnswer, tell=tell, ended=True)
    return {each.id: each for each in answer.proposals}


def _answer_of(server: RestServer, tell: TellProgress, proposed: ProposedAnswer) -> ProposalAnswer:
    answer = _listed(server, tell).get(proposed.proposal)
    if answer is None:
        raise NothingFoundError(
            f"the server has proposed it, and lists no proposal {printable(proposed.proposal)[:64]}"
        )
    return answer


def _whole_id(server: RestServer, tell: TellProgress, text: str, shortest: int) -> str:
    """The id of the proposal whose id begins with *text*; NothingFoundError where there is none, or more than one."""
    refuse_no_id(text, shortest)
    matches = [key for key in _listed(server, tell) if key.startswith(text)]
    if len(matches) != 1:
        count = f"{len(matches)} proposals" if matches else "no proposal"
        raise NothingFoundError(f"the server has {count} with an id that begins with {text}")
    return matches[0]


def _show(answer: ProposalAnswer, *, as_json: bool) -> None:
    show_answer(answer, lambda out: print_proposal(out, answer), as_json=as_json)


def _reason(reason: str) -> str:
    if not reason.strip():
        raise typer.BadParameter("say why: the server stores it with your name", param_hint="--reason")
    return reason
