"""Log-logistic leaves: S(t) = 1/(1 + (t/μ)^α)."""

from __future__ import annotations

from bristlecone._soft.models.scale import ScaleModel
from bristlecone._soft.models.transformation import OddsLink


class LogLogistic(ScaleModel):
    """Hazard (α/μ)(t/μ)^(α−1)/(1 + (t/μ)^α): falling, or rising and then falling."""

    name = "log-logistic"
    link = OddsLink
