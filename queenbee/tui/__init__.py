"""`queen watch` in a terminal: it shows the rows of `queenbee.watch`, and decides nothing."""
