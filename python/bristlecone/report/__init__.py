"""Self-contained HTML reports about fitted trees.

A report can be read without JavaScript, and is interactive with it. The extra ``report``
installs Jinja2, which is needed.
"""

from bristlecone.report._page import html_report
from bristlecone.report._proof import certificate

__all__ = ["certificate", "html_report"]
