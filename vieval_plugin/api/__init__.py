"""Python API: judges that stay open, images and samples as people have them, verdicts to look
at.
"""
