"""Random input for code that reads and writes files; ``python tests/fuzz`` runs any number.

The size is that of the other random tests (``BRISTLECONE_CASES``, ``BRISTLECONE_SEED``).
"""

import shutil
import subprocess

import numpy as np
import pytest
from fuzz_exports import tree
from fuzzing import FUZZERS, N_CASES, PER_CASE, SEED, fuzz, replay
from test_export_programs import RUN_R, agree, read_from_r, times_of, write_for_r


@pytest.mark.parametrize("name", FUZZERS)
def test_any_input_is_read_or_refused(name):
    counts, failures = fuzz(name, SEED, max(1, int(N_CASES * PER_CASE[name])))
    for seed, error in failures.items():
        raise AssertionError(f"{len(failures)} of {counts}; {replay(name, seed)}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.BristleconeWarning")
def test_r_predicts_as_random_trees(tmp_path):
    if shutil.which("Rscript") is None:
        pytest.skip("needs Rscript")
    trees = {}
    for seed in range(SEED, SEED + max(3, N_CASES // 3)):
        model, X = tree(np.random.default_rng(seed))
        trees[str(seed)] = model, X.astype(object)
    for name, (model, X) in trees.items():
        write_for_r(model, X, tmp_path / name, **times_of(model))
    (tmp_path / "run.R").write_text(RUN_R, encoding="utf-8")
    command = ["Rscript", "--vanilla", "run.R"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=600)
    if b"there is no package called" in run.stderr:
        pytest.skip("needs dplyr")
    assert run.returncode == 0, run.stderr.decode()
    for name, (model, X) in trees.items():
        agree(model, X, read_from_r(tmp_path / name))
