"""REST: what the pages show, for programs.  ``table.py`` lists the endpoints, ``openapi.py`` describes them."""
