"""Model files with changed values and a new checksum."""

import json
from dataclasses import replace

import msgspec

from bristlecone._model.document import Model, seal, write
from bristlecone._model.registry import loads
from bristlecone.exceptions import ModelFormatError
from bristlecone.trust._kinds import read_rows
from bristlecone.trust._rows import fingerprint


def sealed(document):
    """The text of a file with its checksum."""
    return write(seal(msgspec.convert(document, Model)))


def changed(text, changes):
    """The file with other values at some places, for example ("tree", "feature", 0)."""
    document = json.loads(text)
    for (*above, last), value in changes.items():
        part = document
        for key in above:
            part = part[key]
        part[last] = value(part[last]) if callable(value) else value
    return sealed(document)


def numbers(value, path=()):
    """Places and values of all numbers of a document."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from numbers(one, (*path, key))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def loaded(text):
    """The model; None if the file is rejected."""
    try:
        return loads(text)
    except (ModelFormatError, ValueError, IndexError):
        return None


def claimed_optimal(tree, X, y, **rows):
    """A tree for other outcomes, with leaves for these and a certificate that it is optimal."""
    again = tree.reestimate(X, y, **rows)
    least = again.objective_value_
    again.certificate_ = replace(again.certificate_, status="optimal", lower_bound=least)
    # Binary features that the tree does not use are part of the claim.
    digest = fingerprint(read_rows(again, X, y, rows))
    again.certificate_ = replace(again.certificate_, fingerprint=digest)
    return again


def claiming(tree, objective, lower_bound=None):
    """The tree with another objective and another bound."""
    bound = objective if lower_bound is None else lower_bound
    found = replace(tree.certificate_, objective_value=objective, lower_bound=bound)
    tree.certificate_ = replace(found, status="optimal")
    return tree
