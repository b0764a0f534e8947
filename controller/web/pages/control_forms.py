"""A page for each action on the controls: its form, and what came of it.  The script shows the form as a dialog."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from controller.settings.pulsar_names import is_bundle
from controller.web.access.viewer import RefusedError
from controller.web.access.writers import require_writer
from controller.web.control_actions import ACTIONS, NEEDED, ControlAction, carry_out
from controller.web.control_desk import ControlsRead
from controller.web.pages.form_pages import LONGEST, body_of, first, form_page, query_values
from controller.web.pages.frame import Context, context_of
from controller.web.pages.page import PageRequest
from controller.web.views.formats import path
from controller.web.views.forms import FormFacts, action_form

#: Fields that are lists in the body.
_LISTS: Final = {"brokers": "", "names": "\n", "of": ""}


def form(page: PageRequest) -> Response:
    """The form of the action that the address names, with the values that it has."""
    return _page_of(page, _action(page), query_values(page))


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
            body_of(action.body, values, _LISTS),
            versions=frozenset(values.get("version", ())),
            key=first(values, "key"),
        )
    except RefusedError as error:
        page.refused = error
        return _page_of(page, action, values)
    target = page.href(f"/proposals/{written.proposal}") if written.proposal else _next(page, action, values)
    return RedirectResponse(target, 303)


def _action(page: PageRequest) -> ControlAction:
    action = ACTIONS.get(str(page.request.path_params["action"]))
    if action is None:
        raise HTTPException(404)
    return action


def _page_of(page: PageRequest, action: ControlAction, values: Mapping[str, Sequence[str]]) -> Response:
    context = context_of(page)
    controls, why = page.controls_now()
    return form_page(
        page,
        "Controls",
        context,
        None if controls is None else action_form(action.name, _facts(page, context, controls, values)),
        values,
        why=page.why_not(NEEDED) or why,
        back=_next(page, action, values),
        version="" if controls is None else controls.version,
    )


def _facts(
    page: PageRequest, context: Context, controls: ControlsRead, values: Mapping[str, Sequence[str]]
) -> FormFacts:
    return FormFacts(
        controls=controls.controls,
        state=context.state,
        names=context.names,
        settings_mode=page.cluster.settings.decisions.mode,
        by=page.viewer.name,
        now_ms=page.now_ms,
        values={name: [text[:LONGEST] for text in texts] for name, texts in values.items()},
    )


def _next(page: PageRequest, action: ControlAction, values: Mapping[str, Sequence[str]]) -> str:
    """Where the result of *action* is shown."""
    if action.name in ("drain", "release") and values.get("brokers"):
        return page.href(f"/brokers/{quote(values['brokers'][0], safe='')}")
    if action.name in ("exclude", "include") and len(names := first(values, "names").split()) == 1:
        return page.href(f"/{'bundles' if is_bundle(names[0]) else 'namespaces'}/{path(names[0])}")
    return page.href("/plans" if action.name == "stop-plan" else "/controls")
