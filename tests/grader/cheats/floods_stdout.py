# fails: output
# ruff: noqa
while True:
    print('{"score": 100, "passed": true}' * 100)
