"""lmms-eval tasks: one short YAML file a task."""
