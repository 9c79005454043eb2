"""How is telemetry put on a page?"""
