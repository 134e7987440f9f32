"""`adjudge view`: a run in local web pages, read from its Parquet files on demand, or written as files."""
