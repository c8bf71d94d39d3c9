"""Rewards of treatments: models of what is not observed, scores, and the values of policies."""
