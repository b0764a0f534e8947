"""Commands carried out on a real cluster: fenced, looked at before and after, answered once."""
