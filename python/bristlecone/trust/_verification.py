"""Result of a verification: the single checks, and whether all passed."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Literal

_WIDTH = 98


@dataclass(frozen=True)
class Check:
    """Result of one check: a value recomputed from the rows, and the value in the tree.

    Parameters
    ----------
    name : str
        Subject of the check: "rows", "objective value", "lower bound", ...
    expected : str
        Value computed from the rows.
    found : str
        Value stored in the tree.
    result : {"passed", "failed", "not checked"}
    reason : str
        Why it was not checked, or what a failure means.

    See Also
    --------
    Verification : All checks of a tree.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.trust import verify
    >>> X, y = [[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0]
    >>> check = verify(OptimalTreeRegressor(max_depth=1).fit(X, y), X, y)["depth"]
    >>> check.expected, check.found, check.result
    ('at most 1', '1', 'passed')
    """

    name: str
    expected: str
    found: str
    result: Literal["passed", "failed", "not checked"]
    reason: str = ""

    @property
    def _words(self) -> str:
        """Result of the check, and the reason."""
        text = self.found
        if self.result == "failed":
            text = f"{text}; expected {self.expected}"
        return "; ".join(filter(None, (text, self.reason)))


@dataclass(frozen=True)
class Verification:
    """All checks of a tree, true if none failed; printed, and in notebooks, as a short table.

    Parameters
    ----------
    subject : str
        Description of the tree that was verified.
    checks : tuple of Check
        In the order in which they were made.

    See Also
    --------
    bristlecone.trust.verify : Runs the checks.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.trust import verify
    >>> X, y = [[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0]
    >>> found = verify(OptimalTreeRegressor(max_depth=1).fit(X, y), X, y)
    >>> found.ok, found["lower bound"].result
    (True, 'passed')
    """

    subject: str
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    def __bool__(self) -> bool:
        return self.ok

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.result == "failed")

    @property
    def not_checked(self) -> tuple[Check, ...]:
        """The checks that could not be done, with the reasons."""
        return tuple(check for check in self.checks if check.result == "not checked")

    def __getitem__(self, name: str) -> Check:
        """Return the check of this name."""
        for check in self.checks:
            if check.name == name:
                return check
        names = ", ".join(check.name for check in self.checks)
        raise KeyError(f"there is no check {name!r}; the checks are {names}")

    def __repr__(self) -> str:
        width = max(len(check.name) for check in self.checks)
        lines = []
        for check in self.checks:
            start = f"{check.name:{width}}  {check.result:11}  "
            below = "\n" + " " * len(start)
            filled = textwrap.wrap(check._words, max(_WIDTH - len(start), 20))
            lines.append((start + below.join(filled)).rstrip())
        table = "\n".join(lines)
        return f"{self.subject}\n\n{table}\n\n{self._counts}"

    @property
    def _counts(self) -> str:
        counts = [f"{len(self.checks) - len(self.failed) - len(self.not_checked)} checks passed"]
        if self.failed:
            counts.append(f"{len(self.failed)} failed")
        if self.not_checked:
            counts.append(f"{len(self.not_checked)} not checked")
        return ", ".join(counts)

    def _repr_html_(self) -> str:
        """Table of the checks, which notebooks show."""
        rows = "".join(
            f"<tr><th>{escape(check.name)}</th><td>{check.result}</td>"
            f"<td>{escape(check._words)}</td></tr>"
            for check in self.checks
        )
        head = "<tr><th>check</th><th>result</th><th>found</th></tr>"
        table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        return f"<p>{escape(self.subject)}</p>{table}<p>{self._counts}</p>"
