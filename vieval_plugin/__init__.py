"""VIEval: judges of generated images for evaluation harnesses."""
