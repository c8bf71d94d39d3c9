"""Leaves of trees: their statistics and predictions, one file per kind of leaf."""
