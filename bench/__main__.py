"""`python -m bench`: see `bench.suite`."""

from bench.suite.options import main

if __name__ == "__main__":
    main()
