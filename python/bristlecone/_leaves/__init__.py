"""What the leaves of a tree know and predict, one file per kind of leaf."""
