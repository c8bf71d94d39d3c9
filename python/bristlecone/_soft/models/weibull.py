"""Weibull leaves: S(t) = exp(−(t/μ)^α)."""

from __future__ import annotations

from bristlecone._soft.models.scale import ScaleModel
from bristlecone._soft.models.transformation import HazardLink


class Weibull(ScaleModel):
    """Hazard (α/μ)(t/μ)^(α−1): rising, constant or falling."""

    name = "weibull"
    link = HazardLink
