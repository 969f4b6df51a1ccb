# fails: exit
import os

os._exit(0)
