"""Fitted models as versioned JSON, never pickle: a file is data, checked field by field.

Numbers are read back to the same float, so a loaded model predicts exactly the same values as the
saved one. Files are not trusted: unknown, missing, mistyped and contradictory fields raise
:class:`~bristlecone.exceptions.ModelFormatError`, which names the field. A checksum over all fields
finds changes that cause no contradiction.

A fitted tree is ``tree_``, ``leaves_``, ``encoder_`` and ``certificate_``; :mod:`.document` defines
how they are written. Estimators are identified by their names.
"""

from __future__ import annotations

import math
import os
from copy import deepcopy
from dataclasses import replace
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict

import bristlecone
from bristlecone._core import __version__
from bristlecone._data.arrays import with_article
from bristlecone._data.checks import check_integer
from bristlecone._data.records import Record, within
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.records import DesignRecord
from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.survival import StepLeaves
from bristlecone._leaves.thinning import thinned
from bristlecone._model import document
from bristlecone._model.files import write_files
from bristlecone._model.survival import CURVE_ERROR
from bristlecone._search.certificate import Teaching
from bristlecone._soft.tree import SoftTree
from bristlecone._teacher.lesson import seed_of
from bristlecone.exceptions import ModelFormatError


def save_model(
    estimator: Any, path: str | os.PathLike[str], *, curve_points: int | None = None
) -> None:
    """Write a fitted estimator to a JSON file, completely or not at all.

    Parameters
    ----------
    estimator : fitted tree
        Tree to save. The file contains no training rows. Its parameters are those of the fit, even
        if they were changed since; a custom ``teacher``, ``outcome_model`` or
        ``propensity_model`` is None in the file, arrays and frames are lists, and a random
        generator is a seed that it has drawn.
    path : path
        File to write; an existing one is replaced.
    curve_points : int, optional
        Maximum number of steps of each leaf's survival curve, and of the baseline; it keeps the
        file of a model with many distinct times small. None keeps all steps in a shorter form: for
        a tree with eight leaves, this gives the smaller file if there are fewer than fifty distinct
        times per kept step. The kept steps have the least error in survival, which is
        ``certificate_.facts["curve_error"]`` of the loaded model. For a ``CompetingRisksTree``, it
        is the largest error in survival and in the incidences, which keep the same steps; with
        proportional curves another choice may have a smaller error. Predictions from curves,
        medians and intervals of leaves, and the risk of trees fitted by Brier score then become
        approximate. θ, the risk of trees fitted by likelihood, and the predictions of soft trees do
        not change.

    Raises
    ------
    NotFittedError, InfeasibleError
        If there is no tree.
    TypeError
        If a parameter has no JSON form, such as a custom encoder (the message names it), if the
        estimator is an ``OptimalTree``, whose task is Python code, or a ``TreeSizeCV``, whose
        ``best_estimator_`` can be saved.
    OSError, ValueError
        If the file cannot be written.

    See Also
    --------
    load_model : Read the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from bristlecone import OptimalTreeRegressor, load_model, save_model
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     save_model(tree, path)
    ...     load_model(path).predict([[7.0]]).tolist()
    [11.0]
    """
    write_files({path: dumps(estimator, curve_points)})


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator written by :func:`save_model`.

    Parameters
    ----------
    path : path
        File to read.

    Returns
    -------
    fitted estimator
        Estimator of the class that was saved.

    Raises
    ------
    ModelFormatError
        If the file is truncated, of another version, or inconsistent; the message names the field.
    OSError
        If the file cannot be read.

    See Also
    --------
    save_model : Write the file.

    Examples
    --------
    >>> import os, tempfile
    >>> from bristlecone import OptimalTreeRegressor, load_model, save_model
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(tree, os.path.join(folder, "model.json"))
    ...     load_model(os.path.join(folder, "model.json")).status_
    'optimal'
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{path} is not UTF-8 text: {error}") from None
    try:
        return loads(text)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None


def dumps(estimator: Any, curve_points: int | None = None) -> str:
    """JSON text of a fitted estimator; see :func:`save_model`."""
    check_integer("curve_points", curve_points, 1, optional=True)
    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise TypeError(f"the class {estimator.__name__} cannot be saved; only a fitted tree can")
    if hasattr(estimator, "_check_fitted"):
        estimator._check_fitted()
    if name == "OptimalTree":
        raise TypeError("an OptimalTree cannot be saved: its task is Python code")
    kind = document.ESTIMATORS.get(name)
    if kind is None or getattr(bristlecone, name) is not type(estimator):
        known = ", ".join(sorted(document.ESTIMATORS))
        if hasattr(estimator, "best_estimator_"):
            raise TypeError(f"{with_article(name)} cannot be saved; save its best_estimator_")
        raise TypeError(f"{with_article(name)} cannot be saved; only {known} can")
    leaves, certificate = estimator.leaves_, estimator.certificate_
    given = certificate.parameters
    parameters = {key: _plain_parameter(key, x, certificate.teacher) for key, x in given.items()}
    if curve_points is not None:
        leaves, certificate = _thinned(leaves, certificate, curve_points)
    tree: Any = document.TreeRecord
    if isinstance(estimator.tree_, SoftTree):
        tree = document.SoftTreeRecord
    model = document.Model(
        format="bristlecone model",
        version=document.VERSION,
        bristlecone=__version__,
        estimator=name,
        parameters=parameters,
        tree=tree.of(estimator.tree_),
        leaves=kind.of(leaves, estimator.tree_),  # type: ignore[arg-type,call-arg]
        encoder=estimator.encoder_._to_record(),
        certificate=document.CertificateRecord.of(certificate),
        checksum="",
    )
    return document.write(document.seal(model))


