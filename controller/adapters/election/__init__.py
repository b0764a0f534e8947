"""Protocols of an election system; the folders of the systems implement them."""
