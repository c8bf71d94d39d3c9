"""A fitted tree as one HTML page that needs no network, and no script to be read.

With script it is interactive. It is made from templates: the extra ``report`` installs their
engine, Jinja2.
"""

from bristlecone.report._page import html_report
from bristlecone.report._proof import certificate

__all__ = ["certificate", "html_report"]
