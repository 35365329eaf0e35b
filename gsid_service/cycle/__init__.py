"""What the cycle in `app.py` is made of: what is seen, what is expected, what is kept and shown."""
