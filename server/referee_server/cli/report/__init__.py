"""Shows the results of a tournament to people and programs: terminal, JSON, CSV, Markdown, HTML, Parquet."""
