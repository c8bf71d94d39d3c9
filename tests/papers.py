"""Settings of survival trees in the papers: no minimum of events, no prior, no shrinkage."""

PAPERS = {"min_events_leaf": None, "prior": 0, "shrinkage": 0}
