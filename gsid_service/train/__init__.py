"""Training: from data sets to weights."""
