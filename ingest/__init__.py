"""What comes in, from whom, and is it well formed?"""
