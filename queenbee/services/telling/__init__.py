"""What a droid is told: who it is and what is going on, news, and what it has not finished."""
