"""What comes from the user, read and checked once: rows, outcomes, targets, groups, files."""
