"""The service: what is the process that people and training jobs talk to made of?"""
