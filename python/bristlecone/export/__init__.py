"""Export fitted trees as text, dictionaries, rules, Graphviz, Python, R, SQL and ONNX."""

from bristlecone.export._document import export_dict
from bristlecone.export._dot import export_dot
from bristlecone.export._onnx import export_onnx
from bristlecone.export._python import export_python
from bristlecone.export._r import export_r
from bristlecone.export._rules import export_rules
from bristlecone.export._sql import export_sql
from bristlecone.export._text import export_text

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
