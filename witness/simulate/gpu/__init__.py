"""What do the checks cost on a real GPU, and do they hold there?"""
