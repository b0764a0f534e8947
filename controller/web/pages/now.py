"""The page "Now"."""

from starlette.responses import Response

from controller.web.pages.page import PageRequest


def now(page: PageRequest) -> Response:
    """What the cluster does now."""
    return page.render("now.html")
