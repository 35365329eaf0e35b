"""The web console: what the service knows, as pages that a person on call can read and act on."""
