"""Drawn samples with known defects in any number, for training `vieval_small` and for testing it on what it never saw.

`worlds` says which things, toys, backgrounds and defects are trained on and which are held out; `samples` draws.
Nothing of `vieval_demo` itself is in either: not its scenes, backgrounds, seeds or instructions.
"""
