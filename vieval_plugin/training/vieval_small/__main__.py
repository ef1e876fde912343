"""`python -m vieval_plugin.training.vieval_small FOLDER`; what the processes of a training run must lie in another module."""

from vieval_plugin.training.vieval_small.recipe import main

if __name__ == "__main__":
    main()
