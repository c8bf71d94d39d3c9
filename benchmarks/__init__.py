"""Benchmarks: problems as data, one adapter per library, dated records. See README.md."""
