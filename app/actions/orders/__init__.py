"""How is each kind of action sent, and how is it seen that it came about?"""
