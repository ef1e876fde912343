"""An audit of a judge without anybody's ratings: images are changed in known ways, and it is
asked again.
"""
