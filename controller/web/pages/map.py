"""The map: brokers x time and keyspace x time.  The page, its tiles, what happened, and the details of one cell."""

import gzip
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from controller.web.access.viewer import checked
from controller.web.pages.frame import Context, context_of, newest_end, render
from controller.web.pages.page import PageRequest
from controller.web.store.values import BrokerStates, Tile
from controller.web.views.bundle import HotTopicLine, hot_topics
from controller.web.views.cell import CellDetails, broker_cell, bundle_cell, namespace_cell
from controller.web.views.formats import BundleLabel
from controller.web.views.map_view import (
    METRICS,
    MINUTE_MS,
    SHORTEST_MS,
    SPANS,
    MapQuery,
    cell_table,
    column_ms,
    events_of,
    map_title,
    size,
    tile_bytes,
)

#: The picture for those who do not see it is made of a coarse tile.
_TABLE_COLUMNS: Final = 48
_TABLE_ROWS: Final = 512
#: With more, the table of the keyspace is made when somebody asks for it.
_MANY_BUNDLES: Final = 10_000
#: So many brokers are offered for the highlight, the fullest; another is typed, or found by a click on the map.
_OWNERS: Final = 64
#: So many moves are drawn one by one; more are counted, in so many bins.
_MOVES: Final = 90
_BINS: Final = 240
#: So many things that people did are looked through for pauses.
_CONTROL_EVENTS: Final = 200
#: An answer about a span that is over never changes.
_FOR_EVER: Final = "private, max-age=604800, immutable"
_NOT_WORTH_PACKING: Final = 1_024


def map_page(page: PageRequest) -> Response:
    """The map, as the parameters of its link ask for it."""
    context = context_of(page)
    query, end = _query(page, context), newest_end(context, page.now_ms)
    brokers = page.data.brokers()
    owners = [node.name for node in brokers.brokers] if brokers else []
    query = _with_owner(query, owners, context)
    progress = context.progress
    limit = brokers.limit if brokers else None
    table = None
    if _has_table(page, query, context):
        table = cell_table(_tile(page, query, _TABLE_COLUMNS, _TABLE_ROWS), context.names, query.rows, limit)
    return render(
        page,
        "map.html",
        "Map",
        context,
        query=query,
        metrics=METRICS[query.rows],
        spans=SPANS,
        # What a tile can show at least, also where the first interval has just been decided.
        oldest=min(progress.oldest if progress.oldest is not None else query.since_ms, end - SHORTEST_MS),
        end=end,
        period=context.state.period_ms if context.state else MINUTE_MS,
        limit=limit,
        goal=brokers.goal if brokers else None,
        owners=owners[:_OWNERS],
        owner_is_known=query.owner in owners,
        title=map_title(query, table, limit),
        table=table,
        cell=_cell(page, query, context, brokers),
        is_empty=context.state is None and progress.oldest is None,
    )


def _has_table(page: PageRequest, query: MapQuery, context: Context) -> bool:
    """Whether the page has the cells as a table at once: of a large keyspace that takes longer than the page may."""
    is_large = query.rows == "keyspace" and context.state is not None and context.state.bundles > _MANY_BUNDLES
    return not is_large or "table" in page.request.query_params


def _with_owner(query: MapQuery, brokers: Sequence[str], context: Context) -> MapQuery:
    """*query* with the whole name of the broker that it highlights, which may be a label; without one the fullest."""
    if query.metric != "owner" or query.owner in brokers:
        return query
    if not query.owner:
        return replace(query, owner=next(iter(brokers), ""))
    return replace(query, owner=context.names.whole(query.owner, brokers))


def map_tile(page: PageRequest) -> Response:
    """Cells for the script, as ``tile_bytes`` lays them out."""
    width, height = checked(lambda: size(page.request.query_params))
    tile = _tile(page, _query(page, context_of(page)), width, height)
    body = tile_bytes(tile)
    etag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    headers = {
        "Cache-Control": _FOR_EVER if tile.final else "private, no-cache",
        "ETag": etag,
        "Vary": "Accept-Encoding, Cookie",
    }
    if page.request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    if len(body) > _NOT_WORTH_PACKING and "gzip" in page.request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = gzip.compress(body, compresslevel=1, mtime=0), "gzip"
    return Response(body, headers=headers, media_type="application/octet-stream")


def map_events(page: PageRequest) -> Response:
    """Moves of the span one by one, or their counts where they are many, and pauses."""
    query = _query(page, context_of(page))
    since, until = query.since_ms, query.until_ms
    moves = page.data.moves(since, until, limit=_MOVES)
    counts = page.data.move_counts(since, until, bins=_BINS)
    controls = page.data.controls(limit=_CONTROL_EVENTS).events
    return JSONResponse(events_of(moves, counts, controls, until), headers={"Cache-Control": "private, no-cache"})


def map_cell(page: PageRequest) -> Response:
    """The details of the cell that is selected, as a part of a page."""
    context = context_of(page)
    query = _query(page, context)
    cell = _cell(page, query, context, page.data.brokers())
    if cell is None:
        raise HTTPException(400, "row and at must name a cell")
    return page.render("map_cell.html", cell=cell, query=query, names=context.names, now_ms=page.now_ms)


def map_hot(page: PageRequest) -> Response:
    """The hottest topic of a bundle in one column, in a few words; the text is empty where none is known."""
    query, column = _query(page, context_of(page)), checked(lambda: column_ms(page.request.query_params))
    if not query.row or query.at_ms is None:
        raise HTTPException(400, "row and at must name a cell")
    topics = _hot_topics(page, query.row, query.at_ms, query.at_ms + column)
    text = f"hottest topic: {topics[0].label}, {topics[0].share}" if topics else ""
    return JSONResponse({"text": text}, headers={"Cache-Control": "private, no-cache"})


def _hot_topics(page: PageRequest, bundle: str, since_ms: int, until_ms: int) -> tuple[HotTopicLine, ...]:
    """The hot topics of *bundle* when one of them was hottest in the span."""
    moment = page.data.hot_topics(bundle, since_ms, until_ms)
    return () if moment is None else hot_topics(moment.topics, page.topic_names(bundle, *moment.topics))


def _query(page: PageRequest, context: Context) -> MapQuery:
    oldest, end = context.progress.oldest, newest_end(context, page.now_ms)
    return checked(lambda: MapQuery.of(page.request.query_params, oldest_ms=oldest, end_ms=end))


def _tile(page: PageRequest, query: MapQuery, width: int, height: int) -> Tile:
    span = {"since_ms": query.since_ms, "until_ms": query.until_ms}

    def tile() -> Tile:
        if query.rows == "brokers":
            return page.data.broker_tile(query.broker_metric(), **span, width=width, height=height, order=query.order)
        return page.data.keyspace_tile(
            query.keyspace_metric(), **span, width=width, height=height, namespace=query.namespace, owner=query.owner
        )

    return checked(tile)


def _cell(page: PageRequest, query: MapQuery, context: Context, brokers: BrokerStates | None) -> CellDetails | None:
    if not query.row or query.at_ms is None:
        return None
    period = context.state.period_ms if context.state else MINUTE_MS
    at = query.at_ms - query.at_ms % period
    if query.rows == "brokers":
        past = page.data.broker(query.row, at, at + period)
        return broker_cell(past, at, brokers, context.names)
    if BundleLabel.of(query.row).range:
        bundle = checked(lambda: page.data.bundle(query.row, at, at + period))
        return bundle_cell(bundle, at, _hot_topics(page, query.row, at, at + period))
    return namespace_cell(page.data.namespace(query.row, at, at + period), at)
