"""Which pages are there?  One file a page; each has a `router` that app.main includes."""
