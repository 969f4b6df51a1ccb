# fails: forbidden
# ruff: noqa
import tilelab

source = open(tilelab.__path__[0] + "/../puzzles/01_copy/solution.py").read()
exec(source)
