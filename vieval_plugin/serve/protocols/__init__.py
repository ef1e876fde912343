"""Protocols of the reward server: a module each describes its routes, and reads and writes its
bodies.
"""
