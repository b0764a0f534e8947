"""What an election system offers, as protocols; the folders of the systems implement them."""
