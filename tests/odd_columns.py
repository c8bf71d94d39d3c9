"""Columns of all kinds under odd names, with odd categories and missing values."""

import numpy as np
import pandas as pd

INJECTION = "'); DROP TABLE x; --"
SHELL = '"]; system("x")'
TEXTS = [
    "II",
    "it's",
    'a "b"',
    "größer 身",
    INJECTION,
    SHELL,
    "back\\slash\\n",
    "new\nline",
    "`${x}`",
]
MIXED = ["1", 2, 2.5, "II", "it's"]
NAMES = [
    'it\'s "age"',
    "select",
    "größe 身長",
    "leaf",
    "0/1",
    INJECTION,
    SHELL,
    "new\nline",
    "a\\`b",
    "&lt;%s",
]


def odd_columns(n, seed):
    rng = np.random.default_rng(seed)
    grades = ["I", "II", "it's", "IV"]
    columns = [
        np.round(rng.normal(60, 10, n), 1),
        rng.integers(0, 9, n),
        rng.normal(size=n).astype(np.float32),
        rng.random(n) < 0.4,
        rng.integers(0, 2, n),
        rng.choice(np.array(MIXED, dtype=object), n),
        pd.Categorical(rng.choice(grades, n), grades, ordered=True),
        rng.choice(TEXTS, n).astype(object),
        rng.choice([f"s{k}" for k in range(20)], n).astype(object),
        pd.Categorical(rng.choice([3, 5, 7], n)),
    ]
    X = pd.DataFrame(dict(zip(NAMES, columns, strict=True)))
    for place in (0, 2, 5, 6, 7, 8, 9):
        X.iloc[rng.random(n) < 0.1, place] = None
    return X


def odd_effect(X):
    """The effect of every row on its outcome, to which every column contributes."""
    age, count, size, flag, other, mixed, grade, text, site, kind = (X[name] for name in NAMES)
    effect = 0.9 * (age > 62).to_numpy(float) + 0.7 * flag + 0.4 * other - 0.1 * count
    effect += 0.8 * text.isin(["it's", INJECTION, SHELL]) + 0.6 * mixed.isin([2, "II"])
    effect += 0.5 * site.isin(["s3", "s4"]) + 0.7 * grade.isna() + 0.6 * (kind == 5)
    return np.asarray(effect + 0.5 * (size > 0.3), dtype=float)
