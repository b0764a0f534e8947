"""Places that a narrow screen has no tab for."""

from starlette.responses import Response

from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest


def more(page: PageRequest) -> Response:
    """All other places."""
    return render(page, "more.html", "More", context_of(page))
