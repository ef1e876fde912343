"""Networks that measure, one a module: its metrics, its loading, its preparing."""
