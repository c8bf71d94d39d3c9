"""Random input for model files, the encoder and the exports.

    python tests/fuzz models --cases 1000000

A failure is shown with the command that repeats it.
"""

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

# The helpers of the tests, too.
sys.path.append(str(Path(__file__).parents[1]))


def main():
    from fuzzing import FUZZERS, fuzz, replay

    parser = argparse.ArgumentParser(
        prog="python tests/fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)} (default all)")
    cases, first = os.environ.get("BRISTLECONE_CASES"), os.environ.get("BRISTLECONE_SEED")
    add("--cases", type=int, default=int(cases or 1000), help="how many of each")
    add("--seed", type=int, default=int(first or 0), help="of the first")
    given = parser.parse_args()
    failed = 0
    for name in given.names or FUZZERS:
        began = time.perf_counter()
        counts, failures = fuzz(name, given.seed, given.cases)
        for seed, error in list(failures.items())[:20]:
            print(f"FAILED {replay(name, seed)}")
            print("".join(traceback.format_exception(error)[-4:]))
        reported = ", ".join(f"{n} {what}" for what, n in counts.most_common())
        print(f"{name}: {given.cases} inputs in {time.perf_counter() - began:.0f} s: {reported}")
        failed += len(failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
