"""The answer of a decision for one value, as every exported program must compute it."""


def decide(decision, value):
    """Whether the answer is yes.

    None and NaN are missing, and so are NA and NaT of pandas (recognised by name).
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return decision.missing
    if decision.kind == "at most":
        return float(value) <= decision.bound
    if decision.kind == "flag":
        return float(value) > 0.5
    return decision.kind == "level" and value in decision.levels
