"""Fitted models as JSON documents and files."""
