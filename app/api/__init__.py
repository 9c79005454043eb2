"""What do programs read and decide, as JSON under /api/v1?"""
