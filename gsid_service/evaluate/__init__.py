"""Frozen data sets, and what detectors make of them."""
