"""The only SQL of the project: how are facts and what follows from them kept?"""
