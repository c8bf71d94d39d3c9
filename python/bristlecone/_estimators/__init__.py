"""The public classes, a file each, and what they have in common."""
