"""Which drawings are made on the server, as inline SVG without any inline style?"""
