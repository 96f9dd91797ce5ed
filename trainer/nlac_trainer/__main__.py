"""`python -m nlac_trainer`, and what `accelerate launch -m nlac_trainer` starts on every rank."""

from .cli import main

if __name__ == "__main__":
    main()
