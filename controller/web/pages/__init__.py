"""The pages, a file each; ``table.py`` lists them."""
