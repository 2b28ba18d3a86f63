"""Check a built site: links lead to pages and headings that exist, and pages need no network.

python docs/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
DESCRIBED = {"canonical", "search", "index", "next", "prev", "author", "copyright"}  # not loaded


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses and the anchors of an element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if found.get("rel") in DESCRIBED:
            return
        self.loaded += [found[name] for kind, name in LOADED if kind == tag and name in found]


def problems(folder: Path) -> list[str]:
    """One line per broken link and per address that a page loads from the network."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        where = path.relative_to(folder.resolve())
        found += [
            f"{where} loads {address}"
            for address in page.loaded
            if urlsplit(address).scheme in ("http", "https") or address.startswith("//")
        ]
        for address in page.links + page.loaded:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or address.startswith("//"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{where} links to {address}, which does not exist")
            elif target in pages and unquote(parts.fragment) not in {"", *pages[target].anchors}:
                found.append(f"{where} links to {address}, which has no such heading")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.exit(f"{site} must be a built site; run make docs.")
    found = problems(site)
    print("\n".join(sorted(set(found))) or "All links work, and no page needs the network.")
    sys.exit(bool(found))
