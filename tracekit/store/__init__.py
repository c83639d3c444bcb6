"""Tables on disk as Parquet. `cache` finds traces already read by their content; `runs` are folders that people keep."""
