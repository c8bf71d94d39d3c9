"""Rewards of treatments: models of unobserved outcomes, scores, and the values of policies."""
