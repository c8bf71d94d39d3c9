"""Searches: calls of the engine, forecasts, progress, Pareto fronts, certificates."""
