"""Work that lands by pull request: proposed, followed at its host, and landed once it is merged."""
