"""The ledger: what was tried, what was decided, what came of it. Stands alone."""
