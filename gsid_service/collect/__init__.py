"""Collectors: what each router of a site sees, pushed to the service over HTTP."""
