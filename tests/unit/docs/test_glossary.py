"""The glossary has each term once, and links between pages lead to headings that exist."""

import re
from pathlib import Path

_DOCS = Path(__file__).parents[3] / "docs"
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([\w./-]*)#([\w-]+)\)")


def text_of(page: Path) -> str:
    """Without what stands in blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in _HEADING.findall(text_of(page)))
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


def test_every_link_to_a_heading_leads_to_one() -> None:
    pages = {page.resolve(): anchors(page) for page in _DOCS.rglob("*.md")}
    missing = [
        f"{page.name}: {name}#{anchor}"
        for page in pages
        for name, anchor in _LINK.findall(text_of(page))
        if anchor not in pages.get((page.parent / name).resolve() if name else page, set())
    ]
    assert missing == []


def test_every_term_of_the_glossary_stands_there_once_in_the_order_of_the_alphabet() -> None:
    glossary = _DOCS / "GLOSSARY.md"
    sections = re.split(r"^## ", text_of(glossary), flags=re.MULTILINE)[1:]
    terms = [re.findall(r"^### (.+)$", section, re.MULTILINE) for section in sections]
    everything = [term for section in terms for term in section]
    assert len(everything) == len(set(everything)) > 60
    assert [sorted(section, key=str.lower) for section in terms] == terms
    assert "(GLOSSARY.md)" in (_DOCS / "index.md").read_text(encoding="utf-8")
