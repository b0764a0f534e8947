"""What the pages say: the store's values as frozen view models, without HTML.  Templates escape all of it."""
