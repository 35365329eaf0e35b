"""Commands that run the service, and that speak to one that runs."""
