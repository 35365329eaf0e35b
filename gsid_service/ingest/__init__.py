"""Snapshots from collectors: their wire form and its validation."""
