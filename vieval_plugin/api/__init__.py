"""What people type in Python: judges that stay open, images and samples as they have them, verdicts to look at."""
