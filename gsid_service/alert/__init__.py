"""Alerts: when one opens, changes and resolves, and why."""
