"""What follows from the facts? Pure rules: no clock, no input or output, no framework."""
