"""Shows results as tables, charts, a page and verdicts, and progress during measurements."""
