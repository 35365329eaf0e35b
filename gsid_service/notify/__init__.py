"""Alerts to messages, stage by stage, and messages to receivers."""
