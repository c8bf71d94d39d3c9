"""The public classes, one file each, and their common parts."""
