"""The store: what the service must not forget, in SQLite or PostgreSQL."""
