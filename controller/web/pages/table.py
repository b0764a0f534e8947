"""The table of pages.  To add one: a function in a file of this folder, its template, and a line here."""

from typing import Final

from controller.web.pages import control_forms, proposals
from controller.web.pages.decisions import decision, decisions
from controller.web.pages.map import map_cell, map_events, map_hot, map_page, map_tile
from controller.web.pages.more import more
from controller.web.pages.names import broker, bundle, find, namespace
from controller.web.pages.now import now
from controller.web.pages.operators import controls, history, history_csv, history_json
from controller.web.pages.page import Page
from controller.web.pages.plans import plans
from controller.web.pages.what_if import what_if

PAGES: Final = (
    Page("/", "now", now),
    Page("/map", "map", map_page),
    Page("/map/tile", "map_tile", map_tile),
    Page("/map/events", "map_events", map_events),
    Page("/map/cell", "map_cell", map_cell),
    Page("/map/hot", "map_hot", map_hot),
    Page("/decisions", "decisions", decisions),
    Page("/decisions/{interval:int}", "decision", decision),
    Page("/find", "find", find),
    Page("/bundles/{name:path}", "bundle", bundle),
    Page("/brokers/{name:path}", "broker", broker),
    Page("/namespaces/{name:path}", "namespace", namespace),
    Page("/plans", "plans", plans),
    Page("/proposals/new", "new_proposal", proposals.new_form, proposals.new_submit),
    Page("/proposals/{id}", "proposal", proposals.proposal),
    Page("/proposals/{id}/{action}", "proposal_action", proposals.form, proposals.submit),
    Page("/controls", "controls", controls),
    Page("/controls/{action}", "control", control_forms.form, control_forms.submit),
    Page("/history", "history", history),
    Page("/history.csv", "history_csv", history_csv),
    Page("/history.json", "history_json", history_json),
    Page("/what-if", "what_if", what_if),
    Page("/more", "more", more),
)
