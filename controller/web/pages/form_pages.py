"""What all pages with a form that changes something share."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from starlette.responses import Response

from controller.web.access.viewer import bad_request
from controller.web.pages.frame import Context, render
from controller.web.pages.page import PageRequest
from controller.web.parameters import Parameters
from controller.web.views.forms import ActionForm

B = TypeVar("B", bound=Parameters)

#: Fields that are about the request, and no part of the body.
_OWN: Final = frozenset({"version", "key"})
#: Bytes of random text in a key: each form that is shown has another one.
_KEY_BYTES: Final = 18
LONGEST: Final = 2_048


def query_values(page: PageRequest) -> dict[str, list[str]]:
    """The values that the address has, by name."""
    query = page.request.query_params
    return {name: query.getlist(name) for name in dict.fromkeys(query.keys()) if name != "cluster"}


def first(values: Mapping[str, Sequence[str]], name: str) -> str:
    """The first value of *name*; "" without one."""
    return next(iter(values.get(name, ())), "")


def body_of(model: type[B], values: Mapping[str, Sequence[str]], lists: Mapping[str, str]) -> B:
    """The body that a form's *values* stand for; *lists*: fields with several values, and what separates them.

    RefusedError 400.
    """
    fields: dict[str, Any] = {}
    for name, texts in values.items():
        if name in lists:
            parts = [part.strip() for text in texts for part in (text.split(lists[name]) if lists[name] else [text])]
            fields[name] = tuple(filter(None, parts))
        elif name not in _OWN and texts[0]:
            fields[name] = texts[0]
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        flaw = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, flaw["loc"])) or "form"
        problem = "say why: the history shows it" if where == "reason" else f"{where}: {flaw['msg']}"
        raise bad_request(problem) from None


def form_page(
    page: PageRequest,
    place: str,
    context: Context,
    form: ActionForm | None,
    values: Mapping[str, Sequence[str]],
    *,
    why: str,
    back: str,
    version: str = "",
) -> Response:
    """The page with *form*, or why there is none; with what *values* have, and why it was refused before."""
    response = render(
        page,
        "form.html",
        place,
        context,
        form=form,
        version=version,
        key=secrets.token_urlsafe(_KEY_BYTES),
        reason=first(values, "reason")[:LONGEST],
        error=page.refused,
        why=why,
        back=back,
    )
    if page.refused is not None:
        response.status_code = page.refused.status
    return response