def loads(text: str, expected: type | None = None) -> Any:
    """Estimator from the text of :func:`dumps`; see :func:`load_model`.

    Parameters
    ----------
    text : str
        JSON.
    expected : class, optional
        The class the model must be of.
    """
    model = document.parse(text)
    cls = getattr(bristlecone, model.estimator)
    if expected is not None and cls is not expected:
        raise ModelFormatError(f"estimator is {cls.__name__}; expected {expected.__name__}")
    kind = document.ESTIMATORS[model.estimator]
    if not isinstance(model.leaves, kind):
        raise ModelFormatError(f"leaves are not those of {model.estimator}")
    is_soft = model.estimator == "SoftSurvivalTree"
    if isinstance(model.tree, document.SoftTreeRecord) != is_soft:
        raise ModelFormatError(f"tree is not that of {model.estimator}")
    estimator = cls(**_read_parameters(cls, model.parameters))
    try:
        estimator._check_parameters()
    except ValueError as error:
        raise ModelFormatError(f"parameters: {error}") from None
    estimator.encoder_ = _read_encoder(model)
    with within("tree"):
        tree: Any = model.tree
        estimator.tree_ = tree.value(estimator.encoder_)
    with within("certificate"):
        parameters = estimator.get_params(deep=False)
        estimator.certificate_ = model.certificate.value(parameters, estimator.encoder_)
        if estimator.certificate_.n_samples != estimator.tree_.n_node_samples[0]:
            raise ModelFormatError("n_samples is not that of the tree")
    with within("leaves"):
        leaves: Any = model.leaves
        estimator.leaves_ = leaves.value(estimator.tree_, estimator.certificate_)
    document.check_sum(model)
    return estimator


def _thinned(leaves: Any, certificate: Any, points: int) -> tuple[Any, Any]:
    """Leaves with thinner curves, and a certificate that states by how much they are off."""
    thinner, error = thinned(leaves, points)
    if thinner is leaves or not isinstance(leaves, StepLeaves | IncidenceLeaves):
        return thinner, certificate
    # Rounded up. If curves were thinned before, the errors add up.
    error += certificate.facts.get(CURVE_ERROR, 0.0)
    if error:
        unit = 10.0 ** (math.floor(math.log10(error)) - 1)
        error = math.ceil(error / unit) * unit
    what = "survival is" if isinstance(leaves, StepLeaves) else "survival and incidences are"
    steps = "1 step" if points == 1 else f"{points} steps"
    text = f"thinned to at most {steps}; {what} off by at most {error:.2g}"
    remarks = [remark for remark in certificate.remarks if remark[0] != "curves"]
    return thinner, replace(
        certificate,
        facts={**certificate.facts, CURVE_ERROR: error},
        remarks=(*remarks, ("curves", text)),
    )


def _plain_parameter(name: str, value: Any, teaching: Teaching | None) -> Any:
    if name in ("teacher", "outcome_model", "propensity_model") and not isinstance(value, str):
        # A file does not contain models of other packages; the certificate keeps their text.
        return None
    if isinstance(value, np.random.RandomState):
        # The seed that it gave the teacher, or would give the models of a policy.
        return seed_of(deepcopy(value)) if teaching is None else teaching.seed
    return document.plain_parameter(name, value)


@cache
def parameter_names(cls: Any) -> tuple[str, ...]:
    """Names of the constructor parameters of an estimator's class, sorted."""
    _, *parameters = signature(cls.__init__).parameters.values()
    several = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
    return tuple(sorted(one.name for one in parameters if one.kind not in several))


def _read_parameters(cls: Any, given: dict[str, Any]) -> dict[str, Any]:
    # A parameter that is newer than the file has its default. The checksum detects removed ones.
    for name in set(given) - set(parameter_names(cls)):
        raise ModelFormatError(f"parameters.{name} is not known")
    return {name: _read_parameter(value) for name, value in given.items()}


def _read_parameter(value: Any) -> Any:
    if isinstance(value, document.MappingRecord):
        return dict(value.pairs)
    if isinstance(value, Record):
        return getattr(bristlecone, str(value.__struct_config__.tag))(**asdict(value))
    return value


def _read_encoder(model: document.Model) -> Any:
    record = model.encoder
    if isinstance(record, DesignRecord) != isinstance(model.tree, document.SoftTreeRecord):
        raise ModelFormatError("encoder is not of the type that the tree needs")
    with within("encoder"):
        if isinstance(record, DesignRecord):
            return DesignEncoder._from_record(record)
        return BinaryEncoder._from_record(record)
