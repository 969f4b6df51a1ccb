# fails: exit
# ruff: noqa
import sys

sys.exit(0)
