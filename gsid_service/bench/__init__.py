"""Measurements, each a value with the ratio to something named that ran beside it."""
