"""`python -m fishergraph`, the same as the command `fishergraph`."""

from fishergraph.cli import main

if __name__ == "__main__":
    main()
