"""What the contract asks for and the estimators do not yet do.

(test, name of the subject, a tuple of names or ``...`` for all, what is missing). Each is expected
to fail; whoever mends it deletes the line.
"""

from contract.subjects import EVERY

WITH_IMPORTANCES = tuple(
    name for name, subject in EVERY.items() if "importances" not in subject.cannot
)
UNSCORED = (*(name for name, subject in EVERY.items() if subject.survival), "PolicyTree")

OPEN = []
