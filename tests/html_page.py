"""A strict parser of pages."""

from html.parser import HTMLParser

VOID = {"meta", "link", "rect", "path", "circle", "input"}
RAW = {"style", "script"}


class Page(HTMLParser):
    """Text and tags of a page; raises an error if tags are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.text, self.raw = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.raw if self.open and self.open[-1] in RAW else self.text).append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def having(self, name):
        """Attributes of all tags with a class."""
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]
