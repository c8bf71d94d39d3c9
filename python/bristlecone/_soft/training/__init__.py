"""Training of soft trees: the objective and its gradient, starts, decomposition, refinement."""
