"""How does the telemetry around an alarm come to be asked for, pulled, kept and read?"""
