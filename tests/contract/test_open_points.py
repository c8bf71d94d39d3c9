"""The list of what is open names tests and estimators that exist."""

from pathlib import Path

from contract.open_points import OPEN
from contract.subjects import EVERY


def test_what_is_open_is_a_test_of_the_contract():
    files = Path(__file__).parent.glob("*.py")
    written = "".join(path.read_text(encoding="utf-8") for path in files)
    for test, subjects, reason in OPEN:
        assert f"def {test.partition('[')[0]}(" in written
        named = () if subjects is ... else subjects if isinstance(subjects, tuple) else (subjects,)
        assert set(named) <= set(EVERY)
        assert reason
