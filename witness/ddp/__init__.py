"""What does a PyTorch DDP job import to check itself for silent data corruption?"""
