# fails: forbidden
import os

os.fork()
