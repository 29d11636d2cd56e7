"""Shows results as tables, charts, a page and verdicts; shows progress during measurements."""
