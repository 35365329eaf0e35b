"""REST: requests in, the store's content out, errors as problem+json."""
