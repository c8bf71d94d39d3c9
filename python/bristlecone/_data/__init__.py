"""Input of the user, read and checked once: rows, outcomes, targets, groups, files."""
