"""`python -m loopwright`: the command line of the package. There is nothing else in here."""

from loopwright.cli import main

if __name__ == "__main__":
    main()
