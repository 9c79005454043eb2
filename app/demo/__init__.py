"""What is there to see before a job of one's own has posted anything?"""
