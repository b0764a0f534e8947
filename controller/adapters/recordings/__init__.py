"""Recordings: a log copied into a folder of Parquet files with a manifest.

manifest.json                     what it holds, and each file's SHA-256; written last
metrics/000000.parquet ...        records of a topic, a stretch of time in each file
results/  commands/  journal/
"""
