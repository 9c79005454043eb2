"""How do accepted documents become rows?"""
