"""Compares every estimator with all trees, on many random problems.

    python tests/brute_force --cases 1000000 --jobs 2 --seed 1000000 --folder campaign

resumes where it was stopped; ``record.md`` and ``record.json`` in the folder list what was run.
"""

import argparse
import os
import sys
from pathlib import Path

# The helpers of the tests, too.
sys.path.append(str(Path(__file__).parents[1]))


def main():
    parser = argparse.ArgumentParser(
        prog="python tests/brute_force",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cases = int(os.environ.get("BRISTLECONE_CASES", "10000"))
    first = int(os.environ.get("BRISTLECONE_SEED", "1000000"))
    add = parser.add_argument
    add("--cases", type=int, default=cases, help="how many (default BRISTLECONE_CASES, or 10000)")
    add("--seed", type=int, default=first, help="of the first (default BRISTLECONE_SEED, or 10⁶)")
    add("--jobs", type=int, default=1, help="processes")
    add("--minutes", type=float, help="begin no block of 1000 cases after that long")
    add("--folder", type=Path, default=Path("campaign"), help="of the state and the record")
    add("--again", action="store_true", help="also blocks with a failure, now that it is mended")
    add("--replay", metavar="CHECK/KIND/SEED", help="run one case and nothing else")
    given = parser.parse_args()

    if given.replay:
        from cases import run

        name, kind, seed = given.replay.split("/")
        problem, counted = run(name, kind, int(seed))
        print("passed", problem.estimator.__name__, *counted)
        return 0
    from campaign import campaign

    failed = campaign(given.cases, given.jobs, given.seed, given.folder, given.minutes, given.again)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
