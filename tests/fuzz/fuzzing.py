"""Fuzzed functions of a random generator, which fail or return the result of the input."""

import os
import signal
from collections import Counter

import numpy as np
from fuzz_encoder import encodings
from fuzz_exports import exports
from fuzz_lives import lives
from fuzz_models import model_files

FUZZERS = {"models": model_files, "encoder": encodings, "exports": exports, "lives": lives}
# Number of inputs for each case of the random problems.
PER_CASE = {"models": 10, "encoder": 4, "exports": 0.5, "lives": 0.5}
MOST_SECONDS = 20


class Hangs(Exception):
    pass


def hang(*_):
    raise Hangs(f"takes longer than {MOST_SECONDS} seconds")


def fuzz(name, first, n):
    """Run n inputs with consecutive seeds; return the results, and failures by seed."""
    counts, failures = Counter(), {}
    signal.signal(signal.SIGALRM, hang)
    for seed in range(first, first + n):
        signal.alarm(MOST_SECONDS)
        try:
            counts[FUZZERS[name](np.random.default_rng(seed))] += 1
        # A panic of the engine is not a subclass of Exception.
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failures[seed] = error
            counts["failed"] += 1
        finally:
            signal.alarm(0)
    return counts, failures


def replay(name, seed):
    return f"python tests/fuzz {name} --seed {seed} --cases 1"


N_CASES = int(os.environ.get("BRISTLECONE_CASES", "50"))
SEED = int(os.environ.get("BRISTLECONE_SEED", "0"))
