"""`report.html`, one file that loads nothing, and the parts it is made of."""
