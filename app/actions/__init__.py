"""What is done with what the rules say: cases, proposals, decisions, actions?"""
