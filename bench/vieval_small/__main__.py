"""`python -m bench.vieval_small FOLDER`; what the processes of a training run must lie in another module."""

from bench.vieval_small.recipe import main

if __name__ == "__main__":
    main()
