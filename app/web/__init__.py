"""What does a person see, and what may a person do here?  No SQL, no cluster calls."""
