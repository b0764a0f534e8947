"""Files and environment in, validated settings out (pydantic)."""
