"""What QueenBee costs, measured (`make bench`), and what it is for, shown (`make demo`)."""
