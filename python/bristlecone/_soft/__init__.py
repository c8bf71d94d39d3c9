"""Soft trees: their splits, the survival models of their leaves, and how both are trained."""
