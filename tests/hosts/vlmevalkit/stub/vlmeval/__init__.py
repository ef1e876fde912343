"""As little of VLMEvalKit as its plugin touches: enough to run a dataset through it without the
500 MB of the real one.
"""
