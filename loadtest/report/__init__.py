"""How results are shown: tables, charts, a page, verdicts; progress while they are measured."""
