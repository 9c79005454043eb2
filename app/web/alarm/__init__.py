"""What does the page of one alarm say?  One module a part of the page."""
