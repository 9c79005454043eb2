"""What does the timeline show of a range, in lanes and as a list?"""
