"""As much of VLMEvalKit as its plugin touches, without the 500 MB of the real one."""
