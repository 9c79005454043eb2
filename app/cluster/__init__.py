"""Which code may change the outside world? Only the modules of this package, behind the ports in `ports`."""
