"""The structure of the package: which package may import which other."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import bristlecone
from bristlecone._view.fitted import FittedTree

PACKAGE = Path(bristlecone.__file__).parent

# From top to bottom: a package imports only from those below it.
ROOMS = (
    "__main__",
    "_cli",
    "scale",
    "trust",
    "tune",
    "datasets",
    "_estimators",
    "_fit",
    "report",
    "plot",
    "export",
    "_view",
    "_model",
    "_objectives",
    "_rewards",
    "_teacher",
    "_search",
    "reference",
    "_leaves",
    "_soft",
    "_encoder",
    "_tree",
    "metrics",
    "_foreign",
    "curves",
    "_data",
    "exceptions",
    "_log",
    "_types",
    "_core",
)


@cache
def modules():
    """Dotted name and syntax tree of every module."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return found


def imports():
    """(module, imported module, imported name) of every import, including those for types."""
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bristlecone"):
                for alias in node.names:
                    yield name, node.module, alias.name
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.startswith("bristlecone"):
                        yield name, alias.name, ""


def room(module, name=""):
    parts = [*module.split("."), name]
    return parts[1] if parts[1] in ROOMS else ""


def test_every_module_stands_in_a_room():
    found = {name.split(".")[1] for name, _ in modules() if "." in name}
    assert found <= set(ROOMS)
    assert found | {"_core"} == set(ROOMS)


def test_imports_run_downwards():
    depth = {name: place for place, name in enumerate(ROOMS)}
    for module, imported, name in imports():
        above, below = room(module), room(imported, name)
        if above and below and above != below:
            assert depth[above] < depth[below], f"{module} imports {imported}"


def test_no_room_uses_what_another_keeps_to_itself():
    for module, imported, name in imports():
        if room(module) != room(imported, name):
            # Private packages have an underscore; names in them have none.
            hidden = name.startswith("_") and name not in (*ROOMS, "__version__")
            assert not hidden, f"{module} imports {name} of {imported}"


def private(tree):
    """Private names that a module defines for its objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id  # a field of a dataclass
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))


def test_no_room_uses_private_names_of_objects_of_another():
    # Python's own names with an underscore, and those that packages share of public objects, which
    # would be public without it.
    allowed = {"_replace", "_asdict", "_fields", "_exit", "_from_record", "_to_record"}
    allowed |= {name for name in vars(FittedTree) if name.startswith("_")}
    own = {}
    for module, tree in modules():
        own.setdefault(room(f"{module}."), set()).update(private(tree))
    for module, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            known = allowed | own[room(f"{module}.")]
            if not of_itself and not node.attr.startswith("__") and node.attr not in known:
                raise AssertionError(f"{module} uses {ast.unparse(node)}")


def test_pandas_is_imported_when_first_needed():
    # Not checked for a fit, because scikit-learn imports pandas.
    program = "import sys, bristlecone; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
    for module, tree in modules():
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not [name for name in names if name.partition(".")[0] == "pandas"], module
