"""The way to the engine: what is searched for, what a search tells, and what it proved."""
