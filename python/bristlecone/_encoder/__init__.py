"""Binarisation: from columns of numbers and categories to yes-no features with readable names."""
