"""Plans: the one that is being applied, and what people did about plans."""

from typing import Final

from starlette.responses import Response

from controller.web.pages.frame import context_of, render
from controller.web.pages.page import PageRequest
from controller.web.views.formats import BundleLabel
from controller.web.views.plans import heading, waves

#: So many entries of the history are looked through.
_HISTORY: Final = 200
#: So many moves of the wave are listed.
_MOVES: Final = 100


def plans(page: PageRequest) -> Response:
    """The plan in force, its wave and its moves."""
    context = context_of(page)
    orders = context.state.controls.orders if context.state is not None else None
    events = [event for event in page.data.controls(limit=_HISTORY).events if event.action in ("apply", "release")]
    moves = orders.moves if orders is not None else ()
    moving = {command.bundle for command in context.state.in_flight} if context.state is not None else set()
    return render(
        page,
        "plans.html",
        "Plans",
        context,
        heading=heading(orders, page.now_ms),
        orders=orders,
        waves=waves(orders),
        moves=[(BundleLabel.of(move.bundle), move.source, move.destination, move.bundle in moving) for move in moves][
            :_MOVES
        ],
        moves_left_out=max(0, len(moves) - _MOVES),
        events=events,
    )
