"""Verification: what a suspicious value breaks, proved by simulation."""
