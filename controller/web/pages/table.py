"""The table of pages.  To add one: a function in a new file of this folder, its template, and a line here."""

from typing import Final

from controller.web.pages.now import now
from controller.web.pages.page import Page

PAGES: Final = (Page("/", "now", now),)
