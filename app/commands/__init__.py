"""What can be done on the server's own command line?"""
