"""Every link and picture of the pages leads to something that there is."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tests.pages import DOCS, PAGES, ROOT
from tests.unit.docs.test_glossary import anchors, text_of

#: All pages that people read: those of docs, and those beside the README.
_PAGES: Final = sorted({*PAGES, *ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")})
_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)(?:\s+\"[^\"]*\")?\)")
_CODE: Final = re.compile(r"`[^`\n]+`")
_PICTURES: Final = DOCS / "pictures"
#: A format -> how its files begin.
_BEGINS: Final = {".svg": b"<svg", ".png": b"\x89PNG\r\n\x1a\n", ".webp": b"RIFF", ".jpg": b"\xff\xd8", ".gif": b"GIF8"}
_LARGEST_PICTURE: Final = 512 << 10
#: Paths that only an example has.
_EXAMPLES: Final = {"tests/vectors/5.0.2"}


def links(page: Path, *, pictures: bool) -> list[tuple[str, str]]:
    """Text and target of each link, or picture, of *page*, without what is code."""
    text = _CODE.sub("", text_of(page))
    return [(words, target) for mark, words, target in _LINK.findall(text) if bool(mark) is pictures]


def is_elsewhere(target: str) -> bool:
    return bool(urlsplit(target).scheme)


def file_of(page: Path, target: str) -> Path:
    path = unquote(urlsplit(target).path)
    return (page.parent / path).resolve() if path else page.resolve()


def test_there_are_links_and_pictures_to_check() -> None:
    assert sum(len(links(page, pictures=False)) for page in _PAGES) > 300
    assert sum(len(links(page, pictures=True)) for page in _PAGES) > 3


def test_every_link_to_a_file_leads_to_one_of_the_repository() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in _PAGES
        for _, target in links(page, pictures=False)
        if not is_elsewhere(target)
        and not (file_of(page, target).is_relative_to(ROOT) and file_of(page, target).exists())
    ]
    assert missing == []


def test_every_link_to_a_heading_of_any_page_leads_to_one() -> None:
    headings = {page.resolve(): anchors(page) for page in _PAGES}
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in _PAGES
        for _, target in links(page, pictures=False)
        if not is_elsewhere(target)
        and (anchor := urlsplit(target).fragment)
        and anchor not in headings.get(file_of(page, target), set())
    ]
    assert missing == []


def test_links_of_the_site_stay_in_the_site() -> None:
    outside = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in DOCS.rglob("*.md")
        for _, target in links(page, pictures=False)
        if not is_elsewhere(target) and not file_of(page, target).is_relative_to(DOCS)
    ]
    assert outside == []


def test_links_to_elsewhere_are_encrypted_and_say_nothing_of_who_reads() -> None:
    odd = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in _PAGES
        for _, target in links(page, pictures=False)
        if is_elsewhere(target)
        and (urlsplit(target).scheme != "https" or not urlsplit(target).hostname or "utm_" in target)
    ]
    assert odd == []


def test_every_picture_is_there_is_what_its_name_says_and_has_words_for_those_who_do_not_see_it() -> None:
    for page in _PAGES:
        for words, target in links(page, pictures=True):
            where = f"{page.relative_to(ROOT)}: {target}"
            assert not is_elsewhere(target), where
            file = file_of(page, target)
            assert file.is_file(), where
            assert file.read_bytes().lstrip().startswith(_BEGINS[file.suffix]), where
            assert file.stat().st_size <= _LARGEST_PICTURE, where
            assert len(words) >= 10, where


def test_every_picture_is_shown() -> None:
    shown = {file_of(page, target) for page in _PAGES for _, target in links(page, pictures=True)}
    assert [path.name for path in sorted(_PICTURES.rglob("*")) if path.is_file() and path.resolve() not in shown] == []


def test_every_path_of_the_repository_that_a_page_names_exists() -> None:
    named = re.compile(r"`((?:docs|tests|scripts|deploy|streaming|controller)/[\w./*-]*[\w/*])`")
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in _PAGES
        for path in named.findall(text_of(page))
        if path not in _EXAMPLES and not any(ROOT.glob(path.rstrip("/")))
    ]
    assert missing == []
