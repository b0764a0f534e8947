"""Who may change something, and why somebody may not: the one rule, for REST and for the buttons of pages."""

from controller.settings.web import ViewerRole, WebSettings
from controller.web.access.viewer import Viewer, forbidden
from controller.wire.base import printable
from controller.wire.controls import MAX_NAME


def why_not(viewer: Viewer, settings: WebSettings, needed: ViewerRole) -> str:
    """Why *viewer* may not change what the role *needed* may; "" where they may."""
    if not settings.writes:
        return "This page is read-only: changes need [web] writes = true."
    if viewer.login == "anonymous":
        return "Log in first: nobody changes anything without a name."
    if not viewer.role.may(needed):
        return f"This needs the role {needed}; {viewer.name} is {_article(viewer.role)} {viewer.role}."
    if len(viewer.name) > MAX_NAME or printable(viewer.name) != viewer.name:
        # Cut, it could be the name of another person.
        return f"The history takes printable names of at most {MAX_NAME} characters, and this one is none."
    return ""


def require_writer(viewer: Viewer, settings: WebSettings, needed: ViewerRole) -> None:
    """RefusedError 403 where *viewer* may not change what the role *needed* may."""
    if why := why_not(viewer, settings, needed):
        raise forbidden(why)


def _article(role: ViewerRole) -> str:
    return "a" if role is ViewerRole.VIEWER else "an"
