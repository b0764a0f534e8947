"""A page for each action on the controls: its form, and what came of it.  The script shows the form as a dialog."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from controller.web.access.viewer import RefusedError, bad_request
from controller.web.access.writers import require_writer
from controller.web.control_actions import ACTIONS, NEEDED, ControlAction, ReasonBody, carry_out
from controller.web.control_desk import ControlsRead
from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest
from controller.web.views.forms import FormFacts, action_form

#: Fields that are lists in the body.
_LISTS: Final = frozenset({"brokers", "of"})
#: Fields that are about the request, and no part of the body.
_OWN: Final = frozenset({"version", "key"})
#: Bytes of random text in a key: each form that is shown has another one.
_KEY_BYTES: Final = 18
_LONGEST: Final = 2_048


def form(page: PageRequest) -> Response:
    """The form of the action that the address names, with the values that it has."""
    action = _action(page)
    names = dict.fromkeys(name for name, _ in page.request.query_params.multi_items())
    values = {name: page.request.query_params.getlist(name) for name in names if name != "cluster"}
    return _form_page(page, action, values, None)


def submit(page: PageRequest) -> Response:
    """Do what the form asks, and lead to where it is shown; or show the form again, with why it was not done."""
    action, values = _action(page), page.form
    try:
        require_writer(page.viewer, page.site.settings, NEEDED)
        written = carry_out(
            page.site,
            page.cluster,
            page.viewer,
            action,
            _body(action, values),
            versions=frozenset(values.get("version", ())),
            key=next(iter(values.get("key", ())), ""),
        )
    except RefusedError as error:
        page.refused = error
        return _form_page(page, action, values, error)
    return RedirectResponse(
        page.href(f"/proposals/{written.proposal}") if written.proposal else _next(page, action, values), 303
    )


def _action(page: PageRequest) -> ControlAction:
    action = ACTIONS.get(str(page.request.path_params["action"]))
    if action is None:
        raise HTTPException(404)
    return action


def _body(action: ControlAction, values: Mapping[str, Sequence[str]]) -> ReasonBody:
    """The body that the form's *values* stand for.  RefusedError 400."""
    fields: dict[str, Any] = {}
    for name, texts in values.items():
        if name in _LISTS:
            fields[name] = tuple(texts)
        elif name not in _OWN and texts[0]:
            fields[name] = texts[0]
    try:
        return action.body.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "form"
        problem = "say why: the history shows it" if where == "reason" else f"{where}: {first['msg']}"
        raise bad_request(problem) from None


def _form_page(
    page: PageRequest, action: ControlAction, values: Mapping[str, Sequence[str]], error: RefusedError | None
) -> Response:
    context = context_of(page)
    controls, why = page.controls_now()
    made = None
    if controls is not None:
        made = action_form(action.name, _facts(page, context, controls, values))
    response = render(
        page,
        "control_form.html",
        "Controls",
        context,
        form=made,
        version="" if controls is None else controls.version,
        key=secrets.token_urlsafe(_KEY_BYTES),
        reason=next(iter(values.get("reason", ())), "")[:_LONGEST],
        error=error,
        why=page.why_not(NEEDED) or why,
        back=_next(page, action, values),
    )
    if error is not None:
        response.status_code = error.status
    return response


def _facts(page: PageRequest, context: Any, controls: ControlsRead, values: Mapping[str, Sequence[str]]) -> FormFacts:
    return FormFacts(
        controls=controls.controls,
        state=context.state,
        names=context.names,
        settings_mode=page.cluster.settings.decisions.mode,
        by=page.viewer.name,
        now_ms=page.now_ms,
        values={name: [text[:_LONGEST] for text in texts] for name, texts in values.items()},
    )


def _next(page: PageRequest, action: ControlAction, values: Mapping[str, Sequence[str]]) -> str:
    """Where the result of *action* is shown."""
    if action.name in ("drain", "release") and values.get("brokers"):
        return page.href(f"/brokers/{quote(values['brokers'][0], safe='')}")
    return page.href("/plans" if action.name == "stop-plan" else "/controls")
