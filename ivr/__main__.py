"""`python -m ivr` is `ivr`."""

from ivr.cli import main

if __name__ == "__main__":
    main()
