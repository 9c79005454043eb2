"""Which code may change the outside world? Only the modules here, behind the ports in `ports`."""
