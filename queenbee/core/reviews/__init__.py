"""Pull requests: what a host says of one, and what the records say."""
