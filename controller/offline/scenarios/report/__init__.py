"""The report of ``trimtab compare --html``: one page without requests, with the runs of all strategies side by side."""
