"""The search of a problem: for one tree, or for the best tree of every size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from bristlecone._core import Solution
from bristlecone._fit.forecast import CostWarner
from bristlecone._fit.search import Search
from bristlecone._search.certificate import reporter
from bristlecone._search.engine import Changed, Problem
from bristlecone._search.progress import SearchProgress

Callback = Callable[[SearchProgress], object]


def solve(search: Search, problem: Problem, callback: Callback | None = None) -> Solution:
    """The best tree; warns as soon as the search is forecast to exceed its limits."""
    warner = CostWarner(search, problem, reporter(callback))
    settings = search.limits.settings(problem, callback=warner)
    solution: Solution = search.engine(problem).solve(**settings)
    warner.end(solution.status)
    return solution


def solve_sizes(search: Search, problem: Problem) -> Iterator[Solution]:
    """Best trees with at most one leaf, two, ... up to the largest size; one search if possible.

    Otherwise the searches share the time that is left equally, and Ctrl-C stops all that remain.
    """
    engine, limits = search.engine(problem), search.limits
    sizes = range(1, limits.most_leaves(problem.features) + 1)
    if engine.path is not None:
        yield from engine.path(**limits.settings(problem))[: len(sizes)]
        return
    begun, is_interrupted, best = time.perf_counter(), False, None
    for leaves in sizes:
        settings = replace(limits, max_leaf_nodes=leaves).settings(problem)
        if is_interrupted:
            settings["time_limit"] = 0.0
        elif limits.time_limit is not None:
            left = settings["time_limit"] - (time.perf_counter() - begun)
            settings["time_limit"] = max(left, 0.0) / (len(sizes) - leaves + 1)
        solution = engine.solve(**settings)
        if is_interrupted and solution.status == "time_limit":
            solution = Changed(solution, status="interrupted")
        is_interrupted = solution.status == "interrupted" or is_interrupted
        is_stopped = solution.status != "optimal"
        if best is not None and is_stopped and solution.objective > best.objective:
            # The best smaller tree is allowed here, too.
            solution = Changed(
                best,
                lower_bound=solution.lower_bound,
                status=solution.status,
                n_nodes_explored=solution.n_nodes_explored,
                trace=[(s, min(value, best.objective), b) for s, value, b in solution.trace],
            )
        best = solution
        yield solution
