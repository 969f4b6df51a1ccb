# fails: forbidden
# ruff: noqa
import os

os.fork()
