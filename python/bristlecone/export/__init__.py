"""Fitted trees to take away: text, dictionaries, rules, code, pictures, networks of operators."""

from bristlecone.export.document import export_dict
from bristlecone.export.dot import export_dot
from bristlecone.export.onnx import export_onnx
from bristlecone.export.python import export_python
from bristlecone.export.r import export_r
from bristlecone.export.rules import export_rules
from bristlecone.export.sql import export_sql
from bristlecone.export.text import export_text

__all__ = [
    "export_dict",
    "export_dot",
    "export_onnx",
    "export_python",
    "export_r",
    "export_rules",
    "export_sql",
    "export_text",
]
