"""Tables from files, without any data frame library: CSV, compressed or not, and Parquet.

Only the command line and the bundled data sets need this: who has pandas or polars passes its data
frames to the estimators directly.
"""

from bristlecone.data.reading.csv_file import CsvFile, read_csv
from bristlecone.data.reading.parquet_file import ParquetFile, read_parquet

__all__ = ["CsvFile", "ParquetFile", "read_csv", "read_parquet"]
