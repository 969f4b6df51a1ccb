# fails: forbidden
# ruff: noqa
import os
import signal

os.kill(os.getppid(), signal.SIGKILL)
