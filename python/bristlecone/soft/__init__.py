"""Soft survival trees."""
