"""A fitted tree as one HTML page that needs nothing else: no network, and no script to be read.

With script it is interactive. Made by templates: the extra ``report`` has their engine, Jinja2.
"""

from bristlecone.report._page import html_report
from bristlecone.report._proof import certificate

__all__ = ["certificate", "html_report"]
