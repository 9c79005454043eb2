"""What would an action do, what would it cost, what speaks against it?  Read live at every look."""
